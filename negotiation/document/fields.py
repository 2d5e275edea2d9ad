"""The fields of a message, sorted by their purpose: id, action, outcome, values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from negotiation.errors import DocumentError
from negotiation.need import Schema
from negotiation.schema.keywords import ANNOTATIONS, keywords_of
from negotiation.schema.plan import values_of
from negotiation.schema.values import alternatives, contradiction, types_of
from negotiation.strict_json import Json


class Slot(Enum):
    """A field that a half fills in when it writes a message."""

    MESSAGE_ID = auto()
    ACTION = auto()
    CODE = auto()
    CODE_TEXT = auto()
    TEXT = auto()


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that is the same in every message."""

    value: Json


@dataclass(frozen=True, slots=True)
class Mark:
    """A field that distinguishes success from failure."""

    path: tuple[str, ...]
    "Names from the top of the message to the field."

    good: tuple[Json, ...]
    "The values that mean success; we write the first."

    bad: Slot | Fixed
    "The value that we write when something failed."

    required: bool
    "False when a message may leave it out, which then has no meaning."


@dataclass(frozen=True, slots=True)
class Place:
    """The place of the values in a message."""

    path: tuple[str, ...]
    "Name of the property that holds them; empty when they are among the other fields."

    schema: Schema

    optional: bool = False
    "True when the property may be absent."


Message = tuple[tuple[tuple[str, ...], Slot | Fixed], ...]
"The fields of a message other than its values, each with its path."


def build_message(
    fields: Message,
    slots: Mapping[Slot, Json],
    *,
    place: Place | None = None,
    value: Json = None,
) -> dict[str, Json]:
    """Return a message of `fields`, with `value` at `place` if one is given."""
    message: dict[str, Any] = {}
    if place is not None and place.path:
        message[place.path[0]] = value
    elif place is not None and isinstance(value, dict):
        message.update(value)
    for path, leaf in fields:
        inner = message
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = leaf.value if isinstance(leaf, Fixed) else slots[leaf]
    return message


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
            values = values_of(schema)
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


def _fitting(schema: Schema, words: Iterable[str]) -> str | None:
    if types_of(schema) != {"string"} or "pattern" in keywords_of(schema):
        return None
    return next((word for word in words if not contradiction(schema, word)), None)


GOOD_WORDS: Final = ("ok", "success", "succeeded", "200", "0")
BAD_WORDS: Final = ("error", "failed", "failure", "fail", "500")
GOOD_CODES: Final = (200, 0)
OPEN_WORDS: Final = ("ok", "OK", "Ok", "success", "SUCCESS", "Success", "200", "0")
"Values that mean success in a text field that lists no words."


class ResponseOutcome:
    """The fields in which a response reports success or failure, and the reason."""

    def __init__(self, fields: MessageFields) -> None:
        self._fields = fields
        self.good: list[tuple[tuple[str, ...], Slot | Fixed]] = []
        self.bad: list[tuple[tuple[str, ...], Slot | Fixed]] = []
        self.marks: list[Mark] = []
        self.texts: list[tuple[str, ...]] = []
        self.error: str | None = None
        self.codes: tuple[int, ...] = ()
        self.words: tuple[str, ...] = ()
        for name in ("status", "code", "success"):
            if name in fields.left:
                self._mark(name, fields.left[name])
        if "error" in fields.left:
            self._error("error", fields.left["error"])
        if not self.marks and self.error is None:
            raise DocumentError(
                "the response has no status, code or error that tells good from bad"
            )
        self._message()

    def _mark(self, name: str, schema: Schema) -> None:
        required = name in self._fields.required
        if types_of(schema) == {"object"} and isinstance(schema, dict):
            self._status_object(name, schema, required)
            return
        mark = self._scalar((name,), schema, required)
        if mark is not None:
            self._fields.take(name)
            self._add(mark)

    def _status_object(self, name: str, schema: dict[str, Any], required: bool) -> None:
        inner: dict[str, Schema] = schema.get("properties", {})
        needed = schema.get("required", ())
        for key in ("code", "status"):
            sure = required and key in needed
            mark = self._scalar((name, key), inner.get(key, False), sure)
            if mark is not None:
                break
        else:
            return
        self._fields.take(name)
        self._add(mark)
        for other, its_schema in inner.items():
            if other == mark.path[-1]:
                continue
            path = (name, other)
            if other == "message" and "string" in types_of(its_schema):
                self._text(path, its_schema)
            elif other in needed:
                self._fill(path, its_schema)

    def _scalar(
        self, path: tuple[str, ...], schema: Schema, required: bool
    ) -> Mark | None:
        """Return the mark that a field with this name and schema is, or None."""
        types = types_of(schema)
        listed = values_of(schema)
        if types == {"boolean"}:
            # A boolean `status` or `success` is clear; `code: true` is not.
            return Mark(path, (True,), Fixed(False), required)
        if types and types <= {"integer", "number"}:
            good = tuple(code for code in GOOD_CODES if not contradiction(schema, code))
            if not good:
                return None
            if listed:
                self.codes = tuple(
                    code
                    for code in listed
                    if isinstance(code, int) and code not in GOOD_CODES
                )
                if not self.codes:
                    return None
            elif contradiction(schema, 500):
                return None
            return Mark(path, good, Slot.CODE, required)
        if types != {"string"}:
            return None
        if listed:
            words = [word for word in listed if isinstance(word, str)]
            good_words = [word for word in words if word.casefold() in GOOD_WORDS]
            bad_words = [word for word in words if word not in good_words]
            bad_words.sort(key=lambda word: word.casefold() not in BAD_WORDS)
            if not good_words or not bad_words:
                return None
            if any(word.casefold() not in BAD_WORDS for word in bad_words[1:]):
                self.words = tuple(bad_words)
            return Mark(path, tuple(good_words), Fixed(bad_words[0]), required)
        if path[-1] == "code":
            usable = not (
                contradiction(schema, "200") or "pattern" in keywords_of(schema)
            )
            good_texts = ("200", *OPEN_WORDS[:-2], "0")
            return Mark(path, good_texts, Slot.CODE_TEXT, required) if usable else None
        if contradiction(schema, "error") or "pattern" in keywords_of(schema):
            return None
        return Mark(path, OPEN_WORDS, Fixed("error"), required)

    def _add(self, mark: Mark) -> None:
        self.marks.append(mark)
        self.good.append((mark.path, Fixed(mark.good[0])))
        self.bad.append((mark.path, mark.bad))

    def _text(self, path: tuple[str, ...], schema: Schema) -> None:
        if contradiction(schema, "OK") or "pattern" in keywords_of(schema):
            self._fill(path, schema)
            return
        self.texts.append(path)
        self.good.append((path, Fixed("OK")))
        self.bad.append((path, Slot.TEXT))

    def _fill(self, path: tuple[str, ...], schema: Schema) -> None:
        """Give a required field next to the mark its only known value."""
        values = values_of(schema)
        if len(values) == 1:
            chosen = Fixed(values[0])
        elif isinstance(schema, dict) and "default" in schema:
            chosen = Fixed(schema["default"])
        else:
            where = "/".join(path)
            raise DocumentError(f"the response needs {where!r}, whose value is unclear")
        self.good.append((path, chosen))
        self.bad.append((path, chosen))

    def _error(self, name: str, schema: Schema) -> None:
        branches = [one for one in alternatives(schema) if types_of(one) != {"null"}]
        nullable = len(branches) < len(alternatives(schema))
        required = name in self._fields.required
        if len(branches) != 1 or (required and not nullable):
            return
        (branch,) = branches
        types = types_of(branch)
        if "string" in types and not contradiction(branch, "error"):
            self.texts.append((name,))
            self.bad.append(((name,), Slot.TEXT))
        elif "object" in types and isinstance(branch, dict):
            self._error_object(name, branch)
        else:
            return
        if required:
            self.good.append(((name,), Fixed(None)))
        self._fields.take(name)
        self.error = name

    def _error_object(self, name: str, schema: dict[str, Any]) -> None:
        inner: dict[str, Schema] = schema.get("properties", {"message": True})
        needed = set(schema.get("required", ()))
        for key, its_schema in inner.items():
            path = (name, key)
            types = types_of(its_schema)
            if key == "message" and "string" in types:
                self.texts.append(path)
                self.bad.append((path, Slot.TEXT))
            elif key == "code" and "integer" in types:
                self.bad.append((path, Slot.CODE))
            elif (
                key == "code"
                and types == {"string"}
                and "enum" not in keywords_of(its_schema)
            ):
                self.bad.append((path, Slot.CODE_TEXT))
            elif key in needed:
                where = f"{name}/{key}"
                raise DocumentError(
                    f"an error response needs {where!r}, whose value is unclear"
                )

    def _message(self) -> None:
        """Take a `message` next to a code or status, if a result remains without it."""
        schema = self._fields.left.get("message", False)
        beside = any(len(mark.path) == 1 for mark in self.marks)
        if beside and types_of(schema) == {"string"} and len(self._fields.left) > 1:
            self._fields.take("message")
            self._text(("message",), schema)
