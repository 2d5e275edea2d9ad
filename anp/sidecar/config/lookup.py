"""Looks up a need, its protocol or a peer by the words of the owner."""

from __future__ import annotations

from anp.errors import CallError, ErrorKind, UnknownError
from anp.identity.address import parse_peer
from anp.identity.book import AddressBook
from anp.sidecar.config.settings import Config
from cache.store import Store
from negotiation.need import Need


def need_of(config: Config, wanted: object) -> Need:
    """Return the need that a name from `[[need]]`, a text or an object means.

    Raises:
        CallError: `usage`, it is none of these.
    """
    if isinstance(wanted, str) and wanted.strip():
        for entry in config.need:
            if entry.name == wanted:
                return Need(
                    entry.requirement,
                    dict(entry.input_schema) if entry.input_schema else None,
                    dict(entry.output_schema) if entry.output_schema else None,
                )
        return Need(wanted)
    if isinstance(wanted, dict) and isinstance(wanted.get("requirement"), str):
        schemas = [wanted.get("input_schema"), wanted.get("output_schema")]
        unknown = wanted.keys() - {"requirement", "input_schema", "output_schema"}
        if not unknown and all(s is None or isinstance(s, dict) for s in schemas):
            return Need(wanted["requirement"], *schemas)
    raise CallError(
        ErrorKind.USAGE,
        "the need has to be a text, the name of a [[need]], or an object with "
        "requirement, input_schema and output_schema",
    )


def protocol_of(config: Config, wanted: object) -> str | None:
    """Return the consensus protocol that the `[[need]]` called `wanted` names."""
    return next((entry.protocol for entry in config.need if entry.name == wanted), None)


def canonical_peer(book: AddressBook, store: Store, text: str) -> str:
    """Return the DID under which a peer is stored, for a name, a DID or a URL.

    Raises:
        UnknownError: Nobody is known by that.
    """
    address = parse_peer(text)
    if address.name is not None:
        address = book.named(address.name) or address
    did = address.did
    if did is None and address.url is not None:
        pin = store.pin(address.url)
        did = pin.did if pin else None
    if did is None:
        raise UnknownError(
            f"no peer is known as {text}; `anpd peers list` shows those that are known"
        )
    return store.canonical_did(did)
