"""The owner's word about access: needs that are confirmed, and places for strangers.

A capability with side effects that a proposal does not name waits for the owner,
whatever `negotiation.approve` says (DESIGN.md, Negotiation).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

from anp.sidecar.agreement.rulings import pending_reason, subject_of_words
from cache.records.negotiations import NegotiationRecord
from cache.records.records import AgreementRole, ConfirmedRecord, HalfRecord
from cache.store import Store
from negotiation.document.reader import read_requirement
from negotiation.need import Capability
from negotiation.rules.names import mentioned, name_key, unnamed_effects

MAX_STRANGERS: Final = 16
"Proposals of unlisted peers, all together, that wait for the owner to name an effect."

LOOK: Final = 60.0
"Seconds after which full places are compared with the owner's queue again."

NO_PLACE: Final = (
    "the requirement does not name the capability that it would run, which has side "
    "effects; write its name as the whole requirement, or wait until the owner of this "
    "agent has decided about earlier proposals"
)
"The reason for a stranger whose proposal finds no place in the owner's queue."


class StrangerPlaces:
    """Gives each unlisted peer one place in the owner's queue, while there is room."""

    def __init__(
        self,
        is_listed: Callable[[str], bool],
        waiting: Callable[[], Awaitable[list[NegotiationRecord]]],
    ) -> None:
        """Make the places.

        Args:
            is_listed: Tells by its canonical DID if the owner listed a peer; may block.
            waiting: Returns what waits for the owner.
        """
        self._is_listed = is_listed
        self._waiting = waiting
        self._taken: dict[str, str] = {}
        self._looked = -LOOK

    async def take(self, peer: str, subject: str) -> bool:
        """Take a place for what a peer proposes; return whether there is one.

        A listed peer needs none, and the same subject keeps its place.
        """
        if await asyncio.to_thread(self._is_listed, peer):
            return True
        if self._taken.get(peer) == subject:
            return True
        full = peer in self._taken or len(self._taken) >= MAX_STRANGERS
        if (full or self._looked < 0) and time.monotonic() - self._looked >= LOOK:
            # What the owner decided, and what was dropped, takes no place any more.
            self._looked = time.monotonic()
            await self._look()
        if peer in self._taken or len(self._taken) >= MAX_STRANGERS:
            return self._taken.get(peer) == subject
        self._taken[peer] = subject
        return True

    def free(self, peer: str) -> None:
        """Free the place of a peer, about whose proposal the owner decided."""
        self._taken.pop(peer, None)

    async def _look(self) -> None:
        taken: dict[str, str] = {}
        for record in await self._waiting():
            peer, pending = record.peer_did, record.pending or {}
            if refusal_of(pending) and not await asyncio.to_thread(
                self._is_listed, peer
            ):
                taken[peer] = record.subject or ""
        self._taken = taken


def first_words(turns: Sequence[Mapping[str, Any]]) -> str:
    """Return the requirement of the peer's first proposal, or its whole text."""
    received = (one for one in turns if one["direction"] == "received")
    text = next((str(one["candidate"]) for one in received if one["candidate"]), "")
    return read_requirement(text) or text


def lacks_name(
    store: Store, half: HalfRecord, peer: str, offered: Sequence[Capability]
) -> bool:
    """Tell whether a half has effects that its peer did not name and no word allows.

    What counts is the peer's first proposal, where the half was agreed with it; else
    the requirement of the text. An agreement without a negotiation is there because the
    owner imported it.
    """
    asked = ""
    for one in store.agreements_of(half.hash):
        if (one.peer_did, one.role) == (peer, half.role):
            if one.negotiation_id is None:
                return False
            record = store.negotiation(one.negotiation_id)
            asked = "" if record is None else first_words(record.turns)
    if not asked and (document := store.document(half.hash)) is not None:
        asked = read_requirement(document.text)
    unnamed = unnamed_effects(asked, list(half.capabilities), offered)
    return not store.confirmed(peer, subject_of_words(asked)).issuperset(unnamed)


def carry_out(store: Store, record: NegotiationRecord) -> None:
    """Carry out that the owner accepted an entry.

    What was confirmed holds for this need of the peer, whatever text it is agreed in.
    What was withdrawn is open again for this peer, with the texts of the revocation:
    for the others the withdrawal holds, whatever text they use.
    """
    pending, now = record.pending or {}, time.time()
    for name in names_in(pending.get("unnamed")):
        need = str(pending["need"])
        store.confirm(ConfirmedRecord(record.peer_did, need, name, now))
    if names := names_in(pending.get("withdrawn")):
        for one in store.readmit(
            lambda each: each.role is record.role and each.capability in names,
            record.peer_did,
        ):
            for digest in one.hashes:
                store.give_back(digest, peer_did=one.peer_did)


def waits_with(store: Store, digest: str, role: AgreementRole, peer: str) -> bool:
    """Tell whether a revoked text waits for the owner with a withdrawn capability.

    Then it may be proposed: the owner is asked about it. A text that was revoked alone
    is refused.
    """
    return any(
        digest in one.hashes
        and one.role is role
        and one.peer_did in {None, peer}
        and not one.is_open
        for one in store.withdrawals()
    )


def refusal_of(pending: Mapping[str, Any]) -> str:
    """Return what a stranger is told if there is no place; empty if none is needed.

    What is withdrawn waits for the owner's word also where the queue has no room for
    the question.

    Args:
        pending: The part of a record that waits for the owner.
    """
    if pending.get("withdrawn"):
        return pending_reason()
    return NO_PLACE if pending.get("unnamed") else ""


def means(words: str, name: str) -> bool:
    """Tell whether a need may mean a capability of a peer, of which only the name is
    known."""
    one = Capability(name, "", True, True)
    return name_key(words) == name_key(name) or bool(mentioned(words, [one]))


def names_in(value: object) -> Collection[str]:
    """Return the names in an entry of a record, which older records do not have."""
    return [str(one) for one in value] if isinstance(value, list | tuple) else []
