"""Finds or makes the protocol for a need, and a channel that is bound to it."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakValueDictionary

from anp.channel.channel import Channel
from anp.channel.links import Links, LinkTarget
from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.agreement import Agreer
from anp.sidecar.agreement.stored import DocumentCandidate, names_of
from anp.sidecar.bound.base import RequesterParts
from anp.sidecar.bound.requester import BoundRequester
from anp.sidecar.calls.candidates import Candidate, CandidateFinder, WrittenCandidate
from anp.sidecar.calls.enforcer import Enforcer
from anp.sidecar.calls.known import KnownAgreements
from anp.sidecar.calls.prepared import BoundRequest, Prepared, WrittenRequest
from anp.sidecar.calls.question import ask_peer
from anp.sidecar.calls.requesters import MetaOffer, Requesters
from anp.sidecar.consensus.written import WrittenParts, WrittenRequester
from anp.sidecar.halves.protocol import DoesNotFit
from anp.sidecar.minds.accounts import NO_COST, Cost
from anp.sidecar.minds.templates import Templates
from cache.records.records import AgreementRecord, AgreementState, HalfRecord
from cache.store import Store
from negotiation.consensus.selection import Published
from negotiation.errors import DocumentError, HalfError, NegotiationError, told_of
from negotiation.mind import Demand
from negotiation.need import need_key
from negotiation.trial.worked import BEYOND

ABOUT = 2048
"Bytes of a message beside its arguments, at most."

AGREED_ANEW: Final = (
    "the peer no longer took what was agreed before, so this was agreed anew; the "
    "fields or the description of its capability may have changed"
)
"Note with the first call after a peer declined an agreement."

MAX_WORDS: Final = 200
"Most characters of a peer's description in a note."

logger = logging.getLogger(__name__)


class Binder:
    """Finds or makes an agreement with a peer, and a channel bound to it."""

    def __init__(
        self,
        *,
        links: Links,
        store: Store,
        agreer: Agreer,
        parts: RequesterParts,
        written: WrittenParts,
        enforcer: Enforcer,
        candidates: CandidateFinder,
        own_did: str,
        offer: MetaOffer,
        remember: Callable[[Channel], Awaitable[None]],
        templates: Templates,
        test_cases: bool,
        shares_agreements: bool,
    ) -> None:
        """Make the binder.

        Args:
            shares_agreements: True if an agreement made with one peer is offered to
                another one (ANP-86).
        """
        self._links = links
        self._agreer = agreer
        self._parts = parts
        self.candidates = candidates
        self._known = KnownAgreements(store, own_did, parts.common.workshop, remember)
        self._remember = remember
        self._templates = templates
        self._test_cases = test_cases
        self.shares_agreements = shares_agreements
        self.requesters = Requesters(
            links, parts, written, enforcer, offer=offer, remember=remember
        )
        "Every open channel to a peer, also for those who end them."
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = (
            WeakValueDictionary()
        )
        "Held by those who wait for them alone: needs are many and come once."

    async def prepare(
        self,
        target: LinkTarget,
        demand: Demand,
        mark: Callable[[str], None],
        *,
        named: str | None = None,
        consensus: bool = True,
    ) -> Prepared:
        """Make a request ready in a protocol that takes it, negotiating if needed.

        Calls for the same need at the same time make one negotiation.

        Args:
            named: A consensus protocol that the caller wants, by its URI.
            consensus: True if consensus protocols may be offered.

        Raises:
            CallError: There is none.
        """
        in_words = named is None and demand.need.is_sentence
        if in_words:
            demand = await self._templates.known(target.did, demand)
        key = need_key(demand.need)
        lock = self._locks.setdefault((target.did, key), asyncio.Lock())
        if named is not None and self.candidates.is_misfit(target, named, demand):
            # An agreement made in its place is used, or one is negotiated now.
            named, consensus = None, False
        async with lock:
            found: Prepared | Channel | None = None
            cost = NO_COST
            if named is None or not consensus:
                found = await self._agreed(target, key, demand, mark)
            declined = isinstance(found, Channel)
            if in_words and not isinstance(found, Prepared):
                taken, cost = await self._templates.marked(target.did, demand)
                if taken is not demand:
                    # The same words with other values have the same agreement.
                    await _end(found)
                    mark("the values in the words are arguments")
                    ready = await self.prepare(target, taken, mark, consensus=consensus)
                    return ready.charged(cost)
            found = await self._freely(
                target, key, demand, found, named, consensus, mark
            )
            if not isinstance(found, Prepared):
                found = await self._anew(target, key, demand, found, mark)
            if declined:
                found.news = AGREED_ANEW
            return found.charged(cost)

    async def _freely(
        self,
        target: LinkTarget,
        key: str,
        demand: Demand,
        found: Prepared | Channel | None,
        named: str | None,
        consensus: bool,
        mark: Callable[[str], None],
    ) -> Prepared | Channel | None:
        """Go through what needs no negotiation; returns as `_agreed` does."""
        if consensus and named is None and not isinstance(found, Prepared):
            found = await self._as_published(target, key, demand, found, mark)
        if found is None and consensus:
            found = await self._by_consensus(target, key, demand, named, mark)
        return found

    async def _anew(
        self,
        target: LinkTarget,
        key: str,
        demand: Demand,
        channel: Channel | None,
        mark: Callable[[str], None],
    ) -> Prepared:
        """Negotiate, on the channel on which the peer declined, if there is one."""
        failed = await self._known.failure(target.did, key)
        if failed is not None:
            if channel is not None:
                await channel.close("no agreement")
            raise failed
        if channel is None:
            channel = await self.requesters.open(target, None)
            mark("channel open, peer verified")
        begins = AgreementState.TESTING if self._test_cases else AgreementState.ACTIVE
        agreed = await self._agreer.agree(channel, demand, begins=begins)
        try:
            await self._remember(channel)
            mark("protocol agreed, code checked")
            bound = await self._bind(
                target, channel, agreed.agreement, agreed.half, demand
            )
        except BaseException:
            # Also when the call is cancelled: the peer serves the channel already.
            await channel.close("our half cannot be used")
            raise
        if self._test_cases:
            await bound.cases.verify()
            mark("tested with the peer")
        await channel.keep(agreed.agreement.hash)
        cost = agreed.cost + Cost(messages=bound.dialogue.messages)
        return await self._encoded(bound, demand, source="negotiated", cost=cost)

    def does_not_serve(self, target: LinkTarget, prepared: Prepared) -> None:
        """Remember that a consensus protocol does not know what a need asks for."""
        if prepared.uri is not None:
            self.candidates.does_not_serve(target, prepared.uri, prepared.demand)

    # Documents that the peer publishes of its capabilities.

    async def _as_published(
        self,
        target: LinkTarget,
        key: str,
        demand: Demand,
        declined: Channel | None,
        mark: Callable[[str], None],
    ) -> Prepared | Channel | None:
        """Go through the document of the capability that a need names.

        Args:
            key: The need's, under which nothing was found that the peer takes.
            declined: Channel on which the peer declined an agreement, if there is one.

        Returns:
            A request made ready; or a channel on which the peer declined, to negotiate
            on; or None.
        """
        published = await self.candidates.published(target, demand)
        if published is None:
            return declined
        named = need_key(published.need)
        if named == key:
            return await self._through_published(
                target, published, demand, declined, mark
            )
        lock = self._locks.setdefault((target.did, named), asyncio.Lock())
        async with lock:
            # The same capability in other words has the same agreement.
            found = await self._agreed(target, named, demand, mark)
            if isinstance(found, Prepared):
                await _end(declined)
                return found
            if found is not None:
                await _end(declined)
                declined = found
            return await self._through_published(
                target, published, demand, declined, mark
            )

    async def _through_published(
        self,
        target: LinkTarget,
        published: Published,
        demand: Demand,
        declined: Channel | None,
        mark: Callable[[str], None],
    ) -> Prepared | Channel | None:
        """Open a channel on a published document, with our rules' half."""
        if (
            declined is not None
            and declined.own_meta.used_protocol_hash == published.hash
        ):
            return declined
        selected = await self.candidates.with_half(target, published, demand)
        if selected is None:
            return declined
        await _end(declined)
        mark("code for the published protocol checked")
        channel = await self.requesters.open(target, published.hash)
        mark("channel open, peer verified")
        if channel.peer_meta.used_protocol_hash != published.hash:
            logger.info("published protocol declined hash=%s", published.hash[:12])
            self.candidates.declined(target)
            return channel
        await self._remember(channel)
        settled = Demand(published.need, demand.arguments)
        return await self._kept(target, channel, selected, settled, source="published")

    # Consensus protocols.

    async def _by_consensus(
        self,
        target: LinkTarget,
        key: str,
        demand: Demand,
        named: str | None,
        mark: Callable[[str], None],
    ) -> Prepared | Channel | None:
        """Offer the protocols that serve a need (ANP-92).

        Returns:
            A request made ready; or the channel on which the peer selected none, to
            negotiate on; or None when there is nothing to offer.
        """
        if named is not None:
            digest = await self.candidates.digest(target, named)
            if digest is not None:
                found = await self._agreed(target, key, demand, mark, only=digest)
                if found is not None:
                    return found
        candidates = await self.candidates.find(target, demand, named=named)
        for candidate in candidates:
            if isinstance(candidate, WrittenCandidate):
                known = self.requesters.written(target.did, candidate.uri)
                if known is not None:
                    return self.written(target, known, candidate, demand)
            size = len(json.dumps(demand.arguments)) + ABOUT
            resumed = await self._links.resume_channel(
                target, *candidate.names, size=size
            )
            if resumed is not None:
                mark("key kept")
                return await self._selected(resumed, target, candidate, demand)
        if not candidates:
            return None
        offered = [one.uri for one in candidates if one.uri is not None]
        channel = await self.requesters.open(target, None, offered)
        mark("channel open, peer verified")
        uri = channel.peer_meta.selected_protocol
        selected = next((one for one in candidates if one.uri == uri), None)
        if selected is None:
            logger.info(
                "no protocol selected peer=%s offered=%d", target.did, len(offered)
            )
            self.candidates.declined(target, demand, named=named)
            return channel
        logger.info("protocol selected uri=%s peer=%s", selected.uri, target.did)
        await self._remember(channel)
        return await self._selected(channel, target, selected, demand)

    async def _selected(
        self, channel: Channel, target: LinkTarget, selected: Candidate, demand: Demand
    ) -> Prepared:
        """Use what both sides know by its URI, without negotiation (ANP-94)."""
        if isinstance(selected, WrittenCandidate):
            written = self.requesters.start_written(
                target.did, channel, selected.uri, selected.entry.code
            )
            return self.written(target, written, selected, demand)
        return await self._kept(target, channel, selected, demand, source="consensus")

    async def _kept(
        self,
        target: LinkTarget,
        channel: Channel,
        selected: DocumentCandidate,
        demand: Demand,
        *,
        source: str,
    ) -> Prepared:
        """Keep our half of what the peer confirmed, and encode the request with it."""
        try:
            agreement, half = await self._known.keep(channel, selected, demand)
            bound = await self._bind(target, channel, agreement, half, demand)
            return await self._encoded(bound, demand, source=source, uri=selected.uri)
        except BaseException:
            await channel.close("our half cannot be used")
            raise

    def written(
        self,
        target: LinkTarget,
        bound: WrittenRequester,
        candidate: WrittenCandidate,
        demand: Demand,
    ) -> Prepared:
        """Return a request for a channel of a protocol of the daemon's own."""
        # Perhaps the peer takes other data by now than its list said.
        return WrittenRequest(
            bound, candidate, demand, lambda: self.candidates.declined(target)
        )

    async def channel_for_tests(
        self,
        target: LinkTarget,
        agreement: AgreementRecord,
        half: HalfRecord,
        demand: Demand,
    ) -> BoundRequester:
        """Open a channel for test cases alone; no call is ever sent on it.

        Raises:
            CallError: `negotiation_rejected`, the peer declines the agreement; or it
                cannot be reached, or our half not be loaded.
        """
        protocol = await self._known.loaded(half, agreement, demand)
        return await self.requesters.for_tests(
            target, protocol, half, agreement, demand
        )

    async def ask(self, target: LinkTarget, question: str) -> str:
        """Ask a peer about protocols in words, and return its answer (ANP-66).

        Raises:
            CallError: See `ask_peer`.
        """
        channel = await self.requesters.open(target, None)
        return await ask_peer(channel, question, self._parts.common.limits)

    async def _agreed(
        self,
        target: LinkTarget,
        key: str,
        demand: Demand,
        mark: Callable[[str], None],
        *,
        only: str | None = None,
    ) -> Prepared | Channel | None:
        """Try the agreements for a need, the newest first.

        Args:
            only: Only agreements on the document with this hash.

        Returns:
            A request made ready; or the channel on which the peer declined the newest
            agreement that fits, to negotiate on; or None when none fits.
        """
        shared = [self._known.with_others] * self.shares_agreements
        for find in [self._known.with_peer, *shared]:
            for agreement in await asyncio.to_thread(find, target.did, key):
                if only in {None, agreement.hash}:
                    found = await self._through(agreement, target, demand, mark)
                    if found is not None:
                        return found
        return None

    async def _through(
        self,
        agreement: AgreementRecord,
        target: LinkTarget,
        demand: Demand,
        mark: Callable[[str], None],
    ) -> Prepared | Channel | None:
        """Try one agreement; returns as `_agreed` does."""
        known = self.requesters.live(agreement, target.did)
        half = None
        try:
            if known is not None:
                protocol = known.protocol
            else:
                half = await self._known.half(agreement)
                if half is None or half.state is not AgreementState.ACTIVE:
                    return None
                protocol = await self._known.protocol(half, agreement, demand)
            message_id = secrets.token_hex(8)
            assert isinstance(demand.arguments, dict), "checked before the call"
            data = await protocol.encode(message_id, demand.arguments)
        except (DoesNotFit, HalfError, DocumentError) as exc:
            if isinstance(exc, HalfError) and exc.outcome == "quarantined":
                # A new negotiation would come to the same code.
                raise CallError(ErrorKind.GENERATED_CODE, str(exc)) from exc
            if BEYOND in str(exc):
                # What was agreed is the format that the need insists on.
                said = str(exc).partition(BEYOND)[2]
                raise CallError(ErrorKind.USAGE, f"{BEYOND}{said}"[:500]) from exc
            # Left alone: it is good for data of its own shape.
            logger.debug("agreement skipped hash=%s %s", agreement.hash[:12], exc)
            return None
        if known is not None:
            return BoundRequest(known, demand, message_id, data, source="agreement")
        names = names_of(agreement)
        channel = await self._links.resume_channel(target, *names, size=len(data))
        if channel is None:
            channel = await self.requesters.open(target, agreement.hash)
        mark("key kept" if channel.resumed else "channel open, peer verified")
        answer = channel.peer_meta
        if not {answer.used_protocol_hash, answer.selected_protocol} & {*names}:
            logger.info("agreement declined hash=%s", agreement.hash[:12])
            self.candidates.declined(target)
            return channel
        assert half is not None
        ours = await self._known.own(channel, agreement, half)
        bound = self.requesters.start(channel, protocol, half, ours, demand)
        bound.dialogue.spawn(self._compare(target, bound))
        return BoundRequest(bound, demand, message_id, data, source="agreement")

    async def _bind(
        self,
        target: LinkTarget,
        channel: Channel,
        agreement: AgreementRecord,
        half: HalfRecord,
        demand: Demand,
    ) -> BoundRequester:
        protocol = await self._known.loaded(half, agreement, demand)
        bound = self.requesters.start(channel, protocol, half, agreement, demand)
        bound.dialogue.spawn(self._compare(target, bound))
        return bound

    async def _compare(self, target: LinkTarget, bound: BoundRequester) -> None:
        """Compare what the peer says of the capability with what it said when agreed.

        The next call is told; the first time it is only kept.
        """
        agreement = bound.agreement
        name = agreement.tests.get("capability")
        found = None
        if isinstance(name, str):
            found = await self.candidates.meaning(target, name)
        if found is None:
            return
        digest, words = found
        known = agreement.tests.get("meaning")
        if known is None:
            await self._known.note(agreement, {"meaning": digest})
        elif known != digest:
            bound.news = (
                f"the peer describes {name} in other words since this was agreed: "
                f"{words[:MAX_WORDS]!r}",
            )

    async def _encoded(
        self,
        bound: BoundRequester,
        demand: Demand,
        *,
        source: str,
        uri: str | None = None,
        cost: Cost = NO_COST,
    ) -> Prepared:
        try:
            return await BoundRequest.of(
                bound, demand, source=source, uri=uri, cost=cost
            )
        except NegotiationError as exc:
            raise CallError(
                ErrorKind.GENERATED_CODE, f"our code cannot encode: {told_of(exc)}"
            ) from exc


async def _end(channel: Channel | None) -> None:
    """Close a channel on which nothing was agreed, if there is one."""
    if channel is not None:
        await channel.close("another protocol is wanted")
