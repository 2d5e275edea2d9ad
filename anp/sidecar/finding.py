"""Who is meant by PEER, and where: address book, pins, and a first look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import httpx

from anp.channel.links import Target
from anp.errors import CallError, ErrorKind, PeerError
from anp.identity.address import parse_peer
from anp.identity.book import AddressBook
from anp.identity.well_known import MAX_WELL_KNOWN, parse_well_known, well_known_url

__all__ = ["PeerFinder"]

logger = logging.getLogger(__name__)


class PeerFinder:
    """Turns what a caller writes into a DID and an address."""

    def __init__(self, book: AddressBook, is_blocked: Callable[[str], bool]) -> None:
        self._book = book
        self._is_blocked = is_blocked

    async def find(self, peer: str, *, trust_first_use: bool) -> Target:
        """Return whom `peer` means.

        Args:
            peer: Name, DID, URL or `URL#DID`.
            trust_first_use: The owner allows a first use over an unencrypted
                connection.

        Raises:
            CallError: Nobody is meant, cannot be reached, is somebody else than before,
                or is blocked.
        """
        address = parse_peer(peer)
        destination = await asyncio.to_thread(self._book.lookup, address)
        did = destination.did
        if did is None:
            did = await _ask_who(destination.url)
        first = await asyncio.to_thread(
            self._book.confirm,
            destination.url,
            did,
            named=destination.named,
            trust_first_use=trust_first_use,
        )
        if first:
            logger.info("peer pinned at first use url=%s did=%s", destination.url, did)
        if await asyncio.to_thread(self._is_blocked, did):
            raise CallError(
                ErrorKind.POLICY, f"{did} is blocked; `anpd peers allow {did}` lifts it"
            )
        return Target(did, destination.url)


async def _ask_who(url: str) -> str:
    """Return the DID that a daemon names at its address; nothing is proved yet."""
    where = well_known_url(url)
    try:
        async with (
            httpx.AsyncClient(timeout=5.0, trust_env=False) as client,
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
            return parse_well_known(data).did
    except httpx.HTTPError as exc:
        raise CallError(
            ErrorKind.PEER_UNREACHABLE,
            f"cannot reach {url}: {exc or type(exc).__name__}; is its anpd up?",
        ) from exc
    except PeerError as exc:
        raise CallError(ErrorKind.PEER_UNREACHABLE, exc.detail) from exc
