"""The lists that peers publish: read before the first call, kept for a while (ANP-95).

A list comes from the address that is about to be dialled, at a fixed path; nothing in
it names another place to fetch from. It proves nothing: what it claims only decides
what we offer, and the peer's own signed hello decides what is used.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from anp.channel.links import LinkTarget
from anp.identity.address import normalise_url
from anp.identity.web.fetcher import Fetcher, load_http
from anp.identity.web.guard import FetchError
from anp.phases import waits_for
from negotiation.consensus.listing import (
    MAX_LIST,
    ListingError,
    ProtocolListing,
    read_listing,
)
from negotiation.document.shape import MAX_DOCUMENT_SIZE, document_hash

logger = logging.getLogger(__name__)

LIST_PATH: Final = "/.well-known/anp/protocols"
"Path of the list, on the host and port of the WebSocket."

FETCH_TIMEOUT: Final = 3.0
"Seconds for the whole answer; a peer without a list must not hold up a call."

NO_LIST_LIFETIME: Final = 60.0
"Seconds for which a peer that gave no list is not asked again."

MAX_LISTS: Final = 64
"Lists kept; each may have a megabyte."

MAX_DOCUMENTS: Final = 64
"Documents kept; each may have a quarter of one."


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """An HTTP answer of a peer."""

    status: int
    "Its status; 200 and 304 are of use."

    body: bytes
    "At most as many bytes as were asked for."

    etag: str = ""
    "Its `ETag`, or empty."


UNANSWERED: Final = (FetchError, ListingError, TimeoutError)
"The exceptions of a fetch from a peer that fails."

Get = Callable[[str, int, str], Awaitable[FetchedPage]]
"Fetches a URL, given the most bytes of the body and a known `ETag`, or an empty one."


def document_path(digest: str) -> str:
    """Return the path of the document with a hash, on the same host and port."""
    return f"{LIST_PATH}/{digest}"


def peer_getter(tls: ssl.SSLContext | bool = True) -> Get:
    """Return a function that fetches from addresses the owner or address book names.

    It raises `FetchError` without an answer, `ListingError` for one too large.

    Args:
        tls: The rules for checking certificates.
    """

    async def get(url: str, max_size: int, etag: str) -> FetchedPage:
        await load_http()
        import httpx2

        headers = {"If-None-Match": etag} if etag else {}
        client = httpx2.AsyncClient(timeout=FETCH_TIMEOUT, trust_env=False, verify=tls)
        try:
            async with client, client.stream("GET", url, headers=headers) as response:
                data = b""
                if response.status_code == 200:
                    async for chunk in response.aiter_bytes():
                        data += chunk
                        if len(data) > max_size:
                            raise ListingError(f"over {max_size} bytes")
                known = response.headers.get("ETag", "")
                return FetchedPage(response.status_code, data, known)
        except httpx2.HTTPError as exc:
            raise FetchError(str(exc) or type(exc).__name__) from exc

    return get


def guarded_getter(fetcher: Fetcher) -> Get:
    """Return a function that fetches from addresses only the peer itself named."""

    async def get(url: str, max_size: int, etag: str) -> FetchedPage:
        fetched = await fetcher.fetch(
            url, max_size=max_size, deadline=FETCH_TIMEOUT, same_host=True
        )
        return FetchedPage(200, fetched.body)

    return get


@dataclass(slots=True)
class _Kept:
    """One peer's list as it was read last."""

    listing: ProtocolListing | None
    etag: str
    until: float


class PeerLists:
    """Reads lists and documents of peers, and keeps them for a while."""

    def __init__(
        self,
        *,
        lifetime: float,
        get: Get,
        guarded_get: Get,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make an empty memory.

        Args:
            lifetime: Seconds after which a list is asked for again.
            get: Fetches from where the owner says that the peer is.
            guarded_get: Fetches from where only the peer says so (DESIGN.md, Trust).
        """
        self._lifetime = lifetime
        self._get = get
        self._guarded_get = guarded_get
        self._clock = clock
        self._lists: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._documents: OrderedDict[str, str] = OrderedDict()
        self._asking: dict[tuple[str, str], asyncio.Lock] = {}

    async def listing(
        self, target: LinkTarget, *, ask: bool = True
    ) -> ProtocolListing | None:
        """Return what a peer publishes, or None when it publishes nothing.

        Args:
            ask: True if the peer may be asked; otherwise only a kept list counts.
        """
        if target.url is None:
            return None
        key = target.did, target.url
        lock = self._asking.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                kept = self._lists.get(key)
                if kept is None or self._clock() >= kept.until:
                    if not ask:
                        return None
                    kept = await self._ask(target, target.url, kept)
                    self._keep(key, kept)
                return kept.listing
        finally:
            if not lock.locked():
                self._asking.pop(key, None)

    def is_current(self, target: LinkTarget, listing: ProtocolListing | None) -> bool:
        """Return whether `listing` would give this without asking the peer."""
        if target.url is None:
            return listing is None
        kept = self._fresh(target)
        return kept is not None and kept.listing is listing

    def current(self, target: LinkTarget) -> ProtocolListing | None:
        """Return what `listing` would give without asking the peer, else None."""
        kept = self._fresh(target)
        return None if kept is None else kept.listing

    def _fresh(self, target: LinkTarget) -> _Kept | None:
        kept = self._lists.get((target.did, target.url or ""))
        return kept if kept is not None and self._clock() < kept.until else None

    async def document(self, target: LinkTarget, digest: str) -> str | None:
        """Return the document with a hash from a peer, or None if it has it not."""
        known = self._documents.get(digest)
        if known is not None or target.url is None:
            return known
        url = _at(target.url, document_path(digest))
        try:
            async with asyncio.timeout(FETCH_TIMEOUT):
                answered = await self._of(target)(url, MAX_DOCUMENT_SIZE, "")
            text = answered.body.decode("utf-8")
        except (*UNANSWERED, UnicodeError) as exc:
            logger.info("no document from peer reason=%s", type(exc).__name__)
            return None
        # The name of a document is what it says: nobody is believed about it.
        if answered.status != 200 or document_hash(text) != digest:
            logger.info("no document from peer status=%d", answered.status)
            return None
        self._documents[digest] = text
        while len(self._documents) > MAX_DOCUMENTS:
            self._documents.popitem(last=False)
        return text

    def forget(self, target: LinkTarget) -> None:
        """Forget a list that turned out to be untrue; its next use fetches it anew."""
        if target.url is not None:
            kept = self._lists.get((target.did, target.url))
            if kept is not None:
                kept.until = 0.0

    def _of(self, target: LinkTarget) -> Get:
        return self._guarded_get if target.guarded else self._get

    async def _ask(self, target: LinkTarget, url: str, before: _Kept | None) -> _Kept:
        waits_for("reading the peer's list of protocols")
        etag = before.etag if before is not None else ""
        now = self._clock()
        try:
            async with asyncio.timeout(FETCH_TIMEOUT):
                where = _at(url, LIST_PATH)
                answered = await self._of(target)(where, MAX_LIST, etag)
            if answered.status == 304 and before is not None:
                return _Kept(before.listing, etag, now + self._lifetime)
            if answered.status == 200:
                listing = await asyncio.to_thread(read_listing, answered.body)
                return _Kept(listing, answered.etag[:200], now + self._lifetime)
            reason = f"status {answered.status}"
        except UNANSWERED as exc:
            reason = str(exc) or type(exc).__name__
        logger.info("peer publishes no list url=%s reason=%r", url, reason[:200])
        return _Kept(None, "", now + min(NO_LIST_LIFETIME, self._lifetime))

    def _keep(self, key: tuple[str, str], kept: _Kept) -> None:
        self._lists[key] = kept
        self._lists.move_to_end(key)
        while len(self._lists) > MAX_LISTS:
            self._lists.popitem(last=False)


def _at(url: str, path: str) -> str:
    parts = urlsplit(normalise_url(url))
    scheme = "https" if parts.scheme == "wss" else "http"
    return f"{scheme}://{parts.netloc}{path}"
