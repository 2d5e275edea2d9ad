"""Letters between the daemons of a fleet about their groups.

Each run of a daemon has a box in the store, a stream of Redis or Valkey. A letter may
be lost, or come twice: whoever writes one sees by other means that it did not arrive.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Final

from pydantic import TypeAdapter, ValidationError

from anp.interaction.errors import InteractionError, InteractionFault
from anp.sidecar.groups.shelf import GroupShelf
from cache.errors import CacheError

logger = logging.getLogger(__name__)

MAX_WAITING: Final = 4096
"Letters that wait for one daemon; with more, nothing is taken for it."

MAX_BATCH: Final = 256
"Letters that are written at once."

WAIT: Final = 1.0
"Seconds for which one look into the box lasts when there is nothing."


class LetterKind(StrEnum):
    """The kinds of letters."""

    SAID = "said"
    "To the hub: a member said something on a line of ours."

    KNOWN = "known"
    "To the hub: an agent knows of its ticket."

    PRESENT = "present"
    """To the hub: the members that we serve, and how far they are; `did` is the one
    that came to us just now."""

    HERE = "here"
    "To those that have groups: this daemon lives, and can serve members."

    LEFT = "left"
    "To all sisters: this daemon has left its groups."

    ANSWER = "answer"
    "From the hub: a frame for an agent that has a line with us."

    DIAL = "dial"
    "From the hub: a member is to be dialled, and served; `frame` is its address."

    STORED = "stored"
    "From the hub: events were stored."


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLetter:
    """Something that one daemon of a fleet tells another of a group."""

    kind: LetterKind
    group: str
    did: str = ""
    "The agent that it is about."

    ref: int = 0
    "The number that this agent gave its operation."

    frame: str = ""
    "A frame of the protocol, which is JSON, the id of a ticket, or an address."

    members: dict[str, int] = field(default_factory=dict)
    "DIDs of members, each with the newest event that it has stored."


@cache
def _batches() -> TypeAdapter[tuple[str, list[GroupLetter]]]:
    """Return what reads and writes batches; made where the store is shared."""
    return TypeAdapter(tuple[str, list[GroupLetter]])


class GroupMail:
    """Sends letters to the sisters, and takes those that they send."""

    def __init__(
        self, shelf: GroupShelf, take: Callable[[str, GroupLetter], Awaitable[None]]
    ) -> None:
        """Begin without letters.

        Args:
            take: Takes a letter, with the id of the daemon that wrote it.
        """
        self._shelf = shelf
        self._take = take
        self._waiting: dict[str, deque[GroupLetter]] = {}
        self._sending: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ended = False
        self.lost: Callable[[str], object] = lambda to: None
        "Told of a daemon that did not get its letters."

        # It waits nearly always, so that it would hold one thread of all others.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="anpd-mail")

    def send(self, to: str, letter: GroupLetter) -> None:
        """Send a letter to a daemon, by its id.

        Raises:
            InteractionError: Too much waits for it.
        """
        if self._ended:
            return
        waiting = self._waiting.setdefault(to, deque())
        if len(waiting) >= MAX_WAITING:
            raise InteractionError(
                InteractionFault.TOO_MANY, "too much waits for a daemon of the fleet"
            )
        stored = letter.kind is LetterKind.STORED
        if not (stored and waiting and waiting[-1] == letter):
            waiting.append(letter)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    def start(self) -> None:
        """Take letters from now on."""
        self._reading = asyncio.create_task(self._read())

    async def stop(self) -> None:
        """Take no more letters; send those that wait."""
        if self._ended:
            return
        self._ended = True
        while self._sending is not None:
            await asyncio.wait({self._sending})
        if self._reading is not None:
            try:
                # It ends the look into the box that is under way.
                await asyncio.to_thread(self._shelf.send_mail, self._shelf.owner, b"")
            except CacheError:
                logger.debug("groups: the end waits for the last look into the box")
            await asyncio.wait({self._reading})
        self._thread.shutdown(wait=False)

    async def _send(self) -> None:
        try:
            while self._waiting:
                to, waiting = next(iter(self._waiting.items()))
                batch = [waiting.popleft() for _ in range(min(len(waiting), MAX_BATCH))]
                if not waiting:
                    del self._waiting[to]
                data = _batches().dump_json((self._shelf.owner, batch))
                try:
                    await asyncio.to_thread(self._shelf.send_mail, to, data)
                except CacheError as exc:
                    # No later letter may come where an earlier one is missing.
                    later = self._waiting.pop(to, ())
                    count = len(batch) + len(later)
                    logger.warning("letters lost count=%d reason=%s", count, exc)
                    self.lost(to)
        finally:
            self._sending = None

    async def _read(self) -> None:
        loop, after, is_away = asyncio.get_running_loop(), "0", False
        while not self._ended:
            try:
                after, found = await loop.run_in_executor(
                    self._thread, self._shelf.mail, after, WAIT
                )
            except CacheError as exc:
                if not is_away:
                    logger.warning("letters not read reason=%s", exc)
                is_away = True
                await asyncio.sleep(WAIT)
                continue
            is_away = False
            for data in found:
                if data:
                    await self._open(data)

    async def _open(self, data: bytes) -> None:
        try:
            sender, letters = _batches().validate_json(data)
        except ValidationError as exc:
            logger.warning("no letters of a sister errors=%d", exc.error_count())
            return
        for letter in letters:
            try:
                await self._take(sender, letter)
            except Exception:
                logger.exception("a letter was not taken kind=%s", letter.kind)
