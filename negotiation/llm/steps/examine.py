"""Yes-or-no questions about messages, test cases and faults.

Code has already validated values against schemas. A model decides if they follow the
document's words, with one answer for each message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from negotiation.errors import JsonError, SchemaError
from negotiation.exchange.dialogue.answers import Fault, OurFault, PeerFault
from negotiation.llm.asking.forms import BOOLEAN, TEXT, many, record
from negotiation.llm.asking.prompts import ask_with, fenced, one_line
from negotiation.llm.asking.questions import Question
from negotiation.llm.links.spots import Root, described, spots_of
from negotiation.mind import Demand
from negotiation.schema.intake import prepared
from negotiation.schema.values import contradiction
from negotiation.strict_json import Json, canonical_json, parse_json

__all__ = [
    "CaseArguments",
    "ShownMessages",
    "cases_question",
    "fault_question",
    "judge_cases_question",
    "messages_question",
    "plain_fault",
    "read_cases",
    "read_fault",
    "read_messages",
]

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


def messages_question(document: str, messages: Sequence[ShownMessages]) -> Question:
    """Return the question about messages: do they follow the document (ANP-9)?"""
    return _each("messages", document, messages)


def judge_cases_question(document: str, cases: Sequence[ShownMessages]) -> Question:
    """Return the question about test cases: do they follow the document (ANP-49)?"""
    return _each("judge_cases", document, cases)


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


def plain_fault(findings: Sequence[str]) -> Fault | None:
    """Return the side at fault, if the schemas already decide that."""
    return OurFault(tuple(findings)) if findings else None


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


def _each(name: str, document: str, messages: Sequence[ShownMessages]) -> Question:
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
