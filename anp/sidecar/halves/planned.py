"""A half that rules wrote, run as a plan in the daemon; the worker has the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from negotiation.errors import CapabilityFailed, HalfError
from negotiation.mind import HalfRunner, OnStream
from negotiation.rules.plan_run import (
    NotPlanned,
    ProviderRun,
    RequesterRun,
    StartedRequest,
    Written,
    read_message,
    write_message,
)
from negotiation.strict_json import Json

_FUNCTIONS = ("encode_request", "decode_response", "handle_request")

OnCall = Callable[[str, Any], Awaitable[Any]]

MAX_TOLD = 500
"Characters of a failed capability's words that a half sees, in a worker, too."


class ReadResponse(NamedTuple):
    """A response that was read."""

    told: dict[str, Any]
    "Its `message_id`, with `result` or `error`."

    values: Json
    "All of it."


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
        check: Callable[[], None] = lambda: None,
        on_trial: bool = False,
    ) -> None:
        """Make the half.

        Args:
            load: Returns the source in a worker; one that is there serves again.
            check: Called before each run; raises `HalfError` for code in quarantine.
            on_trial: The source repeats the plan's first result of each function, and
                has to come to the same.
        """
        self._plan = plan
        self._load = load
        self._check = check
        self._unproved = set(_FUNCTIONS if on_trial else ())

    async def encode_request(self, message_id: str, arguments: dict[str, Any]) -> bytes:
        """Return the request's bytes; HalfError when the half cannot."""
        written = self.encode_now(message_id, arguments)
        if written is not None:
            if self._is_due("encode_request"):
                source = await self._load()
                made = await source.encode_request(message_id, arguments)
                _same(written.data, made)
            return written.data
        return await (await self._load()).encode_request(message_id, arguments)

    def encode_now(self, message_id: str, arguments: dict[str, Any]) -> Written | None:
        """Return the request if the plan can write it; HalfError as all runs."""
        self._check()
        if not isinstance(self._plan, RequesterRun):
            return None
        try:
            return self._plan.encode_request(message_id, arguments)
        except NotPlanned:
            return None

    async def decode_response(self, data: bytes) -> dict[str, Any]:
        """Return `message_id`, with `result`, `error` or, of an update, `update`."""
        read = self.decode_now(data)
        if read is not None:
            if self._is_due("decode_response"):
                _same(read.told, await (await self._load()).decode_response(data))
            return read.told
        return await (await self._load()).decode_response(data)

    def decode_now(self, data: bytes) -> ReadResponse | None:
        """Return a response if the plan can read it; HalfError as all runs."""
        self._check()
        if not isinstance(self._plan, RequesterRun):
            return None
        values = read_message(data)
        try:
            return ReadResponse(self._plan.decode_response(values), values)
        except NotPlanned:
            return None

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
        if not isinstance(self._plan, ProviderRun):
            return await (await self._load()).handle_request(data, on_call, on_stream)
        values = values or read_message(data)
        try:
            started = self._plan.begin(values)
        except NotPlanned:
            data = data or write_message(values)
            return await (await self._load()).handle_request(data, on_call, on_stream)
        # It may be long, and the call may take long.
        data = data if self._unproved else b""
        answer = None
        try:
            output = await on_call(started.capability, started.arguments)
        except CapabilityFailed as exc:
            replay = _Replay(started, failure=exc.again())
            with contextlib.suppress(NotPlanned):
                return self._plan.fail(started, code_told(exc), exc.told[:MAX_TOLD])
        else:
            replay = _Replay(started, output)
            with contextlib.suppress(NotPlanned):
                answer = self._plan.answer(started, output)
        if answer is not None and not self._is_due("handle_request"):
            return answer
        data = data or write_message(values)
        made = await (await self._load()).handle_request(data, replay.call)
        if answer is not None:
            _same(answer, made)
        return made

    def _is_due(self, function: str) -> bool:
        """Return whether the source has to repeat this run; once for each function."""
        due = function in self._unproved
        self._unproved.discard(function)
        return due


def _same(planned: object, made: object) -> None:
    if planned != made:
        raise HalfError("error", "the code gives another result than its plan")


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
            raise self._failure.again()
        return self._output
