"""The sisters that serve members of a group whose hub is here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from anp.sidecar.groups.fleet.mail import GroupLetter, LetterKind

__all__ = ["Branches"]

PRESENT: Final = 10.0
"Seconds for which a sister's word counts that it serves somebody."


class Branches:
    """The daemons of the fleet that serve members of one group on lines of theirs."""

    def __init__(
        self,
        group: str,
        send: Callable[[str, GroupLetter], None] = lambda to, letter: None,
    ) -> None:
        """Begin without any; `send` sends a letter to a daemon by its id."""
        self._group = group
        self._send = send
        self._heard: dict[str, float] = {}
        self._serving: dict[str, str] = {}

    def serves(self, did: str) -> bool:
        """Return whether a sister has a line with a member."""
        return self._serving.get(did) in self._present()

    def present(self, sister: str, members: Mapping[str, int]) -> list[str]:
        """Take a sister's word about those that it serves; return the new ones."""
        new = [one for one in members if self._serving.get(one) != sister]
        for one in [one for one, at in self._serving.items() if at == sister]:
            if one not in members:
                del self._serving[one]
        self._serving |= dict.fromkeys(members, sister)
        self._heard[sister] = time.monotonic()
        if not members:
            del self._heard[sister]
        return new

    def came(self, did: str) -> None:
        """Note that a member has a line with this daemon itself."""
        self._serving.pop(did, None)

    def stored(self) -> None:
        """Tell all that there are new events in the store."""
        for sister in self._present():
            self._send(sister, GroupLetter(kind=LetterKind.STORED, group=self._group))

    def tell(self, did: str, frame: bytes) -> None:
        """Have a member told something over the line of a sister."""
        sister = self._serving.get(did)
        if sister is not None:
            self.answer(sister, did, 0, frame)

    def answer(self, sister: str, did: str, ref: int, frame: bytes) -> None:
        """Answer an operation that a sister passed on."""
        text = frame.decode("utf-8")
        letter = GroupLetter(
            kind=LetterKind.ANSWER, group=self._group, did=did, ref=ref, frame=text
        )
        self._send(sister, letter)

    def _present(self) -> list[str]:
        now = time.monotonic()
        return [one for one, at in self._heard.items() if now - at < PRESENT]
