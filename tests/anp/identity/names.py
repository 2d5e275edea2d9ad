"""Names of an address book, kept in memory for tests."""

from __future__ import annotations

from anp.identity.address import PeerAddress


class AddedNames:
    """The part of a `BookStore` that keeps names."""

    def __init__(self) -> None:
        self.added: dict[str, PeerAddress] = {}

    def get_name(self, name: str) -> PeerAddress | None:
        """Return the address that was added under a name."""
        return self.added.get(name)

    def names(self) -> list[PeerAddress]:
        """Return all of them."""
        return list(self.added.values())

    def put_name(self, entry: PeerAddress) -> None:
        """Keep an address."""
        self.added[str(entry.name)] = entry

    def drop_name(self, name: str) -> bool:
        """Drop a name."""
        return self.added.pop(name, None) is not None
