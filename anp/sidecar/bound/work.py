"""Our extension `work` (WIRE): deadlines, signs of work, cancelling, and fetching.

The requester tells the deadline of a call, if it is not the usual one, before it sends
the request, and says when nobody waits any more. The provider tells that it is at work
and how far its tool is, and keeps the answer: after a lost link the requester fetches
it on its next channel.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.traffic import FrameTooLarge
from anp.errors import CallError
from anp.identity.dids import canonical_did
from anp.sidecar.attachments.attachment import Progress
from anp.sidecar.bound.kept_answers import CallName, KeptAnswer, KeptAnswers, State
from anp.sidecar.bound.signs import LEFT_OUT, MAX_WORDS, CallSign, number_in, sign_of
from anp.sidecar.bound.updates import UpdateSink
from anp.sidecar.offer.call_times import CallTimes
from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import EXTENSION_WORK
from negotiation.errors import MessageError
from negotiation.messages import CallSignal, SignalKind, parse_meta, render_meta
from sandbox.pool.shares import Rank, current_share

SIGN_EVERY: Final = 5.0
"Seconds between two signs that a call is worked on."

PROGRESS_EVERY: Final = 0.25
"Seconds between two reports of progress of one call, at least."

MAX_WAITING: Final = 64
"Reports of progress of one call that wait to be told; of more the newest stay."

SIGNS_PER_SECOND: Final = 2 * MAX_WAITING / PROGRESS_EVERY
"Signs of one call that its caller learns of in a second: twice what we send."

MAX_TOLD: Final = 64
"Deadlines of one channel whose requests have not come yet."

KEPT_AFTER: Final = 10.0
"Seconds that an answer is kept after the deadline, for that it was late is an answer."

UNKNOWN: Final = {"state": "unknown"}
"The answer to a `fetch` for which there is nothing."

LOST_FOR_GOOD: Final = "link_lost: the peer has no answer to the call any more"
"Our words for that answer, to our own caller."


def works(channel: Channel) -> bool:
    """Return whether both sides of a channel listed the extension."""
    return EXTENSION_WORK in channel.extensions


def read_signal(data: bytes) -> CallSignal | None:
    """Return the signal that a meta message is, or None if it is another message."""
    if b"callSignal" not in data:
        return None
    try:
        message = parse_meta(data)
    except MessageError:
        return None
    return message if isinstance(message, CallSignal) else None


def render_signal(
    message_id: str, kind: SignalKind, data: dict[str, Any] | None = None
) -> bytes:
    """Return a signal about a call as a meta message."""
    return render_meta(CallSignal(message_id=message_id, kind=kind, data=data))


async def send_signal(
    channel: Channel,
    message_id: str,
    kind: SignalKind,
    data: dict[str, Any] | None = None,
) -> None:
    """Send a signal about a call.

    Raises:
        ChannelClosed: Nothing was sent.
    """
    await channel.send(ProtocolType.META, render_signal(message_id, kind, data))


# The requester's side.


async def announce(
    channel: Channel, terms: CallTerms, left: float, *, knows_updates: bool
) -> str | None:
    """Tell what is to be known when a request begins; return the id for that.

    Args:
        left: Seconds until the deadline.
        knows_updates: The document has updates.

    Raises:
        ChannelClosed: Nothing was sent.
    """
    takes = knows_updates and terms.updates is not None
    if not (terms.given or takes):
        return None
    announced = secrets.token_hex(16)
    if takes:
        await send_signal(channel, announced, SignalKind.UPDATES)
    if terms.given:
        data = {"milliseconds": round(left * 1000)}
        await send_signal(channel, announced, SignalKind.DEADLINE, data)
    return announced


class CutOff(CallError):
    """The link of a call was lost; its answer may be fetched over the next one.

    Args:
        error: The meaning of the loss, if it is not fetched.
        call: The call, as the channel that asks for its answer has to know it.
    """

    def __init__(self, error: CallError, call: object) -> None:
        super().__init__(error.kind, error.detail, may_have_run=True)
        self.call = call


@dataclass(slots=True)
class CallTerms:
    """The time of one call of ours, and who learns how it goes."""

    until: float | None = None
    "Its deadline on `time.monotonic`; None until it is sent, if nobody gave one."

    given: bool = False
    "True if its caller gave the deadline, so that the peer has to be told."

    on_sign: Callable[[CallSign], None] | None = None
    "Told of each sign of work and of progress."

    updates: UpdateSink | None = None
    "Takes what comes before the answer; None for a caller that wants that alone."

    started: float = field(default_factory=time.monotonic)
    "Time at which the call began, on the same clock."

    _room: float = 2.0 * MAX_WAITING
    "Signs that may come at once."

    _signed: float = -math.inf
    _left_out: int = 0

    def remaining(self, default: float) -> float:
        """Return the seconds that are left; the first call starts the time.

        Args:
            default: Seconds of a call that was given none.
        """
        now = time.monotonic()
        if self.until is None:
            self.until = now + default
        return max(0.0, self.until - now)

    def sign(self, signal: CallSignal) -> None:
        """Pass on a sign of the peer's; after too many the next one tells how many."""
        now = time.monotonic()
        most = 2.0 * MAX_WAITING
        self._room = min(most, self._room + (now - self._signed) * SIGNS_PER_SECOND)
        self._signed = now
        if self._room < 1:
            self._left_out += 1
        elif self.on_sign is not None:
            self._room -= 1
            left_out, self._left_out = self._left_out, 0
            ms = round((now - self.started) * 1000, 1)
            self.on_sign(sign_of(signal, ms, left_out=left_out))


# The provider's side.


class Refuser(Protocol):
    """The part of a dialogue that refuses messages; see `DialogueShell`."""

    can_report: bool

    async def refuse(self, reference: str, reason: str) -> None:
        """Tell the peer that its message will not be answered."""


class WorkDesk:
    """The calls of all peers with the extension; one object for the daemon."""

    def __init__(
        self,
        times: CallTimes,
        *,
        default: float,
        kept: KeptAnswers | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without calls.

        Args:
            default: Seconds of a call for which no deadline was told.
        """
        self.times = times
        self.default = default
        self.kept = kept or KeptAnswers()
        self.clock = clock
        self.running: dict[CallName, ServedCall] = {}
        self._signs: OrderedDict[ServedCall, float] = OrderedDict()
        "Time of the next sign of each call, the earliest first."
        self._timer: asyncio.TimerHandle | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def begin(self, call: ServedCall) -> None:
        """Take in a call, which gives signs of work until `end`."""
        self.running[call.name] = call
        self._signs[call] = self.clock() + SIGN_EVERY
        if self._timer is None:
            # One for all calls: most end long before it.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(SIGN_EVERY, self._on_time)

    def end(self, call: ServedCall) -> None:
        """Forget a call; only an answer stays."""
        self._signs.pop(call, None)
        if self.running.get(call.name) is call:
            del self.running[call.name]
            self.kept.stop(call.name)

    def _on_time(self) -> None:
        self._timer, now = None, self.clock()
        while self._signs:
            call, due = next(iter(self._signs.items()))
            if due > now:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(due - now, self._on_time)
                return
            self._signs[call] = now + SIGN_EVERY
            self._signs.move_to_end(call)
            call.at_work()

    def send_soon(self, work: Awaitable[None]) -> None:
        """Send something beside; what cannot be sent is dropped."""
        task = asyncio.ensure_future(_quietly(work))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)


class ServedWork:
    """The extension on one channel on which we serve a peer."""

    def __init__(
        self, channel: Channel, binding: str, desk: WorkDesk, dialogue: Refuser
    ) -> None:
        """Begin on a channel that is bound.

        Args:
            binding: The protocol; answers are fetched on channels of the same one.
            dialogue: That of the channel.
        """
        self.channel = channel
        self.desk = desk
        self.dialogue = dialogue
        self._binding = binding
        self._peer = canonical_did(channel.peer_did, channel.peer_key)
        self._parties = f"{channel.local_did} {self._peer}"
        self._told: OrderedDict[str, float] = OrderedDict()
        self._wanted: OrderedDict[str, None] = OrderedDict()

    def begin(self, message_id: str) -> ServedCall:
        """Take note of a request of the peer's.

        Args:
            message_id: Id of its envelope.
        """
        desk, name = self.desk, CallName(self._parties, message_id)
        until = self._told.pop(message_id, None)
        listed = current_share.get().rank is not Rank.COMMON
        most = desk.times.of_peer(self._peer, listed=listed).seconds
        now = desk.clock()
        wanted = now + desk.default if until is None else until
        kept_until = min(wanted, now + most) + KEPT_AFTER
        desk.kept.begin(name, self._binding, until=kept_until, now=now)
        call = ServedCall(name, self, until)
        desk.begin(call)
        return call

    def takes_updates(self, message_id: str) -> bool:
        """Return whether the peer takes updates for a request; ask once."""
        found = message_id in self._wanted
        self._wanted.pop(message_id, None)
        return found

    async def receive(self, signal: CallSignal) -> None:
        """Act on a signal of the peer's.

        Raises:
            ChannelClosed: An answer to it could not be sent.
        """
        name = CallName(self._parties, signal.message_id)
        match signal.kind:
            case SignalKind.DEADLINE:
                self._tell(signal.message_id, signal.data)
            case SignalKind.UPDATES:
                self._wanted[signal.message_id] = None
                if len(self._wanted) > MAX_TOLD:
                    self._wanted.popitem(last=False)
            case SignalKind.CANCEL:
                call = self.desk.running.get(name)
                if call is not None:
                    call.cancel()
                self.desk.kept.forget(name)
            case SignalKind.FETCH:
                await self._fetch(name)
            case _:
                # A later version may have more to say.
                pass

    def _tell(self, message_id: str, data: dict[str, Any] | None) -> None:
        found = number_in((data or {}).get("milliseconds"))
        if found is None or found <= 0:
            return
        self._told[message_id] = self.desk.clock() + found / 1000
        if len(self._told) > MAX_TOLD:
            self._told.popitem(last=False)

    async def _fetch(self, name: CallName) -> None:
        desk, message_id = self.desk, name.message_id
        found = desk.kept.fetch(name, self._binding, now=desk.clock())
        call = desk.running.get(name)
        if isinstance(found, KeptAnswer):
            await self.give(message_id, found)
        elif found is State.RUNNING and call is not None:
            # Its answer and its signs come here from now on.
            call.route = self
            await send_signal(self.channel, message_id, SignalKind.WORKING)
        else:
            await send_signal(self.channel, message_id, SignalKind.FETCH, UNKNOWN)

    async def give(self, message_id: str, answer: KeptAnswer) -> None:
        """Send the end of a call on this channel.

        Raises:
            ChannelClosed: It was not sent.
        """
        if answer.refusal is not None:
            await self.dialogue.refuse(message_id, answer.refusal)
            return
        try:
            await self.channel.send(ProtocolType.APPLICATION, answer.data)
        except FrameTooLarge as exc:
            await self.dialogue.refuse(message_id, str(exc))


class ServedCall:
    """A call of a peer's that is worked on."""

    def __init__(self, name: CallName, route: ServedWork, until: float | None) -> None:
        self.name = name
        self.route = route
        "The channel on which its answer is waited for."
        self.task: asyncio.Task[Any] | None = None
        "Works on it."
        self._desk = route.desk
        self._until = until
        self._ended = False
        self._waiting: deque[Progress] = deque()
        self._left_out = 0
        self._reported = -math.inf
        self._report: asyncio.TimerHandle | None = None

    @property
    def asked(self) -> float | None:
        """The seconds for which the peer still waits; None if it did not tell."""
        if self._until is None:
            return None
        return self._until - self._desk.clock()

    def cancel(self) -> None:
        """End the work: nobody waits for it."""
        if self.task is not None:
            self.task.cancel()

    def progress(self, progress: Progress) -> None:
        """Tell the peer how far the tool is; of too many reports the newest."""
        if self._ended:
            return
        self._waiting.append(progress)
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popleft()
            self._left_out += 1
        if self._report is None:
            due = self._reported + PROGRESS_EVERY - self._desk.clock()
            loop = asyncio.get_running_loop()
            self._report = loop.call_later(max(0.0, due), self._on_report)

    async def end(self, answer: KeptAnswer) -> ServedWork:
        """Keep the end of the call.

        Returns:
            The channel on which to send it.
        """
        self._desk.kept.answer(self.name, answer, now=self._desk.clock())
        await self.tell_progress()
        return self.route

    async def tell_progress(self) -> None:
        """Tell the peer how far the tool is, if it was not told the latest yet."""
        if self._report is not None:
            self._report.cancel()
            self._report = None
            await _quietly(self._send_report())

    def close(self) -> None:
        """Forget the call; only an answer stays."""
        self._ended = True
        if self._report is not None:
            self._report.cancel()
        self._desk.end(self)

    def at_work(self) -> None:
        """Tell the peer that it is worked on."""
        self._say(SignalKind.WORKING)

    def _on_report(self) -> None:
        self._report = None
        self._reported = self._desk.clock()
        self._desk.send_soon(self._send_report())

    async def _send_report(self) -> None:
        while self._waiting:
            told = _rendered(self._waiting.popleft())
            if self._left_out:
                told[LEFT_OUT], self._left_out = self._left_out, 0
            channel, kind = self.route.channel, SignalKind.PROGRESS
            await send_signal(channel, self.name.message_id, kind, told)

    def _say(self, kind: SignalKind) -> None:
        sending = send_signal(self.route.channel, self.name.message_id, kind)
        self._desk.send_soon(sending)


def _rendered(progress: Progress) -> dict[str, Any]:
    numbers = {"progress": progress.progress, "total": progress.total}
    said: dict[str, Any] = {
        name: value
        for name, value in numbers.items()
        if value is not None and math.isfinite(value)
    }
    if progress.message:
        words = progress.message[:MAX_WORDS]
        said["message"] = words.encode("utf-8", "replace").decode()
    return said


async def _quietly(work: Awaitable[None]) -> None:
    with contextlib.suppress(ChannelClosed):
        await work
