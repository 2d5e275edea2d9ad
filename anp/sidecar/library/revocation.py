"""The owner's word about protocols: take back, give back, clear out."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.queue import OwnerDesk
from anp.sidecar.agreement.rulings import Decision
from anp.sidecar.calls.acceptor import Acceptor
from anp.sidecar.calls.enforcer import Enforcer
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.consensus.registry import ConsensusDesk
from anp.sidecar.library.prune_rules import PruneRules
from anp.sidecar.library.views import find_hash
from anp.sidecar.offer.exposure import STRANGER, Exposure
from cache.errors import HashPrefixError, StoreFull, StoreUnavailable
from cache.parts.library import Removed
from cache.records.negotiations import NegotiationRecord
from cache.records.records import (
    MAX_REASON,
    AgreementRecord,
    AgreementRole,
    AgreementState,
    Count,
    HalfRecord,
    Hash,
    WithdrawnRecord,
)
from cache.store import Store
from sandbox.pool.pool import Sandbox

logger = logging.getLogger(__name__)

MAX_SHOWN: Final = 1000
"Records that the answer to a pruning names; all are counted."

_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Access to one capability, closed or open."""

    role: AgreementRole
    "Our side: a provider's own capability, or a requester's use of the peer's."

    peer: str | None
    "The only peer that it holds for; null when it holds for all."

    capability: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """A protocol was taken back."""

    hash: Hash
    peer: str | None
    "The only peer that it holds for; null when it holds for all."

    revoked: bool
    "False when it had been taken back before."

    channels_closed: Count

    closed: Sequence[Access] = ()
    "Capabilities of which the next use waits for the owner, whatever way it comes."

    open: Sequence[Access] = ()
    "Capabilities that the same peers may still call, or that `text_only` left open."


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A protocol may be used again, or was accepted in negotiations that waited."""

    hash: Hash
    peer: str | None
    "The only peer that it holds for; null when it holds for all."

    revocation_ended: bool
    quarantine_ended: bool
    reopened: Sequence[Access]
    "Capabilities that were withdrawn, and may be used again."

    negotiations_accepted: Sequence[str]
    "Ids of the negotiations that waited for this approval."


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedRecord:
    """One record that was dropped, or would be."""

    kind: Literal["agreement", "half", "document"]
    hash: Hash
    "SHA-256 of the document."

    why: str
    bytes: Count
    role: AgreementRole | None = None
    revision: Count | None = None
    state: AgreementState | None = None
    peer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Records that were dropped because nobody used them for long."""

    dry_run: bool
    "True when nothing was dropped, but would be."

    older_than: float
    "Seconds since the last use."

    counts: dict[str, int]
    "The records by their kinds."

    bytes: Count
    "Bytes of the records."

    removed: Sequence[PrunedRecord]
    "The first of them."

    store_before: Count = 0
    "Bytes of the store's file before; 0 with `dry_run`, and on a server."

    store_after: Count = 0
    "Bytes of the file now: the room of dropped records is given back."


class ProtocolDesk:
    """Carries out the owner's word about protocols, and returns its effects.

    What is said is on disk before anything is closed, so it outlives the daemon.
    """

    def __init__(
        self,
        *,
        store: Store,
        sandbox: Sandbox,
        requesters: Requesters,
        provider: Acceptor,
        enforcer: Enforcer,
        exposure: Exposure,
        consensus: ConsensusDesk,
        owner: OwnerDesk,
    ) -> None:
        self._store = store
        self._sandbox = sandbox
        self._requesters = requesters
        self._provider = provider
        self._enforcer = enforcer
        self._exposure = exposure
        self._consensus = consensus
        self._owner = owner

    async def revoke(
        self,
        prefix: str,
        *,
        peer_did: str | None = None,
        reason: str = "",
        text_only: bool = False,
    ) -> Revoked:
        """Take a document back (DESIGN.md, Links and channels: Revoked).

        Its channels close at once, nothing more on them is decoded, and its hash is
        declined. The capabilities that it calls are withdrawn: their next use waits for
        the owner, by whatever way or text.

        Args:
            text_only: Refuse the text alone, and leave the capabilities open.
            prefix: Its hash or the beginning of it; a whole hash need not be known.
            peer_did: For this peer alone, in its canonical form.
            reason: For the owner; never sent.

        Raises:
            CallError: `usage`, the reason cannot be kept.
            HashPrefixError: None or several hashes begin with `prefix`.
        """
        if len(reason) > MAX_REASON or any(0xD800 <= ord(c) <= 0xDFFF for c in reason):
            raise CallError(
                ErrorKind.USAGE, f"the reason has to be text of {MAX_REASON} characters"
            )
        digest = await self._known(prefix)
        try:
            # What nobody used so far has no half that says what it calls.
            await self._consensus.published.make(digest)
            used = await asyncio.to_thread(self._used, digest, peer_did)
            if not text_only:
                await asyncio.to_thread(self._store.withdraw, used)
            ruled = await asyncio.to_thread(
                self._store.revoke,
                digest,
                peer_did=peer_did,
                reason=reason,
                at=time.time(),
            )
        except StoreUnavailable as exc:
            # The owner's word holds here at once, also when it cannot be kept.
            ended = await self._enforcer.rule_out(digest, peer_did)
            raise CallError(
                ErrorKind.LOCAL_RESOURCE,
                f"{ended} channels of {digest[:12]} are closed and this daemon uses it "
                "no more, but only until it is started anew: revoke it again when the "
                f"store takes it. {exc}",
            ) from exc
        # Also when it was revoked before: a channel may have been missed then.
        ended = await self._enforcer.recheck()
        logger.info(
            "protocol revoked hash=%s peer=%s records=%d channels=%d",
            digest[:12],
            peer_did or "all",
            ruled.records,
            ended,
        )
        return Revoked(
            hash=digest,
            peer=peer_did,
            revoked=bool(ruled.revocations),
            channels_closed=ended,
            closed=() if text_only else [_access(one) for one in used],
            open=[_access(one) for one in used]
            if text_only
            else await asyncio.to_thread(self._still_open, used, peer_did),
        )

    def _used(self, digest: str, peer_did: str | None) -> list[WithdrawnRecord]:
        """Return what a document gives access to, as records that withdraw it."""
        made = partial(WithdrawnRecord, at=time.time(), hashes=(digest,))
        provider, requester = AgreementRole.PROVIDER, AgreementRole.REQUESTER
        halves = self._store.halves(digest)
        names = {
            name: made(provider, peer_did, name)
            for half in halves
            if half.role is provider
            for name in half.capabilities
        }
        ours = {
            (one.peer_did, name): made(requester, one.peer_did, name)
            for one in self._store.agreements_of(digest)
            if one.role is requester and peer_did in {None, one.peer_did}
            for name in _called(one)
        }
        return [*names.values(), *ours.values()]

    def _still_open(
        self, used: Sequence[WithdrawnRecord], peer_did: str | None
    ) -> list[Access]:
        """Return what the peers may still call, if we offered something."""
        provider = AgreementRole.PROVIDER
        if all(one.role is not provider for one in used):
            return []
        exposure = self._exposure
        offered = exposure.offered(peer_did) if peer_did else exposure.offered_to_some()
        names = [one.name for one in offered]
        gone = self._store.withdrawn(provider, peer_did or STRANGER, names)
        return [
            Access(role=provider, peer=peer_did, capability=name)
            for name in names
            if name not in gone
        ]

    async def approve(self, prefix: str, *, peer_did: str | None = None) -> Approved:
        """Lift a revocation or a quarantine, or give an approval that is waited for.

        What was withdrawn with the document is open again.

        Args:
            prefix: The document's hash or the beginning of it.
            peer_did: For this peer alone, in its canonical form.

        Raises:
            CallError: `usage`, it was revoked for all, so one peer cannot be exempted.
            HashPrefixError: None or several hashes begin with `prefix`.
        """
        waiting = await self._owner.negotiations(open_only=True)
        digest = await self._known(prefix, waiting)
        known = await asyncio.to_thread(self._store.revocations, digest)
        if peer_did is not None and any(one.peer_did is None for one in known):
            raise CallError(
                ErrorKind.USAGE,
                f"{digest[:12]} is revoked for all peers; approve it without --peer, "
                "then revoke it for single ones",
            )
        ruled = await asyncio.to_thread(
            self._store.give_back, digest, peer_did=peer_did
        )
        readmitted = await asyncio.to_thread(
            self._store.readmit, lambda one: digest in one.hashes, peer_did
        )
        self._enforcer.allow(digest)
        released = peer_did is None and self._sandbox.release(digest)
        decided = []
        for record in waiting:
            if _pending(record) != digest or peer_did not in {None, record.peer_did}:
                continue
            await self._owner.decide(record.id, Decision("accept"))
            decided.append(record.id)
        logger.info("protocol approved hash=%s peer=%s", digest[:12], peer_did or "all")
        return Approved(
            hash=digest,
            peer=peer_did,
            revocation_ended=bool(ruled.revocations) or ruled.records > 0,
            reopened=[_access(one) for one in readmitted],
            quarantine_ended=released,
            negotiations_accepted=decided,
        )

    async def prune(self, *, older_than: float, dry_run: bool) -> Pruned:
        """Drop what was not used for long; never what is in use or published.

        Args:
            older_than: Seconds.
            dry_run: Drop nothing, and say what would be.
        """
        revocations = await asyncio.to_thread(self._store.revocations)
        rules = PruneRules(
            now=time.time(),
            older_than=older_than,
            revoked={(one.hash, one.peer_did): one.at for one in revocations},
            last_uses=await asyncio.to_thread(self._store.last_uses),
        )
        published = {one.hash for one in self._consensus.registry.all()}
        keep = self._requesters.hashes | self._provider.hashes | published
        removed = await asyncio.to_thread(
            self._store.prune, rules.agreement, rules.half, keep=keep, dry_run=dry_run
        )
        before, after = (0, 0) if dry_run else await self._compact()
        logger.info("protocols pruned records=%d dry_run=%s", len(removed), dry_run)
        shown = [_pruned(one) for one in removed]
        return Pruned(
            dry_run=dry_run,
            older_than=older_than,
            counts=dict(Counter(one.kind for one in shown)),
            bytes=sum(one.bytes for one in shown),
            removed=shown[:MAX_SHOWN],
            store_before=before,
            store_after=after,
        )

    async def _compact(self) -> tuple[int, int]:
        """Give back the room of what was dropped; zeros if that is not possible."""
        try:
            return await asyncio.to_thread(self._store.compact)
        except StoreFull as exc:
            # It takes as much room again meanwhile; what was dropped stays dropped.
            logger.warning("store not made smaller reason=%s", exc)
            return 0, 0

    async def _known(
        self, prefix: str, waiting: Sequence[NegotiationRecord] = ()
    ) -> str:
        """Return the hash that is meant."""
        begins = prefix.strip().lower().removeprefix("sha256:")
        pending = {
            digest
            for record in waiting
            if begins and (digest := _pending(record)) and digest.startswith(begins)
        }
        try:
            found = {await asyncio.to_thread(find_hash, self._store, prefix)}
        except (HashPrefixError, StoreUnavailable):
            whole = _HASH.fullmatch(prefix.strip())
            if not pending and whole is None:
                raise
            found = set() if whole is None else {whole[1].lower()}
        if len(found | pending) > 1:
            shown = ", ".join(one[:16] for one in sorted(found | pending))
            raise CallError(
                ErrorKind.USAGE,
                f"several protocols begin with {prefix[:80]!r}: {shown}; give more of "
                "it",
            )
        return (found | pending).pop()


def _called(agreement: AgreementRecord) -> list[str]:
    """Return what our agent uses by an agreement: names, or else the need."""
    said = agreement.tests.get("capability")
    if isinstance(said, str) and said:
        return said.split(", ")
    need = (agreement.need or {}).get("requirement")
    return [need] if isinstance(need, str) and need else []


def _access(record: WithdrawnRecord) -> Access:
    return Access(role=record.role, peer=record.peer_did, capability=record.capability)


def _pending(record: NegotiationRecord) -> str | None:
    pending = record.pending
    return None if pending is None else str(pending.get("hash"))


def _pruned(removed: Removed) -> PrunedRecord:
    made = partial(PrunedRecord, hash=removed.hash, why=removed.why, bytes=removed.size)
    match removed.record:
        case AgreementRecord() as one:
            return made(
                kind="agreement",
                role=one.role,
                revision=one.revision,
                state=one.state,
                peer=one.peer_did,
            )
        case HalfRecord() as one:
            return made(
                kind="half", role=one.role, revision=one.revision, state=one.state
            )
    return made(kind="document")
