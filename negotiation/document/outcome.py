"""The fields in which responses report success or failure: status, code, error."""

from __future__ import annotations

from typing import Any, Final

from negotiation.document.fields import MessageFields, keywords_of
from negotiation.document.parts import Fixed, Mark, Slot
from negotiation.errors import DocumentError
from negotiation.need import Schema
from negotiation.schema.reasons import values_of
from negotiation.schema.unions import alternatives
from negotiation.schema.values import contradiction, types_of

__all__ = ["ResponseOutcome"]

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
        listed = values_of(schema) if isinstance(schema, dict) else []
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
        values = values_of(schema) if isinstance(schema, dict) else []
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
