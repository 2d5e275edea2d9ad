"""The top-level properties of a message, sorted by their purpose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from negotiation.document.parts import Fixed, Place, Slot
from negotiation.errors import DocumentError
from negotiation.need import Schema
from negotiation.schema.keywords import ANNOTATIONS
from negotiation.schema.reasons import values_of
from negotiation.schema.values import contradiction, types_of

__all__ = ["MessageFields", "keywords_of", "places_of", "take_message_id"]

ID_NAMES: Final = (
    "messageId",
    "message_id",
    "requestId",
    "request_id",
    "correlationId",
    "id",
)
"Names of a message id that request and response may share, the best first."

ID_SIZE: Final = 36
"Length that a message id must have room for: a UUID in its usual form."


class MessageFields:
    """Sorts the top-level properties of one message by their purpose.

    `left` has the properties without a known purpose; `fields` has the others.
    """

    def __init__(self, what: str, schema: Schema) -> None:
        if not isinstance(schema, dict) or types_of(schema) != {"object"}:
            raise DocumentError(f"the {what} is not described as a JSON object")
        self.what = what
        self.schema = schema
        self.left: dict[str, Schema] = dict(schema.get("properties", {}))
        self.required = frozenset(schema.get("required", ()))
        self.fields: list[tuple[tuple[str, ...], Slot | Fixed]] = []
        self.taken: set[str] = set()
        self.by_name: set[str] = set()
        self.action_schema: Schema | None = None
        self.action_value: str | None = None

    def take(self, name: str, *leaves: Slot | Fixed, by_name: bool = True) -> None:
        """Remove a property from those that remain, and write `leaves` in its place."""
        self.left.pop(name, None)
        self.taken.add(name)
        self.fields += [((name,), leaf) for leaf in leaves]
        if by_name:
            self.by_name.add(name)

    def take_constants(self, kind: str, *, keep: str | None) -> None:
        """Take properties with one value, and a `type` that may name the message."""
        for name, schema in list(self.left.items()):
            if name == keep:
                continue
            values = values_of(schema) if isinstance(schema, dict) else []
            if len(values) == 1:
                self.take(name, Fixed(values[0]), by_name=False)
                if name == "action" and isinstance(values[0], str):
                    self.action_value = values[0]
            elif name == "type" and (word := _fitting(schema, (kind, kind.lower()))):
                self.take(name, Fixed(word), by_name=not values)

    def take_action(self) -> None:
        """Take `action` if it is a text that the document leaves open."""
        schema = self.left.get("action", False)
        if not isinstance(schema, dict) or types_of(schema) != {"string"}:
            return
        if len(values_of(schema)) != 1 and "pattern" not in schema:
            self.action_schema = schema
            self.take("action", Slot.ACTION)


def take_message_id(request: MessageFields, response: MessageFields) -> str | None:
    """Take the message id from both messages; return its name, or None."""
    for name in ID_NAMES:
        if name in request.left and name in response.left:
            schemas = request.left[name], response.left[name]
            if all(map(_carries_ids, schemas)):
                request.take(name, Slot.MESSAGE_ID)
                response.take(name, Slot.MESSAGE_ID)
                return name
    return None


def _carries_ids(schema: Schema) -> bool:
    if not isinstance(schema, dict) or types_of(schema) != {"string"}:
        return False
    if schema.keys() & {"const", "enum", "pattern"}:
        return False
    least, most = schema.get("minLength", 0), schema.get("maxLength", ID_SIZE)
    return bool(least <= 1 and most >= ID_SIZE)


def places_of(fields: MessageFields, own: str | None) -> tuple[Place, ...]:
    """Return where the values are: in the only remaining object, or side by side."""
    if own is not None:
        return (Place((own,), fields.left[own]),)
    beside = {
        keyword: value
        for keyword, value in fields.schema.items()
        if keyword not in ANNOTATIONS
    }
    required = [
        name for name in fields.schema.get("required", ()) if name in fields.left
    ]
    flat = Place(
        (),
        {**beside, "type": "object", "properties": fields.left, "required": required},
    )
    if len(fields.left) != 1:
        return (flat,)
    ((name, schema),) = fields.left.items()
    if types_of(schema) != {"object"}:
        return (flat,)
    return (Place((name,), schema, name not in fields.required), flat)


def keywords_of(schema: Schema) -> dict[str, Any]:
    """Return the keywords of `schema`; a boolean schema has none."""
    return schema if isinstance(schema, dict) else {}


def _fitting(schema: Schema, words: Iterable[str]) -> str | None:
    if types_of(schema) != {"string"} or "pattern" in keywords_of(schema):
        return None
    return next((word for word in words if not contradiction(schema, word)), None)
