"""The address book: where a peer is, and who was met there first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from anp.errors import (
    CallError,
    ConfigError,
    ConflictError,
    ErrorKind,
    PeerError,
    UnknownError,
)
from anp.identity.address import (
    WAYS,
    PeerAddress,
    is_encrypted,
    is_loopback,
    is_name,
    normalise_url,
    url_of_did_all,
)
from anp.identity.dids import agent_name, check_did, same_agent

MAX_NAMES = 1_000
"Names that may be added while the daemon runs."

MAX_LISTED = 20
"Names that a message shows."


class BookStore(Protocol):
    """Keeps the names that were added, and the DID that was first met at each URL.

    It may block, so call the book in a thread.
    """

    def get_pin(self, url: str) -> str | None:
        """Return the DID pinned at the normalised `url`, or None."""

    def put_pin(self, url: str, did: str) -> None:
        """Pin `did` at `url`, lasting."""

    def url_of(self, agent: str) -> str | None:
        """Return the URL pinned last for the DIDs of an `agent_name`, or None."""

    def get_name(self, name: str) -> PeerAddress | None:
        """Return the address that was added under a name, or None."""

    def names(self) -> list[PeerAddress]:
        """Return all addresses that were added, each with its name."""

    def put_name(self, entry: PeerAddress) -> None:
        """Keep an address under its name, lasting."""

    def drop_name(self, name: str) -> bool:
        """Drop a name; return whether there was one."""


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
    """Finds peers and guards what was learned at the first meeting.

    Names stand in the owner's configuration, or were added while the daemon ran; those
    of the configuration count first.
    """

    def __init__(self, entries: Iterable[PeerAddress], pins: BookStore) -> None:
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
                self._urls.setdefault(agent_name(entry.did), entry.url)

    def entries(self) -> list[PeerAddress]:
        """Return every entry: those of the configuration, then those that were added.

        It reads the store, and so may block.
        """
        added = [one for one in self._pins.names() if one.name not in self._entries]
        return [*self._entries.values(), *added]

    def named(self, name: str) -> PeerAddress | None:
        """Return the entry of a name, or None; it may block."""
        return self._entries.get(name) or self._pins.get_name(name)

    def add(self, name: str, address: PeerAddress) -> PeerAddress:
        """Give a peer a name, which outlives the daemon; it may block.

        Args:
            address: Its DID, its URL, or both.

        Returns:
            The entry as it is kept.

        Raises:
            CallError: USAGE, the name is that of another peer, or the address has
                neither a DID nor a URL; IDENTITY_REFUSED, another DID is pinned at the
                URL.
        """
        if not is_name(name):
            raise CallError(
                ErrorKind.USAGE,
                f"{name[:64]!r} cannot be a name: that has at most 64 ASCII letters, "
                "digits, dots, underscores and hyphens, and begins with a letter or "
                "digit",
            )
        if address.did is None and address.url is None:
            raise CallError(
                ErrorKind.USAGE,
                "a name stands for a DID, a URL or both, ws://HOST:PORT/#did:key:z…, "
                "which `anpd up` of the peer prints",
            )
        entry = PeerAddress(name, address.did, address.url)
        known = self.named(name)
        if known == entry:
            return entry
        if known is not None:
            there = known.url or known.did
            how = (
                "it stands in the configuration, where it can be changed"
                if name in self._entries
                else f"`anpd peers remove {name}` frees it"
            )
            raise ConflictError(f"the name {name} is that of {there}; {how}")
        if len(self._pins.names()) >= MAX_NAMES:
            raise CallError(
                ErrorKind.LOCAL_RESOURCE,
                f"the address book has {MAX_NAMES} names, the most it takes; "
                "`anpd peers remove NAME` makes room",
            )
        if entry.did is not None and entry.url is not None:
            pinned = self._pins.get_pin(normalise_url(entry.url))
            self._refuse_other(entry.url, pinned, entry.did)
        self._pins.put_name(entry)
        return entry

    def remove(self, name: str) -> None:
        """Drop a name that was added; it may block.

        Raises:
            CallError: USAGE, nobody has it, or it stands in the configuration.
        """
        if name in self._entries:
            raise ConflictError(
                f"{name} stands in the configuration: delete its [[peer]] there, then "
                "run `anpd reload`"
            )
        if not self._pins.drop_name(name):
            raise UnknownError(self._unknown(name))

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
        """Return the DID that `address` names, itself or in the book, if it has one.

        It may block.
        """
        entry = self.named(address.name) if address.name is not None else None
        return address.did if entry is None else entry.did

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
        entry = self.named(name)
        if entry is None:
            raise CallError(ErrorKind.USAGE, f"{self._unknown(name)}; {WAYS}")
        return entry

    def _unknown(self, name: str) -> str:
        names = sorted(str(one.name) for one in self.entries())
        more = len(names) - MAX_LISTED
        listed = ", ".join([*names[:MAX_LISTED], *([f"{more} more"] * (more > 0))])
        empty = f"it is empty (`anpd peers add {name} URL` puts it there)"
        known = f"it has {listed}" if names else empty
        return f"no peer is called {name} in the address book; {known}"

    def _url_of(self, did: str) -> str:
        agent = agent_name(did)
        known = self._urls.get(agent) or self._added_url(agent)
        known = known or self._pins.url_of(agent)
        if known is not None:
            return normalise_url(known)
        try:
            own = url_of_did_all(did)
        except PeerError as exc:
            raise CallError(ErrorKind.USAGE, f"{exc.detail}; {WAYS}") from None
        if own is not None:
            return own
        raise CallError(ErrorKind.USAGE, f"no address is known for {did}; {WAYS}")

    def _added_url(self, agent: str) -> str | None:
        added = (one for one in self._pins.names() if one.did and one.url)
        return next(
            (one.url for one in added if agent_name(one.did or "") == agent), None
        )

    def _refuse_other(self, url: str, pinned: str | None, did: str) -> None:
        if pinned is not None and not _is_same(pinned, did):
            raise CallError(
                ErrorKind.IDENTITY_REFUSED,
                f"at {url} is {pinned}, not {did}; if that has changed, run "
                f"`anpd peers forget {pinned}` and call again",
            )


def _is_same(one: str, other: str) -> bool:
    try:
        return same_agent(one, other)
    except PeerError:  # one of them is a broken did:key, so nobody's
        return False
