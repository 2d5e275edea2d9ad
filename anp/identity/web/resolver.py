"""Resolves `did:web` and `did:wba` over https, and remembers for a while."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from anp.errors import ErrorCode, PeerError
from anp.identity.dids import WEB_METHODS
from anp.identity.public_keys import KeyFormatError, KeyKind, PublicKey, key_of_bytes
from anp.identity.web.documents import MAX_DOCUMENT, DidDocument, parse_document
from anp.identity.web.fetcher import JSON_TYPES, Fetcher
from anp.identity.web.guard import FetchError
from anp.identity.web.key_pins import KeyPins, KeyVerdict, judge_key, refusal
from anp.identity.web_dids import WebDid, parse_web_did

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverLimits:
    """Limits of resolving; strangers bring the DIDs."""

    max_documents: int = 1024
    "Documents, and failures, remembered."

    max_waiting: int = 64
    "Documents fetched or waited for at once; more are refused."

    max_per_host: int = 60
    "Fetches from one host in a minute, so that nobody makes us trouble others."

    deadline: float = 6.0
    "Seconds for one fetch; less than a handshake has."

    min_age: float = 10.0
    "Seconds a document is kept at least, and between two questions about a new key."

    default_age: float = 300.0
    "Seconds a document is kept if its server says nothing."

    max_age: float = 3600.0
    "Longest time a document is kept, in seconds: so long a revoked key may live."

    failure_age: float = 30.0
    "Seconds that a failure is remembered."


@dataclass(slots=True)
class _Entry:
    """The result of resolving a DID."""

    found: DidDocument | PeerError
    expires: float
    "On the resolver's clock."
    asked_again: float = float("-inf")
    "When it was last asked for because a key was not in it."


class WebResolver:
    """`did:web` and `did:wba`; asks the server that the DID names."""

    methods = WEB_METHODS

    def __init__(
        self,
        fetcher: Fetcher,
        *,
        pins: KeyPins | None = None,
        limits: ResolverLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Fetch with `fetcher`.

        Args:
            pins: Remembers keys beyond the life of this process; without it a key is
                believed whenever the document lists it.
            clock: Seconds.
        """
        self._fetcher = fetcher
        self._pins = pins
        self._limits = limits or ResolverLimits()
        self._clock = clock
        self._known: OrderedDict[str, _Entry] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[DidDocument]] = {}
        self._asked: OrderedDict[str, deque[float]] = OrderedDict()
        self._pinning = asyncio.Lock()

    async def check_key(self, did: str, key_id: str, public_key: bytes) -> None:
        """Return if the document of `did` lists the key, and it is no changed one.

        Args:
            public_key: 65 bytes for P-256, 32 for Ed25519.

        Raises:
            PeerError: DID_NOT_FOUND or NOT_ALLOWED, with the reason.
        """
        key = _read_key(public_key)
        document = await self.resolve(did)
        if document.keys.get(key_id) != key and self._may_ask_again(did):
            # It may have got a new key since.
            document = await self.resolve(did, fresh=True)
        if document.keys.get(key_id) != key:
            raise PeerError(
                ErrorCode.NOT_ALLOWED,
                f"the document of {did} does not list the key it used as "
                f"{key_id[:200]!r} for authentication",
            )
        await self._check_pin(document, key)

    async def accepted(self, did: str, key_id: str, public_key: bytes) -> None:
        """Trust the keys of a DID whose handshake is complete, and what it lists.

        A key on trial leaves nothing behind, whoever sent it (DESIGN.md, Trust).

        Raises:
            PeerError: NOT_ALLOWED, see `Resolver.accepted`; or the document cannot be
                had any more.
        """
        if self._pins is None:
            return
        key = _read_key(public_key)
        document = await self.resolve(did)
        if document.keys.get(key_id) == key:
            # One after the other, or of two first keys the slower would win.
            async with self._pinning:
                await self._pin(document, key)

    async def urls(self, did: str) -> tuple[str, ...]:
        """Return the WebSocket URLs that the document of `did` names.

        They are a peer's word: whoever dials one has to check its addresses.

        Raises:
            PeerError: DID_NOT_FOUND or NOT_ALLOWED, with the reason.
        """
        return (await self.resolve(did)).urls

    async def resolve(self, did: str, *, fresh: bool = False) -> DidDocument:
        """Return the document of `did`.

        Args:
            fresh: Ask the server although a document is remembered.

        Raises:
            PeerError: DID_NOT_FOUND or NOT_ALLOWED, with the reason.
        """
        parsed = parse_web_did(did)
        if parsed.text != did:
            raise PeerError(
                ErrorCode.DID_NOT_FOUND, f"{did[:200]!r} is written {parsed.text}"
            )
        entry = self._known.get(did)
        if entry is not None and not fresh and self._clock() < entry.expires:
            self._known.move_to_end(did)
            if isinstance(entry.found, PeerError):
                raise PeerError(entry.found.code, entry.found.detail)
            return entry.found
        task = self._under_way.get(did)
        if task is None:
            task = self._start(parsed)
        # One caller that gives up must not take the others' answer away.
        return await asyncio.shield(task)

    def forget(self, did: str) -> None:
        """Drop what is remembered of a DID."""
        self._known.pop(did, None)

    async def close(self) -> None:
        """End what is under way."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _may_ask_again(self, did: str) -> bool:
        entry, now = self._known.get(did), self._clock()
        if entry is None:
            return True
        if now - entry.asked_again < self._limits.min_age:
            return False
        entry.asked_again = now
        return True

    def _still_good(self, did: str) -> bool:
        """Say whether a document is remembered, which outweighs a failure now.

        A stranger with a wrong key can make us ask again at any time; a server that is
        down just then must not cost the DID the answer we have.
        """
        entry = self._known.get(did)
        return (
            entry is not None
            and not isinstance(entry.found, PeerError)
            and self._clock() < entry.expires
        )

    def _start(self, did: WebDid) -> asyncio.Task[DidDocument]:
        if len(self._under_way) >= self._limits.max_waiting:
            raise PeerError(
                ErrorCode.DID_NOT_FOUND, f"{did.text}: too many DIDs are being resolved"
            )
        self._count(did.host)
        task = asyncio.create_task(self._fetch(did))
        self._under_way[did.text] = task
        task.add_done_callback(lambda done: self._done(did.text, done))
        return task

    def _done(self, did: str, task: asyncio.Task[DidDocument]) -> None:
        del self._under_way[did]
        # Asked for, so that a failure nobody waits for any more is no warning.
        if not task.cancelled():
            task.exception()

    def _count(self, host: str) -> None:
        now = self._clock()
        asked = self._asked.setdefault(host, deque())
        self._asked.move_to_end(host)
        while asked and now - asked[0] >= 60.0:
            asked.popleft()
        if len(asked) >= self._limits.max_per_host:
            raise PeerError(
                ErrorCode.DID_NOT_FOUND, f"{host} was asked too often in a minute"
            )
        asked.append(now)
        while len(self._asked) > self._limits.max_documents:
            self._asked.popitem(last=False)

    async def _fetch(self, did: WebDid) -> DidDocument:
        limits = self._limits
        try:
            fetched = await self._fetcher.fetch(
                did.document_url,
                max_size=MAX_DOCUMENT,
                deadline=limits.deadline,
                content_types=JSON_TYPES,
                # Another host has no say in what this one's names mean.
                same_host=True,
            )
            document = parse_document(fetched.body, did)
            if document.deactivated:
                raise PeerError(
                    ErrorCode.DID_NOT_FOUND, f"{did.text} was given up by its owner"
                )
        except FetchError as exc:
            error = PeerError(ErrorCode.DID_NOT_FOUND, f"{did.text}: {exc.reason}")
            if exc.gone or not self._still_good(did.text):
                self._remember(did.text, error, limits.failure_age)
            raise error from exc
        except PeerError as exc:
            self._remember(did.text, exc, limits.failure_age)
            raise
        age = limits.default_age if fetched.max_age is None else fetched.max_age
        # A server that forbids keeping is asked for each handshake, not for each step.
        age = min(max(age, limits.min_age), limits.max_age)
        self._remember(did.text, document, age)
        return document

    def _remember(self, did: str, found: DidDocument | PeerError, age: float) -> None:
        before = self._known.get(did)
        self._known[did] = _Entry(
            found,
            self._clock() + age,
            float("-inf") if before is None else before.asked_again,
        )
        self._known.move_to_end(did)
        while len(self._known) > self._limits.max_documents:
            self._known.popitem(last=False)

    async def _check_pin(self, document: DidDocument, key: PublicKey) -> None:
        """Refuse a key that is another one than before; nothing is trusted yet."""
        if self._pins is None:
            return
        before = await asyncio.to_thread(self._pins.get_keys, document.did)
        verdict, after = judge_key(before, document, key)
        if verdict is not KeyVerdict.CHANGED:
            return
        if after != before:
            # Of a DID we know already: so the owner can say a word about it later.
            await asyncio.to_thread(self._pins.put_keys, document.did, after)
        logger.warning(
            "KEY OF A DID HAS CHANGED, refused did=%s key=%s trusted=%s "
            "confirm_with=%r",
            document.did,
            key.multibase,
            ",".join(after.trusted),
            f"anpd peers trust {document.did}",
        )
        raise refusal(document.did, key)

    async def _pin(self, document: DidDocument, key: PublicKey) -> None:
        """Trust the keys of a DID from now on."""
        assert self._pins is not None
        before = await asyncio.to_thread(self._pins.get_keys, document.did)
        verdict, after = judge_key(before, document, key)
        match verdict:
            case KeyVerdict.KNOWN:
                return
            case KeyVerdict.CHANGED:
                raise refusal(document.did, key)
            case KeyVerdict.FIRST:
                logger.info(
                    "keys of a DID pinned at first use did=%s keys=%s",
                    document.did,
                    ",".join(after.trusted),
                )
            case KeyVerdict.VOUCHED:
                logger.warning(
                    "keys of a DID changed, vouched for by its path did=%s keys=%s",
                    document.did,
                    ",".join(after.trusted),
                )
        await asyncio.to_thread(self._pins.put_keys, document.did, after)


def _read_key(public_key: bytes) -> PublicKey:
    kind = KeyKind.ED25519 if len(public_key) == 32 else KeyKind.P256
    try:
        return key_of_bytes(kind, public_key)
    except KeyFormatError as exc:
        raise PeerError(ErrorCode.NOT_ALLOWED, str(exc)) from None
