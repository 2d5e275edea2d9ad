"""Questions in which the owner's hints stand: which capability, accept or not.

A hint is private (ANP-34), and a model may write it in a form that no search finds. So
hints stand only in questions whose answers are choices from a list of ours; `ask_with`
refuses any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from negotiation.llm.asking.questions import (
    BOOLEAN,
    TEXT,
    Question,
    ask_with,
    choice,
    fenced,
    many,
    one_line,
    record,
)
from negotiation.mind import Demand, Offer
from negotiation.need import Capability
from negotiation.rules.templates import MAX_VALUES, Mark

MAX_SELECTED: Final = 6
"Largest number of capabilities that a model selects for one request."


def select_question(requirement: str, offer: Offer) -> Question:
    """Return the question for the capabilities that the owner's hints leave."""
    return ask_with(
        "select",
        {
            "requirement": fenced(requirement, limit=4_000),
            "capabilities": capability_lines(offer.capabilities),
            "hints": _words(offer.hints),
        },
        schema=record(
            capabilities=many(
                choice(one.name for one in _sorted(offer.capabilities)),
                most=MAX_SELECTED,
            )
        ),
        max_tokens=300,
    )


def read_selection(answer: Mapping[str, Any], offer: Offer) -> Offer:
    """Return the selected part of an offer, without hints."""
    meant = answer["capabilities"]
    chosen = tuple(one for one in offer.capabilities if one.name in meant)
    return replace(offer, capabilities=chosen, hints=())


def allow_question(document: str, demand: Demand) -> Question:
    """Return the question for the owner's yes or no to a peer's document."""
    return ask_with(
        "allow",
        {
            "task": fenced(demand.need.requirement, limit=4_000),
            "document": fenced(document, limit=16_000),
            "hints": _words(demand.hints),
        },
        schema=record(accept=BOOLEAN),
        max_tokens=100,
    )


def capability_lines(capabilities: Sequence[Capability]) -> str:
    """Return names and descriptions for a prompt, fenced."""
    lines = [
        f"{one_line(one.name)}: {one_line(one.description, 400)}"
        for one in _sorted(capabilities)
    ]
    return fenced("\n".join(lines), limit=64_000)


def _sorted(capabilities: Sequence[Capability]) -> list[Capability]:
    return sorted(capabilities, key=lambda one: one.name)


def _words(hints: Sequence[str]) -> str:
    return "\n".join(f"- {one_line(one, 500)}" for one in hints)


# The question for the values in a task's words, which become arguments.
#
# An answer only marks parts of the text: code looks each up there and does the rest.


MAX_SHOWN: Final = 1_000


def marks_question(requirement: str) -> Question:
    """Return the question for the values in the words of a need."""
    return ask_with(
        "marks",
        {"task": fenced(requirement, limit=MAX_SHOWN)},
        schema=record(values=many(record(text=TEXT, name=TEXT), most=MAX_VALUES)),
        max_tokens=400,
    )


def read_marks(answer: Mapping[str, Any]) -> tuple[Mark, ...]:
    """Return the values that an answer marks, as they stand in it."""
    return tuple((one["text"], one["name"].strip()) for one in answer["values"])
