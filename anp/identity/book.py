"""The address book: where a peer is, and who was met there first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from anp.errors import CallError, ConfigError, ErrorKind, PeerError
from anp.identity.address import (
    WAYS,
    PeerAddress,
    is_encrypted,
    is_loopback,
    normalise_url,
    url_of_did_all,
)
from anp.identity.dids import agent_of, check_did, same_agent

__all__ = ["AddressBook", "Destination", "PinStore"]


class PinStore(Protocol):
    """Keeps which DID was met at which URL; may block, so call the book in a thread."""

    def get_pin(self, url: str) -> str | None:
        """Return the DID pinned at the normalised `url`, or None."""

    def put_pin(self, url: str, did: str) -> None:
        """Pin `did` at `url`, lasting."""

    def url_of(self, agent: str) -> str | None:
        """Return the URL pinned last for the DIDs of `agent` (`agent_of`), or None."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to dial, and who has to answer there."""

    url: str
    "WebSocket URL, normalised."

    did: str | None
    "The DID the peer has to prove; None: ask `/.well-known/anp`, then `confirm`."

    named: bool
    "The owner named the DID, in the call or in the address book."


class AddressBook:
    """Finds peers and guards what was learned at the first meeting."""

    def __init__(self, entries: Iterable[PeerAddress], pins: PinStore) -> None:
        """Use the owner's `entries`, each with a name and a DID, a URL or both.

        Raises:
            ConfigError: an entry without name or without any address, a name twice.
        """
        self._pins = pins
        self._entries: dict[str, PeerAddress] = {}
        self._urls: dict[str, str] = {}
        self.replace(entries)

    def replace(self, entries: Iterable[PeerAddress]) -> None:
        """Take other entries of the owner's; what was pinned stays.

        Raises:
            ConfigError: As above; then nothing was changed.
        """
        found: dict[str, PeerAddress] = {}
        for entry in entries:
            if entry.name is None or (entry.did is None and entry.url is None):
                raise ConfigError(
                    "peer: an entry needs a name, and a did, a url or both"
                )
            if entry.name in found:
                raise ConfigError(f"peer: the name {entry.name} is given twice")
            found[entry.name] = entry
        self._entries = found
        self._urls = {}
        for entry in found.values():
            if entry.did is not None and entry.url is not None:
                self._urls.setdefault(_agent(entry.did), entry.url)

    def lookup(self, address: PeerAddress) -> Destination:
        """Return where to dial for `address`, and who has to be there.

        Raises:
            CallError: USAGE if the name is unknown or no URL is known for the DID;
                IDENTITY_REFUSED if another DID is pinned at the URL.
        """
        if address.name is not None:
            address = self._entry(address.name)
        if address.url is None:
            if address.did is None:
                raise CallError(ErrorKind.USAGE, f"no peer given; {WAYS}")
            return Destination(self._url_of(address.did), address.did, named=True)
        url = normalise_url(address.url)
        pinned = self._pins.get_pin(url)
        if address.did is None:
            return Destination(url, pinned, named=False)
        self._refuse_other(url, pinned, address.did)
        return Destination(url, address.did, named=True)

    def did_of(self, address: PeerAddress) -> str | None:
        """Return the DID that `address` names, itself or in the book, if it has one."""
        if address.name is not None and address.name in self._entries:
            return self._entries[address.name].did
        return address.did

    def confirm(
        self, url: str, did: str, *, named: bool = False, trust_first_use: bool = False
    ) -> bool:
        """Take `did` as the one who answers at `url`, and pin it at first use.

        Args:
            named: The owner named this DID for this URL, so nothing is trusted blindly.
            trust_first_use: The owner allows a first use over an unencrypted
                connection to another machine.

        Returns:
            Whether this was the first use, which the owner should be told.

        Raises:
            CallError: IDENTITY_REFUSED if another DID is pinned there, POLICY if the
                first use needs the owner's word.
        """
        url = normalise_url(url)
        try:
            check_did(did)
        except PeerError as exc:
            raise CallError(
                ErrorKind.IDENTITY_REFUSED, f"{url} names no usable DID: {exc.detail}"
            ) from None
        pinned = self._pins.get_pin(url)
        self._refuse_other(url, pinned, did)
        if pinned is not None:
            return False
        if not (named or trust_first_use or is_encrypted(url) or is_loopback(url)):
            raise CallError(
                ErrorKind.POLICY,
                f"{url} is another machine over an unencrypted connection and was "
                f"never used before; check that it is {did} and give {url}#{did}, or "
                "allow it with --trust-first-use",
            )
        self._pins.put_pin(url, did)
        return True

    def _entry(self, name: str) -> PeerAddress:
        if name not in self._entries:
            known = ", ".join(sorted(self._entries)) or "empty"
            raise CallError(
                ErrorKind.USAGE,
                f"no peer is called {name!r} in the address book ({known}); {WAYS}",
            )
        return self._entries[name]

    def _url_of(self, did: str) -> str:
        agent = _agent(did)
        known = self._urls.get(agent) or self._pins.url_of(agent)
        if known is not None:
            return normalise_url(known)
        try:
            own = url_of_did_all(did)
        except PeerError as exc:
            raise CallError(ErrorKind.USAGE, f"{exc.detail}; {WAYS}") from None
        if own is not None:
            return own
        raise CallError(ErrorKind.USAGE, f"no address is known for {did}; {WAYS}")

    def _refuse_other(self, url: str, pinned: str | None, did: str) -> None:
        if pinned is not None and not _is_same(pinned, did):
            raise CallError(
                ErrorKind.IDENTITY_REFUSED,
                f"{url} was {pinned} and now says it is {did}; if that is right, run "
                f"`anpd peers forget {pinned}` and call again",
            )


def _is_same(one: str, other: str) -> bool:
    try:
        return same_agent(one, other)
    except PeerError:  # one of them is a broken did:key, so nobody's
        return False


def _agent(did: str) -> str:
    try:
        return agent_of(did)
    except PeerError:  # a broken did:key, so nobody's
        return did
