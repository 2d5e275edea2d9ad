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

from negotiation.exact_numbers import ExactEncoder
from negotiation.long_texts import write_bytes

__all__ = ["LEFT_OUT", "JsonAnswer", "fields_of"]


class _LeftOut:
    """The type of `LEFT_OUT`."""


LEFT_OUT: Final[Any] = _LeftOut()
"The default of a field whose key need not be there; the key is left out then."


class JsonAnswer(JSONResponse):
    """A response with the JSON of dataclasses."""

    def render(self, content: object) -> bytes:
        """Return the JSON as bytes; numbers that JSON does not know are refused."""
        made: dict[int, dict[str, Any]] = {}

        def once(answer: Any) -> dict[str, Any]:
            # The encoder looks at everything twice; the answer keeps it all alive.
            if id(answer) not in made:
                made[id(answer)] = fields_of(answer)
            return made[id(answer)]

        encoder = ExactEncoder(
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
            default=once,
        )
        return write_bytes(encoder, once(content) if is_dataclass(content) else content)


def fields_of(answer: Any) -> dict[str, Any]:
    """Return the keys of an answer with their values, for `json.dumps`."""
    found = ((name, getattr(answer, name)) for name in _names_of(answer.__class__))
    return {name: value for name, value in found if value is not LEFT_OUT}


@cache
def _names_of(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))
