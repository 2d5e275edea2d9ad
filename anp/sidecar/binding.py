"""Finds or makes the protocol for a task, and a channel that is bound to it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

from anp.channel.channel import Channel
from anp.channel.links import Links, Target
from anp.errors import CallError, ErrorKind
from anp.sidecar.agreeing import Agreer
from anp.sidecar.asking import ask_peer
from anp.sidecar.case_outcomes import failed_texts, ruled_out
from anp.sidecar.natural import Asker
from anp.sidecar.protocol import DoesNotFit, Protocol
from anp.sidecar.session import Session, SessionParts
from anp.sidecar.sessions import Sessions
from anp.sidecar.testing import verify_with_peer
from anp.wire.messages import MetaProtocol
from cache.records import AgreementRecord, HalfRecord, Role, State
from cache.store import Store
from negotiation.errors import DocumentError, HalfError, NegotiationError
from negotiation.mind import Need
from negotiation.task import Task, task_key

__all__ = ["Binder", "Ready"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Ready:
    """A session with one request encoded for it."""

    session: Session
    "Where to send it."

    message_id: str
    "Its message id."

    data: bytes
    "Its bytes."

    source: str
    "`negotiated` or `agreement`."

    messages: int = 0
    "Meta messages that it took, both directions."

    rounds: int = 0
    "Candidates that were on the table."

    model_calls: int = 0
    "Model calls that it took, on our side."

    cost: float = 0.0
    "What those cost at the owner's prices."


class Binder:
    """Finds or makes an agreement with a peer, and a session over it."""

    def __init__(
        self,
        *,
        links: Links,
        store: Store,
        agreer: Agreer,
        parts: SessionParts,
        own_did: str,
        offer: Callable[[str | None], MetaProtocol],
        remember: Callable[[Channel], Awaitable[None]],
        test_cases: bool,
    ) -> None:
        self._links = links
        self._store = store
        self._agreer = agreer
        self._parts = parts
        self._own_did = own_did
        self._offer = offer
        self._remember = remember
        self._test_cases = test_cases
        self._sessions = Sessions(parts)
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    async def ready(
        self,
        target: Target,
        task: Task,
        arguments: dict[str, Any],
        mark: Callable[[str], None],
    ) -> Ready:
        """Return a session whose protocol takes the data, negotiating if needed.

        Calls for the same task at the same time make one negotiation.

        Raises:
            CallError: There is none.
        """
        key = task_key(task)
        need = Need(task, arguments)
        lock = self._locks.setdefault((target.did, key), asyncio.Lock())
        async with lock:
            found = await self._agreed(target, key, need, arguments, mark)
            if isinstance(found, Ready):
                return found
            channel = found
            await self._check_failures(target, key, channel)
            if channel is None:
                channel = await self._open(target, None)
                mark("channel open, peer verified")
            begins = State.TESTING if self._test_cases else State.ACTIVE
            agreed = await self._agreer.agree(channel, need, begins=begins)
            await self._remember(channel)
            mark("protocol agreed, code checked")
            session = await self._bind(channel, agreed.agreement, agreed.half, need)
            if self._test_cases:
                await verify_with_peer(session, need, self._parts.validator)
                mark("tested with the peer")
            ready = await self._encoded(session, arguments, "negotiated")
            ready.messages = agreed.messages + session.dialogue.messages
            ready.rounds, ready.model_calls = agreed.rounds, agreed.model_calls
            ready.cost = agreed.cost
            calls, cost = session.bill.take()
            ready.model_calls += calls
            ready.cost += cost
            return ready

    async def asker(self, target: Target, mark: Callable[[str], None]) -> Asker:
        """Return a channel on which words are exchanged with a peer (ANP-72).

        Raises:
            CallError: The peer does not take natural language, or cannot be reached.
        """
        lock = self._locks.setdefault((target.did, "natural language"), asyncio.Lock())
        async with lock:
            known = self._sessions.asker(target.did)
            if known is not None:
                return known
            channel = await self._open(target, None)
            mark("channel open, peer verified")
            if "naturalLanguageProtocol" not in channel.capabilities:
                await channel.close("natural language is not common")
                raise CallError(
                    ErrorKind.POLICY,
                    "one of the two daemons does not offer naturalLanguageProtocol; "
                    "call without --mode natural-language",
                )
            await self._remember(channel)
            return self._sessions.start_asker(target.did, channel)

    def retire(self, agreements: Collection[AgreementRecord]) -> None:
        """End what runs on other revisions than these; see `Sessions.retire`."""
        self._sessions.retire(agreements)

    async def ask(self, target: Target, question: str) -> str:
        """Ask a peer about protocols in words, and return its answer (ANP-66).

        Raises:
            CallError: See `ask_peer`.
        """
        channel = await self._open(target, None)
        return await ask_peer(channel, question, self._parts.limits)

    async def _agreed(
        self,
        target: Target,
        key: str,
        need: Need,
        arguments: dict[str, Any],
        mark: Callable[[str], None],
    ) -> Ready | Channel | None:
        """Try the agreements for a task, the newest first.

        Returns:
            A ready session; or the channel on which the peer declined the newest
            agreement that fits, to negotiate on; or None when none fits.
        """
        for agreement in await asyncio.to_thread(self._agreements, target.did, key):
            known = self._sessions.live(agreement)
            half = None
            try:
                if known is not None:
                    protocol = known.protocol
                else:
                    half = await self._half(agreement)
                    if half is None:
                        continue
                    protocol = await self._protocol(half, agreement.peer_did)
                message_id, data = await self._request(protocol, arguments)
            except (DoesNotFit, HalfError, DocumentError) as exc:
                if isinstance(exc, HalfError) and exc.outcome == "quarantined":
                    # A new negotiation would come to the same code.
                    raise CallError(ErrorKind.GENERATED_CODE, str(exc)) from exc
                # Left alone: it is good for data of its own shape.
                logger.debug("agreement skipped hash=%s %s", agreement.hash[:12], exc)
                continue
            if known is not None:
                return Ready(known, message_id, data, "agreement")
            channel = await self._open(target, agreement.hash)
            mark("channel open, peer verified")
            if channel.peer_meta.used_protocol_hash != agreement.hash:
                logger.info("agreement declined hash=%s", agreement.hash[:12])
                return channel
            assert half is not None
            session = self._sessions.start(channel, protocol, half, agreement, need)
            return Ready(session, message_id, data, "agreement")
        return None

    async def _check_failures(
        self, target: Target, key: str, channel: Channel | None
    ) -> None:
        """Refuse to negotiate what would only fail again, at the owner's cost.

        Raises:
            CallError: `generated_code`, with what failed and what to do.
        """
        known = await asyncio.to_thread(self._agreements, target.did, key, State.FAILED)
        now = time.time()
        failed = ruled_out(failed_texts(known, now=now))
        if failed is not None:
            if channel is not None:
                await channel.close("no agreement")
            raise failed.error(now=now)

    def _agreements(
        self, peer_did: str, key: str, state: State = State.ACTIVE
    ) -> list[AgreementRecord]:
        peers = {peer_did, self._canonical.get(peer_did, peer_did)}
        return [
            agreement
            for peer in peers
            for agreement in self._store.agreements(
                self._own_did, peer, Role.REQUESTER, key, states={state}
            )
        ]

    @property
    def _canonical(self) -> dict[str, str]:
        """Canonical DIDs of peers known under another form, by that form."""
        return {
            alias: peer.did for peer in self._store.peers() for alias in peer.aliases
        }

    async def _half(self, agreement: AgreementRecord) -> HalfRecord | None:
        return await asyncio.to_thread(
            self._store.half, agreement.hash, Role.REQUESTER, agreement.revision
        )

    async def _protocol(self, half: HalfRecord, peer_did: str) -> Protocol:
        document = await asyncio.to_thread(self._store.document, half.hash)
        if document is None:
            raise DocumentError(f"the text of {half.hash[:12]} was not kept")
        return await self._parts.loader.protocol(half, document.text, peer_did=peer_did)

    # Sessions.

    async def _open(self, target: Target, digest: str | None) -> Channel:
        await self._sessions.make_room(target.did)
        return await self._links.open_channel(target, self._offer(digest))

    async def _bind(
        self,
        channel: Channel,
        agreement: AgreementRecord,
        half: HalfRecord,
        need: Need,
    ) -> Session:
        try:
            protocol = await self._protocol(half, agreement.peer_did)
        except (HalfError, DocumentError) as exc:
            raise CallError(
                ErrorKind.GENERATED_CODE, f"our half cannot be loaded: {exc}"
            ) from exc
        return self._sessions.start(channel, protocol, half, agreement, need)

    async def _request(
        self, protocol: Protocol, arguments: dict[str, Any]
    ) -> tuple[str, bytes]:
        message_id = secrets.token_hex(8)
        return message_id, await protocol.encode(message_id, arguments)

    async def _encoded(
        self, session: Session, arguments: dict[str, Any], source: str
    ) -> Ready:
        try:
            message_id, data = await self._request(session.protocol, arguments)
        except NegotiationError as exc:
            raise CallError(
                ErrorKind.GENERATED_CODE, f"our half cannot encode the input: {exc}"
            ) from exc
        return Ready(session, message_id, data, source)
