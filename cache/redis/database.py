"""A store on Redis or Valkey: transactions without locks, and operation in outages.

The server watches everything that a transaction reads: single rows by themselves,
ranges by the number of changes to their area. If any of it changes before the end, the
server refuses the whole and the work runs again. A process that is killed in the
middle has changed nothing.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final, TypeVar

from cache.errors import StoreFull, StoreUnavailable
from cache.redis.place import RedisPlace
from cache.redis.rows import (
    Command,
    Names,
    RedisRows,
    Remembered,
    RememberedReader,
    area_of,
)
from cache.redis.server import (
    Conflict,
    Dial,
    RedisConnection,
    RedisServerError,
    RedisTimes,
    ServerSuitability,
    dial,
    examine,
    explain,
    is_closed,
    is_failure,
    is_full,
    is_outage,
    room_of,
)
from cache.rows import Room, Rows

# Mail between daemons that use the same rows: a stream on the server for each box.
#
# Looking into a box waits, so a box has a connection of its own. Letters are copies of
# messages that a daemon also keeps: they may be lost, and an unread box ends by itself.


MAX_LETTERS: Final = 4096
"Letters in a box; the oldest are dropped."

MAX_READ: Final = 256
"Letters that one look returns at most."

KEPT: Final = 600_000
"Milliseconds after its last letter for which a box is kept."


def letter_commands(name: str, letter: bytes) -> list[Command]:
    """Return the commands that put a letter into the box of a name."""
    return [
        ("XADD", name, "MAXLEN", "~", MAX_LETTERS, "*", "letter", letter),
        ("PEXPIRE", name, KEPT),
    ]


class RedisBox:
    """Reads letters; one caller at a time."""

    def __init__(self, place: RedisPlace, times: RedisTimes, dial: Dial) -> None:
        """Connect with the first look."""
        self._place = place
        self._times = times
        self._dial = dial
        self._wire: RedisConnection | None = None

    def read(self, name: str, after: str, wait: float) -> tuple[str, list[bytes]]:
        """Wait for letters after a place, and drop those up to it; see `StoreBackend`.

        Raises:
            StoreUnavailable: The server does not answer.
        """
        try:
            wire = self._wire = self._wire or self._dial(self._place, self._times)
            if after != "0":
                # All before it are dropped, too.
                wire.call("XTRIM", name, "MINID", after)
            block = int(min(wait, self._times.answer / 2) * 1000)
            found = wire.call(
                *("XREAD", "COUNT", MAX_READ, "BLOCK", block, "STREAMS", name, after)
            )
        except Exception as exc:
            if not is_failure(exc):
                raise
            self.close()
            raise StoreUnavailable(explain(exc, self._place)) from exc
        if not found:
            return after, []
        letters = found[0][1]
        return letters[-1][0].decode("ascii"), [fields[1] for _, fields in letters]

    def close(self) -> None:
        """Close the connection."""
        wire, self._wire = self._wire, None
        if wire is not None:
            with contextlib.suppress(OSError):
                wire.close()


logger = logging.getLogger(__name__)

T = TypeVar("T")


class RedisDatabase:
    """See `cache.rows.StoreBackend`.

    All work runs in one thread over one connection, so that callers from any thread
    take turns. Only the first calls after a failure wait for the server; from then on
    calls fail at once, or read what is remembered, until a new connection stands. One
    is tried now and then, at the request of a call that hardly waits for it.
    """

    def __init__(
        self,
        place: RedisPlace,
        *,
        owner: str = "",
        times: RedisTimes | None = None,
        on_loss: Callable[[Rows], None] = lambda rows: None,
        dial: Dial = dial,
    ) -> None:
        """Connect, and claim the prefix for `owner`.

        Args:
            owner: Identity that the store belongs to, such as a DID; a prefix that
                belongs to another is refused. Empty accepts any.
            on_loss: Corrects the rows that cannot be trusted when the server may have
                lost its last seconds: it was restarted, or another took its place.

        Raises:
            StoreUnavailable: the message tells the owner what to do.
        """
        self._place = place
        self._owner = owner
        self._times = times or RedisTimes()
        self._on_loss = on_loss
        self._dial = dial
        self._names = Names(place.prefix)
        self._box = RedisBox(place, self._times, dial)
        self._remembered = Remembered()
        self._wire: RedisConnection | None = None
        self._standing: ServerSuitability | None = None
        self._outage: _Outage | None = None
        self._next_try = 0.0
        self._trying = threading.Lock()
        self._is_open = True
        self._closing = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="anpd-store")
        try:
            self._in_thread(lambda wire: None)
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """See `StoreBackend.is_open`."""
        return self._is_open

    @property
    def is_shared(self) -> bool:
        """See `StoreBackend.is_shared`."""
        return True

    @property
    def thread(self) -> None:
        """See `StoreBackend.thread`: work waits for the server, and not here."""
        return None

    def read(self, work: Callable[[Rows], T]) -> T:
        """See `StoreBackend.read`; in an outage it reads rows that were read lately."""

        try:
            return self._in_thread(
                lambda wire: work(RedisRows(self._reader(wire, watching=False))),
                reads=True,
            )
        except _Away as exc:
            # Here, not in our thread, which may be trying to connect meanwhile.
            if exc.since + self._times.away < time.monotonic():
                raise
            return work(RedisRows(RememberedReader(self._remembered, exc)))

    def write(self, work: Callable[[Rows], T], *, aside: bool = False) -> T:
        """See `StoreBackend.write`."""
        return self._in_thread(lambda wire: self._repeat(wire, work))

    def first_time(self, names: Sequence[str], *, keep: float) -> bool:
        """See `StoreBackend.first_time`; by the server's clock, the same for all."""
        wanted = [self._names.seen(name) for name in names]
        milliseconds = max(1, int(keep * 1000))

        def work(wire: RedisConnection) -> bool:
            for name in wanted:
                wire.watch(name)
            if wire.call("EXISTS", *wanted):
                wire.unwatch()
                return False
            try:
                wire.change([("SET", name, "", "PX", milliseconds) for name in wanted])
            except Conflict:
                return False
            return True

        return self._in_thread(work)

    def send_mail(self, box: str, letter: bytes) -> None:
        """See `StoreBackend.send_mail`."""
        commands = letter_commands(self._names.box(box), letter)
        self._in_thread(lambda wire: wire.change(commands))

    def mail(self, box: str, after: str, wait: float) -> tuple[str, list[bytes]]:
        """See `StoreBackend.mail`."""
        return self._box.read(self._names.box(box), after, wait)

    @property
    def writes(self) -> int | None:
        """See `StoreBackend.writes`; other daemons write here too."""
        return None

    def changes(self, area: str) -> int:
        """See `StoreBackend.changes`."""
        name = self._names.version(area)
        return self._in_thread(lambda wire: int(wire.call("GET", name) or 0))

    def check(self) -> list[str]:
        """See `StoreBackend.check`: the server's settings that it should not have."""
        standing = self._in_thread(lambda wire: self._standing)
        return [] if standing is None else list(standing.warnings)

    def probe(self) -> None:
        """See `StoreBackend.probe`."""
        name = self._names.probe

        def work(wire: RedisConnection) -> None:
            wire.change([("SET", name, "probe", "PX", 60_000)])
            if wire.call("GET", name) != b"probe":
                raise RedisServerError(f"cache: {self._place.shown} forgets at once")

        self._in_thread(work)

    def room(self) -> Room | None:
        """See `StoreBackend.room`: what `maxmemory` of the server leaves."""
        return self._in_thread(room_of)

    def compact(self) -> tuple[int, int]:
        """See `StoreBackend.compact`; the server has no gaps to close."""
        return 0, 0

    def close(self) -> None:
        """See `StoreBackend.close`."""
        with self._closing:
            was_open, self._is_open = self._is_open, False
        if was_open:
            self._box.close()
            self._thread.submit(self._hang_up).result()
            self._thread.shutdown()

    # Internal; all of these but `_in_thread` and `_wait_for_server` run in our thread.

    def _in_thread(
        self, work: Callable[[RedisConnection], T], *, reads: bool = False
    ) -> T:
        """Run `work` in our thread; `_Away` while the server does not answer.

        Args:
            reads: It changes nothing, so whatever fails is the server's fault.
        """
        if not self._is_open:
            raise StoreUnavailable(f"cache: {self._place.shown} is closed")
        if self._outage is not None:
            self._wait_for_server()
        return self._thread.submit(self._guarded, work, reads).result()

    def _wait_for_server(self) -> None:
        """Give the server a moment to be back, if it is time to try; `_Away` if not.

        At most one call a second does so, and for a moment only: a server that takes
        connections and says nothing must not hold everybody up again and again.
        """
        outage = self._outage
        if outage is None:
            return
        if time.monotonic() >= self._next_try and self._trying.acquire(blocking=False):
            trial = self._thread.submit(self._guarded, lambda wire: None, True, True)
            trial.add_done_callback(lambda _: self._trying.release())
            wait([trial], timeout=self._times.patience)
        if (outage := self._outage) is not None:
            raise outage.error()

    def _guarded(
        self, work: Callable[[RedisConnection], T], reads: bool, tries: bool = False
    ) -> T:
        if self._outage is not None and not tries:
            raise self._outage.error()
        was_open = self._wire is not None
        try:
            result = self._with_wire(work, again=was_open)
        except Exception as exc:
            if not is_failure(exc):
                raise
            raise self._note_failure(exc, reads=reads) from exc
        self._note_success()
        return result

    def _with_wire(self, work: Callable[[RedisConnection], T], *, again: bool) -> T:
        """Run `work`; once more on a new connection if the old one was found closed.

        A server that was restarted closes connections that nobody used meanwhile. Of a
        change nothing was sent yet then, so it is made once.
        """
        wire = self._connected()
        try:
            return work(wire)
        except Exception as exc:
            if not again or wire.changing or not is_closed(exc):
                raise
        self._hang_up()
        return work(self._connected())

    def _connected(self) -> RedisConnection:
        """Return the connection; a new one only after the server was examined."""
        if self._wire is not None:
            return self._wire
        self._wire = wire = self._dial(self._place, self._times)
        standing = examine(wire, self._names, self._place, owner=self._owner)
        if not standing.is_known:
            logger.warning(
                "store may have lost its last seconds, kept keys end url=%s",
                self._place.shown,
            )
            self._repeat(wire, self._on_loss)
            wire.call("HSET", self._names.about, "run_id", standing.run_id)
        if self._standing is None or self._standing.warnings != standing.warnings:
            for line in standing.warnings:
                logger.warning("store at risk url=%s %s", self._place.shown, line)
        self._standing = standing
        return wire

    def _repeat(self, wire: RedisConnection, work: Callable[[Rows], T]) -> T:
        give_up = time.monotonic() + self._times.contention
        longest = 0.001
        while True:
            try:
                return self._transact(wire, work)
            except Conflict:
                if time.monotonic() > give_up:
                    raise StoreUnavailable(
                        f"cache: other daemons at {self._place.shown} change the same "
                        "all the time; try again"
                    ) from None
            # A random pause, so that colliding daemons do not collide again.
            time.sleep(random.uniform(0, longest))
            longest = min(0.05, longest * 2)

    def _transact(self, wire: RedisConnection, work: Callable[[Rows], T]) -> T:
        """Run `work` and make its changes, once."""
        rows = RedisRows(self._reader(wire, watching=True))
        try:
            result = work(rows)
        except Exception as exc:
            if not is_failure(exc):
                # The error may come from a half-seen change by others: read again.
                wire.change([("PING",)])
            raise
        # Forgotten first: if the answer is lost, it is unknown which state holds.
        forgotten = self._remembered.forget(rows.written)
        wire.change(rows.commands(self._names) or [("PING",)])
        # Otherwise every count of a use would leave nothing for an outage.
        self._remembered.note_change(rows.changes, forgotten)
        return result

    def _reader(self, wire: RedisConnection, *, watching: bool) -> _WireReader:
        return _WireReader(wire, self._names, self._remembered, watching=watching)

    def _note_failure(self, exc: Exception, *, reads: bool) -> StoreUnavailable:
        # Also when only a command failed, since the watches are lost then.
        self._hang_up()
        said = explain(exc, self._place)
        # A server that refuses one change, such as a full one, can still be read.
        is_away = reads or is_outage(exc)
        if self._standing is None or not is_away:
            return StoreFull(said) if is_full(exc) else StoreUnavailable(said)
        now = time.monotonic()
        self._next_try = now + self._times.retry
        before = self._outage
        self._outage = _Outage(said, now if before is None else before.since)
        if before is None:
            logger.error("store away reason=%s", said)
        return self._outage.error()

    def _note_success(self) -> None:
        outage, self._outage = self._outage, None
        if outage is not None:
            logger.warning(
                "store back url=%s after=%.1f",
                self._place.shown,
                time.monotonic() - outage.since,
            )

    def _hang_up(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()


class _WireReader:
    """See `cache.redis.rows.Reader`."""

    def __init__(
        self,
        wire: RedisConnection,
        names: Names,
        remembered: Remembered,
        *,
        watching: bool,
    ) -> None:
        self._wire = wire
        self._names = names
        self._remembered = remembered
        self._watching = watching

    def stored(self, keys: Sequence[str]) -> list[bytes | None]:
        """See `Reader.stored`."""
        if not keys:
            return []
        names = [self._names.row(key) for key in keys]
        # Rows of a range are watched by their area.
        if self._watching and len(names) == 1:
            self._wire.watch(names[0])
        found: list[bytes | None] = self._wire.call("MGET", *names)
        for key, data in zip(keys, found, strict=True):
            self._remembered.note_row(key, data)
        return found

    def keys(self, prefix: str) -> list[str]:
        """See `Reader.keys`."""
        if self._watching:
            self._wire.watch(self._names.version(area_of(prefix)))
        low, high = _range(prefix)
        found: list[bytes] = self._wire.call(
            "ZRANGEBYLEX", self._names.index, low, high
        )
        keys = [name.decode("utf-8", "backslashreplace") for name in found]
        self._remembered.note_range(prefix, keys)
        return keys

    def page(
        self, prefix: str, *, limit: int, descending: bool, after: str, before: str
    ) -> list[str]:
        """See `Reader.page`."""
        if self._watching:
            self._wire.watch(self._names.version(area_of(prefix)))
        low, high = _range(prefix)
        if after and after.encode() >= prefix.encode():
            low = b"(" + after.encode()
        if before:
            high = b"(" + before.encode()
        ends = (high, low) if descending else (low, high)
        command = "ZREVRANGEBYLEX" if descending else "ZRANGEBYLEX"
        found: list[bytes] = self._wire.call(
            command, self._names.index, *ends, "LIMIT", 0, limit
        )
        return [name.decode("utf-8", "backslashreplace") for name in found]

    def sizes(self, keys: Sequence[str]) -> list[int]:
        """See `Reader.sizes`."""
        return self._wire.batch([("STRLEN", self._names.row(key)) for key in keys])


class _Away(StoreUnavailable):
    """The server cannot be reached now."""

    def __init__(self, said: str, since: float) -> None:
        super().__init__(said)
        self.since = since


@dataclass(frozen=True, slots=True)
class _Outage:
    """A time in which the server does not answer."""

    said: str
    "The last failure, for the owner."

    since: float
    "Its beginning, on the monotonic clock."

    def error(self) -> _Away:
        """Return an error for one caller."""
        return _Away(self.said, self.since)


def _range(prefix: str) -> tuple[str | bytes, str | bytes]:
    if not prefix:
        return "-", "+"
    data = prefix.encode()
    # The byte 0xFF is not valid in UTF-8, so it sorts after every key with the prefix.
    return b"[" + data, b"(" + data + b"\xff"
