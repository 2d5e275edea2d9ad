"""A half that rules wrote, run as a plan in the daemon; the worker has the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from negotiation.errors import CapabilityFailed, HalfError
from negotiation.mind import HalfRunner, OnStream
from negotiation.rules.plan_run import (
    NotPlanned,
    ProviderRun,
    RequesterRun,
    StartedRequest,
    read_message,
    write_message,
)
from negotiation.strict_json import Json

__all__ = ["PlannedHalf", "code_told"]

OnCall = Callable[[str, Any], Awaitable[Any]]

MAX_TOLD = 500
"Characters of a failed capability's words that a half sees, in a worker, too."


def code_told(failure: CapabilityFailed) -> int:
    """Return the code of a failed capability as a half sees it."""
    return int(failure.code) if failure.code.isdigit() else 500


class PlannedHalf:
    """A half of rules with its plan; fits `negotiation.mind.HalfRunner`.

    A plan does what is usual, which a failed capability is. All else is done by the
    source, which is loaded when it is needed, and also has the words for what is wrong.
    """

    def __init__(
        self,
        plan: RequesterRun | ProviderRun,
        load: Callable[[], Awaitable[HalfRunner]],
        *,
        check: Callable[[], None],
    ) -> None:
        """Make the half.

        Args:
            load: Returns the source in a worker; one that is there serves again.
            check: Called before each run; raises `HalfError` for code in quarantine.
        """
        self._plan = plan
        self._load = load
        self._check = check

    async def encode_request(self, message_id: str, arguments: dict[str, Any]) -> bytes:
        """Return the request's bytes; HalfError when the half cannot."""
        return (await self.written_request(message_id, arguments))[0]

    async def written_request(
        self, message_id: str, arguments: dict[str, Any]
    ) -> tuple[bytes, Json]:
        """Return the request's bytes, and what they say; None if only a reader knows.

        Raises:
            HalfError: The half cannot.
        """
        self._check()
        if isinstance(self._plan, RequesterRun):
            try:
                return self._plan.encode_request(message_id, arguments)
            except NotPlanned:
                pass
        return await (await self._load()).encode_request(message_id, arguments), None

    async def decode_response(self, data: bytes, values: Json = None) -> dict[str, Any]:
        """Return `message_id`, with `result`, `error` or, of an update, `update`.

        Args:
            values: What the bytes say; None if they were not read, or cannot be.
        """
        self._check()
        if isinstance(self._plan, RequesterRun):
            try:
                return self._plan.decode_response(values or read_message(data))
            except NotPlanned:
                pass
        return await (await self._load()).decode_response(data)

    async def read_message(self, kind: str, data: bytes) -> dict[str, Any]:
        """Return the values of a message whose bytes are not JSON."""
        return await (await self._load()).read_message(kind, data)

    async def handle_request(
        self,
        data: bytes,
        on_call: OnCall,
        on_stream: OnStream | None = None,
        values: Json = None,
    ) -> bytes:
        """Run the provider half on one request; `on_call` makes its calls.

        Args:
            values: What the bytes say; None if they were not read, or cannot be. With
                these there need be no bytes: they are written anew where they are
                needed, which is seldom.
        """
        self._check()
        values = values or read_message(data)
        if not isinstance(self._plan, ProviderRun):
            return await (await self._load()).handle_request(data, on_call, on_stream)
        try:
            started = self._plan.begin(values)
        except NotPlanned:
            data = data or write_message(values)
            return await (await self._load()).handle_request(data, on_call, on_stream)
        # It may be long, and the call may take long.
        data = b""
        try:
            output = await on_call(started.capability, started.arguments)
        except CapabilityFailed as exc:
            try:
                return self._plan.fail(started, code_told(exc), exc.told[:MAX_TOLD])
            except NotPlanned:
                replay = _Replay(started, failure=exc)
        else:
            try:
                return self._plan.answer(started, output)
            except NotPlanned:
                replay = _Replay(started, output)
        data = write_message(values)
        return await (await self._load()).handle_request(data, replay.call)


class _Replay:
    """Gives the source the outcome of the call that was made already."""

    def __init__(
        self,
        started: StartedRequest,
        output: Any = None,
        *,
        failure: CapabilityFailed | None = None,
    ) -> None:
        self._started = started
        self._output = output
        self._failure = failure

    async def call(self, name: str, arguments: Any) -> Any:
        """Return the output; nothing runs a second time."""
        if (name, arguments) != (self._started.capability, self._started.arguments):
            raise HalfError("error", "the code asks for another call than its plan")
        if self._failure is not None:
            raise self._failure
        return self._output
