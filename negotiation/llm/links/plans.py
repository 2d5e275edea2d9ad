"""What a half does, settled: everything that is needed to write it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from negotiation.llm.links.frames import Frame
from negotiation.llm.links.trees import Node
from negotiation.need import Schema
from negotiation.schema.mapping import normal_name
from negotiation.schema.reasons import values_of
from negotiation.schema.values import contradiction

__all__ = ["PlannedCall", "ProviderPlan", "RequesterPlan", "action_for"]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One capability call of a provider half."""

    capability: str
    "Full name, one of those exposed."

    arguments: Node
    "How its arguments are made from the request and the calls before."


@dataclass(frozen=True, slots=True)
class ProviderPlan:
    """What a provider half does."""

    frame: Frame
    "The fields of the messages."

    calls: tuple[PlannedCall, ...]
    "The calls, in order; at least one."

    result: Node
    "How the result is made from the request and all calls."

    action: str | None = None
    "What to write into a free `action` of the response."

    codec: str = ""
    "`read_message` and `write_message` when the bytes are not JSON, else empty."


@dataclass(frozen=True, slots=True)
class RequesterPlan:
    """What a requester half does."""

    frame: Frame
    "The fields of the messages."

    request: Node
    "How the request's values are made from the arguments."

    result: Node
    "How the caller's result is made from the response's values."

    known: tuple[str, ...]
    "Arguments that the protocol has a place for; others are refused."

    action: str | None = None
    "What to write into a free `action` of the request."

    codec: str = ""
    "As `ProviderPlan.codec`."


def action_for(schema: Schema | None, names: Sequence[str]) -> str | None:
    """Return what to write into a free `action`: one of `names` as the schema has it.

    Raises:
        ValueError: None of them fits it.
    """
    if schema is None:
        return None
    listed = values_of(schema) if isinstance(schema, dict) else []
    for name in names:
        for word in listed:
            if isinstance(word, str) and normal_name(word) == normal_name(name):
                return word
        if not listed and contradiction(schema, name) is None:
            return name
    raise ValueError("/action: no name of ours is one of its values")
