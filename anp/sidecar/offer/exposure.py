"""The attached capabilities, and which of them are exposed to peers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from anp.identity.dids import agent_name
from anp.interaction.elements import LOCAL
from anp.sidecar.attachments import Attachment, AttachmentSpec
from anp.sidecar.config.entries import PeerEntry
from negotiation.need import Capability, meaning_hash, schema_hash

EVERYBODY: Final = None
"Stands for the peer where capabilities are meant that every peer may use."

STRANGER: Final = "did:key:-"
"Stands for a peer that we never met where a DID is asked for; no peer has it."


Rules = tuple[tuple[str, ...], ...]
"What one peer may use, each a list of names that has to have a capability."

NOTHING: Final[Rules] = ((),)
"Rules that name no capability."


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
        self._of_callers: Mapping[str, Rules] = {}
        # What may be used by each of the few rules there are, until something changes.
        self._allowed: dict[Rules, dict[str, tuple[Attachment, Capability]]] = {}
        self._offered: dict[Rules, tuple[list[bool], tuple[Capability, ...]]] = {}

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
        self._allowed.clear()
        self._offered.clear()
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
        rules = self._rules(peer)
        healthy = [each.healthy for _, each in self._attachments.values()]
        known = self._offered.get(rules)
        if known is None or known[0] != healthy:
            allowed = self._allowed_by(rules).values()
            found = tuple(one for attachment, one in allowed if attachment.healthy)
            known = self._offered[rules] = healthy, found
        return known[1]

    def _allowed_by(self, rules: Rules) -> dict[str, tuple[Attachment, Capability]]:
        """Return what may be used by rules, healthy or not, sorted by name."""
        known = self._allowed.get(rules)
        if known is None:
            found = {
                one.name: (attachment, one)
                for spec, attachment in self._attachments.values()
                for one in attachment.capabilities()
                if _allows(spec, one.name, rules)
            }
            known = self._allowed[rules] = dict(sorted(found.items()))
        return known

    def offered_to_some(self) -> tuple[Capability, ...]:
        """Return the healthy capabilities that one peer at least may use, by name."""
        found = {
            one.name: one
            for rules in ((), *self._of_peers.values())
            for attachment, one in self._allowed_by(rules).values()
            if attachment.healthy
        }
        return tuple(found[name] for name in sorted(found))

    def capability(self, name: str, peer: str | None) -> Capability | None:
        """Return a healthy capability that is exposed to a peer, by its full name."""
        found = self._allowed_by(self._rules(peer)).get(name)
        return found[1] if found is not None and found[0].healthy else None

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

    def reworded(self, meanings: Mapping[str, str], peer: str | None) -> str | None:
        """Return which of `{name: meaning hash}` is described otherwise, or None."""
        for name, digest in meanings.items():
            capability = self.capability(name, peer)
            if capability is not None and meaning_hash(capability) != digest:
                return f"the description of {name} has changed"
        return None

    def meanings(self, names: Iterable[str], peer: str | None) -> dict[str, str]:
        """Return what capabilities mean now, as hashes by their names."""
        found = (self.capability(name, peer) for name in names)
        return {one.name: meaning_hash(one) for one in found if one is not None}

    def _rules(self, peer: str | None) -> Rules:
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
