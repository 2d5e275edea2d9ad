"""Fits the sandbox to what negotiation and channels ask of a module half."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from negotiation.errors import HalfError
from negotiation.trial.acceptance import CapabilityFailed
from sandbox.errors import CapabilityFailure, SandboxError
from sandbox.pool.pool import Module, Sandbox

__all__ = ["LoadedHalf", "load_half"]


class LoadedHalf:
    """A half loaded into a worker; fits `negotiation.trial.acceptance.HalfRunner`."""

    def __init__(self, module: Module, *, deadline: float) -> None:
        self._module = module
        self._deadline = deadline

    async def encode_request(self, message_id: str, arguments: dict[str, Any]) -> bytes:
        """Return the request's bytes; HalfError when the half cannot."""
        return _bytes(await self._call("encode_request", message_id, arguments))

    async def decode_response(self, data: bytes) -> dict[str, Any]:
        """Return `{"message_id", "result"}` or `{"message_id", "error"}`."""
        answer = await self._call("decode_response", data)
        if not isinstance(answer, dict):
            raise HalfError("error", "decode_response did not return a dict")
        return answer

    async def read_message(self, kind: str, data: bytes) -> dict[str, Any]:
        """Return the values of a message whose bytes are not JSON.

        Args:
            kind: `request` or `response`.

        Raises:
            HalfError: The half has no such function, or cannot read the bytes.
        """
        values = await self._call("read_message", kind, data)
        if not isinstance(values, dict):
            raise HalfError("error", "read_message did not return a dict")
        return values

    async def handle_request(
        self, data: bytes, on_call: Callable[[str, Any], Awaitable[Any]]
    ) -> bytes:
        """Run the provider half on one request; `on_call` makes its calls."""

        async def adapted(name: str, params: Any) -> Any:
            try:
                return await on_call(name, params)
            except CapabilityFailed as exc:
                code = int(exc.code) if exc.code.isdigit() else 500
                raise CapabilityFailure(code, exc.message) from exc

        try:
            answer = await self._module.run(
                "handle_request", data, on_call=adapted, deadline=self._deadline
            )
        except SandboxError as exc:
            raise _half_error(exc) from exc
        return _bytes(answer)

    async def _call(self, function: str, *args: Any) -> Any:
        try:
            return await self._module.call(function, *args, deadline=self._deadline)
        except SandboxError as exc:
            raise _half_error(exc) from exc


async def load_half(
    sandbox: Sandbox,
    key: str,
    source: str,
    *,
    origin: str,
    protocol: str,
    peer: str,
    deadline: float,
) -> LoadedHalf:
    """Load a half's source under `key`.

    Args:
        protocol: Hash of the document that it speaks.
        peer: DID of the peer that it is spoken with.
        deadline: Seconds of its own time that each call of the half may take.

    Raises:
        HalfError: The source was refused or did not load.
    """
    try:
        module = await sandbox.load(
            key, source, origin=origin, protocol=protocol, peer=peer
        )
    except SandboxError as exc:
        raise _half_error(exc) from exc
    return LoadedHalf(module, deadline=deadline)


def _half_error(exc: SandboxError) -> HalfError:
    reason = exc.reason
    if exc.findings:
        # All of them, with their source: a mind that writes again sees no other text.
        reason = "; ".join(
            f"line {finding.line}: {finding.reason}: {finding.source.strip()}"
            for finding in exc.findings
        )
    return HalfError(exc.outcome, reason, exc.line)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise HalfError("error", f"the half returned {type(value).__name__}, not bytes")
    return value
