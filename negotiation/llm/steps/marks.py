"""The question for the values in a task's words, which become arguments.

An answer only marks parts of the text: code looks each up there and does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from negotiation.llm.asking.questions import (
    TEXT,
    Question,
    ask_with,
    fenced,
    many,
    record,
)
from negotiation.rules.templates import MAX_VALUES, Mark

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
