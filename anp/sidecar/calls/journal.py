"""Calls that outlive their request: kept by id, followed by events, asked for again."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextvars import ContextVar
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from anp.errors import (
    AnpError,
    BusyError,
    CallError,
    ConflictError,
    ErrorKind,
    UnknownError,
)
from anp.phases import ON_PHASE
from anp.sidecar.bound.signs import CallSign
from anp.sidecar.calls.call import CallRequest, CallResult, CallState, KeptCall
from anp.sidecar.calls.events import Event, EventHub, EventWatcher
from anp.sidecar.calls.keys import CallKeys, Outcome
from anp.sidecar.telemetry.observer import CallOrigin, call_origin
from cache.errors import CacheError
from negotiation.errors import NegotiationError
from negotiation.need import Role
from negotiation.strict_json import largest_json

logger = logging.getLogger(__name__)

MAX_RUNNING: Final = 256
"Calls under way at a time."

MORE_FOR_OWNER: Final = 16
"Calls that the owner may have under way besides, whatever agents do."

MAX_KEPT: Final = 1_000
"Calls that are over and whose results are kept."

MAX_KEPT_BYTES: Final = 64 * 1024 * 1024
"Their results together, about, in bytes."

KEPT_FOR: Final = 3_600.0
"Seconds for which a result is kept."

MAX_EVENTS: Final = 500
"Events kept of one call, for who comes late."

END_WAIT: Final = 5.0
"""Longest wait, in seconds, for a call that was taken back. It ends at once; but the
request that carries it may have a client that does not read its answer."""

AGAIN_AFTER: Final = (60.0, 300.0, 900.0, 3_600.0)
"Seconds after which a call that waits for approval asks again (DESIGN.md, The owner)."


CURRENT: ContextVar[str | None] = ContextVar("current_call", default=None)
"Id of the call that this asyncio task works for; tasks it starts inherit the id."


class CallDesk:
    """Carries each call, and keeps its result for a while.

    It lives in memory: a daemon that starts anew knows only the earlier calls that had
    an idempotency key.
    """

    def __init__(
        self,
        carry: Callable[[CallRequest], Awaitable[CallResult]],
        hub: EventHub,
        *,
        keys: CallKeys | None = None,
        clock: Callable[[], float] = time.time,
        again_after: tuple[float, ...] = AGAIN_AFTER,
    ) -> None:
        self._carry = carry
        self._hub = hub
        self._keys = keys
        self._clock = clock
        self._again_after = again_after
        self._calls: dict[str, KeptCall] = {}
        self._over: deque[KeptCall] = deque()
        "Those of them that are over, the one that ended first at the left."
        self._over_size = 0
        self._by_key: dict[str, KeptCall] = {}

    async def start(
        self, request: CallRequest, *, key: str | None = None, by_owner: bool = False
    ) -> KeptCall:
        """Begin a call in a task of its own; see `open`."""
        call = await self.open(request, key=key, by_owner=by_owner)
        if call.task is None and not call.is_over:
            self._carry_apart(call, self._run(call))
        return call

    async def settle(self, call: KeptCall) -> None:
        """Wait until a call is over, or waits for an approval.

        One that no task carries yet is carried by the task at hand, which saves a
        second task and its turns of the event loop.
        """
        if call.task is not None or call.is_over:
            await call.settled.wait()
            return
        call.task = asyncio.current_task()
        await self._run(call)

    async def open(
        self, request: CallRequest, *, key: str | None = None, by_owner: bool = False
    ) -> KeptCall:
        """Return a call that no task carries yet, or the one that began with this key.

        A first attempt that failed without having run is no result, so its key counts
        anew.

        Args:
            key: The caller's idempotency key; those of owner and agent are apart.
            by_owner: True if the owner calls, False if an agent does.

        Raises:
            ConflictError: The key belongs to another call.
            BusyError: Too many calls are under way.
            StoreUnavailable: Nobody knows if the key was used before.
        """
        self._drop_old()
        if key is not None:
            key = f"{'owner' if by_owner else 'agent'}:{key}"
        known = self._known(key, request)
        if known is None and key is not None and self._keys is not None:
            earlier = await self._keys.find(key, request)
            # Another request with this key may have come meanwhile.
            known = self._known(key, request)
            if known is None and earlier is not None:
                known = self._restore(key, request, earlier)
                known.by_owner = by_owner
        if known is not None:
            return known
        under_way = len(self._calls) - len(self._over)
        most = MAX_RUNNING + (MORE_FOR_OWNER if by_owner else 0)
        if under_way >= most:
            raise BusyError(
                f"{under_way} calls are under way, at most {most}; wait for one",
                retry_after=1.0,
            )
        call = KeptCall(os.urandom(8).hex(), request, now=self._clock(), key=key)
        call.by_owner = by_owner
        self._calls[call.id] = call
        if key is not None:
            self._by_key[key] = call
        self._tell(call, "call.started", {"peer": request.peer})
        return call

    def _known(self, key: str | None, request: CallRequest) -> KeptCall | None:
        """Return the call in memory that has this key, unless it may be made again."""
        known = self._by_key.get(key) if key is not None else None
        if known is None or _never_ran(known):
            return None
        if known.request != request:
            raise ConflictError("this idempotency_key was used for another call")
        return known

    def _restore(self, key: str, request: CallRequest, found: Outcome) -> KeptCall:
        """Keep a call again that an earlier run of the daemon made."""
        call = KeptCall(found.id, request, now=found.created, key=key)
        call.result, call.error = found.result, found.error
        call.state = CallState.FAILED if found.result is None else CallState.DONE
        call.size = 0 if found.result is None else _about_size(found.result)
        call.ended = self._clock()
        # Who watches it learns its id and its end; nobody else is told once more.
        data = {"call": call.id, "state": call.state.value, "problem": call.error}
        kind = f"call.{call.state.value}"
        call.events.append(Event(number=0, type=kind, at=found.created, data=data))
        call.settled.set()
        self._calls[call.id] = self._by_key[key] = call
        self._over.append(call)
        self._over_size += call.size
        return call

    def find(self, call_id: str) -> KeptCall:
        """Return a call.

        Raises:
            UnknownError: There is none, or it was forgotten.
        """
        self._drop_old()
        call = self._calls.get(call_id)
        if call is None:
            raise UnknownError(f"no call is known as {call_id[:64]}")
        return call

    def kept(self) -> list[KeptCall]:
        """Return the calls that are known, the newest first."""
        self._drop_old()
        return [*reversed(self._calls.values())]

    async def cancel(self, call: KeptCall) -> None:
        """Take a call back, and wait until it has ended; a negotiation is ended too."""
        task = self.take_back(call)
        if task is not None:
            await asyncio.wait({task}, timeout=END_WAIT)

    def take_back(self, call: KeptCall) -> asyncio.Task[Any] | None:
        """Have a call end soon; return the task that ends with it, if there is one."""
        if call.is_over:
            return None
        if call.task is None:
            _cancelled(call)
            self._ended(call)
        elif call.state in {CallState.RUNNING, CallState.WAITING}:
            # Otherwise it has ended, and its outcome is just being stored.
            call.task.cancel()
        return call.task

    async def watch(self, call: KeptCall) -> AsyncGenerator[Event, None]:
        """Give the call's events, those of before first, until it is over."""
        watcher = EventWatcher()
        for event in call.events:
            watcher.put(event)
        if call.is_over:
            watcher.close()
        call.watchers.add(watcher)
        try:
            while True:
                following = await watcher.next()
                if following is None:
                    return
                yield following
        finally:
            call.watchers.discard(watcher)

    def progress(self, what: str, ms: float) -> None:
        """Report progress of the call at hand; see `CallRequest.on_progress`."""
        call = self._current()
        if call is not None:
            self._tell(call, "call.progress", {"what": what, "ms": ms})

    def _phase(self, call_id: str, what: str) -> None:
        """Report what a call waits for; tasks that it began may outlive it."""
        call = self._calls.get(call_id)
        if call is not None and not call.is_over and call.waits_for != what:
            call.waits_for = what
            self._tell(call, "call.phase", {"what": what})

    def negotiation(self, event_type: str, data: dict[str, Any]) -> None:
        """Report an event of a negotiation, also to watchers of the call it is for."""
        call = self._current()
        if call is None or data["role"] != Role.REQUESTER or _decided(event_type):
            self._hub.publish(event_type, data)
        else:
            if data["id"] not in call.negotiations:
                call.negotiations.append(data["id"])
            self._tell(call, event_type, data)
        if _decided(event_type):
            # Calls whose negotiation the owner decided ask again at once.
            for waiting in self._calls.values():
                if data["id"] in waiting.negotiations:
                    waiting.decided.set()

    def end_watching(self) -> None:
        """End the streams of all calls; the daemon stops."""
        for call in self._calls.values():
            for watcher in call.watchers:
                watcher.close()

    async def close(self) -> None:
        """End all calls."""
        ending = [self.take_back(call) for call in self._calls.values()]
        tasks = {task for task in ending if task is not None}
        if tasks:
            await asyncio.wait(tasks, timeout=END_WAIT)

    def _carry_apart(self, call: KeptCall, work: Coroutine[Any, Any, None]) -> None:
        """Carry a call in a task of its own."""
        task = call.task = asyncio.create_task(work)

        def check(_: object) -> None:
            # One that was cancelled before its first step came to no end.
            if call.task is task and not call.is_over:
                _cancelled(call)
                self._ended(call)

        task.add_done_callback(check)

    async def _run(self, call: KeptCall) -> None:
        """Carry a call to its end, or until it waits for an approval."""
        # The next request on the connection inherits the context of this one's task.
        current = CURRENT.set(call.id)
        origin = call_origin.set(CallOrigin(call.id, call.by_owner))
        phase = ON_PHASE.set(partial(self._phase, call.id))
        request = call.request._replace(
            on_progress=self.progress,
            on_sign=partial(self._heard, call),
            on_send=partial(self._sending, call),
        )
        limit = request.timeout
        deadline = None if limit is None else time.monotonic() + limit
        first = partial(self._attempt, call, request, deadline, self._again_after)
        try:
            await self._end(call, first)
        finally:
            CURRENT.reset(current)
            call_origin.reset(origin)
            ON_PHASE.reset(phase)

    async def _end(
        self, call: KeptCall, attempt: Callable[[], Awaitable[CallResult | None]]
    ) -> None:
        """Make an attempt; the call ends with it unless there is to be another."""
        try:
            result = await attempt()
            if result is None:
                return
            call.result = result
            call.state = CallState.DONE
            call.size = _about_size(result)
        except asyncio.CancelledError:
            _cancelled(call)
        except CallError as exc:
            call.state, call.error = CallState.FAILED, exc
        except (AnpError, CacheError, NegotiationError) as exc:
            call.state = CallState.FAILED
            call.error = _late(exc) if call.sent else exc
        except Exception:
            # One call must not take others down.
            logger.exception("call failed id=%s", call.id)
            call.state = CallState.FAILED
            call.error = CallError(
                ErrorKind.UNEXPECTED,
                "unexpected error; see the log",
                may_have_run=call.sent,
            )
        try:
            await self._keep_outcome(call)
        finally:
            self._ended(call)

    def _ended(self, call: KeptCall) -> None:
        """Take note that a call is over, and tell those who wait for it."""
        if call.key is None:
            # Only the next request with the same key is compared with this one.
            call.request = call.request._replace(arguments=None)
        else:
            call.size += largest_json(call.request.arguments)
        call.ended = self._clock()
        call.next_attempt = None
        self._over.append(call)
        self._over_size += call.size
        said = {"state": str(call.state), "problem": call.error}
        self._tell(call, f"call.{call.state}", said)
        for watcher in call.watchers:
            watcher.close()
        call.settled.set()

    async def _sending(self, call: KeptCall, repeatable: bool) -> None:
        """Note that a request is about to leave; see `CallRequest.on_send`."""
        if call.key is not None and self._keys is not None:
            await self._keys.begin(call.key, call.request, repeatable=repeatable)
        call.sent = True

    def _heard(self, call: KeptCall, sign: CallSign) -> None:
        """Pass on a sign of the peer's; it comes in a task of the channel's."""
        if not call.is_over:
            self._tell(call, "call.progress", {"what": sign.what, **asdict(sign)})

    async def _keep_outcome(self, call: KeptCall) -> None:
        """Store the outcome of a key before anybody learns it."""
        if call.key is None or self._keys is None:
            return
        if _never_ran(call):
            await self._keys.drop(call.key)
            return
        error = call.error if isinstance(call.error, CallError) else None
        outcome = Outcome(
            id=call.id, created=call.created, result=call.result, error=error
        )
        await self._keys.end(call.key, outcome)

    def _current(self) -> KeptCall | None:
        call = self._calls.get(CURRENT.get() or "")
        return None if call is None or call.is_over else call

    async def _attempt(
        self,
        call: KeptCall,
        request: CallRequest,
        deadline: float | None,
        waits: tuple[float, ...],
    ) -> CallResult | None:
        """Call; None if an owner's approval is missing, for which another task waits.

        Args:
            deadline: That of the whole call, on `time.monotonic`.
            waits: Seconds before each further attempt.
        """
        call.decided.clear()
        try:
            return await self._carry(request)
        except CallError as exc:
            if exc.kind is not ErrorKind.APPROVAL_PENDING or not waits:
                raise
            # A peer whose owner is asked says that it ran nothing of what it got.
            call.sent = exc.may_have_run
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise
            self._pause(call, exc, seconds := min(waits[0], left or waits[0]))
            again = partial(self._again, call, request, deadline, waits[1:], seconds)
            # The request that began the call is answered while it waits.
            self._carry_apart(call, self._end(call, again))
            return None

    async def _again(
        self,
        call: KeptCall,
        request: CallRequest,
        deadline: float | None,
        waits: tuple[float, ...],
        seconds: float,
    ) -> CallResult | None:
        """Wait for the approval or some seconds, and make another attempt."""
        try:
            async with asyncio.timeout(seconds):
                await call.decided.wait()
        except TimeoutError:
            logger.debug("call asks again id=%s", call.id)
        call.state, call.error = CallState.RUNNING, None
        call.next_attempt = None
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                # Approved too late: what nobody waits for any more is not run.
                raise CallError(
                    ErrorKind.TIMEOUT, "no approval within the call's timeout"
                )
            request = request._replace(timeout=left)
        return await self._attempt(call, request, deadline, waits)

    def _pause(self, call: KeptCall, exc: CallError, seconds: float) -> None:
        call.state = CallState.WAITING
        call.error = exc
        call.next_attempt = self._clock() + seconds
        self._tell(call, "call.waiting", {"detail": exc.detail, "seconds": seconds})
        call.settled.set()

    def _tell(self, call: KeptCall, event_type: str, data: dict[str, Any]) -> None:
        event = self._hub.publish(event_type, {"call": call.id, **data})
        if len(call.events) < MAX_EVENTS or call.is_over:
            call.events.append(event)
        for watcher in call.watchers:
            watcher.put(event)

    def _drop_old(self) -> None:
        """Forget results that are old, or more than are kept, the first to end first.

        Each call is looked at once, when it goes, so a call costs the same however many
        are kept.
        """
        oldest = self._clock() - KEPT_FOR
        while self._over and (
            (self._over[0].ended or 0.0) < oldest
            or len(self._over) > MAX_KEPT
            or self._over_size > MAX_KEPT_BYTES
        ):
            call = self._over.popleft()
            self._over_size -= call.size
            del self._calls[call.id]
            if call.key is not None and self._by_key.get(call.key) is call:
                del self._by_key[call.key]


def _about_size(result: CallResult) -> int:
    """Return the bytes of a result, about."""
    return largest_json(result.output)


def _never_ran(call: KeptCall) -> bool:
    """Return whether a call failed before the peer can have acted on it."""
    if call.state not in {CallState.FAILED, CallState.CANCELLED}:
        return False
    return not (isinstance(call.error, CallError) and call.error.may_have_run)


def _cancelled(call: KeptCall) -> None:
    call.state = CallState.CANCELLED
    call.error = CallError(
        ErrorKind.INTERRUPTED, "the call was cancelled", may_have_run=call.sent
    )


def _late(exc: Exception) -> CallError:
    """Return an error of ours that came after the request had left."""
    local = isinstance(exc, CacheError)
    kind = ErrorKind.LOCAL_RESOURCE if local else ErrorKind.UNEXPECTED
    return CallError(kind, str(exc), may_have_run=True)


def _decided(event_type: str) -> bool:
    return event_type == "negotiation.decided"
