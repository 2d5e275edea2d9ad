"""What was seen before: hellos for a minute, ivs for the life of a key."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable

from anp.errors import ErrorCode, PeerError
from anp.wire.messages import SourceHello
from anp.wire.proof import MAX_PROOF_AGE

__all__ = ["MAX_HELLOS", "MAX_IVS", "HelloMemory", "IvMemory"]

MAX_HELLOS = 16_384
"Hellos remembered at once, about 6 MB."

MAX_IVS = 2**16
"Ivs remembered for one key, about 7 MB; then the key is used up."

# A proof from the future is accepted until twice its age from now; a second more for
# a wall clock that is being slewed against the one we count by.
_KEEP = 2 * MAX_PROOF_AGE + 1.0


class HelloMemory:
    """Remembers hellos for as long as their proofs could be accepted again.

    One memory serves all links of a daemon. Ask it only about hellos whose signature
    was verified, or anybody could push others out. When it is full the oldest hello is
    forgotten: refusing new ones would let a flood lock everybody out, while a replayed
    hello gives its sender nothing, as only the holder of its ephemeral key can answer
    with `finished`.
    """

    def __init__(self, *, max_hellos: int = MAX_HELLOS) -> None:
        self._max_hellos = max_hellos
        # The digests of each hello, oldest hello first.
        self._hellos: OrderedDict[bytes, tuple[float, tuple[bytes, ...]]] = (
            OrderedDict()
        )
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        """Return how many hellos are remembered."""
        return len(self._hellos)

    def check(self, hello: SourceHello, *, now: float) -> None:
        """Remember a hello that is new.

        Args:
            now: Seconds on one monotonic clock.

        Raises:
            PeerError: `NOT_ALLOWED`: its session id, random or signature came before.
        """
        self._forget(before=now - _KEEP)
        digests = (
            _digest("session", hello.source_did, hello.session_id),
            _digest("random", hello.source_did, hello.random),
            _digest("proof", hello.proof.proof_value.rstrip("=")),
        )
        if not self._seen.isdisjoint(digests):
            raise PeerError(ErrorCode.NOT_ALLOWED, "this hello came before")
        if len(self._hellos) >= self._max_hellos:
            self._forget_oldest()
        self._hellos[digests[0]] = (now, digests)
        self._seen.update(digests)

    def _forget(self, *, before: float) -> None:
        while self._hellos and next(iter(self._hellos.values()))[0] < before:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        _, (_, digests) = self._hellos.popitem(last=False)
        self._seen.difference_update(digests)


class IvMemory:
    """Remembers the ivs one key has received (WIRE row 26).

    Args:
        seen: Ivs used before the first envelope: that of the peer's `finished`.
    """

    def __init__(self, seen: Iterable[bytes] = (), *, max_ivs: int = MAX_IVS) -> None:
        self._max_ivs = max_ivs
        self._seen = set(seen)

    def __len__(self) -> int:
        """Return how many ivs are remembered."""
        return len(self._seen)

    def check(self, iv: bytes) -> None:
        """Remember an iv that is new. Ask only about messages that decrypt.

        Raises:
            PeerError: `NOT_ALLOWED`: it came before. `ENCRYPTION_KEY_EXPIRED`: the
                memory is full, and the key may not be used any more.
        """
        if iv in self._seen:
            raise PeerError(ErrorCode.NOT_ALLOWED, "this iv came before: a replay")
        if len(self._seen) >= self._max_ivs:
            raise PeerError(
                ErrorCode.ENCRYPTION_KEY_EXPIRED,
                f"the key has received {self._max_ivs} messages, its limit",
            )
        self._seen.add(iv)


def _digest(*parts: str) -> bytes:
    # Fixed size whatever the peer sends, and each part's length counts, so that two
    # different pairs never look the same.
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.digest()[:16]
