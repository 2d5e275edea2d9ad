"""The mind that needs no model: it proposes, judges and writes from schemas alone.

Pure functions decide; `RulesMind` only adapts them to the interface of a mind. A
candidate that these rules cannot map is countered once, in our own terms, and then
rejected with the missing parts (DESIGN.md, Negotiation).

On the provider's side an owner's hint decides which exposed capability a candidate
means. On the requester's side rules do not use hints: in a document they would give
equal needs different hashes, and the peer must not see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from negotiation.document.reader import read_document, read_requirement
from negotiation.document.renderer import render_document
from negotiation.document.shape import Document
from negotiation.errors import DocumentError, HalfError, MindError, SchemaError
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
from negotiation.need import Capability
from negotiation.rules.choice import Chain, NoChoice, choose, choose_for_prose
from negotiation.rules.claims import may_hold_words, missed_by_document, missed_claim
from negotiation.rules.fit import Fit, fit_provider, fit_requester, given_schema
from negotiation.rules.formats import format_refusal
from negotiation.rules.halves import write_half
from negotiation.rules.names import near_names
from negotiation.schema.intake import prepared
from negotiation.schema.mapping import compare
from negotiation.schema.plan import Mismatch
from negotiation.schema.terms import Drop
from negotiation.transcript import Direction, Turn

MAX_REASONS: Final = 8
"Largest number of reasons in one summary or rejection."


class RulesMind:
    """A `Mind` without cost whose answers depend only on its inputs."""

    async def propose(self, demand: Demand) -> str:
        """Return the first candidate for `need` (ANP-4).

        Raises:
            MindError: The need's own schemas cannot be put into a document, or it
                insists on a format that is not JSON.
        """
        if refused := format_refusal(demand.need.requirement):
            raise MindError(refused)
        try:
            return propose(demand)
        except (DocumentError, SchemaError) as exc:
            raise MindError(f"the task cannot be proposed: {exc}") from None

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        """Judge the peer's candidate (ANP-5, ANP-33)."""
        if findings:
            told = HALF_FAILED if isinstance(side, Demand) else ""
            return Reject(f"{HALF_FAILED}: {'; '.join(findings)}", told)
        sent = [
            turn.candidate
            for turn in transcript
            if turn.direction is Direction.SENT and turn.candidate
        ]
        if isinstance(side, Demand):
            return judge_reply(candidate, side, sent)
        return judge_offer(candidate, side, sent)

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        """Write our half for `document`.

        Raises:
            HalfError: The document does not fit. Findings change nothing: rules write
                the same text again, which the caller notices.
        """
        return write_from_text(document, side)

    async def answer(self, question: str, side: Side) -> str:
        """Answer with names of capabilities, never with promises (ANP-64)."""
        if isinstance(side, Demand):
            return (
                "This side decides by JSON Schemas alone and cannot discuss in words. "
                f"It needs: {side.need.requirement}"
            )
        names = near_names(question, side.capabilities) or sorted(
            one.name for one in side.capabilities
        )
        listed = ", ".join(names[:MAX_REASONS]) or "nothing"
        return (
            "This side decides by JSON Schemas alone and cannot discuss in words. "
            f"It offers you: {listed}. Propose a document that names one of these in "
            "its requirement; the answer is a document in our terms if yours does not "
            "fit."
        )


def propose(demand: Demand) -> str:
    """Return the document of `need` in our own shape; equal needs give equal bytes.

    Raises:
        DocumentError: A schema of the need is over the limits.
    """
    need = demand.need
    wanted = {} if need.output_schema is None else need.output_schema
    return render_document(need.requirement, given_schema(demand), wanted)


def own_terms(
    chosen: Capability | Chain,
    capabilities: Sequence[Capability] = (),
    *,
    updates: bool = True,
) -> str:
    """Return the document with exactly the input and output of `chosen` (ANP-5).

    Args:
        capabilities: The capabilities among which those of a chain are looked up.
        updates: False to leave out what the capability gives before its answer.

    Raises:
        DocumentError: A schema of the capability is over the limits.
    """
    whole = chosen.whole if isinstance(chosen, Chain) else chosen
    parts = (
        [one for one in capabilities if one.name in chosen.names]
        if isinstance(chosen, Chain)
        else [chosen]
    )
    # Only the name: a description may contain names of other capabilities.
    return render_document(
        whole.name,
        whole.input_schema,
        whole.output_schema,
        offered=parts,
        updates=chosen.updates if updates and isinstance(chosen, Capability) else None,
    )


def published_document(capability: Capability) -> str:
    """Return the document under which everybody may call one capability.

    It depends on the capability's name, schemas and read-only hint alone, so the same
    tool behind any two daemons has the same document and hash; what it gives before its
    answer belongs to its schemas.

    Raises:
        DocumentError: A schema of the capability is over the limits.
    """
    return own_terms(replace(capability, description=""))


def judge_offer(candidate: str, offer: Offer, sent: Sequence[str]) -> Verdict:
    """Return the provider's verdict on `candidate`.

    Args:
        sent: The candidates that we have sent in this negotiation.
    """
    document = _read(candidate)
    chosen: Capability | Chain | NoChoice
    if isinstance(document, DocumentError):
        requirement = read_requirement(candidate) or candidate
        chosen = choose_for_prose(requirement, offer.capabilities, offer.hints)
        reasons = [str(document)]
    else:
        requirement = document.requirement
        chosen = choose(document, offer.capabilities, offer.hints)
        reasons = []
    if isinstance(chosen, NoChoice):
        return Reject("; ".join([chosen.reason, *reasons]))
    if refused := format_refusal(requirement):
        return Reject(refused)
    fit: Fit | None = None
    if isinstance(document, Document):
        found = _judge_fit(document, chosen, offer)
        if not isinstance(found, tuple):
            return found
        fit, reasons = found
    empty = () if fit is None else fit.empty
    try:
        terms = chosen if fit is None else _acceptable(chosen, fit)
        ours = own_terms(terms, offer.capabilities, updates=offer.updates)
    except DocumentError as exc:
        return Reject(f"{chosen.name} cannot be described: {exc}")
    if ours not in sent:
        told = _summary(f"the terms of `{chosen.name}`", reasons)
        return Counter(ours, told, empty)
    if fit is not None:
        # The peer declined our updates, or our own names, and can do without.
        return Accept(empty=empty)
    return Reject(
        f"{chosen.name} cannot serve this document, and our own terms were "
        f"declined: {'; '.join(reasons)}"
    )


def _judge_fit(
    document: Document, chosen: Capability | Chain, offer: Offer
) -> Verdict | tuple[Fit | None, list[str]]:
    """Return a verdict, or how a document fits, if it does, and what is against it."""
    fit = fit_provider(document, chosen)
    if isinstance(fit, Mismatch):
        return None, _listed(fit)
    whole = chosen.whole if isinstance(chosen, Chain) else chosen
    given = fit.request.place.schema
    wanted = fit.response.place.schema
    missed = missed_claim(document.requirement, whole, given, wanted)
    if missed is not None:
        reason = f"{chosen.name}: {missed.reason}"
        # Only the requester knows if its data has the word: it judges our own terms.
        may_be_data = missed.word and may_hold_words(given)
        return (None, [reason]) if may_be_data else Reject(reason)
    reasons = [
        f"nothing is called {place} here, but there is more" for place in fit.empty
    ]
    reasons += fit.unsaid
    if offer.updates and _has_more(document, chosen):
        reasons.append("it gives parts of the result before the response")
    if reasons:
        # Whoever asks sees all that is there, and which of it may be meant.
        return fit, reasons[-MAX_REASONS:]
    return Accept(empty=fit.request.plan.empty)


def _acceptable(chosen: Capability | Chain, fit: Fit) -> Capability | Chain:
    """Return what our own terms are made of: the chosen, or with the peer's request.

    A caller whose data have no place in our request could not take our terms, although
    we serve it without these data.
    """
    request, whole = fit.request, chosen.whole if isinstance(chosen, Chain) else chosen
    takes = prepared(whole.input_schema)
    loses = isinstance(compare(request.place.schema, takes, drop=Drop.NONE), Mismatch)
    if not ((fit.empty or fit.unsaid) and loses):
        return chosen
    whole = replace(whole, input_schema=request.place.schema)
    return replace(chosen, whole=whole) if isinstance(chosen, Chain) else whole


def _has_more(document: Document, chosen: Capability | Chain) -> bool:
    """Return whether a capability gives updates of which a document does not know."""
    streams = isinstance(chosen, Capability) and chosen.updates is not None
    return streams and document.update_schema is None


def judge_reply(candidate: str, demand: Demand, sent: Sequence[str]) -> Verdict:
    """Return the requester's verdict on `candidate`, a counter of the provider.

    Args:
        sent: The candidates that we have sent in this negotiation.
    """
    document = _read(candidate)
    repeats = 0
    if isinstance(document, DocumentError):
        reasons = [str(document)]
        # An unreadable candidate is answered once with our first proposal, because the
        # reason may be new to the peer; a sender of a readable one has seen our terms.
        repeats = 1
    else:
        fit = fit_requester(document, demand)
        if not isinstance(fit, Mismatch):
            missed = missed_by_document(document, fit, demand)
            if missed:
                return Reject(f"the task: {missed}")
            return Accept(empty=fit.empty)
        reasons = _listed(fit)
    try:
        ours = propose(demand)
    except DocumentError as exc:
        return Reject(f"the task cannot be described: {exc}")
    if sent.count(ours) > repeats:
        return Reject(f"the task cannot use this document: {'; '.join(reasons)}")
    return Counter(ours, _summary("the terms of our task", reasons))


def write_from_text(document: str, side: Side) -> HalfSource:
    """Return our half for the text of a document.

    Raises:
        HalfError: See `RulesMind.write_half`.
    """
    read = _read(document)
    if isinstance(read, DocumentError):
        raise HalfError("rejected", f"the document cannot be read: {read}")
    return write_half(read, side)


def _read(candidate: str) -> Document | DocumentError:
    try:
        return read_document(candidate)
    except DocumentError as exc:
        return exc


def _listed(mismatch: Mismatch) -> list[str]:
    more = len(mismatch.reasons) - MAX_REASONS
    listed = [str(reason) for reason in mismatch.reasons[:MAX_REASONS]]
    return [*listed, f"and {more} more"] if more > 0 else listed


def _summary(terms: str, reasons: list[str]) -> str:
    """Return a modification summary in Markdown (ANP-30, ANP-31)."""
    lines = [
        "Changes:",
        f"- Request and response now have {terms}; the whole document is new.",
        "Reasons:",
        *(f"- {' '.join(reason.split())}" for reason in reasons),
    ]
    return "\n".join(lines)
