"""Finds a peer's DID and address in the address book, the pins, or by a first look."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Protocol

from anp.channel.dial_errors import dial_problem
from anp.channel.links import LinkTarget
from anp.errors import CallError, ErrorKind, PeerError
from anp.identity.address import PeerAddress, parse_peer
from anp.identity.book import AddressBook
from anp.identity.dids import is_web_did, same_agent
from anp.identity.web.fetcher import client_tls, load_http
from anp.identity.well_known import (
    MAX_WELL_KNOWN,
    WellKnown,
    parse_well_known,
    well_known_url,
)
from anp.phases import waits_for
from cache.errors import CacheError

logger = logging.getLogger(__name__)

ASK_TIMEOUT = 5.0
"Seconds for each step of asking who answers at a URL."


class WebAddresses(Protocol):
    """Knows the addresses in the documents of DIDs on the web."""

    async def urls(self, did: str) -> tuple[str, ...]:
        """Return the WebSocket URLs that the document of `did` names; PeerError."""
        ...


class PeerFinder:
    """Turns what a caller writes into a DID and an address."""

    def __init__(
        self,
        book: AddressBook,
        is_blocked: Callable[[str], bool],
        *,
        web: WebAddresses | None = None,
        tls: ssl.SSLContext | None = None,
        has_link: Callable[[str], bool] = lambda did: False,
        on_problem: Callable[[str, CallError], None] = lambda url, problem: None,
        on_version: Callable[[str, str], None] = lambda did, version: None,
    ) -> None:
        """Look peers up.

        Args:
            web: Finds those whose DID alone is known, by their documents.
            tls: The rules for checking certificates; None: the system's authorities.
            has_link: Tells if a link to a DID is up.
            on_problem: Told of each URL at which nobody, or somebody else, answers.
            on_version: Told of each DID with the version of its daemon.
        """
        self._has_link = has_link
        self._book = book
        self._is_blocked = is_blocked
        self._web = web
        self._tls = tls
        self._on_problem = on_problem
        self._on_version = on_version
        self.announced: Callable[[str], str | None] = lambda did: None
        "Returns where a DID announced that it is, in a registry; the last resort."

    async def find(self, peer: str, *, trust_first_use: bool) -> LinkTarget:
        """Return the DID and the address of a peer.

        Args:
            peer: Name, DID, URL or `URL#DID`.
            trust_first_use: The owner allows a first use over an unencrypted
                connection.

        Raises:
            CallError: Nobody is meant, cannot be reached, is somebody else than before,
                or is blocked.
        """
        address = parse_peer(peer)
        try:
            destination = await asyncio.to_thread(self._book.lookup, address)
        except CallError as exc:
            linked = await asyncio.to_thread(self._book.did_of, address)
            if exc.kind is ErrorKind.USAGE and linked and self._has_link(linked):
                # One without a reachable address keeps a link to us for this.
                await self._refuse_blocked(linked)
                return LinkTarget(linked, None)
            return await self._by_document(address, exc)
        did = destination.did
        if not destination.named:
            # A DID that the owner named is pinned when it was proved there.
            try:
                if did is None:
                    told = await _ask_who(destination.url, self._tls)
                    did = told.did
                    self._on_version(did, told.version)
                await self._confirm(destination.url, did, trust=trust_first_use)
            except CallError as exc:
                self._on_problem(destination.url, exc)
                raise
        assert did is not None, "a destination that is named has one"
        await self._refuse_blocked(did)
        return LinkTarget(did, destination.url)

    async def ask_version(self, target: LinkTarget) -> None:
        """Ask a peer that is about to be shown for the version of its daemon.

        Only one whose address is the owner's or was proved; nothing is raised.
        """
        if target.url is None or target.guarded:
            return
        try:
            told = await _ask_who(target.url, self._tls)
        except CallError:
            return
        if same_agent(told.did, target.did):
            self._on_version(target.did, told.version)

    async def proved(self, target: LinkTarget) -> None:
        """Pin a peer that proved its DID at an address that the owner named."""
        if target.url is None or target.guarded:
            return
        try:
            await self._confirm(target.url, target.did, named=True)
        except (CallError, CacheError) as exc:
            logger.warning("peer not pinned did=%s reason=%s", target.did, exc)

    async def _confirm(
        self, url: str, did: str, *, named: bool = False, trust: bool = False
    ) -> None:
        first = await asyncio.to_thread(
            self._book.confirm, url, did, named=named, trust_first_use=trust
        )
        if first:
            logger.info("peer pinned at first use url=%s did=%s", url, did)

    async def refuse_blocked(self, peer: str) -> None:
        """Raise if a peer is blocked, as far as that is known without asking anybody.

        Args:
            peer: As for `find`, which found it before.

        Raises:
            CallError: `policy`, with what lifts it.
        """
        address = parse_peer(peer)
        try:
            did = (await asyncio.to_thread(self._book.lookup, address)).did
        except CallError:
            did = await asyncio.to_thread(self._book.did_of, address)
        if did is not None:
            await self._refuse_blocked(did)

    async def _by_document(
        self, address: PeerAddress, unknown: CallError
    ) -> LinkTarget:
        """Return the address that a DID's own document names.

        Nothing is pinned: the document says it anew each time, and whoever answers has
        to prove the DID.
        """
        did = await asyncio.to_thread(self._book.did_of, address)
        if unknown.kind is not ErrorKind.USAGE or did is None:
            raise unknown
        url = self.announced(did)
        if url is not None and not is_web_did(did):
            await self._refuse_blocked(did)
            return LinkTarget(did, url, guarded=True)
        if not is_web_did(did):
            raise unknown
        if self._web is None:
            raise unknown
        await self._refuse_blocked(did)
        try:
            urls = await self._web.urls(did)
        except PeerError as exc:
            raise CallError(ErrorKind.PEER_UNREACHABLE, exc.detail) from exc
        if not urls:
            raise CallError(
                ErrorKind.PEER_UNREACHABLE,
                f"the document of {did} names no WebSocket URL; give one as "
                f"wss://host:port/#{did}",
            )
        return LinkTarget(did, urls[0], guarded=True)

    async def _refuse_blocked(self, did: str) -> None:
        if await asyncio.to_thread(self._is_blocked, did):
            raise CallError(
                ErrorKind.POLICY, f"{did} is blocked; `anpd peers allow {did}` lifts it"
            )


async def _ask_who(url: str, tls: ssl.SSLContext | None) -> WellKnown:
    """Return what a daemon says of itself at its address; nothing is proved yet."""
    await load_http()
    import httpx2

    where = well_known_url(url)
    waits_for(f"connecting to {url}")
    try:
        async with (
            httpx2.AsyncClient(
                timeout=ASK_TIMEOUT,
                trust_env=False,
                verify=client_tls() if tls is None else tls,
            ) as client,
            client.stream("GET", where) as response,
        ):
            if response.status_code != 200:
                raise CallError(
                    ErrorKind.PEER_UNREACHABLE,
                    f"{where} answers {response.status_code}; is it an anpd?",
                )
            data = b""
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > MAX_WELL_KNOWN:
                    break
            return parse_well_known(data)
    except httpx2.HTTPError as exc:
        raise CallError(
            ErrorKind.PEER_UNREACHABLE,
            f"cannot connect to {url}: {dial_problem(exc, url, waited=ASK_TIMEOUT)}",
        ) from exc
    except PeerError as exc:
        raise CallError(ErrorKind.PEER_UNREACHABLE, exc.detail) from exc
