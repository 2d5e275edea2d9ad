"""The places of the connections that peers open to us, from `accept` to the end.

Before its handshake a peer is known by its address only, and holds one of few places at
the door. Afterwards its connection gets a place among the links: a listed peer has it
under its DID, all others share a part of them by address (DESIGN.md, Trust).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anp.channel.channel import nothing
from anp.channel.core.pace import Pace
from anp.channel.core.shares import NoPlace, Place, ShareLimits, Shares, address_key
from anp.channel.core.turns import Memory
from anp.channel.stranger_work import StrangerWork

logger = logging.getLogger(__name__)

DOOR_PATIENCE = 0.5
"""Seconds for which we wait for a connection's handshake when others wait for its
place; what its address had for nothing of late counts as well."""

DOOR_MEMORY = 60.0
"Seconds after which what an address had for nothing counts for half as much."

CONNECTIONS = 50.0, 200
"Connections that one address may open in a second, and at once."

HANDSHAKES = 50.0, 400
"Handshakes that one address may begin in a second, and at once."

BYTE_COST = 0.00000001
"Seconds that a byte of a message counts for what the WebSocket did with it."

TASK_COST = 0.0002
"Seconds that a turn of a task counts beside its work: the rounds that wake it up."

LINK_PATIENCE = 5.0
"Seconds without a call after which a link may end when others wait for its place."


@dataclass(slots=True, eq=False)
class Guest:
    """A connection that a peer opened."""

    address: str
    "Address of the peer, or its IPv6 network."

    began: float
    "When it was accepted."

    admission: Admission
    "The place giver."

    hang_up: Callable[[], None]
    "Ends the connection in any state it is in."

    silence: Callable[[], float] = float
    """Returns the seconds since the last call of a link.

    It returns 0.0 while one is under way, and without a link (`float()`).
    """

    give_way: Callable[[], None] = nothing
    "Ends a link in good order, and soon."

    place: Place[Guest] | None = None
    "The place that it holds; None when it has left."

    proved: bool = False
    "True when a peer has proved its DID here."

    has_turn: bool = False
    "True while a part of what came is read in which no message was taken so far."

    _waited: float = 0.0
    "Seconds for which we waited for it, up to its latest work."

    _pending: int = 0
    "Pieces of its work that wait for their turn."

    _since: float = 0.0
    "When we began to wait for it, unless something is pending."

    _worked: float = 0.0
    "Seconds that tasks worked for it since the last turn of one."

    def __post_init__(self) -> None:
        """Begin to wait."""
        self._since = self.began

    @property
    def stranger(self) -> bool:
        """True unless a listed peer has proved its DID here."""
        return self.place is None or not self.place.listed

    def waited(self, now: float) -> float:
        """Return the seconds for which we waited for it, and it not for us."""
        return self._waited + (0.0 if self._pending else now - self._since)

    def takes_turn(self) -> bool:
        """Return whether a message may be taken as it comes; a stranger's uses it up.

        A turn is for one message: a part of what came may have forty of them.
        """
        had, self.has_turn = self.has_turn, False
        return had or not self.stranger

    def do(self, piece: Callable[[], None]) -> None:
        """Do a piece of work for this connection; a stranger's waits for its turn.

        Args:
            piece: Neither waits nor raises.
        """
        if self.stranger:
            self._await_turn(piece)
        else:
            self.admission.work.give_way()
            piece()

    async def done(self, piece: Callable[[], None]) -> None:
        """Do a piece of work as `do` does, and return when it is done.

        A piece whose caller has given up is not done.
        """
        if not self.stranger:
            self.admission.work.give_way()
            piece()
            return
        waiting = asyncio.get_running_loop().create_future()

        def turn() -> None:
            if waiting.done():
                return
            self.charge(TASK_COST)
            try:
                piece()
            except Exception as exc:  # noqa: BLE001 - the waiting caller gets it
                waiting.set_exception(exc)
            else:
                waiting.set_result(None)

        self._await_turn(turn)
        await waiting

    def _await_turn(self, piece: Callable[[], None]) -> None:
        clock = self.admission.clock
        self._waited, self._pending = self.waited(clock()), self._pending + 1

        def turn() -> None:
            try:
                piece()
            finally:
                self._pending -= 1
                self._since = clock()

        self.admission.work.do(self.address, turn)

    def charge(self, seconds: float) -> None:
        """Count work for this connection that is done elsewhere."""
        if self.stranger:
            self.admission.work.charge(self.address, seconds)

    def worked(self, seconds: float) -> None:
        """Count the time that a task worked for this connection."""
        if self.stranger:
            self._worked += seconds
            self.admission.work.worked(self.address, seconds)

    async def turn(self, after: float) -> None:
        """Wait until a task may work for this connection; see `own_turn`."""
        if not self.stranger or not self.admission.work.gives_way():
            return
        if self._worked >= after:
            await self.done(nothing)
            self._worked = 0.0

    def handshake_wait(self) -> float:
        """Count a handshake; return the seconds for which it has to wait."""
        return self.admission.handshake_wait(self)

    def read(self, size: int) -> None:
        """Count a message of `size` bytes; those of strangers wait for their turn."""
        self.worked(size * BYTE_COST)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Places that are taken, and how many there are."""

    at_door: int
    "Connections without a finished handshake."

    max_at_door: int

    links: int
    "Connections of peers that proved who they are."

    max_links: int

    unlisted: int
    "Those of them whose peers are not listed."

    max_unlisted: int

    refused: int
    "Connections that found no place, since the start."

    displaced: int
    "Connections that lost their place to another one, since the start."

    unlisted_can_connect: bool
    listed_can_connect: bool


class Admission:
    """Gives connections their places, and ends those that lose theirs.

    Args:
        max_connections: Connections that peers may have open, in all.
    """

    def __init__(
        self, max_connections: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock = clock
        door, links = _shares(max_connections)
        self._wasted = Memory(DOOR_MEMORY)
        self._door = Shares[Guest](
            door,
            silence=lambda guest: guest.waited(self.clock()),
            debt=lambda address: self._wasted.of(address, now=self.clock()),
        )
        self._links = Shares[Guest](links, silence=lambda guest: guest.silence())
        self._guests: dict[tuple[Any, ...], Guest] = {}
        self._connections = Pace(*CONNECTIONS)
        self._handshakes = Pace(*HANDSHAKES)
        self.work = StrangerWork(
            lambda address: self._door.held(address) + self._links.held(address)
        )

    def limit(self, max_connections: int) -> None:
        """Take another limit; who has a place keeps it until somebody else needs it."""
        self._door.limits, self._links.limits = _shares(max_connections)

    def enter(self, peername: tuple[Any, ...], hang_up: Callable[[], None]) -> bool:
        """Give a connection that was just accepted a place at the door, or none."""
        address = address_key(str(peername[0]))
        guest = Guest(address, self.clock(), self, hang_up)
        if not self._connections.take(guest.address, now=guest.began):
            self._door.refused += 1
            return False
        try:
            guest.place, gone = self._door.take(guest, guest.address, listed=False)
        except NoPlace:
            return False
        if gone is not None:
            self._blame(gone)
            gone.place = None
            gone.hang_up()
        self._guests[peername[:2]] = guest
        return True

    def find(self, peername: tuple[Any, ...] | None) -> Guest | None:
        """Return the connection with the other end `peername`, or None."""
        return None if peername is None else self._guests.get(peername[:2])

    def prove(self, guest: Guest, did: str, *, listed: bool) -> None:
        """Give a connection a place among the links: its peer proved its DID.

        Raises:
            NoPlace: There is none; the caller ends the link.
        """
        if guest.proved or guest.place is None:
            return
        key = did if listed else guest.address
        place, gone = self._links.take(guest, key, listed=listed)
        self._door.leave(guest.place)
        guest.place, guest.proved = place, True
        if gone is not None:
            gone.place = None
            gone.give_way()

    def handshake_wait(self, guest: Guest) -> float:
        """See `Guest.handshake_wait`."""
        return self._handshakes.reserve(guest.address, now=self.clock())

    def left(self, peername: tuple[Any, ...]) -> None:
        """Take back the place of a connection that has ended."""
        guest = self._guests.pop(peername[:2], None)
        if guest is None:
            return
        if guest.place is not None:
            if not guest.proved:
                self._blame(guest)
            (self._links if guest.proved else self._door).leave(guest.place)
            guest.place = None
        # Both hold the link, and the link holds this guest.
        guest.silence, guest.give_way = float, nothing

    def _blame(self, guest: Guest) -> None:
        """Count the time for which we waited for a handshake that never came."""
        now = self.clock()
        self._wasted.add(guest.address, guest.waited(now), now=now)

    @property
    def occupancy(self) -> Occupancy:
        """The places that are taken now."""
        door, links = self._door, self._links
        return Occupancy(
            at_door=len(door),
            max_at_door=door.limits.total,
            links=len(links),
            max_links=links.limits.total,
            unlisted=links.unlisted,
            max_unlisted=links.limits.unlisted,
            refused=door.refused + links.refused,
            displaced=door.displaced + links.displaced,
            unlisted_can_connect=links.room(listed=False),
            listed_can_connect=links.room(listed=True),
        )


def _shares(max_connections: int) -> tuple[ShareLimits, ShareLimits]:
    """Return the limits of the places at the door, and of those among the links."""
    door = max(1, max_connections // 4)
    links = max(1, max_connections - door)
    unlisted = max(1, links * 2 // 3)
    return (
        ShareLimits(
            total=door, unlisted=door, each=max(1, door // 2), patience=DOOR_PATIENCE
        ),
        ShareLimits(
            total=links,
            unlisted=unlisted,
            each=max(1, unlisted * 3 // 4),
            patience=LINK_PATIENCE,
        ),
    )


class DoorSocket(socket.socket):
    """A listening socket that takes only connections for which there is a place.

    It sees a connection before TLS and HTTP do, and until its descriptor is closed, so
    that no state of a connection is without a bound.
    """

    def __init__(self, admission: Admission, *args: Any, **also: Any) -> None:
        super().__init__(*args, **also)
        self._admission = admission

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; one without a place is reset at once.

        Raises:
            ConnectionAbortedError: There was no place for it.
        """
        plain, peername = super().accept()
        guest = _GuestSocket(
            self._admission,
            peername,
            (plain.family, plain.type, plain.proto, plain.detach()),
        )
        if not self._admission.enter(peername, guest.hang_up):
            guest.close()
            raise ConnectionAbortedError("no place for it")
        return guest, peername


class _GuestSocket(socket.socket):
    """An accepted connection that gives its place back when it is closed."""

    def __init__(
        self, admission: Admission, peername: Any, made_of: tuple[int, int, int, int]
    ) -> None:
        super().__init__(*made_of)
        self._admission = admission
        self._peername = peername

    def hang_up(self) -> None:
        """End the connection; the transport on it sees the end and closes it."""
        try:
            self.shutdown(socket.SHUT_RDWR)
        except OSError:
            # The other end was faster.
            return

    def close(self) -> None:
        if self.fileno() >= 0:
            self._admission.left(self._peername)
        super().close()
