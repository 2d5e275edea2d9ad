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
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.link_core import FrameTooLarge
from anp.errors import CallError
from anp.identity.dids import canonical_did
from anp.sidecar.attachments.attachment import Progress
from anp.sidecar.bound.kept_answers import (
    CallName,
    KeptAnswer,
    KeptAnswers,
    State,
)
from anp.sidecar.bound.updates import UpdateSink
from anp.sidecar.offer.call_times import CallTimes
from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import EXTENSION_WORK
from negotiation.errors import MessageError
from negotiation.messages import CallSignal, SignalKind, parse_meta, render_meta
from sandbox.pool.shares import Rank, current_share

__all__ = [
    "MAX_WORDS",
    "LOST_FOR_GOOD",
    "CallSign",
    "CallTerms",
    "CutOff",
    "Refuser",
    "ServedCall",
    "ServedWork",
    "WorkDesk",
    "read_signal",
    "render_signal",
    "send_signal",
    "announce",
    "works",
]

SIGN_EVERY: Final = 5.0
"Seconds between two signs that a call is worked on."

PROGRESS_EVERY: Final = 0.25
"Seconds between two reports of progress of one call, at least."

SIGNS_APART: Final = 0.05
"Seconds between two signs of one call that its caller learns of, at least."

MAX_TOLD: Final = 64
"Deadlines of one channel whose requests have not come yet."

MAX_WORDS: Final = 500
"Characters of a tool's words that are passed on."

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


@dataclass(frozen=True, slots=True)
class CallSign:
    """A sign of the peer's that it works on a call; hostile, as all that it says."""

    ms: float
    "Milliseconds since the call began."

    progress: float | None = None
    "Work that is done, in the tool's own unit."

    total: float | None = None
    "All the work in that unit."

    message: str = ""
    "The tool's words."

    @property
    def what(self) -> str:
        """The sign in one line."""
        if self.progress is None and not self.message:
            return "the peer is at work"
        numbers = "" if self.progress is None else f"{self.progress:g}"
        if numbers and self.total is not None:
            numbers += f" of {self.total:g}"
        return ": ".join(one for one in (numbers, self.message) if one)


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

    _signed: float = -math.inf

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
        """Pass on a sign of the peer's, unless too many come."""
        now = time.monotonic()
        if self.on_sign is not None and now - self._signed >= SIGNS_APART:
            self._signed = now
            self.on_sign(_sign_of(signal, round((now - self.started) * 1000, 1)))


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
        self._sending: set[asyncio.Task[None]] = set()

    def send_soon(self, work: Awaitable[None]) -> None:
        """Send something beside; what cannot be sent is dropped."""
        task = asyncio.ensure_future(_quietly(work))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)


class ServedWork:
    """The extension on one channel on which we serve a peer."""

    def __init__(
        self,
        channel: Channel,
        binding: str,
        desk: WorkDesk,
        dialogue: Refuser,
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
        desk.running[name] = call = ServedCall(name, self, until)
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
        found = _number((data or {}).get("milliseconds"))
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
        self._loop = asyncio.get_running_loop()
        self._latest: Progress | None = None
        self._reported = -math.inf
        self._report: asyncio.TimerHandle | None = None
        self._sign = self._loop.call_later(SIGN_EVERY, self._at_work)

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
        """Tell the peer how far the tool is; of many reports the last ones."""
        if self._ended:
            return
        self._latest = progress
        if self._report is None:
            due = self._reported + PROGRESS_EVERY - self._desk.clock()
            self._report = self._loop.call_later(max(0.0, due), self._on_report)

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

    def close(self, _: object = None) -> None:
        """Forget the call, whatever the argument; only an answer stays."""
        self._ended = True
        self._sign.cancel()
        if self._report is not None:
            self._report.cancel()
        desk = self._desk
        if desk.running.get(self.name) is self:
            del desk.running[self.name]
            desk.kept.stop(self.name)

    def _at_work(self) -> None:
        self._say(SignalKind.WORKING)
        self._sign = self._loop.call_later(SIGN_EVERY, self._at_work)

    def _on_report(self) -> None:
        self._report = None
        self._reported = self._desk.clock()
        self._desk.send_soon(self._send_report())

    async def _send_report(self) -> None:
        latest, self._latest = self._latest, None
        if latest is not None:
            channel, kind = self.route.channel, SignalKind.PROGRESS
            await send_signal(channel, self.name.message_id, kind, _rendered(latest))

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


def _sign_of(signal: CallSignal, ms: float) -> CallSign:
    """Return a peer's signal as a sign, without what is not as it should be."""
    data = signal.data or {}
    message = data.get("message")
    return CallSign(
        ms,
        _number(data.get("progress")),
        _number(data.get("total")),
        message[:MAX_WORDS] if isinstance(message, str) else "",
    )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
