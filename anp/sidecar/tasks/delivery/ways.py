"""The line that carries each session: the one on which its peer spoke of it last.

A peer may have several lines with us, and not each of them carries each session: the
side that makes a call of one turn over GB/Z knows the session of that call alone, and
answers `unknown_session` to all else. So a refusal counts for its line only. A session
is lost when no open line is left that could carry it, and a later handshake was no
better.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

MOST: Final = 20_000
"Sessions of which something is remembered; any line carries the others."

PATIENCE: Final = 300.0
"""Seconds for which refusals alone prove nothing. A peer that has a session dials again
within a minute or so, and calls of its own may come quicker."""

DAY: Final = 86_400.0
"Seconds after which a peer that knows no such session is believed without a handshake."


class LineFacts(Protocol):
    """The facts about a line by which it is chosen."""

    number: int
    "Lines have rising numbers in the order in which they opened."

    uri: str
    "URI of the protocol that it speaks."

    @property
    def takes_sessions(self) -> bool:
        """True when a session that we open may go over it."""


AnyLine = TypeVar("AnyLine", bound=LineFacts)


@dataclass(slots=True)
class _Doubt:
    """A session of which its peer says that it knows nothing."""

    peer: str
    since: float

    newest: int
    "Number of the newest line at the time when it said so first."

    refused: set[int] = field(default_factory=set)
    "Numbers of all lines on which it said so."

    def is_proved(self, now: float) -> bool:
        """Return whether it said so after a handshake that came later, or for a day."""
        age = now - self.since
        return age >= DAY or (age >= PATIENCE and max(self.refused) > self.newest)


class SessionWays:
    """Knows the line on which each session was heard last, and those that refused it.

    Sessions have our own ids here; each has one peer at most that is in doubt.
    """

    def __init__(self) -> None:
        """Begin without sessions."""
        self._heard: OrderedDict[str, int] = OrderedDict()
        self._doubts: OrderedDict[str, _Doubt] = OrderedDict()
        self._newest = 0

    def number(self) -> int:
        """Return the number of a line that opens."""
        self._newest += 1
        return self._newest

    def heard(self, log: str, line: LineFacts) -> None:
        """Take note that a peer spoke of a session on a line."""
        self._doubts.pop(log, None)
        self._heard[log] = line.number
        self._heard.move_to_end(log)
        if len(self._heard) > MOST:
            self._heard.popitem(last=False)

    def refused(self, log: str, line: LineFacts, *, peer: str, now: float) -> None:
        """Take note that a peer does not know a session, as it says on a line.

        Args:
            peer: Its id in the session.
            now: Monotonic seconds.
        """
        if self._heard.get(log) == line.number:
            del self._heard[log]
        doubt = self._doubts.setdefault(log, _Doubt(peer, now, self._newest))
        doubt.refused.add(line.number)
        if len(self._doubts) > MOST:
            self._doubts.popitem(last=False)

    def choose(
        self, log: str, lines: Sequence[AnyLine], *, uri: str = "", is_ours: bool
    ) -> AnyLine | None:
        """Return the line that is to carry a session, or None.

        Args:
            lines: Those with the peer that stand, the oldest first.
            uri: The protocol that is to be preferred.
            is_ours: We opened the session. A line on which the peer opened one may be
                there for its calls alone, so it carries ours only if that was heard
                there.
        """
        heard, doubt = self._heard.get(log), self._doubts.get(log)
        refused = set() if doubt is None else doubt.refused
        free = [
            one
            for one in lines
            if one.number == heard
            or (one.number not in refused and (one.takes_sessions or not is_ours))
        ]
        return max(
            free,
            key=lambda one: (one.number == heard, one.uri == uri, one.number),
            default=None,
        )

    def lost(
        self, lines: Callable[[str], Iterable[LineFacts]], *, now: float
    ) -> list[tuple[str, str]]:
        """Return the sessions that their peers do not know for sure, with the peers.

        Args:
            lines: Returns the lines with a peer that stand.
            now: Monotonic seconds.
        """
        return [
            (log, doubt.peer)
            for log, doubt in self._doubts.items()
            if {one.number for one in lines(doubt.peer)} <= doubt.refused
            and doubt.is_proved(now)
        ]
