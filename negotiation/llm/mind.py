"""The mind that asks a language model and decides in code.

Each step has a pure function that makes a question and a pure function that reads the
answer. This class passes the questions to the model and keeps the results of judging,
so that the half for the same document needs no further question (LLM.md; DESIGN.md,
Negotiation).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from negotiation.document.reader import read_document, read_requirement
from negotiation.document.shape import Document, document_hash
from negotiation.errors import DocumentError, HalfError, MindError, SchemaError
from negotiation.llm.asking.questions import Model, Question
from negotiation.llm.assess import Assessor
from negotiation.llm.links.halves import provider_half, requester_half
from negotiation.llm.links.plans import ProviderPlan, RequesterPlan
from negotiation.llm.memory import Memory, Plan, Planned, side_key
from negotiation.llm.steps.advice import allow_question
from negotiation.llm.steps.candidates import (
    Base,
    base_of,
    changes_question,
    fitting_option,
    option_question,
    read_changes,
    split_options,
)
from negotiation.llm.steps.offer import (
    OfferForm,
    Unmapped,
    Unserved,
    choosing_question,
    offer_form,
    offer_question,
    read_choice,
    read_offer,
)
from negotiation.llm.steps.phrases import codec_question, read_codec
from negotiation.llm.steps.propose import (
    needs_model,
    propose_question,
    read_again,
    read_proposal,
)
from negotiation.llm.steps.reply import (
    ReplyForm,
    read_reply,
    reply_form,
    reply_question,
)
from negotiation.llm.verdicts import counter, declined, listed, missing_reason, summary
from negotiation.mind import (
    HALF_FAILED,
    Accept,
    Counter,
    Demand,
    HalfSource,
    Offer,
    Reject,
    Side,
    Verdict,
)
from negotiation.rules.choice import NoChoice, choose_for_prose
from negotiation.rules.halves import write_half
from negotiation.rules.rules import propose as plain_proposal
from negotiation.transcript import Direction, Turn

T = TypeVar("T")


class LlmMind(Assessor):
    """A `Mind` that works with weak models and benefits from strong ones.

    Args:
        model: Answers the questions; keeps the budget.
        held: Texts of protocols that we hold, by URI, for candidates that build on one
            (ANP-26).
    """

    def __init__(
        self, model: Model, *, held: Mapping[str, str] | None = None, name: str = ""
    ) -> None:
        super().__init__(model)
        self._held = dict(held or {})
        # Stored with the halves that it writes.
        self._name = name

    # The first document.

    async def propose(self, demand: Demand) -> str:
        """Return the first candidate for `need` (ANP-4).

        Raises:
            MindError: The model failed, or the need's own schemas cannot be put into a
                document.
        """
        key = side_key(demand)
        if (known := self._memory.proposed.get(key)) is not None:
            return known
        try:
            if needs_model(demand):
                text = await self._model_proposal(demand, key)
            else:
                text = plain_proposal(demand)
        except (DocumentError, SchemaError) as exc:
            raise MindError(f"the task cannot be proposed: {exc}") from None
        self._memory.proposed.put(key, text)
        return text

    async def _model_proposal(self, demand: Demand, key: str) -> str:
        """Return the model's first document; ask again once if its encoding is wrong.

        A format that the task insists on is never replaced by JSON: without a document
        for it there is no proposal.
        """
        answer = await self._ask(propose_question(demand))
        found = read_proposal(demand, answer, self._held)
        if isinstance(found, list):
            question = propose_question(demand, problems=found, previous=answer)
            again = await self._ask(question)
            found = read_again(demand, answer, again, self._held)
        if found.codec:
            self._memory.codecs.put(document_hash(found.text), found.codec)
            self._memory.formats.put(key, found.format)
        return found.text

    def insists_on_format(self, side: Side) -> bool:
        """Return whether a need is served only by messages that are not JSON."""
        return self._memory.formats.get(side_key(side)) is not None

    # Verdicts.

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        """Judge the peer's candidate (ANP-5, ANP-33); see `Mind.judge`.

        Raises:
            MindError: The model failed.
        """
        sent = [
            turn.candidate
            for turn in transcript
            if turn.direction is Direction.SENT and turn.candidate
        ]
        if findings:
            return await self._after_failure(candidate, side, sent, findings)
        if candidate in sent:
            # The peer returned our own terms, which we stand by.
            return Accept()
        key = Memory.key(candidate, side)
        known = self._memory.plans.get(key)
        if known is not None and not known.failed:
            return Accept()
        if (refused := self._memory.refused.get(key)) is not None:
            return refused
        if isinstance(side, Demand):
            return await self._judge_reply(candidate, side, sent)
        return await self._judge_offer(candidate, side, sent)

    async def _judge_offer(
        self, candidate: str, offer: Offer, sent: Sequence[str]
    ) -> Verdict:
        if not offer.capabilities:
            return Reject("nothing is offered to you")
        try:
            if options := split_options(candidate):
                return await self._choose_option(options, offer)
            base = base_of(candidate, self._held)
            if base is not None and not base.whole:
                return await self._judge_based(candidate, base, offer, sent)
            document = read_document(candidate)
            form = offer_form(document, offer)
        except DocumentError as exc:
            return await self._answer_prose(candidate, offer, sent, str(exc))
        found = await self._plan_offer(form, once=bool(sent))
        return self._verdict(found, document, offer, sent)

    def _verdict(
        self,
        found: ProviderPlan | Unserved | Unmapped,
        document: Document,
        offer: Offer,
        sent: Sequence[str],
    ) -> Verdict:
        match found:
            case ProviderPlan():
                self._remember(document.text, offer, found)
                return Accept()
            case Unserved(missing):
                refused = Reject(missing_reason(missing, offer))
                self._memory.refused.put(Memory.key(document.text, offer), refused)
                return refused
        reasons = found.reasons
        if len(found.capabilities) == 1:
            (name,) = found.capabilities
            return counter(name, offer, sent, reasons)
        names = ", ".join(found.capabilities)
        return Reject(f"{names} cannot serve this document: {listed(reasons)}")

    async def _plan_offer(
        self, form: OfferForm, problems: tuple[str, ...] = (), *, once: bool = False
    ) -> ProviderPlan | Unserved | Unmapped:
        """Ask how the capabilities serve a document; ask again if the plan has gaps.

        Args:
            problems: Faults of the half that an earlier answer gave.
            once: True to ask only once.
        """
        offer = await self._advised(form.document.requirement, form.offer)
        if not offer.capabilities:
            return Unserved("")
        if offer is not form.offer:
            form = offer_form(form.document, offer)
        if form.too_large:
            chosen = read_choice(form, await self._ask(choosing_question(form)))
            if isinstance(chosen, Unserved):
                return chosen
            form = offer_form(form.document, chosen)
        return await self._ask_twice(
            Memory.key(form.document.text, form.offer),
            partial(offer_question, form),
            partial(read_offer, form),
            problems,
            once=once,
        )

    async def _ask_twice(
        self,
        key: str,
        question: Callable[..., Question],
        read: Callable[[Mapping[str, Any]], T],
        problems: Sequence[str],
        *,
        once: bool = False,
    ) -> T | Unmapped:
        """Ask for the plan of a half; ask again if the plan has gaps.

        Args:
            key: Key of the document for our side, to keep the answer.
        """
        previous = self._memory.answers.get(key)
        answer = await self._ask(question(problems=problems, previous=previous))
        self._memory.answers.put(key, answer)
        found = read(answer)
        match found:
            case Unmapped(reasons):
                gaps = reasons
            case Unserved(_, doubt) if doubt:
                gaps = (doubt,)
            case _:
                return found
        if problems or once:
            return found
        again = await self._ask(question(problems=gaps, previous=answer))
        self._memory.answers.put(key, again)
        # The model repeats its answer, so a third question would not help.
        if again == answer:
            return found
        return read(again)

    async def _answer_prose(
        self, candidate: str, offer: Offer, sent: Sequence[str], reason: str
    ) -> Verdict:
        """Answer a text that is no document with the terms of the meant capability."""
        requirement = read_requirement(candidate) or candidate
        whole = offer
        chosen = choose_for_prose(requirement, offer.capabilities, offer.hints)
        if not isinstance(chosen, NoChoice):
            return counter(chosen.name, offer, sent, (reason,))
        offer = await self._advised(requirement, offer)
        if not offer.capabilities:
            return Reject(f"{missing_reason('', whole)}; {reason}")
        form = offer_form(Document(candidate, requirement, _OBJECT, _OBJECT), offer)
        found = read_choice(form, await self._ask(choosing_question(form)))
        if isinstance(found, Unserved):
            return Reject(f"{missing_reason(found.missing, offer)}; {reason}")
        return counter(found.capabilities[0].name, offer, sent, (reason,))

    async def _choose_option(self, options: Sequence[str], offer: Offer) -> Verdict:
        """Answer a proposal of several options with one of them in full (ANP-4)."""
        number = fitting_option(options, offer)
        if number is None:
            answer = await self._ask(option_question(options, offer))
            number = int(answer["option"])
            if not 1 <= number <= len(options):
                return Reject(missing_reason(answer["missing"], offer))
            text = options[number - 1]
            document = read_document(text)
            found = await self._plan_offer(offer_form(document, offer))
            if not isinstance(found, ProviderPlan):
                return self._verdict(found, document, offer, ())
            self._remember(text, offer, found)
        return Counter(
            options[number - 1],
            f"Changes:\n- Of {len(options)} options number {number} is taken, in full; "
            "the others are left out.",
        )

    async def _judge_based(
        self, candidate: str, base: Base, offer: Offer, sent: Sequence[str]
    ) -> Verdict:
        """Write out the changes of a candidate to a base that we hold (ANP-26)."""
        if base.problem:
            return Reject(base.problem)
        answer = await self._ask(changes_question(candidate, base))
        text = read_changes(candidate, base, answer)
        if text in sent:
            return Reject("the changes to the base were written out and declined")
        document = read_document(text)
        found = await self._plan_offer(offer_form(document, offer))
        if not isinstance(found, ProviderPlan):
            return self._verdict(found, document, offer, sent)
        self._remember(text, offer, found)
        return Counter(
            text,
            "Changes:\n- None in meaning: base and changes are written out in full.",
        )

    async def _judge_reply(
        self, candidate: str, demand: Demand, sent: Sequence[str]
    ) -> Verdict:
        try:
            document = read_document(candidate)
            wanted = self._memory.formats.get(side_key(demand))
            if wanted is not None and document.is_json:
                return Reject(
                    f"the task insists on messages that are not JSON ({wanted}), and "
                    "those of this document are JSON"
                )
            form = reply_form(document, demand)
        except DocumentError as exc:
            # An unreadable candidate is answered once with our first proposal, because
            # the reason may be new to the peer.
            ours = await self.propose(demand)
            if sent.count(ours) > 1:
                return Reject(f"this document cannot be used: {exc}")
            return Counter(ours, summary("the terms of our task", (str(exc),)))
        found = await self._plan_reply(form)
        if isinstance(found, RequesterPlan):
            self._remember(candidate, demand, found)
            return Accept()
        if isinstance(found, Unserved):
            said = f"; missing: {found.missing}" if found.missing else ""
            return declined(f"the document does not serve the task{said}", demand)
        reasons = listed(found.reasons)
        return declined(f"the task cannot use this document: {reasons}", demand)

    async def _plan_reply(
        self, form: ReplyForm, problems: tuple[str, ...] = ()
    ) -> RequesterPlan | Unserved | Unmapped:
        if not problems:
            digest = document_hash(form.document.text)
            codec = self._memory.codecs.get(digest) or ""
            same = read_reply(form, {**_NOTHING, "codec": codec})
            if isinstance(same, RequesterPlan) and not same.empty:
                # The document already uses the names and types of the need.
                return same
            if form.demand.hints and not await self._allowed(form):
                return Unserved("")
        return await self._ask_twice(
            Memory.key(form.document.text, form.demand),
            partial(reply_question, form),
            partial(read_reply, form),
            problems,
        )

    async def _allowed(self, form: ReplyForm) -> bool:
        """Return whether the owner's hints speak for a document (ANP-34)."""
        question = allow_question(form.document.text, form.demand)
        return bool((await self._ask(question))["accept"])

    async def _after_failure(
        self, candidate: str, side: Side, sent: Sequence[str], findings: Sequence[str]
    ) -> Verdict:
        """Answer without a question after our half for a document failed."""
        reason = f"{HALF_FAILED}: {listed(findings)}"
        known = self._memory.plans.get(Memory.key(candidate, side))
        if known is not None:
            known.failed = True
        if isinstance(side, Demand):
            ours = await self.propose(side)
            if ours in sent:
                return Reject(reason, HALF_FAILED)
            return Counter(ours, summary("the terms of our task", (HALF_FAILED,)))
        plan = known.plan if known is not None else None
        if isinstance(plan, ProviderPlan) and len(plan.calls) == 1:
            return counter(plan.calls[0].capability, side, sent, (reason,))
        return Reject(reason)

    # Halves.

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        """Write our half for `document`, using the results of judging (see `Mind`).

        Raises:
            HalfError: No half can be written, or the model repeats one that failed.
            MindError: The model failed.
        """
        try:
            read = read_document(document)
        except DocumentError as exc:
            raise HalfError("rejected", f"the document cannot be read: {exc}") from None
        key = Memory.key(document, side)
        known = self._memory.plans.get(key)
        if known is None and not findings and read.is_json:
            # Where the rules do not apply, the model is asked below.
            with contextlib.suppress(HalfError):
                half = write_half(read, side)
                if not half.empty:
                    return half
        if known is None or findings:
            before = known.text if known is not None else ""
            plan = await self._replan(read, side, known, findings)
            known = Planned(plan, before)
            self._memory.plans.put(key, known)
        half = _written(known.plan, document_hash(document))
        if findings and half.text == known.text:
            raise HalfError(
                "rejected", f"the model gave the same half again: {listed(findings)}"
            )
        known.text = half.text
        return replace(half, model=self._name)

    async def _replan(
        self,
        document: Document,
        side: Side,
        known: Planned | None,
        findings: tuple[str, ...],
    ) -> Plan:
        if known is not None and known.plan.codec:
            question = codec_question(document, known.plan.codec, findings)
            codec = read_codec(document, await self._ask(question))
            if isinstance(codec, list):
                raise HalfError("rejected", "; ".join(codec))
            if codec == known.plan.codec:
                raise HalfError(
                    "rejected",
                    f"the model gave the same code again: {listed(findings)}",
                )
            return replace(known.plan, codec=codec)
        found: Plan | Unserved | Unmapped
        try:
            if isinstance(side, Demand):
                found = await self._plan_reply(reply_form(document, side), findings)
            else:
                found = await self._plan_offer(offer_form(document, side), findings)
        except DocumentError as exc:
            raise HalfError("rejected", str(exc)) from None
        match found:
            case Unserved(missing):
                raise HalfError("rejected", f"nothing serves the document: {missing}")
            case Unmapped(reasons):
                raise HalfError("rejected", listed(reasons))
        return found

    def knows(self, document: str, side: Side) -> bool:
        """Return whether judging `document` gave a plan for our half."""
        return self._memory.plans.get(Memory.key(document, side)) is not None

    # Internal.

    def _remember(self, text: str, side: Side, plan: Plan) -> None:
        self._memory.plans.put(Memory.key(text, side), Planned(plan))


_OBJECT: Final[dict[str, Any]] = {"type": "object", "properties": {}}
_NOTHING: Final[dict[str, Any]] = {
    "usable": True,
    "missing": "",
    "request": [],
    "result": [],
}


def _written(plan: Plan, protocol: str) -> HalfSource:
    if isinstance(plan, ProviderPlan):
        half = provider_half(plan, protocol)
    else:
        half = requester_half(plan, protocol)
    return replace(half, empty=plan.empty)
