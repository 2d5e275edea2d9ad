"""Connections of the local API: shares of a door, and time limits of each connection.

A connection is a *stranger* until a request on it was let in, and *known* from then
on. Strangers have a share of their own, so that whoever has no token can fill nothing
but that; when it is full, the oldest one that does nothing makes room. When every place
of the known ones has a request at work, a request waits for a place, and one that
waited too long is answered with 503. The owner has a few places besides, so that
programs never shut the owner out. Each door, the socket and the port, has its own
shares.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Generic, TypeVar
from urllib.parse import unquote

import h11
import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.h11_impl import H11Protocol

from anp.sidecar.api.plain_http import PlainCycle, StrictConnection, read_head

logger = logging.getLogger(__name__)

RETRY_AFTER: Final = 5
"Seconds after which a client that found no place is told to come again."

CONNECTION: Final = "anpd.connection"
"The key of a request's state (ASGI) under which its connection stands."

NO_ROOM: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    b"Retry-After: %d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
) % RETRY_AFTER
"The answer to a client whose request was not read, as there is no room for it."

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of the connections of one door."""

    max_known: int = 256
    "Connections on which a request was let in."

    owner_places: int = 8
    "Connections besides, which only requests of scope `owner` get."

    max_waiting: int = 128
    "Connections whose request waits for one of those places."

    wait_seconds: float = 10.0
    "Seconds for which a request waits for a place."

    max_strangers: int = 512
    """Connections on which no request was let in yet; more than the known and the
    waiting ones, so that all of these may connect in one moment."""

    header_seconds: float = 10.0
    "Seconds for the headers of a request, from the connection or its first byte."

    body_seconds: float = 30.0
    """Seconds for the whole body of a request, from the end of its headers; of an
    upload, for each piece of it."""

    unread_seconds: float = 60.0
    "Seconds for which a client may read nothing of an answer that waits for it."

    look_seconds: float = 0.5
    "Seconds between two looks at all connections; the first two limits are so exact."

    max_header: int = 16 * 1024
    "Largest headers of a request, in bytes."

    @classmethod
    def of(cls, max_known: int) -> ConnectionLimits:
        """Return the limits of a door with that many places for known connections."""
        return cls(max_known=max_known, max_strangers=max_known + 256)


class Seating(Enum):
    """The fate of a request that may come in."""

    IN = auto()
    "It has a place."

    WAITS = auto()
    "It waits for one."

    FULL = auto()
    "As many wait already as may wait."


class Lobby(Generic[T]):
    """Keeps the shares of one door. Pure: it names who has to go, and ends nobody."""

    def __init__(self, limits: ConnectionLimits, is_busy: Callable[[T], bool]) -> None:
        """Begin without connections.

        Args:
            is_busy: Tells whether a request of a connection is being answered.
        """
        self._limits = limits
        self._is_busy = is_busy
        # All in the order in which they came.
        self._tokenless: dict[T, None] = {}
        self._known: dict[T, None] = {}
        self._owners: dict[T, None] = {}
        self._waiting: dict[T, bool] = {}
        "Those that wait for a place, and whether they may have one of the owner's."

    def enter(self, one: T) -> T | None:
        """Take a new connection in; return the one that has to go for it, or None."""
        gone = None
        if len(self._tokenless) >= self._limits.max_strangers:
            idle = self._first_idle(self._tokenless)
            # One that is answered may be a good client's, but so may the new one.
            gone = next(iter(self._tokenless)) if idle is None else idle
            del self._tokenless[gone]
        self._tokenless[one] = None
        return gone

    def admit(self, one: T, *, is_owner: bool = False) -> tuple[Seating, T | None]:
        """Make a stranger known, as a request on its connection was let in.

        A known connection that does nothing gives its place up for it, and is a
        stranger until its next request.

        Args:
            is_owner: The request has the scope `owner`.

        Returns:
            What comes of the request, and the connection that has to go, or None.
        """
        gone = None
        if not self._has_place(is_owner=is_owner):
            for share in (self._known, self._owners) if is_owner else (self._known,):
                if (idle := self._first_idle(share)) is not None:
                    gone = self._retire(idle, share)
                    break
            else:
                if len(self._waiting) >= self._limits.max_waiting:
                    return Seating.FULL, None
                self._tokenless.pop(one, None)
                self._waiting[one] = is_owner
                return Seating.WAITS, None
        self._seat(one)
        return Seating.IN, gone

    def is_known(self, one: T) -> bool:
        """Tell whether a connection has a place."""
        return one in self._known or one in self._owners

    def release(self, one: T) -> tuple[list[T], T | None]:
        """Note that a request was answered, and give its place to one that waits.

        Returns:
            The connections that waited and now have a place, and the one that has to
            go, or None.
        """
        if not self._waiting:
            return [], None
        gone = None
        for share in (self._known, self._owners):
            if one in share:
                gone = self._retire(one, share)
        return self._next_seated(), gone

    def give_up(self, one: T) -> None:
        """Make one that waited too long a stranger again."""
        if self._waiting.pop(one, None) is not None:
            self._tokenless[one] = None

    def leave(self, one: T) -> list[T]:
        """Forget a connection that ended; return those that waited for its place."""
        for share in (self._tokenless, self._known, self._owners, self._waiting):
            share.pop(one, None)
        return self._next_seated()

    def all(self) -> list[T]:
        """Return every connection."""
        return [*self._tokenless, *self._known, *self._owners, *self._waiting]

    def _has_place(self, *, is_owner: bool) -> bool:
        if len(self._known) < self._limits.max_known:
            return True
        return is_owner and len(self._owners) < self._limits.owner_places

    def _seat(self, one: T) -> None:
        self._tokenless.pop(one, None)
        self._waiting.pop(one, None)
        is_full = len(self._known) >= self._limits.max_known
        (self._owners if is_full else self._known)[one] = None

    def _next_seated(self) -> list[T]:
        waiting = list(self._waiting.items()) if self._waiting else []
        seated = []
        for one, is_owner in waiting:
            if self._has_place(is_owner=is_owner):
                self._seat(one)
                seated.append(one)
        return seated

    def _retire(self, one: T, share: dict[T, None]) -> T | None:
        """Take the place of a connection; return it if strangers have no room."""
        del share[one]
        if len(self._tokenless) >= self._limits.max_strangers:
            return one
        self._tokenless[one] = None
        return None

    def _first_idle(self, among: dict[T, None]) -> T | None:
        return next((one for one in among if not self._is_busy(one)), None)


class DoorConfig(uvicorn.Config):
    """The web server's configuration for one door, with the shares of its clients."""

    def __init__(
        self, app: Any, *, name: str, limits: ConnectionLimits, **more: Any
    ) -> None:
        """Make it.

        Args:
            name: Of the door, for the log: `socket`, `owner` or `port`.
            limits: Of its connections.
            more: For the web server.
        """
        self.name = name
        self.limits = limits
        self.lobby: Lobby[ApiConnection] = Lobby(limits, ApiConnection.is_busy)
        super().__init__(
            app,
            http=ApiConnection,
            h11_max_incomplete_event_size=limits.max_header,
            **more,
        )

    def replace(self, app: Any) -> None:
        """Have requests go to another application from now on."""
        self.loaded_app = app
        for one in self.lobby.all():
            one.app = app

    async def look_after(self) -> None:
        """End connections whose request takes too long; never ends by itself.

        Now and then, and not with a timer for each request, so that a request costs
        nothing.
        """
        while True:
            await asyncio.sleep(self.limits.look_seconds)
            now = time.monotonic()
            for one in self.lobby.all():
                reason = one.overdue(now=now)
                if reason is not None:
                    one.end(reason)
                elif one.is_idle(now=now):
                    # As the library's own timer does, which each request would set.
                    one.timeout_keep_alive_handler()


class HangUp:
    """A block during which a function is told that the client of a request is gone.

    A task that waits for the end of the connection would cost each request more.
    """

    def __init__(self, scope: Scope, told: Callable[[], object]) -> None:
        """Make it.

        Args:
            scope: Of the request (ASGI); where it has no connection of ours, nobody is
                told.
        """
        self._connection: ApiConnection | None = scope.get("state", {}).get(CONNECTION)
        self._told = told

    def __enter__(self) -> None:
        """Begin to tell, at once if the client is gone already."""
        if self._connection is not None:
            self._connection.on_lost = self._told
            if self._connection.lost:
                self._told()

    def __exit__(self, *_: object) -> None:
        """Tell no more."""
        if self._connection is not None:
            self._connection.on_lost = None


class Phase(Enum):
    """Phases of a connection, by what the client has to do next."""

    IDLE = auto()
    "Begin another request."

    HEADERS = auto()
    "Finish the headers of a request, or begin the first."

    BODY = auto()
    "Finish the body."

    ANSWER = auto()
    "Wait for the answer."


class ApiConnection(H11Protocol):
    """A connection of the web server that has a place in its lobby, and time limits."""

    config: DoorConfig

    def __init__(self, config: DoorConfig, **more: Any) -> None:
        state = {**more.pop("app_state"), CONNECTION: self}
        super().__init__(config=config, app_state=state, **more)
        self.conn = StrictConnection(h11.SERVER, config.limits.max_header)
        self._lobby = config.lobby
        self._limits = config.limits
        self.lost = False
        "True once it has ended."
        self.on_lost: Callable[[], object] | None = None
        "Told of its end; see `HangUp`."

        self._place: asyncio.Future[None] | None = None
        "Done when a request that waits for a place has one, or when its client left."

        self._pieces: tuple[object, int] = (None, 0)
        self._seen: tuple[Phase, object] = (Phase.HEADERS, None)
        self._since = time.monotonic()
        self._unread: asyncio.TimerHandle | None = None
        self._plain = False
        "True while a request in the usual form is read and answered."
        self._left = 0
        "Bytes of its body that did not come yet."
        self._later = b""
        "Bytes that came behind it."

    def is_busy(self) -> bool:
        """Tell whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def known(self) -> bool:
        """True while a request that was let in has a place, and behind it until then.

        It ends when the place goes to a request of another connection that waits.
        """
        return self._lobby.is_known(self)

    async def admit(self, *, is_owner: bool = False) -> bool:
        """Wait until a request that is let in has a place; False if it gets none.

        Args:
            is_owner: See `Lobby.admit`.
        """
        admission, gone = self._lobby.admit(self, is_owner=is_owner)
        if gone is not None:
            gone.turn_away("the share of known connections is full")
        if admission is Seating.WAITS:
            self._place = self.loop.create_future()
            try:
                async with asyncio.timeout(self._limits.wait_seconds):
                    await self._place
            except TimeoutError:
                self._lobby.give_up(self)
            finally:
                self._place = None
        return self.known

    def has_place(self) -> None:
        """Let the request that waits for a place go on."""
        if self._place is not None and not self._place.done():
            self._place.set_result(None)

    def overdue(self, *, now: float) -> str | None:
        """Return why the time of its request is over, or None.

        More bytes buy no time: only another phase, or another request, does.

        Args:
            now: In seconds on one monotonic clock.
        """
        seen = (self._phase(), (self.cycle, self._taken))
        if seen != self._seen:
            self._seen, self._since = seen, now
        match seen[0]:
            case Phase.HEADERS:
                limit, reason = self._limits.header_seconds, "its headers took too long"
            case Phase.BODY:
                limit, reason = self._limits.body_seconds, "its body took too long"
            case _:
                return None
        return reason if now - self._since > limit else None

    def is_idle(self, *, now: float) -> bool:
        """Tell whether its client has begun no other request for long; see `overdue`.

        Args:
            now: That of a call of `overdue` just before.
        """
        is_idle = self._seen[0] is Phase.IDLE
        return is_idle and now - self._since > self.timeout_keep_alive

    def on_response_complete(self) -> None:
        """Go on behind an answer; see the library's class."""
        self.server_state.total_requests += 1
        seated, gone = self._lobby.release(self)
        for one in seated:
            one.has_place()
        if gone is not None:
            gone.turn_away("the share of known connections is full")
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.conn.our_state is h11.DONE and self.conn.their_state is h11.DONE:
            self.conn.start_next_cycle()
            self.handle_events()

    def took_piece(self) -> None:
        """Give the upload at hand its time anew, since a piece of it was taken."""
        self._pieces = (self.cycle, self._taken + 1)

    @property
    def _taken(self) -> int:
        """Pieces of the upload at hand; 0 for every other request."""
        return self._pieces[1] if self._pieces[0] is self.cycle else 0

    def end(self, reason: str) -> None:
        """End the connection at once."""
        self._log_end(reason)
        self._leave()
        self.transport.abort()

    def turn_away(self, reason: str) -> None:
        """End a connection for which there is no room, with an answer if it has none.

        Its client may have sent a request that was not read yet, and learns so that
        this request did nothing and when to send it again.
        """
        if self.is_busy():
            self.end(reason)
            return
        self._log_end(reason)
        self._leave()
        if self.cycle is None:
            self.transport.write(NO_ROOM)
        self.transport.close()

    def _log_end(self, reason: str) -> None:
        # One line a minute for each cause; the limit on lines counts the others.
        logger.warning(
            "local connection ended door=%s reason=%s",
            self.config.name,
            reason,
            extra={"cause": f"{self.config.name}: {reason}", "max_lines": 1},
        )

    def _leave(self) -> None:
        """Give the place back, to a request that waits for one."""
        for one in self._lobby.leave(self):
            one.has_place()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the base has it
        """Take a place."""
        super().connection_made(transport)
        gone = self._lobby.enter(self)
        if gone is not None:
            gone.turn_away("the share of new connections is full")

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._leave()
        self.has_place()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)
        self.lost = True
        if self.on_lost is not None:
            self.on_lost()

    def data_received(self, data: bytes) -> None:
        """Read a request in the usual form here, and any other with the library."""
        if self._left:
            data = self._take_body(data)
            if not data:
                return
        if self._plain:
            self._later += data
            self.flow.pause_reading()
        elif not self._begin(data):
            super().data_received(data)

    def _begin(self, data: bytes) -> bool:
        """Begin with a request; False leaves it to the library."""
        conn = self.conn
        if conn.our_state is not h11.IDLE or conn.their_state is not h11.IDLE:
            return False
        if conn.trailing_data[0] or self.transport.is_closing():
            return False
        head = read_head(data, max_size=self._limits.max_header)
        if head is None:
            return False
        self._plain, self._left = True, head.length
        self.headers = head.headers
        raw_path, _, query = head.target.partition(b"?")
        self.scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme or "http",
            "method": head.method,
            "root_path": self.root_path,
            "path": self.root_path + unquote(raw_path.decode("ascii")),
            "raw_path": self.root_path.encode("ascii") + raw_path,
            "query_string": query,
            "headers": head.headers,
            "state": self.app_state.copy(),
        }
        self.cycle = PlainCycle(
            scope=self.scope,
            conn=conn,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            on_response=self._answered,
        )
        task = self.loop.create_task(self.cycle.run_asgi(self.app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        rest = data[head.size :]
        if self._left:
            rest = self._take_body(rest)
        else:
            self._body_ended()
        if rest:
            self._later = rest
            self.flow.pause_reading()
        return True

    def _take_body(self, data: bytes) -> bytes:
        """Take what belongs to the body of the request at hand; return the rest."""
        piece, rest = data[: self._left], data[self._left :]
        self._left -= len(piece)
        # One that is refused already is read all the same: the connection goes on.
        if not self.cycle.response_complete:
            self.cycle.body += piece
            self.cycle.message_event.set()
            if len(self.cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
        if not self._left:
            self._body_ended()
        return rest

    def _body_ended(self) -> None:
        self.cycle.more_body = False
        self.cycle.message_event.set()
        if self.cycle.response_complete:
            self._next()

    def _answered(self) -> None:
        self.on_response_complete()
        if not self._left:
            self._next()

    def _next(self) -> None:
        """Go on with what came behind a request that was read and answered."""
        self._plain = False
        data, self._later = self._later, b""
        if data and not self.transport.is_closing():
            self.data_received(data)

    def pause_writing(self) -> None:
        """Begin to count the time in which the client reads nothing."""
        super().pause_writing()
        self._unread = self.loop.call_later(
            self._limits.unread_seconds, self.end, "an answer was not read"
        )

    def resume_writing(self) -> None:
        """Stop counting."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _phase(self) -> Phase:
        """Return the phase that the bytes so far lead to."""
        if self._plain:
            return Phase.BODY if self._left else Phase.ANSWER
        match self.conn.their_state:
            case h11.IDLE:
                # Who connects has something to say.
                begun = self.cycle is None or bool(self.conn.trailing_data[0])
                return Phase.HEADERS if begun else Phase.IDLE
            case h11.SEND_BODY:
                return Phase.BODY
            case _:
                return Phase.ANSWER
