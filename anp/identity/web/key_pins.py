"""Decides on a DID on the web that comes with another key than before.

Pure. Who controls the web server, the domain or a certificate authority can put another
key into a document, so a document alone is believed once. These are the rules:

* The first document that a DID is accepted with gives its *trusted* keys: all that it
  lists for hellos. So a key that is to be used later can be published beforehand.
* A path bound to a key (`e1_`, `k1_`) signs its document with that key, so every key
  the document lists is the DID's own, whoever runs the server; it replaces the others.
* Any other new key is refused, until the owner has said `anpd peers trust DID`. The
  DID's trusted keys go on working meanwhile, as long as the document lists them.
* A key that the document no longer lists is refused, trusted or not: that is how it is
  revoked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Protocol

from anp.errors import ErrorCode, PeerError
from anp.identity.public_keys import PublicKey
from anp.identity.web.documents import DidDocument

MAX_KEYS = 16
"Keys of one DID that are remembered."


@dataclass(frozen=True, slots=True)
class Pinned:
    """The keys of one DID that are known, as multibase."""

    trusted: tuple[str, ...]
    "Keys that may sign for it."

    waiting: tuple[str, ...] = ()
    "Keys that were shown since, and wait for the owner."


class KeyPins(Protocol):
    """Keeps what is known of DIDs' keys; may block, so it is called in a thread."""

    def get_keys(self, did: str) -> Pinned | None:
        """Return what is known of a DID, or None."""

    def put_keys(self, did: str, pinned: Pinned) -> None:
        """Keep what is known of a DID, lasting."""


class KeyVerdict(Enum):
    """The standing of a key with its DID."""

    FIRST = auto()
    "Nothing was known of the DID; its keys are now."

    KNOWN = auto()
    "It is a trusted key."

    VOUCHED = auto()
    "It is new, and the key in the DID's path vouches for it."

    CHANGED = auto()
    "It is new, and only the server says so: refused."


def judge_key(
    pinned: Pinned | None, document: DidDocument, key: PublicKey
) -> tuple[KeyVerdict, Pinned]:
    """Say what `key`, which `document` lists, is, and what to remember from now on."""
    text = key.multibase
    listed = [text, *(k.multibase for k in document.keys.values())]
    shown = tuple(dict.fromkeys(listed))[:MAX_KEYS]
    if pinned is None:
        return KeyVerdict.FIRST, Pinned(shown)
    if text in pinned.trusted:
        return KeyVerdict.KNOWN, pinned
    if document.bound_key is not None:
        return KeyVerdict.VOUCHED, Pinned(shown)
    waiting = tuple(dict.fromkeys((text, *pinned.waiting)))[:MAX_KEYS]
    return KeyVerdict.CHANGED, replace(pinned, waiting=waiting)


def refusal(did: str, key: PublicKey) -> PeerError:
    """Return the refusal of a changed key, which names the way out."""
    return PeerError(
        ErrorCode.NOT_ALLOWED,
        f"the key of {did} has changed to {key.multibase}; if its owner confirms it "
        f"in another way, run `anpd peers trust {did}`",
    )
