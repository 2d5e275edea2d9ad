"""Fields of JSON objects from a peer, each checked for its type and its limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from anp.interaction.errors import InteractionError, InteractionFault
from anp.protocols.timestamps import read_timestamp

MAX_ID: Final = 512
"Longest id, in characters (GBZ-Q18)."

MAX_TEXT: Final = 8192
"Longest text for people, in characters."

MAX_ADDRESS: Final = 2048
"Longest address, in characters."

MAX_REF: Final = 2**53 - 1
"Largest number of an operation."

MAX_ITEMS: Final = 1024
"Parts of a message, messages of a task, and inputs, each."

MAX_PARTIES: Final = 256
"Participants of a session besides its requester."

_MIME: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}"
    r"(?:[ \t]*;[\x20-\x7e\t]{0,256})?"
)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def invalid(text: str) -> InteractionError:
    """Return the error for an object that is not as its table has it."""
    return InteractionError(InteractionFault.INVALID, text)


def given_fields(**fields: Any) -> dict[str, Any]:
    """Return the fields that say something."""
    return {name: value for name, value in fields.items() if value}


class Fields:
    """The fields of one object; what was not asked for is left in `rest`."""

    def __init__(self, value: object, what: str) -> None:
        """Take an object; `what` names it in errors.

        Raises:
            InteractionError: It is no object.
        """
        if not isinstance(value, dict):
            raise invalid(f"{what} is no object")
        self._left: dict[str, Any] = dict(value)
        self._what = what
        self.flags: list[str] = []

    @property
    def rest(self) -> Mapping[str, Any]:
        """The fields that nobody asked for, which are kept (GBZ-19)."""
        return self._left

    def inner(self, value: object, what: str) -> Fields:
        """Return the fields of an object in this one; their flags are one list."""
        fields = Fields(value, what)
        fields.flags = self.flags
        return fields

    def take(self, name: str) -> Any:
        """Return a field as it is, or None."""
        return self._left.pop(name, None)

    def has(self, name: str) -> bool:
        """Return whether a field is left."""
        return name in self._left

    def text(self, name: str, *, limit: int = MAX_ID) -> str:
        """Return a required text of 1 to `limit` characters."""
        value = self.take(name)
        if not isinstance(value, str) or not 0 < len(value) <= limit:
            raise self._wrong(name, f"a text of 1 to {limit} characters")
        return value

    def optional_text(self, name: str, *, limit: int = MAX_ID) -> str:
        """Return a text; absent, null and the empty text are the same (GBZ-Q6)."""
        value = self.take(name)
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > limit:
            raise self._wrong(name, f"a text of at most {limit} characters")
        return value

    def media_type(self, name: str) -> str:
        """Return a required MIME type, such as `text/plain; charset=utf-8`."""
        value = self.text(name)
        if not _MIME.fullmatch(value):
            raise self._wrong(name, "a MIME type")
        return value

    def sha256(self, name: str) -> str:
        """Return a SHA-256 in hex, or the empty text."""
        value = self.optional_text(name)
        if value and not _SHA256.fullmatch(value):
            raise self._wrong(name, "64 hex characters")
        return value

    def address(self, name: str) -> str:
        """Return a required address; an agent that has none says the empty text."""
        value = self.take(name)
        if not isinstance(value, str) or len(value) > MAX_ADDRESS:
            raise self._wrong(name, f"a text of at most {MAX_ADDRESS} characters")
        return value

    def for_people(self, name: str) -> str:
        """Return a text for people, or the empty one."""
        return self.optional_text(name, limit=MAX_TEXT)

    def word(self, name: str, words: Mapping[str, Any], *, needed: bool = True) -> Any:
        """Return the meaning of a word; None for one that is absent and not needed."""
        value = self.take(name)
        if value is None and not needed:
            return None
        if not isinstance(value, str) or value not in words:
            raise self._wrong(name, f"one of {', '.join(words)}")
        return words[value]

    def boolean(self, name: str) -> bool | None:
        """Return a boolean, or None if it is absent."""
        value = self.take(name)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def integer(self, name: str, *, least: int = 0) -> int | None:
        """Return an integer, or None if it is absent."""
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._wrong(name, f"an integer of at least {least}")
        return value

    def number(self, name: str) -> int | float | None:
        """Return a number, or None if it is absent."""
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise self._wrong(name, "a number")
        return value

    def mapping(self, name: str, *, needed: bool = False) -> dict[str, Any]:
        """Return an object; the empty one if it is absent and not needed."""
        value = self.take(name)
        if value is None and not needed:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value

    def items(self, name: str, *, limit: int) -> list[Any]:
        """Return an array of at most `limit` elements; empty if it is absent."""
        value = self.take(name)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > limit:
            raise self._wrong(name, f"an array of at most {limit} elements")
        return value

    def date_time(self, name: str) -> datetime | None:
        """Return a date-time in UTC, or None if it is absent (GBZ-Q17)."""
        value = self.take(name)
        if value is None:
            return None
        try:
            found = read_timestamp(value if isinstance(value, str) else "")
        except ValueError:
            raise self._wrong(name, "an ISO 8601 date-time") from None
        if not found.zoned:
            self.flags.append(f"{name} has no zone and is taken as UTC")
        return found.at

    def _wrong(self, name: str, wanted: str) -> InteractionError:
        return invalid(f"{self._what}: {name} is not {wanted}")
