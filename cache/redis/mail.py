"""Mail between daemons that use the same rows: a stream on the server for each box.

Looking into a box waits, so it has a connection of its own. Letters are copies of what
somebody knows: they may be lost, and a box that nobody looks into ends by itself.
"""

from __future__ import annotations

import contextlib
from typing import Final

from cache.errors import StoreUnavailable
from cache.redis.place import RedisPlace
from cache.redis.rows import Command
from cache.redis.server import Dial, RedisConnection, RedisTimes, explain, is_failure

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
