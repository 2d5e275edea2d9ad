"""A capability that the owner describes, where nothing else does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredCapability:
    """A capability that the owner describes, where nothing else does."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: str
    "Short name."

    description: str = ""
    "In words, for peers and models."

    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    "JSON Schema of its arguments, an object."

    output_schema: Mapping[str, Any] | None = None
    'JSON Schema of its output, an object; without it a result that is no object is \
wrapped as `{"result": …}`.'

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    "`http`: the method; GET, HEAD and DELETE send arguments in the query."

    path: str = "/"
    "`http`: the path below the URL, with `{name}` where an argument belongs."

    media_type: str = ""
    "`http`: the media type of its answers, such as image/png or text/event-stream; \
empty for JSON and text. Bytes and streams have an output schema of their own."

    read_only: bool = False
    "It changes nothing."

    idempotent: bool = False
    "It may be repeated."

    tags: tuple[str, ...] = ()
    "Words for search, in the card for callers of A2A."

    examples: tuple[str, ...] = ()
    "Requests in words, in the same card."
