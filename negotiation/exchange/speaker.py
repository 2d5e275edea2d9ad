"""The common part of machines for meta messages, and the counter of `sequenceId`."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from negotiation.messages import MetaMessage, render_meta
from negotiation.need import Role

EventT = TypeVar("EventT")


class Speaker(Generic[EventT]):
    """The output side of a machine; reading and deciding are left to subclasses."""

    def __init__(self) -> None:
        self._events: deque[EventT] = deque()
        self._outgoing: list[bytes] = []
        self.messages_sent = 0
        "Number of meta messages that we sent."
        self.messages_received = 0
        "Number of meta messages that the peer sent, including ignored ones."
        self.ignored = 0
        "Number of messages that were dropped, also after the end."

    def messages_to_send(self) -> list[bytes]:
        """Return the Protocol Data of PT=00 to send now, in order, and forget it."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def next_event(self) -> EventT | None:
        """Return the oldest event not yet returned, or None."""
        return self._events.popleft() if self._events else None

    def _send(self, message: MetaMessage) -> None:
        self.messages_sent += 1
        self._outgoing.append(render_meta(message))


class SequenceCounter:
    """Gives our numbers and checks the peer's (ANP-21, ANP-22, ANP-Q4).

    A refused number changes nothing.
    """

    def __init__(self, role: Role) -> None:
        self._role = role
        self._last: int | None = None

    @property
    def expected(self) -> tuple[int, ...]:
        """The numbers that the peer's next message may have.

        Usually one. Two habits of the official SDK are tolerated: as requester it
        begins with 1, and as provider it answers 2 to any number (WIRE row 37).
        """
        if self._last is None:
            return (0, 1)
        if self._last == 0 and self._role is Role.REQUESTER:
            return (1, 2)
        return (self._last + 1,)

    def receive(self, number: int) -> bool:
        """Note the peer's number; return whether it is an expected one."""
        if number not in self.expected:
            return False
        self._last = number
        return True

    def send(self) -> int:
        """Note and return the number of our next message."""
        if self._last is not None:
            self._last += 1
        else:
            # A provider that refuses an invalid first message answers as if that had 0.
            self._last = 0 if self._role is Role.REQUESTER else 1
        return self._last
