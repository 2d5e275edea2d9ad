"""Keeps short-term keys beyond their links, in a store, and takes them up again.

Everything that this promises rests on two kinds of write, which are on disk before
anything happens under the key: a block of counters is reserved before one of it is
sent, and claimed before a message with one of it is acted on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from anp.channel.core.events import ChannelOpened, ChannelRole
from anp.channel.core.kept_keys import NONCE_SIZE, KeptKey, open_key, seal_key
from anp.errors import ErrorCode, PeerError
from anp.wire.keys import SessionKeys
from anp.wire.meta_protocol import LostKey
from anp.wire.replay import BLOCK, block_end
from cache.errors import CacheError
from cache.records.peers import KeyRecord
from cache.records.records import AgreementRole

logger = logging.getLogger(__name__)

PURPOSE = b"anpd: short-term keys at rest"
"Purpose of the secret that seals keys; see `PrivateKey.derive`."


class KeyRecords(Protocol):
    """Where keys rest; `cache.parts.keys.KeyStore` is one. All of it blocks."""

    def save_key(self, record: KeyRecord, *, now: float) -> bool:
        """Store a new key; say whether there was room for it."""
        ...

    def key(self, role: AgreementRole, peer_did: str, key_id: str) -> KeyRecord | None:
        """Return a key, or None."""
        ...

    def keys_with(
        self, role: AgreementRole, peer_did: str, binding: str
    ) -> list[KeyRecord]:
        """Return the keys with a peer that are bound to a protocol, newest first."""
        ...

    def reserve_key(
        self, role: AgreementRole, peer_did: str, key_id: str, *, size: int, now: float
    ) -> int | None:
        """Reserve a block of counters; None: the key ended."""
        ...

    def claim_key(
        self,
        role: AgreementRole,
        peer_did: str,
        key_id: str,
        *,
        first: int,
        last: int,
        now: float,
    ) -> bool:
        """Claim counters that were received; False: they are taken."""
        ...

    def end_key(
        self,
        role: AgreementRole,
        peer_did: str,
        key_id: str,
        *,
        unless_claimed: int = -1,
    ) -> bool:
        """End a key; say whether nothing from that counter on was accepted."""
        ...

    def drop_key(self, role: AgreementRole, peer_did: str, key_id: str) -> None:
        """Forget a key of which nobody will ask."""
        ...


@dataclass(frozen=True, slots=True)
class Taken:
    """A key that was found in the store."""

    record: KeyRecord
    "Its record, as it was then."

    kept: KeptKey
    "The key and its terms, unsealed."


class KeyKeeper:
    """The keys of this daemon that outlive their links.

    Args:
        secret: 32 bytes that only this identity can derive (DESIGN.md, Trust).
        enabled: Whether keys are kept and taken up; questions about keys that were
            lost are answered in any case.
        wall: Seconds since 1970.
        margin: Seconds a key has to live on for its requester to take it up.
        max_counter: Counter from which a requester takes a key up no more.
    """

    def __init__(
        self,
        records: KeyRecords,
        secret: bytes,
        *,
        enabled: bool,
        wall: Callable[[], float] = time.time,
        margin: float = 60.0,
        max_counter: int = 2**20,
    ) -> None:
        self._records = records
        self._secret = secret
        self.enabled = enabled
        self.wall = wall
        self._margin = margin
        self._max_counter = max_counter
        self._holders: dict[tuple[AgreementRole, str, str], Callable[[], None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def keep(
        self,
        opened: ChannelOpened,
        keys: SessionKeys,
        binding: str,
        *,
        reserved: int,
        mark: int,
        lifetime: float,
        leave: Callable[[], None],
    ) -> bool:
        """Store the key of an open channel; False: there is no room, it is not kept.

        Args:
            reserved: First counter for sending that is not the channel's own.
            mark: Highest received counter that is the channel's own.
            lifetime: Seconds until the key ends.
            leave: Called when the key is taken up on another link.
        """
        now = self.wall()
        kept = KeptKey(opened, keys, binding, now, now + lifetime)
        record = KeyRecord(
            opened.channel_id,
            AgreementRole(opened.role),
            opened.peer_did,
            binding,
            kept.created,
            kept.expires,
            seal_key(kept, self._secret, os.urandom(NONCE_SIZE)),
            reserved,
            mark,
        )
        self._holders[_name(opened)] = leave
        try:
            return await asyncio.to_thread(self._records.save_key, record, now=now)
        except CacheError as exc:
            # It may be on disk all the same, so its counters stay reserved ones.
            logger.warning("key not kept peer=%s reason=%s", opened.peer_did, exc)
            return True

    async def find_own(self, peer_did: str, *bindings: str) -> Taken | None:
        """Return a key to call a peer with, if there is one that can be taken up.

        Args:
            bindings: What the protocol is known by, best first: hash and URI.
        """
        if not self.enabled:
            return None

        def look() -> list[KeyRecord]:
            return [
                record
                for binding in bindings
                for record in self._records.keys_with(
                    AgreementRole.REQUESTER, peer_did, binding
                )
            ]

        try:
            records = await asyncio.to_thread(look)
        except CacheError as exc:
            logger.warning("kept keys cannot be read reason=%s", exc)
            return None
        for record in records:
            if (record.role, record.peer_did, record.id) in self._holders:
                continue
            if record.expires - self._margin <= self.wall():
                continue
            if max(record.reserved, record.mark) >= self._max_counter:
                continue
            try:
                return Taken(record, self._open(record))
            except PeerError as exc:
                logger.warning("kept key passed over reason=%s", exc.detail)
        return None

    async def find(self, peer_did: str, key_id: str) -> Taken:
        """Return the key that a peer uses to call us.

        Raises:
            PeerError: `INVALID_DECRYPTION_KEY` or `DECRYPTION_KEY_EXPIRED`.
        """
        try:
            record = await asyncio.to_thread(
                self._records.key, AgreementRole.PROVIDER, peer_did, key_id
            )
        except CacheError as exc:
            raise _unusable(f"kept keys cannot be read: {exc}") from exc
        if record is None or record.ended or not self.enabled:
            raise _unusable("unknown key id")
        if record.expires <= self.wall():
            raise PeerError(ErrorCode.DECRYPTION_KEY_EXPIRED, "the key expired")
        return Taken(record, self._open(record))

    def take(self, taken: Taken, leave: Callable[[], None]) -> None:
        """Note which link uses a key from now on; the link before leaves it."""
        name = _name(taken.kept.opened)
        before = self._holders.get(name)
        if before is not None:
            before()
        self._holders[name] = leave

    def left(self, opened: ChannelOpened, leave: Callable[[], None]) -> None:
        """Note that a link does not use a key any more."""
        if self._holders.get(_name(opened)) == leave:
            del self._holders[_name(opened)]

    async def reserve(self, opened: ChannelOpened) -> tuple[int, int]:
        """Reserve counters to send with: the first, and the one behind the last.

        Raises:
            PeerError: The key ended, or the store does not answer.
        """
        role, peer_did, key_id = _name(opened)
        try:
            first = await asyncio.to_thread(
                lambda: self._records.reserve_key(
                    role, peer_did, key_id, size=BLOCK, now=self.wall()
                )
            )
        except CacheError as exc:
            raise _unusable(f"no counter can be reserved: {exc}") from exc
        if first is None:
            raise _unusable("the key ended")
        return first, first + BLOCK

    async def claim(self, opened: ChannelOpened, counter: int) -> int:
        """Claim the block of a counter that was received; return its last one.

        A store that does not answer is a refusal: the key is not trusted then (WIRE).

        Raises:
            PeerError: It was claimed before, the key ended, or no answer of the store.
        """
        last = block_end(counter)
        role, peer_did, key_id = _name(opened)
        try:
            claimed = await asyncio.to_thread(
                lambda: self._records.claim_key(
                    role,
                    peer_did,
                    key_id,
                    first=last - BLOCK + 1,
                    last=last,
                    now=self.wall(),
                )
            )
        except CacheError as exc:
            raise _unusable(f"no counter can be claimed: {exc}") from exc
        if not claimed:
            raise PeerError(
                ErrorCode.NOT_ALLOWED, f"counter {counter} is taken: a replay"
            )
        return last

    def end_later(self, opened: ChannelOpened, *, by_peer: bool) -> None:
        """End a key as `end` does, without waiting for it."""
        task = asyncio.create_task(self.end(opened, by_peer=by_peer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait for what was to be done later."""
        await asyncio.gather(*self._tasks)

    async def end(self, opened: ChannelOpened, *, by_peer: bool) -> None:
        """End a key for good. One that its requester ended is forgotten at once."""
        role, peer_did, key_id = _name(opened)
        try:
            if role is AgreementRole.REQUESTER or by_peer:
                await asyncio.to_thread(self._records.drop_key, role, peer_did, key_id)
            else:
                await asyncio.to_thread(self._records.end_key, role, peer_did, key_id)
        except CacheError as exc:
            logger.warning("kept key not removed peer=%s reason=%s", peer_did, exc)

    async def answer(self, peer_did: str, lost: LostKey) -> LostKey | None:
        """Tell a verified peer what became of a key of its, and end that key.

        Returns:
            None when that cannot be told.
        """
        try:
            unaccepted = await asyncio.to_thread(
                lambda: self._records.end_key(
                    AgreementRole.PROVIDER,
                    peer_did,
                    lost.key_id,
                    unless_claimed=lost.counter,
                )
            )
        except CacheError as exc:
            logger.warning("no word on a lost key peer=%s reason=%s", peer_did, exc)
            return None
        return LostKey(lost.key_id, lost.counter, not unaccepted)

    def _open(self, record: KeyRecord) -> KeptKey:
        return open_key(
            record.sealed,
            self._secret,
            key_id=record.id,
            role=ChannelRole(record.role),
            peer_did=record.peer_did,
            binding=record.binding,
            created=record.created,
            expires=record.expires,
        )


def _name(opened: ChannelOpened) -> tuple[AgreementRole, str, str]:
    return AgreementRole(opened.role), opened.peer_did, opened.channel_id


def _unusable(detail: str) -> PeerError:
    return PeerError(ErrorCode.INVALID_DECRYPTION_KEY, detail)
