"""What did not serve: protocols that a peer answered "unknown action" for. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

__all__ = ["Misfits"]

MAX_MISFITS: Final = 10_000
"Most entries; the oldest are forgotten, which costs one more try."

MISFIT_LIFETIME: Final = 86_400.0
"Seconds after which a protocol is tried again: peers get new capabilities."


class Misfits:
    """Which protocols do not serve which tasks of ours at which peer.

    A consensus protocol that answers "unknown action" is remembered here, and the call
    negotiates once (DESIGN.md, How a call flows). `now` is seconds on one clock.
    """

    def __init__(
        self, *, max_entries: int = MAX_MISFITS, lifetime: float = MISFIT_LIFETIME
    ) -> None:
        self._max_entries = max_entries
        self._lifetime = lifetime
        self._until: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    def note(self, peer_did: str, uri: str, task_key: str, *, now: float) -> None:
        """Remember that a protocol does not serve a task at a peer."""
        key = peer_did, uri, task_key
        self._until[key] = now + self._lifetime
        self._until.move_to_end(key)
        while len(self._until) > self._max_entries:
            self._until.popitem(last=False)

    def known(self, peer_did: str, uri: str, task_key: str, *, now: float) -> bool:
        """Whether that is remembered and still counts."""
        key = peer_did, uri, task_key
        until = self._until.get(key)
        if until is not None and now >= until:
            del self._until[key]
            until = None
        return until is not None

    def forget_peer(self, peer_did: str) -> None:
        """Forget all about a peer, whose list says something new."""
        for key in [key for key in self._until if key[0] == peer_did]:
            del self._until[key]
