"""Memory of protocols that a peer answered with "unknown action". Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

__all__ = ["Misfits"]

MAX_MISFITS: Final = 10_000
"Largest number of entries; forgetting the oldest costs one more attempt."

MISFIT_LIFETIME: Final = 86_400.0
"Seconds after which a protocol is tried again, since peers get new capabilities."


class Misfits:
    """Remembers which protocols do not serve which needs of ours at which peer.

    A call whose protocol answers "unknown action" negotiates once (DESIGN.md, How a
    call flows). `now` is seconds on one clock.
    """

    def __init__(
        self, *, max_entries: int = MAX_MISFITS, lifetime: float = MISFIT_LIFETIME
    ) -> None:
        self._max_entries = max_entries
        self._lifetime = lifetime
        self._until: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    def note(self, peer_did: str, uri: str, need_key: str, *, now: float) -> None:
        """Remember that a protocol does not serve a need at a peer."""
        key = peer_did, uri, need_key
        self._until[key] = now + self._lifetime
        self._until.move_to_end(key)
        while len(self._until) > self._max_entries:
            self._until.popitem(last=False)

    def known(self, peer_did: str, uri: str, need_key: str, *, now: float) -> bool:
        """Return whether this is remembered and has not expired."""
        key = peer_did, uri, need_key
        until = self._until.get(key)
        if until is not None and now >= until:
            del self._until[key]
            until = None
        return until is not None

    def forget_peer(self, peer_did: str) -> None:
        """Forget all entries of a peer, because its list has changed."""
        for key in [key for key in self._until if key[0] == peer_did]:
            del self._until[key]
