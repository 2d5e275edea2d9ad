"""Questions to a model about words, messages, test cases and faults.

Code decides first in all of them; only what it cannot decide is asked here, with one
answer for each message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from negotiation.errors import JsonError, MindError, SchemaError
from negotiation.exchange.events import Fault, OurFault, PeerFault
from negotiation.llm.asking.questions import (
    BOOLEAN,
    TEXT,
    Model,
    Question,
    ask_with,
    choice,
    fenced,
    many,
    one_line,
    record,
)
from negotiation.llm.links.spots import Root, described, spots_of
from negotiation.llm.memory import Memory
from negotiation.llm.steps.advice import (
    marks_question,
    read_marks,
    read_selection,
    select_question,
)
from negotiation.messages import cut_text
from negotiation.mind import Demand, Offer, Side
from negotiation.need import Capability, Schema
from negotiation.rules.templates import Mark
from negotiation.schema.intake import prepared
from negotiation.schema.values import contradiction, types_of
from negotiation.strict_json import Json, canonical_json, parse_json

NONE: Final = "none"
"Stands for no capability in an answer."

MAX_ANSWER: Final = 4_000
"Longest answer in words, in characters."

AGAIN: Final = (
    "\n\nYour answer before was empty. Write one sentence at least; that you cannot "
    "tell is an answer too."
)
"Added to the question after an empty answer."

MAX_VALUE: Final = 16 * 1024
"Largest value of one argument, in bytes."

MAX_ARGUMENTS: Final = 40


@dataclass(frozen=True, slots=True)
class Spoken:
    """The request of a natural-language text."""

    capability: str
    "Full name of an exposed capability; empty when none serves it."

    arguments: dict[str, Json]
    "Its arguments, checked against the schema as far as counting can."

    reply: str
    "Text for the peer in place of a call; empty when there is a call."


def answer_question(text: str, side: Side, *, again: bool = False) -> Question:
    """Return the question for an answer to the peer; the owner's hints are left out.

    Args:
        again: True if the previous answer was empty.
    """
    if isinstance(side, Demand):
        about = f"We want this done: {one_line(side.need.requirement, 2_000)}"
    else:
        lines = [
            f"{one_line(one.name)}: {one_line(one.description, 300)}"
            for one in sorted(side.capabilities, key=lambda one: one.name)
        ]
        about = "We offer:\n" + ("\n".join(lines) or "(nothing)")
    question = ask_with(
        "answer",
        {"about": fenced(about, limit=16_000), "question": fenced(text, limit=8_000)},
        schema=record(answer=TEXT),
        max_tokens=800,
    )
    return replace(question, user=question.user + AGAIN) if again else question


def spoken_question(text: str, offer: Offer) -> Question:
    """Return the question for the capability and arguments that a text means."""
    tools = _schemas(offer)
    parts = [
        f"{one_line(one.name)} "
        f"({'changes nothing' if one.read_only else 'not marked read-only'}): "
        f"{one_line(one.description, 1_000)}\n"
        f"{described(spots_of(Root(one.name, tools[one.name]), whole=False))}"
        for one in _listed(offer)
        if one.name in tools
    ]
    places = [name for one in tools for name in _places(one, tools[one])]
    argument = record(to=choice(places), value=TEXT)
    return ask_with(
        "serve",
        {
            "capabilities": fenced("\n\n".join(parts), limit=64_000),
            "text": fenced(text, limit=16_000),
        },
        schema=record(
            capability=choice([*tools, NONE]),
            arguments=many(argument, most=MAX_ARGUMENTS)
            if places
            else many(TEXT, most=0),
            missing=TEXT,
        ),
        max_tokens=1_500,
    )


def read_spoken(answer: Mapping[str, Any], offer: Offer) -> Spoken:
    """Return the call in an answer, checked against the capability's schema."""
    tools = _schemas(offer)
    name = answer["capability"]
    if name not in tools:
        said = one_line(answer["missing"], 300)
        names = ", ".join(sorted(tools)[:6])
        return Spoken(
            "", {}, f"nothing serves this; offered: {names}; {said}".strip("; ")
        )
    schema = tools[name]
    places = _places(name, schema)
    arguments: dict[str, Json] = {}
    for one in answer["arguments"][:MAX_ARGUMENTS]:
        if one["to"] in places:
            key, inner = places[one["to"]]
            arguments[key] = _value(one["value"], inner)
    if reason := contradiction(schema, arguments):
        return Spoken("", {}, f"`{name}` cannot be called like this: {reason}")
    return Spoken(name, arguments, "")


def _listed(offer: Offer) -> list[Capability]:
    return sorted(offer.capabilities, key=lambda one: one.name)


def _schemas(offer: Offer) -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    for one in _listed(offer):
        try:
            found[one.name] = prepared(one.input_schema)
        except SchemaError:
            # Values for an unreadable schema cannot be checked, so it is left out.
            continue
    return found


def _places(name: str, schema: Schema) -> dict[str, tuple[str, Schema]]:
    spots = spots_of(Root(name, schema), whole=False)
    return {one.name: (one.path[0], one.schema) for one in spots if len(one.path) == 1}


def _value(text: str, schema: Schema) -> Json:
    types = types_of(schema)
    try:
        value = parse_json(text, max_size=MAX_VALUE)
    except JsonError:
        return text
    if isinstance(value, str) or contradiction(schema, value) is None:
        return value if types != {"string"} or isinstance(value, str) else text
    return text


MAX_DOCUMENT: Final = 24_000
MAX_SHOWN: Final = 8_000
MAX_MESSAGES: Final = 20
MAX_CASES: Final = 12
MAX_WORDS: Final = 300
UNFIT: Final = "it does not follow the document"
MIN_QUOTE: Final = 8
"Shortest quotation of a rule, in characters, that is meaningful."


@dataclass(frozen=True, slots=True)
class ShownMessages:
    """One message or test case, as a model sees it."""

    title: str
    "Its title in our words: `request 1`."

    text: str
    "Its values as JSON, or its bytes in words; untrusted."


@dataclass(frozen=True, slots=True)
class CaseArguments:
    """Arguments for a useful test case."""

    title: str
    "The subject of the test, one line."

    arguments: dict[str, Json]
    "Arguments that fit the need's input schema, as far as counting can tell."


def messages_question(
    name: str, document: str, messages: Sequence[ShownMessages]
) -> Question:
    """Return the question about messages or cases: do they follow the document?

    Args:
        name: The prompt: `messages` (ANP-9) or `judge_cases` (ANP-49).
    """
    shown = "\n\n".join(
        f"Number {number}, {one_line(one.title)}:\n{fenced(one.text, limit=MAX_SHOWN)}"
        for number, one in enumerate(messages[:MAX_MESSAGES], start=1)
    )
    # One required property for each, so that an answer cannot leave one out.
    numbers = [str(number + 1) for number in range(min(len(messages), MAX_MESSAGES))]
    verdict = record(follows=BOOLEAN, rule=TEXT)
    return ask_with(
        name,
        {"document": fenced(document, limit=MAX_DOCUMENT), "messages": shown},
        schema=record(verdicts=record(**dict.fromkeys(numbers, verdict))),
        max_tokens=1_500,
    )


def read_messages(
    messages: Sequence[ShownMessages], answer: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the deviations, one line each, in the order of the messages.

    A message without a verdict counts as deviating.
    """
    verdicts = answer["verdicts"]
    found = []
    for number, message in enumerate(messages, start=1):
        said = verdicts.get(str(number))
        if said is None:
            # The question has limited room; a message without judgement is not
            # accepted.
            found.append(f"{message.title}: nobody could judge it")
        elif not said["follows"]:
            words = one_line(said["rule"], MAX_WORDS)
            found.append(f"{message.title}: {words or UNFIT}")
    return tuple(found)


def cases_question(document: str, demand: Demand, *, most: int) -> Question:
    """Return the question for arguments that test the document well (ANP-48)."""
    schema = demand.need.input_schema
    try:
        places = described(spots_of(Root("arguments", prepared(schema or True))))
    except SchemaError:
        places = "(a schema that cannot be shown)"
    case = record(title=TEXT, arguments=TEXT)
    return ask_with(
        "cases",
        {
            "document": fenced(document, limit=MAX_DOCUMENT),
            "task": fenced(demand.need.requirement, limit=4_000),
            "arguments": fenced(places, limit=MAX_SHOWN),
            "most": str(min(most, MAX_CASES)),
        },
        schema=record(cases=many(case, most=min(most, MAX_CASES))),
        max_tokens=1_500,
    )


def read_cases(
    demand: Demand, answer: Mapping[str, Any], *, most: int
) -> tuple[CaseArguments, ...]:
    """Return the arguments that fit the need, each once."""
    schema = demand.need.input_schema
    known: dict[bytes, CaseArguments] = {}
    for one in answer["cases"][: min(most, MAX_CASES)]:
        try:
            value = parse_json(one["arguments"], max_size=MAX_SHOWN)
        except JsonError:
            continue
        if not isinstance(value, dict):
            continue
        try:
            inlined = prepared(True if schema is None else schema)
        except SchemaError:
            return ()
        if contradiction(inlined, value) is None:
            case = CaseArguments(one_line(one["title"], 120) or "a case", value)
            known.setdefault(canonical_json(value), case)
    return tuple(known.values())


def fault_question(document: str, message: ShownMessages, description: str) -> Question:
    """Return the question about our message: does it violate a rule?"""
    return ask_with(
        "fault",
        {
            "document": fenced(document, limit=MAX_DOCUMENT),
            "message": fenced(message.text, limit=MAX_SHOWN),
            "description": fenced(description, limit=4_000),
        },
        schema=record(breaks=BOOLEAN, rule=TEXT, reason=TEXT),
        max_tokens=500,
    )


def read_fault(
    document: str, message: ShownMessages, answer: Mapping[str, Any]
) -> Fault:
    """Return the side at fault; ours only with a rule quoted from the document.

    A report may try to persuade a model to start a repair; words that are not in the
    document do not start one.
    """
    reason = one_line(answer["reason"], MAX_WORDS)
    rule = " ".join(str(answer["rule"]).split())
    stands = len(rule) >= MIN_QUOTE and rule in " ".join(document.split())
    if answer["breaks"] and stands:
        return OurFault((f"{message.title} breaks this rule: {one_line(rule)}", reason))
    return PeerFault(
        f"{message.title} was checked again and fits the agreed document."
        + (f" {reason}" if reason and not answer["breaks"] else "")
        + " Please quote the rule of the document that it breaks."
    )


class Assessor:
    """Answers in words, and judges what schemas do not cover.

    Args:
        model: Answers the questions; keeps the budget.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._memory = Memory()

    async def answer(self, question: str, side: Side) -> str:
        """Answer a question that the peer asked in words (ANP-64).

        Raises:
            MindError: The model failed, or gave an empty answer twice.
        """
        for again in (False, True):
            asked = answer_question(question, side, again=again)
            said = str((await self._ask(asked))["answer"]).strip()
            words = cut_text(said, MAX_ANSWER)
            if words:
                return words
        raise MindError("the model has no words for an answer")

    async def mark_values(self, requirement: str) -> tuple[Mark, ...]:
        """Return the values in the words of our need, each with a name.

        Raises:
            MindError: The model failed.
        """
        return read_marks(await self._ask(marks_question(requirement)))

    async def serve_text(self, text: str, offer: Offer) -> Spoken:
        """Return the exposed capability that a natural-language text asks for (ANP-71).

        Raises:
            MindError: The model failed.
        """
        if not offer.capabilities:
            return Spoken("", {}, "nothing is offered to you")
        advised = await self._advised(text, offer)
        if not advised.capabilities:
            return Spoken("", {}, "nothing that is offered to you serves this")
        return read_spoken(await self._ask(spoken_question(text, advised)), advised)

    async def judge_messages(
        self, document: str, messages: Sequence[ShownMessages]
    ) -> tuple[str, ...]:
        """Return the deviations of messages from the document (ANP-9).

        Raises:
            MindError: The model failed.
        """
        question = messages_question("messages", document, messages)
        return read_messages(messages, await self._ask(question))

    async def write_cases(
        self, document: str, demand: Demand, *, most: int = 6
    ) -> tuple[CaseArguments, ...]:
        """Return arguments for test cases, besides those that rules derive (ANP-48).

        Raises:
            MindError: The model failed.
        """
        question = cases_question(document, demand, most=most)
        return read_cases(demand, await self._ask(question), most=most)

    async def judge_cases(
        self, document: str, cases: Sequence[ShownMessages]
    ) -> tuple[str, ...]:
        """Return the faults of test cases, other than those of schemas (ANP-49).

        Raises:
            MindError: The model failed.
        """
        question = messages_question("judge_cases", document, cases)
        return read_messages(cases, await self._ask(question))

    async def judge_fault(
        self,
        document: str,
        message: ShownMessages,
        description: str,
        *,
        findings: tuple[str, ...] = (),
    ) -> Fault:
        """Return the side whose fault a reported error is (ANP-60).

        Args:
            message: Our message that the peer reports as faulty.
            description: The peer's text, untrusted.
            findings: Faults by the schemas; any of them decides without a question.

        Raises:
            MindError: The model failed.
        """
        if findings:
            return OurFault(findings)
        question = fault_question(document, message, description)
        return read_fault(document, message, await self._ask(question))

    async def _advised(self, requirement: str, offer: Offer) -> Offer:
        """Return the part of an offer that the owner's hints leave, without them.

        Only this question about an offer has the hints, since its answer is a choice
        (ANP-34).
        """
        if not offer.hints:
            return offer
        named = read_selection({"capabilities": offer.hints}, offer)
        if len(named.capabilities) == len(set(offer.hints)):
            # Each hint is the name of a capability, so there is nothing to ask.
            return named
        # A hint belongs to the words of a requirement: with the same bytes for all its
        # spacings a peer that breaks off and asks anew gets no second choice.
        requirement = " ".join(requirement.split())
        key = Memory.key(requirement, offer)
        known = self._memory.advised.get(key)
        if known is None:
            question = select_question(requirement, offer)
            known = read_selection(await self._ask(question), offer)
            self._memory.advised.put(key, known)
        return known

    async def _ask(self, question: Question) -> dict[str, Any]:
        answer = await self._model.ask(question)
        if not isinstance(answer, dict):
            raise MindError(f"the model's answer to {question.step} is no object")
        return answer
