"""Chains of capabilities by rules: named in the requirement, read-only, linked by name.

A requirement that names two or three exposed capabilities means all of them, in that
order, if each later one needs an output of an earlier one under the same name and with
the same schema. No capability with side effects is part of a chain: a requirement may
also name a capability to exclude it (DESIGN.md, Negotiation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from negotiation.errors import SchemaError
from negotiation.need import Capability, Schema
from negotiation.rules.names import mentioned
from negotiation.schema.intake import prepared
from negotiation.schema.values import same_schema

__all__ = ["Chain", "ChainStep", "find_chain"]

MAX_STEPS: Final = 3
"Largest number of capabilities in one chain."


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One call of a chain."""

    capability: str

    given: tuple[str, ...]
    "Properties that the request provides."

    linked: tuple[tuple[str, int], ...]
    "Properties from an earlier step, each with the number of that step, from 0."


@dataclass(frozen=True, slots=True)
class Chain:
    """Capabilities that serve a request together."""

    steps: tuple[ChainStep, ...]
    "The calls in order."

    whole: Capability
    "The chain as one capability: the request's input, and the last one's output."

    @property
    def name(self) -> str:
        """The names in order, for people and for the requirement of a document."""
        return self.whole.name

    @property
    def names(self) -> tuple[str, ...]:
        """Full names of the capabilities, each once."""
        return tuple(dict.fromkeys(step.capability for step in self.steps))


def find_chain(requirement: str, capabilities: Sequence[Capability]) -> Chain | None:
    """Return the chain that `requirement` names, or None."""
    named = mentioned(requirement, capabilities)
    if not 1 < len(named) <= MAX_STEPS or not all(one.read_only for one in named):
        return None
    steps: list[ChainStep] = []
    takes: dict[str, Schema] = {}
    needed: list[str] = []
    gains: list[dict[str, Schema]] = []
    for one in named:
        try:
            given, gained = prepared(one.input_schema), prepared(one.output_schema)
        except SchemaError:
            return None
        links: list[tuple[str, int]] = []
        own: list[str] = []
        required = _required(given)
        for name, schema in _properties(given).items():
            number = _giver(name, schema, gains)
            if number is not None:
                links.append((name, number))
                continue
            if name in takes and not same_schema(takes[name], schema):
                return None
            takes[name] = schema
            own.append(name)
            if name in required and name not in needed:
                needed.append(name)
        if steps and not any(name in required for name, _ in links):
            return None
        steps.append(ChainStep(one.name, tuple(own), tuple(links)))
        always = _required(gained)
        gains.append(
            {name: one for name, one in _properties(gained).items() if name in always}
        )
    last = named[-1]
    names = [one.name for one in named]
    whole = Capability(
        ", then ".join(names),
        f"Calls {', then '.join(names)}.",
        {
            "type": "object",
            "properties": takes,
            "required": needed,
            "additionalProperties": False,
        },
        last.output_schema,
        read_only=True,
        idempotent=True,
    )
    return Chain(tuple(steps), whole)


def _giver(name: str, schema: Schema, gains: Sequence[dict[str, Schema]]) -> int | None:
    """Return the latest step that provides a property of this name and schema."""
    for number in reversed(range(len(gains))):
        found = gains[number].get(name)
        if found is not None and same_schema(_bare(found), _bare(schema)):
            return number
    return None


def _bare(schema: Schema) -> Schema:
    if not isinstance(schema, dict):
        return schema
    notes = ("title", "description")
    return {key: value for key, value in schema.items() if key not in notes}


def _properties(schema: Schema) -> dict[str, Any]:
    return dict(schema.get("properties", {})) if isinstance(schema, dict) else {}


def _required(schema: Schema) -> frozenset[str]:
    return frozenset(schema.get("required", ()) if isinstance(schema, dict) else ())
