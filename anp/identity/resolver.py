"""Does a DID own the key that signed a hello?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from anp.errors import ErrorCode, PeerError
from anp.identity.dids import check_key, did_method


class Resolver(Protocol):
    """Answers for the DIDs of one or more methods."""

    async def check_key(self, did: str, key_id: str, public_key: bytes) -> None:
        """Return if `did` lists `public_key`, 65 bytes, under `key_id`.

        Raises:
            PeerError: DID_NOT_FOUND if the DID cannot be resolved, NOT_ALLOWED if it
                does not list that key under that id.
        """

    async def accepted(self, did: str, key_id: str, public_key: bytes) -> None:
        """Note that a handshake with a key that was checked is complete.

        What lasts is kept here and not before (DESIGN.md, Trust).

        Raises:
            PeerError: NOT_ALLOWED: another handshake was faster with another key, so
                this one does not count.
        """


class KeyResolver:
    """`did:key` and `did:all`, which certify themselves; asks nobody."""

    methods = ("key", "all")

    async def check_key(self, did: str, key_id: str, public_key: bytes) -> None:
        """See `Resolver.check_key`."""
        check_key(did, key_id, public_key)

    async def accepted(self, did: str, key_id: str, public_key: bytes) -> None:
        """See `Resolver.accepted`; there is nothing to remember."""


class ChainResolver:
    """Passes each DID to the resolver of its method."""

    def __init__(self, by_method: Mapping[str, Resolver] | None = None) -> None:
        """Use `by_method` (`key`, `all`, `wba`, …); the default knows key and all."""
        if by_method is None:
            keys = KeyResolver()
            by_method = dict.fromkeys(KeyResolver.methods, keys)
        self._by_method = dict(by_method)

    async def check_key(self, did: str, key_id: str, public_key: bytes) -> None:
        """See `Resolver.check_key`; an unknown method is DID_NOT_FOUND."""
        method = did_method(did)
        resolver = self._by_method.get(method)
        if resolver is None:
            known = ", ".join(f"did:{name}" for name in sorted(self._by_method))
            raise PeerError(
                ErrorCode.DID_NOT_FOUND,
                f"did:{method} cannot be resolved here, only {known}",
            )
        await resolver.check_key(did, key_id, public_key)

    async def accepted(self, did: str, key_id: str, public_key: bytes) -> None:
        """See `Resolver.accepted`."""
        resolver = self._by_method.get(did_method(did))
        if resolver is not None:
            await resolver.accepted(did, key_id, public_key)
