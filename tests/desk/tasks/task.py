"""Tasks of the evaluation: a need, the tools there are, and what has to come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from negotiation.need import Need

Json = dict[str, Any]


class Fault(Exception):
    """A tool's own error, as its documentation has it."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True)
class Tool:
    """One operation of a provider."""

    agent: str
    "Name of the attachment that has it."

    name: str
    "Short name, as the provider's document has it."

    description: str
    "In words, as the provider's document has it."

    input: Json
    "JSON Schema of the arguments."

    output: Json
    "JSON Schema of the result."

    call: Callable[[Json], Json]
    "Behaves as the document says; its data are invented."

    changes: bool = False
    "True when it changes something."


@dataclass(frozen=True)
class Failure:
    """An error with this code, and no result."""

    code: int


@dataclass(frozen=True)
class Absent:
    """An error of any code, because there is no value: any result would be invented."""


@dataclass(frozen=True)
class Case:
    """One request, and what has to come of it."""

    arguments: Json
    "The caller's data."

    expected: Any
    "The result, or `Failure`, or `Absent`; `Holds` where no schema says its shape."

    requirement: str = ""
    "Other words than the task's, for needs that say their values in words."


@dataclass(frozen=True)
class Task:
    """One need and who may serve it."""

    name: str
    "Short name in lower case with dashes."

    source: str
    "Where the tools come from, and the licence of that document."

    requirement: str
    "The need in the words of a caller who never saw the tools."

    input: Json | None
    "JSON Schema of the caller's data; None if the caller has none."

    output: Json | None
    "JSON Schema of the result; None if the caller has none."

    tools: tuple[Tool, ...]
    "What the provider offers."

    cases: tuple[Case, ...] = ()
    "The first is the first contact; all others no model has seen."

    lacking: str = ""
    "Why it cannot be served; then it has to be refused. `cases` has one request."

    request_bytes: str = ""
    "Pattern of the bytes of each request, where the task insists on a format."

    answer_bytes: str = ""
    "Pattern of the bytes of each good answer, likewise."

    def naming_its_tool(self) -> Task:
        """Return the task with needs that name the first tool, as rules want it."""
        tool = self.tools[0]
        named = f"{tool.agent}.{tool.name}"
        return replace(
            self,
            requirement=f"{named}: {self.requirement}",
            cases=tuple(
                replace(
                    one, requirement=one.requirement and f"{named}: {one.requirement}"
                )
                for one in self.cases
            ),
        )

    def need(self, case: Case) -> Need:
        """Return the need of one call."""
        return Need(case.requirement or self.requirement, self.input, self.output)


def _typed(kind: str, words: str, more: Json) -> Json:
    return {"type": kind, **({"description": words} if words else {}), **more}


def text(words: str = "", **more: Any) -> Json:
    """Return the schema of a string."""
    return _typed("string", words, more)


def number(words: str = "", **more: Any) -> Json:
    """Return the schema of a number."""
    return _typed("number", words, more)


def integer(words: str = "", **more: Any) -> Json:
    """Return the schema of an integer."""
    return _typed("integer", words, more)


def boolean(words: str = "", **more: Any) -> Json:
    """Return the schema of true or false."""
    return _typed("boolean", words, more)


def choice(*values: str, words: str = "", **more: Any) -> Json:
    """Return the schema of one of some strings."""
    return _typed("string", words, {"enum": list(values), **more})


def array(items: Json, words: str = "") -> Json:
    """Return the schema of a list."""
    return _typed("array", words, {"items": items})


def mapping(values: Json, words: str = "") -> Json:
    """Return the schema of an object with any keys."""
    return _typed("object", words, {"additionalProperties": values})


def open_object(*required: str, **properties: Json) -> Json:
    """Return the schema of an object most of whose places are optional."""
    schema: Json = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema


def complete(**properties: Json) -> Json:
    """Return the schema of an object that has every place and no other."""
    return {**open_object(*properties, **properties), "additionalProperties": False}
