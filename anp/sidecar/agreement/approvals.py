"""The owner's words about a capability for one peer, where no protocol is agreed.

A call in words or by the envelope has no protocol text that the owner could approve.
The owner is asked about the capability for this peer and this way instead: the question
stands in the queue like a negotiation that waits, and the answer is a standing word.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from anp.errors import CallError, ErrorKind
from anp.interaction.elements import LOCAL, party_name
from anp.sidecar.agreement.access import StrangerPlaces, lacks_name, means, refusal_of
from anp.sidecar.agreement.meanings import Meanings
from anp.sidecar.agreement.rulings import (
    RETRY_AFTER,
    subject_of_capability,
    subject_of_words,
)
from anp.sidecar.offer.gate import ApprovalPending
from cache.records.negotiations import NegotiationRecord, StandingRecord
from cache.records.records import AgreementRole, HalfRecord
from cache.store import Store
from negotiation.errors import APPROVAL_PENDING, CapabilityFailed
from negotiation.need import Capability

logger = logging.getLogger(__name__)

MAX_QUESTIONS: Final = 256
"Questions that are remembered, so that a peer that asks again adds no row."

MAX_UNLISTED: Final = 32
"Questions of unlisted peers, all together, that are put into the queue in an hour."

HOUR: Final = 3600.0

MAX_REASON: Final = 500
"Most characters of the reason of a question."


class CapabilityWords:
    """Takes the owner's words about capabilities, and asks where there is none."""

    def __init__(
        self,
        store: Store,
        *,
        approve: str,
        is_listed: Callable[[str], bool],
        on_waiting: Callable[[NegotiationRecord], None],
        places: StrangerPlaces,
    ) -> None:
        """Keep the words.

        Args:
            places: The places of strangers for what their words do not name.
            approve: `negotiation.approve`; with `always` a word counts for one call.
            is_listed: Tells by its canonical DID if the owner listed a peer; may block.
            on_waiting: Told of each new question in the queue.
        """
        self._store = store
        self._once = approve == "always"
        self._is_listed = is_listed
        self._on_waiting = on_waiting
        self._places = places
        self._meanings = Meanings(store, on_waiting=on_waiting)
        self._ours: set[str] | None = None
        "Names of peers' capabilities that are or were withdrawn from our agent."
        self._looks = 0
        self._asked: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()
        self._unlisted: list[float] = []
        self._used: dict[tuple[str, str], StandingRecord] = {}

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
        """Return why the owner refuses a capability, or None when a word allows it.

        With `always` the word is used up, by one call however many come at once.

        Args:
            way: The way by which the call came, a `WayIn`.
            peer: The canonical DID.
            words: The peer's words that chose the capability, if any.
            named: False where they do not name it: then only a word about them counts.
            withdrawn: No word from before the withdrawal allows it; one that allowed it
                since would have ended the withdrawal.

        Raises:
            ApprovalPending: There is no word; the question is in the owner's queue.
        """
        need = subject_of_words(words) if words else ""
        about_need = subject_of_capability(way, capability.name, need)
        subject = subject_of_capability(way, capability.name) if named else about_need
        subjects = {subject, about_need}
        for word in await asyncio.to_thread(self._words, peer, subjects):
            if word.verdict == "reject":
                return word.note or "the owner of this agent does not want this"
            if not withdrawn and (not self._once or await self._use(word)):
                return None
        pending = {
            "capability": capability.name,
            "way": way,
            "read_only": capability.read_only,
            "unnamed": [] if named else [capability.name],
            "need": need or None,
            "withdrawn": [capability.name] if withdrawn else [],
        }
        reason = f"{_who(peer)} wants to call {capability.name} by {way}"
        await self._ask(peer, subject, pending, reason=reason)
        raise ApprovalPending(capability.name)

    async def confirmed(self, peer: str, words: str, capability: str) -> bool:
        """See `OwnerWords`."""
        digest = subject_of_words(words)
        found = await asyncio.to_thread(self._store.confirmed, peer, digest)
        return capability in found

    async def lacks_name(
        self, half: HalfRecord, peer: str, offered: Sequence[Capability]
    ) -> bool:
        """See `OwnerWords`."""
        return await asyncio.to_thread(lacks_name, self._store, half, peer, offered)

    async def changed_meaning(
        self, half: HalfRecord, capabilities: Sequence[Capability]
    ) -> str | None:
        """See `OwnerWords`."""
        return await self._meanings.problem(half, capabilities)

    async def give_back(self, way: str, peer: str, capability: Capability) -> None:
        """Let a word count again that a call used up which did not run."""
        subject = subject_of_capability(way, capability.name)
        word = self._used.pop((peer, subject), None)
        if word is not None:
            await asyncio.to_thread(self._store.give_back_standing, word)

    def _words(self, peer: str, subjects: set[str]) -> list[StandingRecord]:
        now = time.time()
        return [
            word
            for word in self._store.standing(peer)
            if word.subject in subjects
            and word.verdict in {"accept", "reject"}
            and word.used is None
            and word.expires > now
        ]

    async def _use(self, word: StandingRecord) -> bool:
        taken = await asyncio.to_thread(
            self._store.take_standing,
            word,
            by=word.negotiation_id or word.id,
            now=time.time(),
        )
        if taken is not None and word.subject is not None:
            # The next call is a new question.
            self._asked.pop((word.peer_did, word.subject), None)
            self._used[word.peer_did, word.subject] = taken
        return taken is not None

    def look_again(self) -> None:
        """Look up anew what is withdrawn from our own agent; it may be more by now."""
        self._ours, self._looks = None, self._looks + 1

    async def use(self, peer: str, words: str, capability: str | None) -> None:
        """Let our own agent use a capability of a peer, unless it is withdrawn.

        Args:
            peer: Its DID, in any form.
            words: The need in words.
            capability: The capability's full name, as far as it is known.

        Raises:
            CallError: `approval_pending`, its question is in the owner's queue; or
                `policy`, the owner refused it there.
        """
        role = AgreementRole.REQUESTER
        names, asked = self._ours, self._looks
        if names is None:
            found = await asyncio.to_thread(self._store.withdrawals)
            names = {one.capability for one in found if one.role is role}
            self._ours = names if asked == self._looks else None
        meant = [one for one in names if one == capability or means(words, one)]
        if not meant:
            return
        peer = await asyncio.to_thread(self._store.canonical_did, peer) or peer
        for name in await asyncio.to_thread(self._store.withdrawn, role, peer, meant):
            subject = subject_of_capability("call", name)
            for word in await asyncio.to_thread(self._words, peer, {subject}):
                if word.role is role and word.verdict == "reject":
                    raise CallError(ErrorKind.POLICY, f"you refused calls of {name}")
            reason = f"your agent wants to call {name}, which you withdrew"
            pending = {"capability": name, "way": "call", "read_only": False}
            pending["withdrawn"] = [name]
            await self._ask(peer, subject, pending, reason=reason, role=role)
            raise CallError(
                ErrorKind.APPROVAL_PENDING,
                f"you withdrew {name} of this peer with a revocation; `anpd approvals "
                "list` shows the question about it: accept it, and call again",
                retry_after=RETRY_AFTER,
            )

    async def _ask(
        self,
        peer: str,
        subject: str,
        pending: dict[str, Any],
        *,
        reason: str,
        role: AgreementRole = AgreementRole.PROVIDER,
    ) -> None:
        """Put a question into the owner's queue, unless it stands there.

        Raises:
            CapabilityFailed: There is no place for the question of a stranger.
        """
        now = time.time()
        known = self._asked.get((peer, subject))
        if known is not None:
            # What was decided before a withdrawal does not answer it.
            if now - known[1] < RETRY_AFTER and not pending.get("withdrawn"):
                return
            record = await asyncio.to_thread(self._store.negotiation, known[0])
            if record is not None and record.decision is None:
                self._asked[peer, subject] = known[0], now
                return
        if role is AgreementRole.PROVIDER:
            why = refusal_of(pending)
            has_place = not why or await self._places.take(peer, subject)
            if not has_place and not pending["withdrawn"]:
                raise CapabilityFailed("403", why, ran=False)
            if not (has_place and await self._has_room(peer, now)):
                logger.warning("question of an unlisted peer not kept peer=%s", peer)
                return
        question = NegotiationRecord(
            id=secrets.token_hex(8),
            peer_did=peer,
            role=role,
            need=None,
            turns=(),
            outcome=APPROVAL_PENDING,
            reason=reason[:MAX_REASON],
            hash=None,
            started=now,
            ended=now,
            subject=subject,
            pending=pending,
        )
        # Before the row is written: calls that come at once ask together.
        self._asked[peer, subject] = question.id, now
        while len(self._asked) > MAX_QUESTIONS:
            self._asked.popitem(last=False)
        await asyncio.to_thread(self._store.save_negotiation, question)
        self._on_waiting(question)

    async def _has_room(self, peer: str, now: float) -> bool:
        if await asyncio.to_thread(self._is_listed, peer):
            return True
        self._unlisted = [at for at in self._unlisted if now - at < HOUR]
        if len(self._unlisted) >= MAX_UNLISTED:
            return False
        self._unlisted.append(now)
        return True


def _who(peer: str) -> str:
    return party_name(peer) if peer.startswith(LOCAL) else "the peer"
