"""The events of the demo, as an interface for those who show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["DemoObserver"]


class DemoObserver:
    """Receives the events of the demo; this base class ignores them."""

    def attached(self, name: str, found: Sequence[str]) -> None:
        """The provider attached something."""

    def up(self, name: str, did: str, url: str) -> None:
        """A daemon is ready."""

    def run(self, number: int) -> None:
        """The calls begin, for the first or the second time."""

    def called(self, result: Mapping[str, Any]) -> None:
        """A call succeeded."""

    def broken(self, imported: Mapping[str, Any]) -> None:
        """The provider's half was replaced by a broken one, from a bundle."""

    def repaired(self, known: Mapping[str, Any]) -> None:
        """The calls over the broken half are over."""

    def stopped(self) -> None:
        """Both daemons have ended."""
