"""The intent extension: a message says which skill it means (INT-1 to INT-13). Pure.

A message carries in `metadata.intentInfos` the skills that it was routed to, the best
first, each with slots: the arguments as texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from anp.protocols.a2a.reader import A2aFields, wrong
from anp.protocols.a2a.words import INTENT_URI
from jsonic.exact_numbers import write_json
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

INTENTS: Final = "intentInfos"
"Key of the intents in the metadata of a message (INT-Q2)."

MAX_INTENTS: Final = 32
MAX_SLOTS: Final = 256
MAX_VALUE: Final = 64 * 1024
"Most characters of a slot's value."

_TYPES: Final = {
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "str": "string",
    "list": "array",
    "dict": "object",
    "map": "object",
}
"Names that are no types of JSON Schema, as what they are read (INT-Q1)."

_KNOWN: Final = frozenset({*_TYPES.values(), "null"})
_PYTHON: Final[dict[str, tuple[type, ...]]] = {
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,399})")


@dataclass(frozen=True, slots=True)
class Intent:
    """A skill that a message was routed to."""

    skill: str

    slots: tuple[tuple[str, str], ...] = ()
    "Names with their texts, the normalised ones where there are."


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotValues:
    """The arguments that slots give, by the schema of a skill."""

    arguments: Mapping[str, Any]

    missing: tuple[str, ...] = ()
    "Required names for which there is no slot."

    wrong: tuple[str, ...] = ()
    "Names whose texts are no value of their type."

    unknown: tuple[str, ...] = ()
    "Names of slots that the skill does not have; they are dropped."


def read_intents(metadata: Mapping[str, Any]) -> tuple[Intent, ...]:
    """Return the intents of a message, none for an ordinary message.

    Raises:
        A2aError: They break INT-6 to INT-11, such as a number as a slot's value.
    """
    path = f"message.metadata.{INTENTS}"
    fields = A2aFields(dict(metadata), "message.metadata")
    found = []
    for index, entry in enumerate(fields.items(INTENTS, most=MAX_INTENTS)):
        intent = A2aFields(entry, f"{path}[{index}]")
        slots = [
            A2aFields(slot, f"{intent.path}.slots[{place}]")
            for place, slot in enumerate(intent.items("slots", most=MAX_SLOTS))
        ]
        found.append(
            Intent(
                skill=intent.text("intent", needed=True),
                slots=tuple(
                    (one.text("name", needed=True), _text(one)) for one in slots
                ),
            )
        )
    return tuple(found)


def _text(slot: A2aFields) -> str:
    value = slot.raw("value")
    if not isinstance(value, str) or len(value) > MAX_VALUE:
        raise wrong(slot.at("value"), "must be a text")
    return slot.text("normValue", most=MAX_VALUE) or value


def plain_schema(schema: Any) -> dict[str, Any] | None:
    """Return the schema of a skill with the types of JSON Schema (INT-Q1).

    Returns:
        None when it names a type that nobody knows; the skill is then left out.
    """
    try:
        plain = _plain(schema)
    except ValueError:
        return None
    return plain if isinstance(plain, dict) else None


def is_object_schema(schema: Any) -> bool:
    """Return whether a skill's schema is one of an object, as arguments need it."""
    plain = plain_schema(schema)
    return plain is not None and plain.get("type", "object") == "object"


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type":
            plain[key] = (
                [_type(one) for one in value]
                if isinstance(value, list)
                else _type(value)
            )
        elif key in {"properties", "$defs", "patternProperties"} and isinstance(
            value, dict
        ):
            plain[key] = {name: _plain(one) for name, one in value.items()}
        elif key in {"enum", "const", "default", "examples"}:
            plain[key] = value
        else:
            plain[key] = _plain(value)
    return plain


def _type(name: Any) -> str:
    known = _TYPES.get(name, name) if isinstance(name, str) else None
    if known not in _KNOWN:
        raise ValueError(name)
    return str(known)


@dataclass(frozen=True, slots=True)
class SkillSchemas:
    """The intent extension in the card of another agent (INT-1 to INT-5)."""

    is_declared: bool = False

    schemas: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    "Input schema by the id of a skill, with the types of JSON Schema."

    unusable: frozenset[str] = frozenset()
    "Skills whose schema names a type that nobody knows, or is not that of an object."


def read_skill_schemas(card: Any) -> SkillSchemas:
    """Return what a card says for intents; whatever is odd in it is let be (INT-Q7).

    The card is JSON as it came: objects of the SDK have no exact numbers.
    """
    schemas: dict[str, dict[str, Any]] = {}
    unusable = set()
    found = [
        one
        for one in _listed(_under(card, "capabilities"), "extensions")
        if _under(one, "uri") == INTENT_URI
    ]
    for skill in [
        one for each in found for one in _listed(_under(each, "params"), "skills")
    ]:
        name, schema = _under(skill, "id"), _under(skill, "inputSchema")
        if not isinstance(name, str) or name in schemas or schema is None:
            continue
        plain = plain_schema(schema)
        if plain is None or not is_object_schema(plain):
            unusable.add(name)
        else:
            schemas[name] = {"type": "object", **plain}
    return SkillSchemas(bool(found), schemas, frozenset(unusable - schemas.keys()))


def _under(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _listed(value: Any, name: str) -> list[Any]:
    found = _under(value, name)
    return found if isinstance(found, list) else []


def slot_values(intent: Intent, schema: Any) -> SlotValues:
    """Return the arguments that an intent gives (INT-Q3, INT-Q5).

    Args:
        schema: Input schema of the skill.

    Raises:
        A2aError: A slot that takes one value is given more than once.
    """
    plain = plain_schema(schema) or {}
    properties = plain.get("properties")
    known = properties if isinstance(properties, dict) else {}
    texts: dict[str, list[str]] = {}
    unknown = []
    for name, text in intent.slots:
        if name in known:
            texts.setdefault(name, []).append(text)
        else:
            unknown.append(name)
    arguments: dict[str, Any] = {}
    bad = []
    for name, given in texts.items():
        if len(given) > 1 and _kind(known[name]) != "array":
            raise wrong(
                f"message.metadata.{INTENTS}",
                f"slot {name[:80]!r} takes one value and is given {len(given)} times",
            )
        try:
            arguments[name] = _value(given, known[name])
        except ValueError:
            bad.append(name)
    required = plain.get("required", ())
    return SlotValues(
        arguments=arguments,
        missing=tuple(name for name in required if name not in texts),
        wrong=tuple(bad),
        unknown=tuple(unknown),
    )


def _kind(schema: Any) -> Any:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    return kinds[0] if isinstance(kinds, list) and kinds else kinds


def _value(texts: Sequence[str], schema: Any) -> Any:
    first = _kind(schema)
    if len(texts) == 1:
        return slot_value(texts[0], first)
    items = schema.get("items")
    inner = items.get("type") if isinstance(items, dict) else None
    return [slot_value(one, inner) for one in texts]


def slot_value(text: str, kind: Any) -> Any:
    """Return the value of a slot's text by its type in JSON Schema; else ValueError."""
    match kind:
        case "integer":
            if _INTEGER.fullmatch(text.strip()) is None:
                raise ValueError("no whole number")
            return int(text)
        case "boolean":
            if text.strip().lower() not in {"true", "false"}:
                raise ValueError("neither true nor false")
            return text.strip().lower() == "true"
        case "number" | "array" | "object" | "null":
            return _json(text, kind)
    return text


def _json(text: str, kind: str) -> Any:
    try:
        value = parse_json(text, max_size=MAX_VALUE * 4)
    except JsonError as exc:
        raise ValueError(str(exc)) from exc
    if not isinstance(value, _PYTHON[kind]) or isinstance(value, bool):
        raise ValueError(f"no {kind}")
    return value


def intent_of(skill: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return an intent as JSON, for a call of a skill with these arguments.

    A slot is a text, so that for null there is none.
    """
    slots = []
    for name, value in arguments.items():
        if value is None:
            continue
        text = value if isinstance(value, str) else write_json(value)
        slots.append({"name": name, "value": text, "normValue": text})
    return {"intent": skill, "slots": slots}
