"""What the check of a half needs from outside: something that runs it, and a judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from negotiation.need import Schema
from negotiation.strict_json import Json

__all__ = ["HalfRunner", "MessageParser", "Validator"]


class MessageParser(Protocol):
    """What reads messages whose bytes are not JSON."""

    async def read_message(self, kind: str, data: bytes) -> dict[str, Any]:
        """Run `read_message` of either half, when the bytes are not JSON.

        Args:
            kind: `request` or `response` (`MessageKind`).
        """
        ...


class HalfRunner(MessageParser, Protocol):
    """A loaded half; every failure of it is a `HalfError`."""

    async def encode_request(self, message_id: str, arguments: dict[str, Any]) -> bytes:
        """Run `encode_request` of a requester half."""
        ...

    async def decode_response(self, data: bytes) -> dict[str, Any]:
        """Run `decode_response` of a requester half."""
        ...

    async def handle_request(
        self, data: bytes, on_call: Callable[[str, Json], Awaitable[Json]]
    ) -> bytes:
        """Run `handle_request` of a provider half.

        Args:
            on_call: Answers each capability call; a `CapabilityFailed` of it becomes a
                `CapabilityError` inside the half.
        """
        ...


class Validator(Protocol):
    """Judges values by schemas under a deadline; findings in words, none when good."""

    async def check_schema(self, schema: Schema) -> list[str]:
        """Judge a schema by its metaschema."""
        ...

    async def validate(self, schema: Schema, value: Json) -> list[str]:
        """Judge a value."""
        ...

    async def validate_json(self, schema: Schema, data: bytes) -> list[str]:
        """Judge bytes that should be JSON."""
        ...
