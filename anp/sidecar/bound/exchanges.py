"""The last plaintexts of a channel, kept for repairs (DESIGN.md, Repairs). Pure.

A peer that finds fault with a message names it by the id of its envelope; only a side
that still holds the message can say whose fault it is, and make it anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from anp.sidecar.bound.work import ServedCall
from negotiation.errors import NOT_RUN, CapabilityFailed
from negotiation.strict_json import Json

MAX_KEPT = 64
"Exchanges of one channel that are kept."

MAX_AGE = 300.0
"Seconds that an exchange is kept."

LONG = 64 * 1024
"""Bytes of messages from which an exchange is not kept if a plan made ours.

Code that a model wrote may have to be repaired, and then makes its message anew from
what was kept. A plan is proved to write what the document wants, so it never is; and of
a long exchange the messages, arguments and outputs would be in memory five times.
"""

MAX_BYTES = 4 * 1024 * 1024
"Most bytes of messages kept for one channel; large ones leave earlier."


@dataclass(slots=True)
class RecordedCall:
    """One capability call, with its output or its error."""

    name: str
    "Full name of the capability."

    arguments: Any

    output: Any = None
    "Its output, when it did not fail."

    failure: CapabilityFailed | None = None
    "Its error, when it failed."


@dataclass(slots=True)
class Exchange:
    """A request and its answer, as one side of a channel saw them."""

    request: bytes
    "The request's bytes."

    at: float
    "Time when it began, in seconds on a monotonic clock."

    request_id: str = ""
    "Id of the envelope that carried the request."

    message_id: str | None = None
    "Message id of the call, where we made the call."

    arguments: dict[str, Any] | None = None
    "Arguments of the call, where we made the call."

    response: bytes | None = None
    "The answer's bytes, where we gave it."

    response_id: str = ""
    "Id of the envelope that carried our answer."

    revision: int = 0
    "Revision of our half that made our message."

    calls: list[RecordedCall] = field(default_factory=list)
    "Capability calls in their order, where we answered."

    ran: bool = False
    "True once a capability may have run for it, where we answered."

    call: ServedCall | None = None
    "The peer's call, where we answer and both sides listed the extension `work`."

    takes_updates: bool = False
    "The peer wants what comes before our answer."

    verification: bool = False
    "True when it went over PT=11, so that fixtures stood in for capabilities."

    values: Json = None
    "Content of the request, where we answer, as long as nobody works on it."

    lean: bool = False
    "True if nothing long of it is held any longer than somebody works with it."

    problem: str = ""
    "Reason in our words why it was not answered, where we had to answer."

    def hand_over(self) -> tuple[bytes, Json]:
        """Return request and values; a lean exchange then holds neither any more.

        No exchange holds the values: they may take twenty times the room of the bytes,
        which alone are counted, and are read anew where they are needed again.
        """
        request, values = self.request, self.values
        self.values = None
        if self.lean:
            self.request = b""
        return request, values

    def claims_too_much(self, answer: bytes) -> bool:
        """Return whether an answer passes on that nothing ran, although something did.

        A half may go on after such a failure, run another capability, and then tell the
        peer of the first one.
        """
        failures = (call.failure for call in self.calls)
        told = any(failure and not failure.ran for failure in failures)
        return self.ran and told and NOT_RUN.encode() in answer

    @property
    def size(self) -> int:
        """Bytes of the messages kept."""
        return len(self.request) + len(self.response or b"")


class Exchanges:
    """A channel's exchanges: the newest 64, for five minutes, within 4 MiB."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[Exchange, int]] = OrderedDict()
        self._oldest = float("inf")
        "Time of the oldest that is kept, or of an older one; none is due before it is."
        self.size = 0
        "Bytes of the messages kept, as they were when they were kept last."

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Exchange]:
        return (exchange for exchange, _ in self._kept.values())

    def drop(self, exchange: Exchange) -> None:
        """Keep an exchange no longer, if it is kept."""
        if id(exchange) in self._kept:
            self._drop(id(exchange))

    def keep(self, exchange: Exchange, *, now: float) -> None:
        """Keep an exchange, or keep it anew after it has grown."""
        _, before = self._kept.pop(id(exchange), (exchange, 0))
        # It may grow before it is kept anew, so its size is counted as it is now.
        size = exchange.size
        self._kept[id(exchange)] = exchange, size
        self.size += size - before
        self._oldest = min(self._oldest, exchange.at)
        self._drop_old(now)
        while len(self._kept) > 1 and (
            len(self._kept) > MAX_KEPT or self.size > MAX_BYTES
        ):
            self._drop(next(iter(self._kept)))

    def find(self, envelope_id: str, *, now: float) -> Exchange | None:
        """Return the exchange with the message that this envelope carried, or None."""
        self._drop_old(now)
        if not envelope_id:
            return None
        for exchange, _ in reversed(self._kept.values()):
            if envelope_id in (exchange.request_id, exchange.response_id):
                return exchange
        return None

    def latest(self, *, answered: bool, now: float) -> Exchange | None:
        """Return the exchange with the newest message of ours, or None.

        Args:
            answered: True where our messages are the answers.
        """
        self._drop_old(now)
        for exchange, _ in reversed(self._kept.values()):
            if exchange.response_id or not answered:
                return exchange
        return None

    def _drop_old(self, now: float) -> None:
        if now < self._oldest + MAX_AGE:
            return
        kept = self._kept.items()
        for key in [key for key, (one, _) in kept if now - one.at > MAX_AGE]:
            self._drop(key)
        self._oldest = min((one.at for one, _ in self._kept.values()), default=now)

    def _drop(self, key: int) -> None:
        _, size = self._kept.pop(key)
        self.size -= size
