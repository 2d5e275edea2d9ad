"""The attached capabilities, and which of them are exposed to peers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from anp.interaction.elements import LOCAL
from anp.sidecar.attachments import Attachment, AttachmentSpec
from anp.sidecar.config.entries import PeerEntry
from anp.sidecar.peers.policy import agent_name
from negotiation.need import Capability, schema_hash

__all__ = ["EVERYBODY", "STRANGER", "Exposure", "misfit"]

EVERYBODY: Final = None
"Stands for the peer where capabilities are meant that every peer may use."

STRANGER: Final = "did:key:-"
"Stands for a peer that we never met where a DID is asked for; no peer has it."


NOTHING: Final[Collection[tuple[str, ...]]] = ((),)
"Rules that name no capability."

MAX_KNOWN: Final = 1024
"Peers for which the capabilities that they may use are remembered."


@dataclass(frozen=True, slots=True)
class _Offered:
    """The capabilities that one peer may use."""

    healthy: list[bool]
    "The health of each attachment when this was found."

    capabilities: tuple[Capability, ...]
    "Sorted by name."

    by_name: Mapping[str, Capability]


class Exposure:
    """The attached capabilities, and which of them each peer may use.

    The `expose` of a `[[peer]]` replaces that of the attachments for this peer.
    """

    def __init__(self, peers: Iterable[PeerEntry] = ()) -> None:
        self._attachments: dict[str, tuple[AttachmentSpec, Attachment]] = {}
        self._calls: dict[Attachment, int] = {}
        self._ended = asyncio.Event()
        self._watchers: list[Callable[[], None]] = []
        self._peers = tuple(peers)
        self._of_peers = _of_peers(self._peers)
        self._of_callers: Mapping[str, Collection[tuple[str, ...]]] = {}
        self._offered: dict[str | None, _Offered] = {}
        "What each peer may use; good until something changes."
        self._shared: dict[Collection[tuple[str, ...]], _Offered] = {}
        "The same by the rules, which most peers share."

    def set_peers(self, peers: Iterable[PeerEntry]) -> None:
        """Take what the owner's configuration exposes to single peers now."""
        self._peers = tuple(peers)
        found = _of_peers(self._peers)
        if found != self._of_peers:
            self._of_peers = found
            self.changed()

    def set_callers(self, expose: Mapping[str, tuple[str, ...] | None]) -> None:
        """Take what the owner exposes to callers that are no peers, by their ids.

        Args:
            expose: Patterns; None for what every peer may use. To a caller that is not
                in it nothing is exposed.
        """
        found = {
            name: () if rules is None else (rules,) for name, rules in expose.items()
        }
        if found != self._of_callers:
            self._of_callers = found
            self.changed()

    def exposed_to(self, name: str) -> tuple[str, ...]:
        """Return the names of the peers whose own `expose` has a capability."""
        found = (
            (one.name, self._rules(one.did))
            for one in self._peers
            if one.did is not None
        )
        return tuple(
            peer
            for peer, rules in found
            if rules and all(_names(expose, name) for expose in rules)
        )

    @property
    def attachments(self) -> Mapping[str, tuple[AttachmentSpec, Attachment]]:
        """Every attachment by name."""
        return self._attachments

    def put(self, spec: AttachmentSpec, attachment: Attachment) -> None:
        """Add or replace an attachment."""
        self._attachments[spec.name] = (spec, attachment)
        self.changed()

    def begin(self, attachment: Attachment) -> None:
        """Count a call of an attachment as under way, until `end`."""
        self._calls[attachment] = self._calls.get(attachment, 0) + 1

    def end(self, attachment: Attachment) -> None:
        """Count a call of an attachment as over."""
        left = self._calls[attachment] - 1
        if left:
            self._calls[attachment] = left
        else:
            del self._calls[attachment]
            self._ended.set()

    def is_used(self, attachment: Attachment) -> bool:
        """True if a call of an attachment is under way."""
        return attachment in self._calls

    async def unused(self, attachment: Attachment) -> None:
        """Wait until no call of an attachment is under way."""
        while attachment in self._calls:
            self._ended.clear()
            await self._ended.wait()

    def drop(self, name: str) -> None:
        """Take an attachment away."""
        self._attachments.pop(name, None)
        self.changed()

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` whenever capabilities or their exposure changed."""
        self._watchers.append(on_change)

    def changed(self) -> None:
        """Look at everything anew, and tell the watchers."""
        self._offered.clear()
        self._shared.clear()
        for on_change in self._watchers:
            on_change()

    def all(self) -> list[tuple[Capability, bool]]:
        """Return every attached capability and whether every peer may use it."""
        return [
            (capability, _names(spec.expose, capability.name))
            for spec, attachment in self._attachments.values()
            for capability in attachment.capabilities()
        ]

    def offered(self, peer: str | None) -> tuple[Capability, ...]:
        """Return the capabilities that are exposed to a peer and healthy, by name.

        Args:
            peer: Its DID in any form; `EVERYBODY` for those that every peer may use.
        """
        return self._offered_to(peer).capabilities

    def _offered_to(self, peer: str | None) -> _Offered:
        healthy = [each.healthy for _, each in self._attachments.values()]
        known = self._offered.get(peer)
        if known is None or known.healthy != healthy:
            known = self._shared_by(self._rules(peer), healthy)
            if len(self._offered) >= MAX_KNOWN:
                self._offered.clear()
            self._offered[peer] = known
        return known

    def _shared_by(
        self, rules: Collection[tuple[str, ...]], healthy: list[bool]
    ) -> _Offered:
        """Return what all peers with the same rules may use; there may be much."""
        known = self._shared.get(rules)
        if known is None or known.healthy != healthy:
            found = self._healthy(lambda spec, name: _allows(spec, name, rules))
            known = _Offered(healthy, found, {one.name: one for one in found})
            self._shared[rules] = known
        return known

    def offered_to_some(self) -> tuple[Capability, ...]:
        """Return the healthy capabilities that one peer at least may use, by name."""
        rules = [(), *self._of_peers.values()]
        return self._healthy(
            lambda spec, name: any(_allows(spec, name, one) for one in rules)
        )

    def capability(self, name: str, peer: str | None) -> Capability | None:
        """Return a healthy capability that is exposed to a peer, by its full name."""
        return self._offered_to(peer).by_name.get(name)

    def exposes(self, name: str, peer: str | None) -> bool:
        """True if the owner exposes a capability to a peer, healthy or not."""
        entry = self._attachments.get(name.partition(".")[0])
        return entry is not None and _allows(entry[0], name, self._rules(peer))

    def hides(self, name: str, peer: str | None) -> bool:
        """True if the owner keeps a capability of a present attachment from a peer.

        What left together with its attachment is not hidden: its calls may end.
        """
        entry = self._attachments.get(name.partition(".")[0])
        return entry is not None and not _allows(entry[0], name, self._rules(peer))

    def conversational(self, peer: str | None) -> Capability | None:
        """Return the first capability for a peer that takes language (ANP-71)."""
        for capability in self.offered(peer):
            spec, _ = self._attachments[capability.name.partition(".")[0]]
            if capability.name.partition(".")[2] in spec.conversational:
                return capability
        return None

    def attachment_of(self, name: str) -> Attachment | None:
        """Return the attachment that has the capability `name`."""
        entry = self._attachments.get(name.partition(".")[0])
        return entry[1] if entry else None

    def misfit(self, wanted: Mapping[str, str], peer: str | None) -> str | None:
        """Return why a peer cannot call capabilities; see the function `misfit`."""
        found = (self.capability(name, peer) for name in wanted)
        return misfit(wanted, (one for one in found if one is not None))

    def _healthy(
        self, allows: Callable[[AttachmentSpec, str], bool]
    ) -> tuple[Capability, ...]:
        return tuple(
            sorted(
                (
                    capability
                    for spec, attachment in self._attachments.values()
                    if attachment.healthy
                    for capability in attachment.capabilities()
                    if allows(spec, capability.name)
                ),
                key=lambda capability: capability.name,
            )
        )

    def _rules(self, peer: str | None) -> Collection[tuple[str, ...]]:
        if peer is not None and peer.startswith(LOCAL):
            return self._of_callers.get(peer, NOTHING)
        if peer is None or not self._of_peers:
            return ()
        return self._of_peers.get(agent_name(peer), ())


def misfit(wanted: Mapping[str, str], offered: Iterable[Capability]) -> str | None:
    """Return why capabilities `{name: schema hash}` cannot be called, or None.

    Args:
        offered: The capabilities that the caller may use.
    """
    known = {capability.name: capability for capability in offered}
    for name, digest in wanted.items():
        capability = known.get(name)
        if capability is None:
            return f"{name} is not exposed or not healthy"
        if schema_hash(capability) != digest:
            return f"the schema of {name} has changed"
    return None


def _of_peers(peers: Iterable[PeerEntry]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return the `expose` of peers by agent; one peer may have several entries."""
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    for entry in peers:
        if entry.did is not None and entry.expose is not None:
            agent = agent_name(entry.did)
            found[agent] = (*found.get(agent, ()), entry.expose)
    return found


def _allows(
    spec: AttachmentSpec, name: str, of_peer: Collection[tuple[str, ...]]
) -> bool:
    """Tell whether a capability is exposed; every entry of the peer has to allow it."""
    return all(_names(expose, name) for expose in of_peer or (spec.expose,))


def _names(expose: Collection[str], name: str) -> bool:
    return not {"*", name, name.partition(".")[2]}.isdisjoint(expose)
