"""The sisters that serve members of a group whose hub is here."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from typing import Any, Final

from anp.interaction.groups.operations import GroupOperation
from anp.protocols.gbz.group_writer import write_group_frame
from anp.sidecar.groups.hub.mail import GroupLetter, LetterKind

PATIENCE: Final = 10.0
"Seconds in which a sister has to reach a member."

MAX_FRAME: Final = 1024 * 1024
"Bytes of a frame that goes to an agent by a sister."

AGAIN: Final = 60.0
"Seconds after which it is asked again."


class Branches:
    """The daemons of the fleet that serve members of one group on lines of theirs."""

    def __init__(
        self,
        group: str,
        own: str = "",
        send: Callable[[str, GroupLetter], None] = lambda to, letter: None,
        alive: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """Begin without any.

        Args:
            own: Id of this daemon in the fleet.
            send: Sends a letter to a daemon by its id.
            alive: Returns the ids of the sisters that live.
        """
        self._group = group
        self._own = own
        self._send = send
        self._alive = alive
        self._serving: dict[str, str] = {}
        self._dialled: dict[str, float] = {}

    def serves(self, did: str) -> bool:
        """Return whether a sister has a line with a member."""
        sister = self._serving.get(did)
        return sister is not None and sister in self._alive()

    def present(self, sister: str, members: Collection[str]) -> list[str]:
        """Take a sister's word about those that it serves; return the new ones."""
        new = [one for one in members if self._serving.get(one) != sister]
        for one in [one for one, at in self._serving.items() if at == sister]:
            if one not in members:
                del self._serving[one]
        for one in new:
            self._serving[one] = sister
            self._dialled.pop(one, None)
        return new

    def came(self, did: str, address: str) -> None:
        """Note that a member has a line with this daemon itself."""
        self._serving.pop(did, None)
        self.dial(did, address)

    def dial(self, did: str, address: str) -> bool:
        """Have the sister dial a member whose part that is; False if it is ours.

        The members of a group are spread over the daemons that live, so that no one
        has them all.
        """
        now = time.monotonic()
        since = now - self._dialled.get(did, -AGAIN)
        if since < AGAIN:
            # What a sister does not reach in time is ours.
            return since < PATIENCE
        everybody = (self._own, *self._alive()) if address else (self._own,)
        chosen = max(
            everybody, key=lambda one: sha256(f"{one} {did}".encode()).digest()
        )
        if chosen == self._own:
            return False
        self._dialled[did] = now
        self._write(chosen, LetterKind.DIAL, did=did, frame=address)
        return True

    def stored(self) -> None:
        """Tell all that there are new events in the store."""
        for sister in set(self._serving.values()) & set(self._alive()):
            self._write(sister, LetterKind.STORED)

    def tell(self, did: str, operation: GroupOperation, ref: int = 0) -> None:
        """Have a member told something, if a sister has a line with it."""
        sister = self._serving.get(did)
        if sister is not None:
            self.answer(sister, did, operation, ref)

    def answer(
        self, sister: str, did: str, operation: GroupOperation, ref: int = 0
    ) -> None:
        """Have an agent told something over the line of a sister that it came by."""
        frame = write_group_frame(operation, ref, max_size=MAX_FRAME).decode("utf-8")
        ref = ref or getattr(operation, "ref", 0)
        self._write(sister, LetterKind.ANSWER, did=did, ref=ref, frame=frame)

    def _write(self, sister: str, kind: LetterKind, **more: Any) -> None:
        self._send(sister, GroupLetter(kind=kind, group=self._group, **more))
