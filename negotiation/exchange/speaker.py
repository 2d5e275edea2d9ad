"""Base of all machines for meta messages: outgoing messages, events and counts."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from negotiation.messages import MetaMessage, render_meta

__all__ = ["Speaker"]

EventT = TypeVar("EventT")


class Speaker(Generic[EventT]):
    """The output side of a machine; reading and deciding are left to subclasses."""

    def __init__(self) -> None:
        self._events: deque[EventT] = deque()
        self._outgoing: list[bytes] = []
        self._messages_sent = 0
        self._messages_received = 0
        self._ignored = 0

    @property
    def messages_sent(self) -> int:
        """Number of meta messages that we sent."""
        return self._messages_sent

    @property
    def messages_received(self) -> int:
        """Number of meta messages that the peer sent, including ignored ones."""
        return self._messages_received

    @property
    def ignored(self) -> int:
        """Number of messages that were dropped, also after the end."""
        return self._ignored

    def messages_to_send(self) -> list[bytes]:
        """Return the Protocol Data of PT=00 to send now, in order, and forget it."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def next_event(self) -> EventT | None:
        """Return the oldest event not yet returned, or None."""
        return self._events.popleft() if self._events else None

    def _send(self, message: MetaMessage) -> None:
        self._messages_sent += 1
        self._outgoing.append(render_meta(message))
