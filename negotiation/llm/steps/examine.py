"""Messages, test cases and faults: what schemas cannot tell is asked as yes or no.

Whether values fit their schemas is code's question and is settled before. A model says
whether they follow what the document says in words, one answer for each message.
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
from negotiation.mind import Need
from negotiation.schema.intake import prepared
from negotiation.schema.values import contradiction
from negotiation.strict_json import Json, canonical_json, parse_json

__all__ = [
    "CaseArguments",
    "Shown",
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
"Fewest characters of a rule that is quoted, so that it says something."


@dataclass(frozen=True, slots=True)
class Shown:
    """One message or test case as a model sees it."""

    title: str
    "What it is, in our words: `request 1`."

    text: str
    "Its values as JSON, or its bytes in words; untrusted."


@dataclass(frozen=True, slots=True)
class CaseArguments:
    """Arguments worth a test case."""

    title: str
    "What they test, one line."

    arguments: dict[str, Json]
    "They fit the task's input schema as far as that can be counted."


def messages_question(document: str, messages: Sequence[Shown]) -> Question:
    """Return the question whether messages follow the document (ANP-9)."""
    return _each("messages", document, messages)


def judge_cases_question(document: str, cases: Sequence[Shown]) -> Question:
    """Return the question whether test cases follow the document (ANP-49)."""
    return _each("judge_cases", document, cases)


def read_messages(
    messages: Sequence[Shown], answer: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return what deviates, one line each, in the order of the messages.

    One without a verdict deviates too.
    """
    verdicts = answer["verdicts"]
    found = []
    for number, message in enumerate(messages, start=1):
        said = verdicts.get(str(number))
        if said is None:
            # Not judged is not good: the question takes so many messages only.
            found.append(f"{message.title}: nobody could judge it")
        elif not said["follows"]:
            words = one_line(said["rule"], MAX_WORDS)
            found.append(f"{message.title}: {words or UNFIT}")
    return tuple(found)


def cases_question(document: str, need: Need, *, most: int) -> Question:
    """Return the question for arguments that test the document well (ANP-48)."""
    schema = need.task.input_schema
    try:
        places = described(spots_of(Root("arguments", prepared(schema or True))))
    except SchemaError:
        places = "(a schema that cannot be shown)"
    case = record(title=TEXT, arguments=TEXT)
    return ask_with(
        "cases",
        {
            "document": fenced(document, limit=MAX_DOCUMENT),
            "task": fenced(need.task.requirement, limit=4_000),
            "arguments": fenced(places, limit=MAX_SHOWN),
            "most": str(min(most, MAX_CASES)),
        },
        schema=record(cases=many(case, most=min(most, MAX_CASES))),
        max_tokens=1_500,
    )


def read_cases(
    need: Need, answer: Mapping[str, Any], *, most: int
) -> tuple[CaseArguments, ...]:
    """Return the arguments that fit the task, each once."""
    schema = need.task.input_schema
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
    """Return whose fault an error is when the schemas already say it."""
    return OurFault(tuple(findings)) if findings else None


def fault_question(document: str, message: Shown, description: str) -> Question:
    """Return the question whether our message breaks a rule of the document."""
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


def read_fault(document: str, message: Shown, answer: Mapping[str, Any]) -> Fault:
    """Return whose fault it is; ours only with a rule that stands in the document.

    A report may try to talk a model into a repair; words that are not the document's
    do not start one.
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


def _each(name: str, document: str, messages: Sequence[Shown]) -> Question:
    shown = "\n\n".join(
        f"Number {number}, {one_line(one.title)}:\n{fenced(one.text, limit=MAX_SHOWN)}"
        for number, one in enumerate(messages[:MAX_MESSAGES], start=1)
    )
    # One place for each: an answer that leaves one out does not fit its schema.
    numbers = [str(number + 1) for number in range(min(len(messages), MAX_MESSAGES))]
    verdict = record(follows=BOOLEAN, rule=TEXT)
    return ask_with(
        name,
        {"document": fenced(document, limit=MAX_DOCUMENT), "messages": shown},
        schema=record(verdicts=record(**dict.fromkeys(numbers, verdict))),
        max_tokens=1_500,
    )
