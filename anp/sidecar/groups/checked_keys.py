"""Keys of DIDs that sign things in groups, checked once each.

A key comes together with its signature, since a document may list several; whether it
is one of the DID is asked of the same resolver as in a handshake.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from anp.errors import PeerError
from anp.identity.dids import LocalIdentity
from anp.identity.public_keys import KeyFormatError, PublicKey, key_of_multibase
from anp.identity.resolver import Resolver
from anp.interaction.sealing.encoding import DidSigner

MAX_KEYS: Final = 4096
"Most keys that are remembered; one that is forgotten is checked again."

MAX_ASKED: Final = 64
"Most keys of one message that are looked up, since each may cost a request."


def key_text(method: str, key: PublicKey) -> str:
    """Return a key and its id in the DID document as one text."""
    return f"{method} {key.multibase}"


def signer_of(identity: LocalIdentity, did: str = "") -> DidSigner:
    """Return our own DID as it signs in sealed groups.

    Args:
        did: The one under which a group knows us, if it is another of the same key.
    """
    did = did or identity.did
    key = key_text(f"{did}#{identity.key_name}", identity.private_key.public_key)
    return DidSigner(did, key, identity.sign)


class CheckedKeys:
    """Keys of DIDs, each checked once and remembered.

    As a `DidVerifier` it verifies signatures by the keys that it knows.
    """

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._known: OrderedDict[tuple[str, str, str], PublicKey] = OrderedDict()

    async def check(self, did: str, method: str, multibase: str) -> PublicKey:
        """Return a key that belongs to a DID.

        Args:
            method: Id of the key in the DID document.

        Raises:
            PeerError: It does not belong to it, or that cannot be found out.
            KeyFormatError: It is no key.
        """
        place = did, method, multibase
        known = self._known.get(place)
        if known is not None:
            return known
        key = key_of_multibase(multibase)
        await self._resolver.check_key(did, method, key.data)
        self._known[place] = key
        if len(self._known) > MAX_KEYS:
            self._known.popitem(last=False)
        return key

    async def learn(self, named: Iterable[tuple[str, str]]) -> None:
        """Check keys, each with its DID; those that do not belong to it stay unknown.

        What they signed then counts as forged.
        """
        places = (_place(did, text) for did, text in dict.fromkeys(named))
        asked = [place for place in places if place not in self._known]
        for place in asked[:MAX_ASKED]:
            with contextlib.suppress(PeerError, KeyFormatError):
                await self.check(*place)

    def trust(self, signer: DidSigner) -> None:
        """Know our own key."""
        place = _place(signer.did, signer.key)
        self._known[place] = key_of_multibase(place[2])

    def __call__(self, did: str, key: str, signature: bytes, data: bytes) -> bool:
        """See `DidVerifier`."""
        found = self._known.get(_place(did, key))
        return found is not None and found.verifies(signature, data)


def _place(did: str, text: str) -> tuple[str, str, str]:
    method, _, multibase = text.partition(" ")
    return did, method, multibase


def named_keys(items: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Return the DIDs and keys that entries and packages name, as they came."""
    for item in items:
        if not isinstance(item, Mapping):
            continue
        for content in item.values():
            if not isinstance(content, Mapping):
                continue
            did, key = content.get("by", content.get("did")), content.get("key")
            if isinstance(did, str) and isinstance(key, str):
                yield did, key
