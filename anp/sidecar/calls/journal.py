"""Calls that outlive their request: kept by id, followed by events, asked for again."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import asdict, replace
from enum import StrEnum
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
from anp.sidecar.bound.work import CallSign
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.calls.events import Event, EventHub, EventWatcher
from anp.sidecar.calls.keys import CallKeys, Outcome
from anp.sidecar.telemetry.observer import CallOrigin, call_origin
from cache.errors import CacheError
from negotiation.errors import NegotiationError
from negotiation.need import Role
from negotiation.strict_json import largest_json

__all__ = ["AGAIN_AFTER", "CallDesk", "CallState", "KeptCall"]

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

AGAIN_AFTER: Final = (60.0, 300.0, 900.0, 3_600.0)
"Seconds after which a call that waits for approval asks again (DESIGN.md, The owner)."


class CallState(StrEnum):
    """The state of a call."""

    RUNNING = "running"
    "It is under way."

    WAITING = "waiting"
    "An owner has to approve first; it asks again by itself."

    DONE = "done"
    "There is a result."

    FAILED = "failed"
    "There is a problem."

    CANCELLED = "cancelled"
    "Its caller took it back."


class KeptCall:
    """One call: its state, its events, and its result or error."""

    def __init__(
        self, call_id: str, request: CallRequest, *, now: float, key: str | None = None
    ) -> None:
        self.id = call_id
        self.request = request
        self.key = key
        self.by_owner = False
        "True if the owner began it, so that no agent sees it or takes it back."
        self.created = now
        self.ended: float | None = None
        self.size = 0
        self.state = CallState.RUNNING
        self.result: CallResult | None = None
        self.error: Exception | None = None
        self.next_attempt: float | None = None
        self.waits_for = ""
        "The thing that it waits for at the moment, in words."
        self.negotiations: list[str] = []
        self.events: list[Event] = []
        self.watchers: set[EventWatcher] = set()
        self.settled = asyncio.Event()
        self.decided = asyncio.Event()
        self.sent = False
        "True once bytes of a request may have left for the peer."
        self.task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """True once the call has ended, so that its state stays as it is."""
        return self.ended is not None


CURRENT: ContextVar[str | None] = ContextVar("current_call", default=None)
"Id of the call that this asyncio task works for; tasks it starts inherit the id."


class CallDesk:
    """Carries each call in an asyncio task, and keeps its result for a while.

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
        """Begin a call, or return the one that began with this key.

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
        call = KeptCall(secrets.token_hex(8), request, now=self._clock(), key=key)
        call.by_owner = by_owner
        self._calls[call.id] = call
        if key is not None:
            self._by_key[key] = call
        self._tell(call, "call.started", {"peer": request.peer})
        call.task = asyncio.create_task(self._run(call))
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
        if call.task is not None and not call.is_over:
            call.task.cancel()
            await asyncio.wait({call.task})

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
        tasks = [call.task for call in self._calls.values() if call.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, call: KeptCall) -> None:
        CURRENT.set(call.id)
        call_origin.set(CallOrigin(call.id, call.by_owner))
        ON_PHASE.set(partial(self._phase, call.id))
        try:
            call.result = await self._attempts(call)
            call.state = CallState.DONE
            call.size = _about_size(call.result)
        except asyncio.CancelledError:
            call.state = CallState.CANCELLED
            call.error = CallError(
                ErrorKind.INTERRUPTED, "the call was cancelled", may_have_run=call.sent
            )
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
        await self._keep_outcome(call)
        if call.key is None:
            # Only the next request with the same key is compared with this one.
            call.request = replace(call.request, arguments=None)
        else:
            call.size += largest_json(call.request.arguments)
        call.ended = self._clock()
        call.next_attempt = None
        self._over.append(call)
        self._over_size += call.size
        said = {"state": call.state.value, "problem": call.error}
        self._tell(call, f"call.{call.state.value}", said)
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

    async def _attempts(self, call: KeptCall) -> CallResult:
        """Call, and again while an owner's approval is missing."""
        limit = call.request.timeout
        deadline = None if limit is None else time.monotonic() + limit
        request = replace(
            call.request,
            on_progress=self.progress,
            on_sign=partial(self._heard, call),
            on_send=partial(self._sending, call),
        )
        for wait in (*self._again_after, None):
            call.decided.clear()
            try:
                return await self._carry(request)
            except CallError as exc:
                if exc.kind is not ErrorKind.APPROVAL_PENDING or wait is None:
                    raise
                # A peer whose owner is asked says that it ran nothing of what it got.
                call.sent = exc.may_have_run
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise
                await self._wait(call, exc, min(wait, left or wait))
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    # Approved too late: what nobody waits for any more is not run.
                    raise CallError(
                        ErrorKind.TIMEOUT, "no approval within the call's timeout"
                    )
                request = replace(request, timeout=left)
        raise AssertionError("the last attempt returns or raises")

    async def _wait(self, call: KeptCall, exc: CallError, seconds: float) -> None:
        call.state = CallState.WAITING
        call.error = exc
        call.next_attempt = self._clock() + seconds
        self._tell(call, "call.waiting", {"detail": exc.detail, "seconds": seconds})
        call.settled.set()
        try:
            async with asyncio.timeout(seconds):
                await call.decided.wait()
        except TimeoutError:
            logger.debug("call asks again id=%s", call.id)
        call.state, call.error = CallState.RUNNING, None
        call.next_attempt = None

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


def _late(exc: Exception) -> CallError:
    """Return an error of ours that came after the request had left."""
    local = isinstance(exc, CacheError)
    kind = ErrorKind.LOCAL_RESOURCE if local else ErrorKind.UNEXPECTED
    return CallError(kind, str(exc), may_have_run=True)


def _decided(event_type: str) -> bool:
    return event_type == "negotiation.decided"
