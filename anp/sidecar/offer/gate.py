"""The gate that every call of a capability passes, whatever way it comes (Trust).

The decision itself is `ways.decide`; here stands the search for what it asks about.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from anp.identity.dids import agent_name
from anp.sidecar.offer.exposure import STRANGER, Exposure, misfit
from anp.sidecar.offer.ways import WAYS, Approval, Passage, WayIn, asks_owner, decide
from anp.sidecar.peers.policy import PeerPolicy
from cache.errors import CacheError
from cache.records.records import AgreementRole, HalfRecord
from cache.store import Store
from negotiation.errors import APPROVAL_PENDING, CapabilityFailed
from negotiation.need import Capability
from negotiation.rules.names import of_name, unnamed_effects

logger = logging.getLogger(__name__)

POLICY_AGE: Final = 1.0
"Seconds after which the policy for a peer is looked up again."

POLICY_WAIT: Final = 0.5
"Seconds to wait for a slow store before what was known of a peer counts again."

MAX_KNOWN: Final = 1024
"Peers, each with a capability, whose policy is remembered."


class ApprovalPending(CapabilityFailed):
    """The owner has to approve a capability for this peer first; nothing ran."""

    def __init__(self, name: str) -> None:
        super().__init__(
            APPROVAL_PENDING,
            f"the owner of this agent has to approve `{name}` for you first; nothing "
            "was run, ask again later",
            ran=False,
        )


class OwnerWords(Protocol):
    """Keeps the owner's words about a capability for one peer; see `approvals`."""

    async def take(
        self,
        way: str,
        peer: str,
        capability: Capability,
        *,
        words: str = "",
        named: bool = True,
        withdrawn: bool = False,
    ) -> str | None:
        """Return why the owner refuses it, or None when the word allows it.

        Args:
            words: The peer's words that chose the capability, if any.
            named: False where they do not name it.
            withdrawn: Only a word that was said after the withdrawal counts.

        Raises:
            ApprovalPending: There is no word; the question is in the owner's queue.
        """

    async def give_back(self, way: str, peer: str, capability: Capability) -> None:
        """Let a word count again that a call used up which did not run."""

    def look_again(self) -> None:
        """Forget what was looked up about withdrawals."""

    async def confirmed(self, peer: str, words: str, capability: str) -> bool:
        """Tell whether the owner confirmed a capability for a need in words."""

    async def lacks_name(
        self, half: HalfRecord, peer: str, offered: Sequence[Capability]
    ) -> bool:
        """Tell whether a half has effects that the peer's need and no word names."""

    async def changed_meaning(
        self, half: HalfRecord, capabilities: Sequence[Capability]
    ) -> str | None:
        """Return why the owner has to accept what capabilities mean by now, or None."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The owner's word about a capability for a peer, as it was looked up."""

    at: float = 0.0
    "When it was, on the monotonic clock."

    refusal: str | None = None
    "Why the policy refuses the peer; None when it does not."

    withdrawn: bool = False
    "The owner withdrew the capability from the peer."


class Gate:
    """Decides about every call of a capability for a peer."""

    def __init__(
        self,
        exposure: Exposure,
        *,
        policy: PeerPolicy,
        store: Store,
        approve: str,
        words: OwnerWords,
        quarantined: Callable[[HalfRecord, str], str | None],
    ) -> None:
        """Make the gate.

        Args:
            approve: `negotiation.approve`.
            quarantined: Returns why a half may not run for a peer, or None.
        """
        self.exposure = exposure
        self._policy = policy
        self._store = store
        self._approve = approve
        self._words = words
        self._quarantined = quarantined
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()

    # Questions that change nothing.

    def problem(
        self, way: WayIn, peer: str, capabilities: Mapping[str, str]
    ) -> str | None:
        """Return why a peer may not use capabilities by a way any more, or None.

        From memory alone: what is exposed to it, and the rules of the configuration.
        That it is blocked in the store says `PeerPolicy`.

        Args:
            peer: Its DID, in its canonical form.
            capabilities: The hash of its schemas by the name of each.
        """
        if not {peer, agent_name(peer)}.isdisjoint(self._policy.rules.blocked):
            return "the owner blocked this peer"
        if way is WayIn.OWNER:
            return misfit(capabilities, self.offered(way, peer))
        return self.exposure.misfit(capabilities, peer)

    def offered(self, way: WayIn, peer: str | None) -> tuple[Capability, ...]:
        """Return the capabilities that a peer is shown by a way."""
        if way is WayIn.OWNER:
            return self.exposure.offered_to_some()
        return self.exposure.offered(peer)

    def find(self, way: WayIn, peer: str, name: str) -> Capability | None:
        """Return a healthy capability that is exposed to who asks, or None."""
        if way is not WayIn.OWNER:
            return self.exposure.capability(name, peer)
        found = self.offered(way, peer)
        return next((one for one in found if one.name == name), None)

    def named(self, way: WayIn, peer: str, name: str) -> Capability | None:
        """Return what `find` does, also by a name in the spelling that calls may have.

        A short name has to be that of one capability alone.
        """
        found = self.find(way, peer, name)
        if found is None:
            several = of_name(name, self.offered(way, peer))
            found = several[0] if len(several) == 1 else None
        return found

    def without_word(self, way: WayIn, peer: str | None) -> tuple[Capability, ...]:
        """Return the capabilities that a peer may use before the owner is asked."""
        return tuple(
            one
            for one in self.offered(way, peer)
            if WAYS[way].approval is Approval.NONE
            or not asks_owner(self._approve, side_effects=not one.read_only)
        )

    async def half_problem(self, half: HalfRecord, peer: str | None) -> str | None:
        """Return why a half may not serve a peer without a negotiation, or None.

        A half that was agreed with one peer serves another only where the owner wants
        to be asked about neither (DESIGN.md, Needs and schemas). Nor does an agreement
        count that was made when the owner wanted to be asked about less.

        Args:
            peer: Its canonical DID; `EVERYBODY` for one that we never agreed with.
        """
        problem = self.exposure.misfit(half.capabilities, peer)
        problem = problem or self._quarantined(half, peer or STRANGER)
        if problem is not None:
            return problem
        withdrawn = await asyncio.to_thread(
            self._withdrawn, peer or STRANGER, list(half.capabilities)
        )
        if withdrawn:
            return "the owner withdrew what it calls"
        found = (self.exposure.capability(name, peer) for name in half.capabilities)
        used = [one for one in found if one is not None]
        problem = await self._words.changed_meaning(half, used)
        if problem is not None:
            return problem
        effects = len(used) < len(half.capabilities)
        effects = effects or not all(one.read_only for one in used)
        offered = self.exposure.offered(peer)
        if effects and await self._words.lacks_name(half, peer or STRANGER, offered):
            return "the owner has to approve what it calls without its name"
        if not asks_owner(self._approve, side_effects=effects):
            return None
        if await asyncio.to_thread(self._is_approved, half, peer):
            return None
        return "the owner has to approve it for this peer"

    def _is_approved(self, half: HalfRecord, peer: str | None) -> bool:
        """Tell whether an agreement with a peer is one that the setting lets through.

        Without a negotiation it is there because the owner imported it.
        """
        for one in self._store.agreements_of(half.hash):
            if one.peer_did != peer or one.role is not half.role:
                continue
            if self._approve == "first-use" or one.negotiation_id is None:
                return True
            record = self._store.negotiation(one.negotiation_id)
            if record is not None and record.owner_approved:
                return True
        return False

    # The decision about a call.

    async def admit(
        self, way: WayIn, peer: str, capability: Capability, *, words: str | None = None
    ) -> None:
        """Let a call of a capability through.

        Args:
            peer: The canonical DID; ours for the owner's own trial.
            words: The words that the capability was chosen by; None where the peer
                named it, or where a protocol was agreed for it.

        Raises:
            CapabilityFailed: It is refused; nothing ran.
            ApprovalPending: The owner has to approve it first; nothing ran.
        """
        is_owner = way is WayIn.OWNER
        named = not words or await self._is_named(peer, capability, words)
        known = _Known() if is_owner else await self._look(peer, capability.name)
        refusal = known.refusal
        passage = decide(
            way,
            self._approve,
            admitted=refusal is None,
            exposed=self.find(way, peer, capability.name) is not None,
            read_only=capability.read_only,
            repeatable=capability.read_only or capability.idempotent,
            # On a way with a protocol the channel was bound after the approval.
            approved=WAYS[way].approval is not Approval.CAPABILITY,
            named=named,
            withdrawn=known.withdrawn,
        )
        if passage is Passage.ASK:
            refusal = await self._words.take(
                way,
                peer,
                capability,
                words=words or "",
                named=named,
                withdrawn=known.withdrawn,
            )
            passage = Passage.OPEN if refusal is None else Passage.REFUSED
        if passage is Passage.REFUSED:
            reason = refusal or "this capability is not for this peer"
            logger.info(
                "call refused way=%s peer=%s capability=%s reason=%s",
                way,
                peer,
                capability.name,
                reason,
            )
            raise CapabilityFailed("403", reason, ran=False)

    async def _is_named(self, peer: str, capability: Capability, words: str) -> bool:
        """Return whether words name it, or the owner confirmed it for these words."""
        offered = self.exposure.offered(peer)
        if not unnamed_effects(words, [capability.name], offered):
            return True
        return await self._words.confirmed(peer, words, capability.name)

    async def give_back(self, way: WayIn, peer: str, capability: Capability) -> None:
        """Let the owner's word count again after a call that certainly did not run."""
        if WAYS[way].approval is Approval.CAPABILITY:
            await self._words.give_back(way, peer, capability)

    def look_again(self) -> None:
        """Have the policy for each peer looked up anew, for the owner has spoken."""
        self._words.look_again()
        for key, known in self._known.items():
            self._known[key] = replace(known, at=-POLICY_AGE)

    async def _look(self, peer: str, name: str) -> _Known:
        """Return what the owner says about a peer that was admitted before.

        A store that is away or slow harms no peer that is known.
        """
        key = peer, name
        known = self._known.get(key)
        is_fresh = known is not None and time.monotonic() - known.at < POLICY_AGE
        if known is not None and is_fresh and not known.withdrawn:
            # A withdrawal is looked up each time, for the owner's word may end it.
            return known
        if known is not None:
            # Calls that come meanwhile do not look it up, too.
            self._known[key] = replace(known, at=time.monotonic())
        try:
            async with asyncio.timeout(POLICY_WAIT if known is not None else None):
                found = await asyncio.to_thread(self._look_up, peer, name)
        except (TimeoutError, CacheError) as exc:
            if known is None:
                raise CapabilityFailed(
                    "503", "the policy for this peer cannot be read", ran=False
                ) from exc
            logger.warning("policy not looked up peer=%s reason=%s", peer, exc)
            found = known
        self._known[key] = replace(found, at=time.monotonic())
        self._known.move_to_end(key)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return found

    def _look_up(self, peer: str, name: str) -> _Known:
        withdrawn = bool(self._withdrawn(peer, [name]))
        refusal = None
        if self._policy.is_blocked(peer):
            refusal = "this peer is blocked"
        elif self._policy.rules.default != "any" and not self._policy.is_listed(peer):
            refusal = "this peer is not allowed"
        return _Known(refusal=refusal, withdrawn=withdrawn)

    def _withdrawn(self, peer: str, names: list[str]) -> list[str]:
        return self._store.withdrawn(AgreementRole.PROVIDER, peer, names)
