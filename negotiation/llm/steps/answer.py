"""Answers in words: to questions of a peer, and to natural-language requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from negotiation.errors import JsonError, SchemaError
from negotiation.llm.asking.forms import TEXT, choice, many, record
from negotiation.llm.asking.prompts import ask_with, fenced, one_line
from negotiation.llm.asking.questions import Question
from negotiation.llm.links.spots import Root, described, spots_of
from negotiation.llm.steps.phrases import hint_words
from negotiation.messages import cut_text
from negotiation.mind import Demand, Offer, Side
from negotiation.need import Capability, Schema
from negotiation.schema.intake import prepared
from negotiation.schema.values import contradiction, types_of
from negotiation.strict_json import Json, parse_json

__all__ = [
    "Spoken",
    "answer_question",
    "read_answer",
    "read_spoken",
    "spoken_question",
]

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


def read_answer(answer: Mapping[str, Any]) -> str:
    """Return the text for the peer."""
    return cut_text(str(answer["answer"]).strip(), MAX_ANSWER)


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
            "hints": hint_words(offer.hints),
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
        said = "" if offer.hints else one_line(answer["missing"], 300)
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
