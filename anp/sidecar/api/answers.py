"""Answers of the local API: frozen dataclasses, from which their JSON is made.

A handler returns an object of the class that its operation declares. Each field is one
key of the JSON, and `openapi` makes the schema of the class from the same fields, so
that the document and the answers cannot differ.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final

from starlette.responses import JSONResponse

from jsonic.exact_numbers import ExactEncoder
from negotiation.long_texts import write_bytes
from negotiation.strict_json import MAX_DEPTH, plain_json


class _LeftOut:
    """The type of `LEFT_OUT`."""


LEFT_OUT: Final[Any] = _LeftOut()
"The default of a field whose key need not be there; the key is left out then."


class JsonAnswer(JSONResponse):
    """A response with the JSON of dataclasses."""

    def render(self, content: object) -> bytes:
        """Return the JSON as bytes; numbers that JSON does not know are refused."""
        plain = plain_json(content, max_depth=MAX_DEPTH)
        if plain is not None:
            return plain
        if is_dataclass(content):
            # Long texts in it are found then.
            content = fields_of(content)
        return write_bytes(_ENCODER, content)


def fields_of(answer: Any) -> dict[str, Any]:
    """Return the keys of an answer with their values, for `json.dumps`."""
    names, may_lack = _names_of(answer.__class__)
    found = {name: getattr(answer, name) for name in names}
    if may_lack:
        found = {key: value for key, value in found.items() if value is not LEFT_OUT}
    return found


@cache
def _names_of(kind: type) -> tuple[tuple[str, ...], bool]:
    """Return the names of the fields of a class, and if one of them may be left out."""
    known = fields(kind)
    may_lack = any(one.default is LEFT_OUT for one in known)
    return tuple(one.name for one in known), may_lack


_ENCODER: Final = ExactEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=fields_of
)
