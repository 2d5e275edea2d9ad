"""What a link's core says to the peer and to its shell, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from anp.channel.core.events import ChannelEnded, CloseLink, LinkEvent, LinkFault
from anp.errors import ErrorCode
from anp.wire.messages import make_response
from anp.wire.moment import Moment

__all__ = ["LinkOutput"]


class LinkOutput:
    """The messages and events of one link, and the count of the peer's faults.

    Args:
        max_faults: Faults after which the link is to be closed.
    """

    def __init__(self, max_faults: int, random_bytes: Callable[[int], bytes]) -> None:
        self._max_faults = max_faults
        self._random_bytes = random_bytes
        self._faults = 0
        self._messages: list[str] = []
        self._events: deque[LinkEvent] = deque()

    def say(self, messages: Iterable[str]) -> None:
        """Send messages, as they are."""
        self._messages += messages

    def tell(self, event: LinkEvent) -> None:
        """Tell the shell."""
        self._events.append(event)

    def ended(
        self,
        channel_id: str,
        reason: str,
        *,
        by_peer: bool,
        kept: bool = False,
        unprocessed: bool = False,
    ) -> None:
        """Tell the end of a channel."""
        self.tell(ChannelEnded(channel_id, reason, by_peer, kept, unprocessed))

    def fault(self, code: ErrorCode, detail: str) -> None:
        """Count and tell a fault of the peer; too many close the link."""
        self._faults += 1
        self.tell(LinkFault(code, detail))
        if self._faults == self._max_faults:
            self.tell(CloseLink(1008, "too many faults"))

    def respond(
        self,
        code: ErrorCode,
        detail: str,
        *,
        source_did: str,
        destination_did: str,
        original_type: str,
        original_id: str,
        now: Moment,
    ) -> None:
        """Send a `response` about a message (WIRE row 25)."""
        self._messages.append(
            make_response(
                code,
                detail,
                source_did=source_did,
                destination_did=destination_did,
                original_type=original_type,
                original_message_id=original_id,
                message_id=self._random_bytes(16).hex(),
                timestamp=now.utc,
            )
        )

    def messages_to_send(self) -> list[str]:
        """Return the messages to send now, in order, and forget them."""
        messages, self._messages = self._messages, []
        return messages

    def next_event(self) -> LinkEvent | None:
        """Return the oldest event not yet returned, or None."""
        return self._events.popleft() if self._events else None
