"""What is offered to which peer: exposed capabilities and the policy for peers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from anp.errors import ErrorCode, PeerError
from anp.sidecar.attachments import Attachment, AttachmentSpec
from anp.sidecar.settings import Config
from cache.records import PeerState
from cache.store import Store
from negotiation.task import Capability, schema_hash

__all__ = ["Exposure", "PeerPolicy", "PeerRules"]

logger = logging.getLogger(__name__)


class Exposure:
    """The attached capabilities, and which of them peers may use."""

    def __init__(self) -> None:
        self._attachments: dict[str, tuple[AttachmentSpec, Attachment]] = {}
        self._watchers: list[Callable[[], None]] = []

    @property
    def attachments(self) -> Mapping[str, tuple[AttachmentSpec, Attachment]]:
        """Every attachment by name."""
        return self._attachments

    def put(self, spec: AttachmentSpec, attachment: Attachment) -> None:
        """Add or replace an attachment."""
        self._attachments[spec.name] = (spec, attachment)
        self.changed()

    def drop(self, name: str) -> None:
        """Take an attachment away."""
        self._attachments.pop(name, None)
        self.changed()

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` whenever capabilities or their exposure changed."""
        self._watchers.append(on_change)

    def changed(self) -> None:
        """Tell the watchers."""
        for on_change in self._watchers:
            on_change()

    def all(self) -> list[tuple[Capability, bool]]:
        """Return every attached capability and whether it is exposed."""
        return [
            (capability, _exposes(spec, capability.name))
            for spec, attachment in self._attachments.values()
            for capability in attachment.capabilities()
        ]

    def offered(self) -> tuple[Capability, ...]:
        """Return the capabilities that are exposed, attached and healthy, by name."""
        return tuple(
            sorted(
                (
                    capability
                    for spec, attachment in self._attachments.values()
                    if attachment.healthy
                    for capability in attachment.capabilities()
                    if _exposes(spec, capability.name)
                ),
                key=lambda capability: capability.name,
            )
        )

    def fits(self, wanted: Mapping[str, str]) -> str | None:
        """Return why capabilities `{name: schema hash}` cannot be called, or None."""
        offered = {capability.name: capability for capability in self.offered()}
        for name, digest in wanted.items():
            capability = offered.get(name)
            if capability is None:
                return f"{name} is not exposed or not healthy"
            if schema_hash(capability) != digest:
                return f"the schema of {name} has changed"
        return None

    def capability(self, name: str) -> Capability | None:
        """Return an exposed, healthy capability by its full name."""
        return next((c for c in self.offered() if c.name == name), None)

    def conversational(self) -> Capability | None:
        """Return the first exposed capability that takes natural language (ANP-71)."""
        for capability in self.offered():
            spec, _ = self._attachments[capability.name.partition(".")[0]]
            if capability.name.partition(".")[2] in spec.conversational:
                return capability
        return None

    def attachment_of(self, name: str) -> Attachment | None:
        """Return the attachment that has the capability `name`."""
        entry = self._attachments.get(name.partition(".")[0])
        return entry[1] if entry else None


@dataclass(frozen=True, slots=True)
class PeerRules:
    """What the configuration says of peers; the store knows the rest."""

    default: str
    "`any` or `listed`."

    allowed: frozenset[str] = frozenset()
    "DIDs that may use us."

    blocked: frozenset[str] = frozenset()
    "DIDs that may not."

    @classmethod
    def of(cls, config: Config) -> PeerRules:
        """Return the rules of a configuration."""
        by_policy = {
            policy: frozenset(
                p.did for p in config.peer if p.did and p.policy == policy
            )
            for policy in ("allow", "block")
        }
        return cls(config.peers_policy, by_policy["allow"], by_policy["block"])


class PeerPolicy:
    """Who may open channels to us: `any` verified DID, or only listed ones."""

    def __init__(self, store: Store, rules: PeerRules) -> None:
        self._store = store
        self.rules = rules
        "What the owner's configuration says; may be replaced at any time."

    async def check(self, did: str, *, shown_did: str) -> None:
        """Let a verified peer in, and remember that it was here.

        Args:
            did: The form of the DID under which records are stored.
            shown_did: The DID the peer used, for the log.

        Raises:
            PeerError: 403; the log line names the command that allows the peer.
        """
        known = await asyncio.to_thread(self._store.peer, did)
        state = known.state if known else PeerState.UNKNOWN
        if state is PeerState.BLOCKED or {did, shown_did} & self.rules.blocked:
            raise PeerError(ErrorCode.NOT_ALLOWED, f"{shown_did} is blocked")
        listed = state is PeerState.ALLOWED or bool(
            {did, shown_did} & self.rules.allowed
        )
        if not listed and self.rules.default != "any":
            await self.remember(did, shown_did=shown_did, state=PeerState.WAITING)
            logger.warning(
                "unknown peer refused did=%s allow_with=%r",
                shown_did,
                f"anpd peers allow {shown_did}",
            )
            raise PeerError(ErrorCode.NOT_ALLOWED, f"{shown_did} is not allowed")

    def is_listed(self, did: str) -> bool:
        """Whether the owner allowed a peer, under any DID it is known by; may block."""
        allowed = self.rules.allowed
        return did in allowed or any(
            peer.state is PeerState.ALLOWED or bool(allowed & {peer.did, *peer.aliases})
            for peer in self._store.peers()
            if did == peer.did or did in peer.aliases
        )

    async def remember(
        self, did: str, *, shown_did: str, state: PeerState | None = None
    ) -> None:
        """Store that a peer was seen, under which other DID, and its state if given."""
        await asyncio.to_thread(self._remember, did, shown_did, state)

    def is_blocked(self, did: str) -> bool:
        """Whether the owner blocked a peer, under any DID it is known by; may block."""
        return did in self.rules.blocked or any(
            peer.state is PeerState.BLOCKED
            for peer in self._store.peers()
            if did == peer.did or did in peer.aliases
        )

    def _remember(self, did: str, shown_did: str, state: PeerState | None) -> None:
        self._store.see_peer(did, shown_did=shown_did, now=time.time(), state=state)


def _exposes(spec: AttachmentSpec, name: str) -> bool:
    short = name.partition(".")[2]
    return "*" in spec.expose or name in spec.expose or short in spec.expose
