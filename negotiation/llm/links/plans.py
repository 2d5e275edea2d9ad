"""Plans of halves: all decisions that are needed to write one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from negotiation.llm.links.frames import FieldUse
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
    "Full name of an exposed capability."

    arguments: Node
    "Conversion from the request and earlier calls to its arguments."


@dataclass(frozen=True, slots=True)
class ProviderPlan:
    """The plan of a provider half."""

    frame: FieldUse
    "The fields of the messages."

    calls: tuple[PlannedCall, ...]
    "The calls in order; at least one."

    result: Node
    "Conversion from the request and all calls to the result."

    action: str | None = None
    "Text for a free `action` of the response."

    codec: str = ""
    "`read_message` and `write_message` when the bytes are not JSON; else empty."


@dataclass(frozen=True, slots=True)
class RequesterPlan:
    """The plan of a requester half."""

    frame: FieldUse
    "The fields of the messages."

    request: Node
    "Conversion from the arguments to the request's values."

    result: Node
    "Conversion from the response's values to the caller's result."

    known: tuple[str, ...]
    "Arguments that the protocol has a place for; others are refused."

    action: str | None = None
    "Text for a free `action` of the request."

    codec: str = ""
    "See `ProviderPlan.codec`."


def action_for(schema: Schema | None, names: Sequence[str]) -> str | None:
    """Return the text for a free `action`: one of `names` in the schema's spelling.

    Raises:
        ValueError: None of them fits the schema.
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
