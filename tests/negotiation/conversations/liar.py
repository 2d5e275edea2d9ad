"""A simulated side that says whatever it likes; only the other side is judged."""

from __future__ import annotations

import json
from collections.abc import Callable

from anp.wire.meta_protocol import CAPABILITIES, MetaProtocol
from tests.negotiation.conversations.letters import Letter, Sort
from tests.negotiation.conversations.shelf import Shelf
from tests.negotiation.conversations.side import Phase
from tests.negotiation.conversations.tempers import WILLING


class Liar:
    """Opens connections and takes letters; its lies are injected into the link."""

    honest = False
    busy = False

    def __init__(
        self,
        index: int,
        send: Callable[[Letter], bool],
        claims: Callable[[], str | None],
    ) -> None:
        """Make a liar.

        Args:
            claims: Gives the hash that it offers, or confirms, next.
        """
        self.index = index
        self.shelf = Shelf()
        self.temper = WILLING
        self.phase = Phase.CLOSED
        self.machine = self.bound = None
        self._send = send
        self._claims = claims

    def open(self, now: float) -> None:
        """Begin a connection."""
        self.phase = Phase.HELLO
        if self.index == 0:
            self._hello()

    def receive(self, letter: Letter, now: float) -> None:
        """Take one letter; only a hello is answered."""
        if letter.sort is Sort.CLOSE:
            self.phase = Phase.CLOSED
        elif letter.sort is Sort.HELLO and self.phase is Phase.HELLO:
            self.phase = Phase.BOUND
            if self.index == 1:
                self._hello()

    def think(self, now: float) -> bool:
        """Do nothing."""
        return False

    def due(self) -> float | None:
        """Return None: a liar has no timer."""
        return None

    def tick(self, now: float) -> None:
        """Do nothing."""

    def cancel(self, now: float) -> None:
        """Do nothing."""

    def ask(self, now: float) -> None:
        """Do nothing."""

    def lose_link(self, now: float, *, crash: bool = False, busy: bool = False) -> None:
        """End the connection."""
        self.phase = Phase.CLOSED

    def check(self, now: float) -> None:
        """Assert nothing."""

    def _hello(self) -> None:
        meta = MetaProtocol(
            supported_capabilities=CAPABILITIES, used_protocol_hash=self._claims()
        )
        self._send(Letter(Sort.HELLO, json.dumps(meta.to_json()).encode()))
