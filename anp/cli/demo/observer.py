"""The events of the demo, as an interface for those who show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from anp.cli.demo.needs import DemoNeed
from anp.cli.demo.stage import DemoPeer
from anp.cli.demo.strangers import Stranger


class DemoObserver:
    """Receives the events of the demo; this base class ignores them."""

    def step(self, title: str, about: float) -> AbstractContextManager[object]:
        """Take a step that lasts about so many seconds; the events in it are its."""
        return nullcontext()

    def attached(self, name: str, found: Sequence[str]) -> None:
        """The shop attached something."""

    def up(self, peers: Sequence[DemoPeer]) -> None:
        """The daemons are ready."""

    def differs(self, need: DemoNeed) -> None:
        """A need comes next that does not fit what is offered."""

    def called(self, result: Mapping[str, Any]) -> None:
        """A call succeeded."""

    def agreed(self, text: str, code: str) -> None:
        """The protocol text that came out of a negotiation, and the shop's code."""

    def again(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
        """A call was made a second time."""

    def units(self, result: Mapping[str, Any]) -> None:
        """A need in another unit was served, or declined."""

    def held(self, stranger: Stranger, reason: str, ms: float) -> None:
        """A stranger's code was refused, or stopped."""

    def unharmed(self, result: Mapping[str, Any]) -> None:
        """A call after the strangers' code succeeded."""

    def booked(self, seats: int, result: Mapping[str, Any]) -> None:
        """A call over code that errs for large numbers succeeded."""
