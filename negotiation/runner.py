"""Interfaces for checking a half: a runner of its functions, and a validator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from negotiation.need import Schema
from negotiation.strict_json import Json

__all__ = ["HalfRunner", "MessageParser", "Validator"]


class MessageParser(Protocol):
    """Reads messages whose bytes are not JSON."""

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
            on_call: Answers each capability call; if it raises `CapabilityFailed`, the
                half gets a `CapabilityError`.
        """
        ...


class Validator(Protocol):
    """Validates values against schemas under a deadline; no finding means valid."""

    async def check_schema(self, schema: Schema) -> list[str]:
        """Check a schema against its metaschema."""
        ...

    async def validate(self, schema: Schema, value: Json) -> list[str]:
        """Check a value against a schema."""
        ...

    async def validate_json(self, schema: Schema, data: bytes) -> list[str]:
        """Check bytes that should be JSON against a schema."""
        ...
