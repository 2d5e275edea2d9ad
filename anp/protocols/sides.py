"""The parts that both sides of every protocol written by hand have in common.

See `WrittenProtocol` for what the methods mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime

from negotiation.consensus.written import (
    Ask,
    Flagged,
    Parties,
    WrittenEvent,
    WrittenLimits,
)
from negotiation.errors import MisuseError
from negotiation.need import Capability
from negotiation.strict_json import Json


class WrittenSide(ABC):
    """One side of a channel: its beginning, its end, and what it tells its daemon."""

    def __init__(
        self,
        parties: Parties,
        limits: WrittenLimits,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """Begin on a channel that is bound to the protocol."""
        self._parties = parties
        self._limits = limits
        self._random_bytes = random_bytes
        self._offered: dict[str, Capability] = {}
        self._events: deque[WrittenEvent] = deque()
        self._started = False
        self._ended = False

    @property
    def full(self) -> bool:
        """See `WrittenProtocol`."""
        return False

    @property
    def waiting(self) -> int:
        """See `WrittenProtocol`."""
        return 0

    def start(self, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`; nothing is said before somebody wants something.

        Raises:
            MisuseError: It was called before.
        """
        if self._started:
            raise MisuseError("a channel starts once")
        self._started = True

    def end(self) -> None:
        """See `WrittenProtocol`."""
        self._ended = True

    @abstractmethod
    def offer(
        self, capabilities: Sequence[Capability], *, now: float, wall_now: datetime
    ) -> None:
        """See `WrittenProtocol`."""

    def next_event(self) -> WrittenEvent | None:
        """See `WrittenProtocol`."""
        return self._events.popleft() if self._events else None

    def _note(self, reason: str) -> None:
        self._events.append(Flagged(reason, fault=False))

    def _new_id(self) -> str:
        # As `uuid.UUID` writes one of version 4, in a fifth of the time.
        text = self._random_bytes(16).hex()
        variant = "89ab"[int(text[16], 16) % 4]
        return (
            f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"
        )


class ServingSide:
    """The provider's part: it calls nobody over the channel."""

    def ask(self, call: Ask, *, now: float, wall_now: datetime) -> None:
        """Calls go from requester to provider only."""
        raise MisuseError("a provider calls nobody on this channel")

    def reference(self, call_id: str) -> str | None:
        """See `WrittenProtocol`; nothing is asked on this side."""
        return None

    def abandon(self, call_id: str) -> None:
        """Calls go from requester to provider only."""
        raise MisuseError("a provider calls nobody on this channel")


class CallingSide:
    """The requester's part: no capability of ours is called over the channel."""

    def capability_answered(
        self, call_id: str, output: Json, *, now: float, wall_now: datetime
    ) -> None:
        """Nothing is called on this side."""
        raise MisuseError("a requester calls no capabilities")

    def capability_failed(
        self,
        call_id: str,
        code: str,
        message: str,
        *,
        ran: bool,
        now: float,
        wall_now: datetime,
    ) -> None:
        """Nothing is called on this side."""
        raise MisuseError("a requester calls no capabilities")


def writable(text: str) -> str:
    """Return what can be written as UTF-8 of a tool's words."""
    return text.encode("utf-8", "replace").decode("utf-8")
