"""The channels of this daemon as requester, by agreement, by URI and by peer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Any
from typing import Protocol as Interface

from anp.channel.channel import Channel
from anp.channel.core.traffic import EXTENSION_CLOSE
from anp.channel.links import Links, LinkTarget
from anp.errors import CallError, ErrorKind
from anp.sidecar.bound.base import RequesterParts
from anp.sidecar.bound.natural import Asker
from anp.sidecar.bound.requester import BoundRequester
from anp.sidecar.calls.enforcer import Enforcer
from anp.sidecar.calls.renewer import Renewer
from anp.sidecar.consensus.written import WrittenParts, WrittenRequester
from anp.sidecar.halves.protocol import Protocol
from anp.wire.meta_protocol import MetaProtocol
from cache.records.records import AgreementRecord, HalfRecord
from negotiation.consensus.written import WrittenCode
from negotiation.mind import Demand


class MetaOffer(Interface):
    """Makes our `metaProtocol` for a hello."""

    def __call__(
        self, digest: str | None, *, candidates: Sequence[str] = ()
    ) -> MetaProtocol: ...


class Requesters:
    """Finds the open channel for a call, and starts new ones."""

    def __init__(
        self,
        links: Links,
        parts: RequesterParts,
        written: WrittenParts,
        enforcer: Enforcer,
        *,
        offer: MetaOffer,
        remember: Callable[[Channel], Awaitable[None]],
    ) -> None:
        self._links = links
        self._offer = offer
        self._remember = remember
        self._parts = parts
        self._written_parts = written
        self._bound: dict[tuple[str, str], list[BoundRequester]] = {}
        "Open channels by peer and document, which no repair changes; oldest first."
        self._written: dict[tuple[str, str], WrittenRequester] = {}
        self._askers: dict[str, Asker] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._retiring: set[asyncio.Task[None]] = set()
        self._enforcer = enforcer
        self._renewer = Renewer(longest_call=parts.call_timeout)
        self.on_proved: Callable[[LinkTarget], Awaitable[None]] = _ignored
        "Told of each peer that proved its DID at an address."

    def live(self, agreement: AgreementRecord, did: str) -> BoundRequester | None:
        """Return the open channel of an agreement, or None.

        Args:
            did: The peer as it was addressed: the agreement may be another peer's.
        """
        wanted = _key(agreement)
        for bound in reversed(self._bound.get(wanted[:2], ())):
            # A repair moves the agreement of a channel on, so it is looked at anew.
            if (
                bound.alive
                and not bound.channel.retired
                and _key(bound.agreement) == wanted
                and did in {bound.channel.peer_did, agreement.peer_did}
            ):
                return bound
        return None

    def written(self, did: str, uri: str) -> WrittenRequester | None:
        """Return the open channel of a protocol of the daemon's own, or None."""
        bound = self._written.get((did, uri))
        if bound is None or not bound.alive or bound.channel.retired:
            return None
        return bound

    def start_written(
        self, did: str, channel: Channel, uri: str, code: WrittenCode
    ) -> WrittenRequester:
        """Use a channel for a protocol of the daemon's own.

        Args:
            did: The peer as it was addressed.
        """
        key = did, uri

        def ended(bound: WrittenRequester) -> None:
            if self._written.get(key) is bound:
                del self._written[key]

        bound = WrittenRequester(channel, uri, code, self._written_parts, on_end=ended)
        self._written[key] = bound
        self._renewer.watch(
            bound, uri, lambda renewed: self.start_written(did, renewed, uri, code)
        )
        return bound

    def start(
        self,
        channel: Channel,
        protocol: Protocol,
        half: HalfRecord,
        agreement: AgreementRecord,
        demand: Demand,
    ) -> BoundRequester:
        """Bind a channel to a protocol and take in what comes from now on."""
        bound = BoundRequester(
            channel, protocol, half, agreement, demand, self._parts, on_end=self._ended
        )
        self._bound.setdefault(_key(agreement)[:2], []).append(bound)
        self._enforcer.calls(
            channel, hash=agreement.hash, peer=agreement.peer_did, end=bound.revoke
        )
        self._renewer.watch(
            bound,
            agreement.hash,
            # A repair may have moved both on.
            lambda renewed: self.start(
                renewed, bound.protocol, bound.half, bound.agreement, demand
            ),
        )
        return bound

    @property
    def hashes(self) -> frozenset[str]:
        """Hashes of the documents that open channels speak."""
        return frozenset(one.agreement.hash for one in self._open)

    def retire(self, agreements: Collection[AgreementRecord]) -> None:
        """End the channels of other revisions than these, after their calls in flight.

        New calls take a channel of the revision that an agreement names, so none comes
        to them any more.
        """
        current = {(one.peer_did, one.hash): one.revision for one in agreements}
        for bound in self._open:
            used = bound.agreement
            revision = current.get((used.peer_did, used.hash))
            if revision not in {None, used.revision}:
                self._end_soon(_end(bound))

    async def open(
        self, target: LinkTarget, digest: str | None, candidates: Sequence[str] = ()
    ) -> Channel:
        """Open a channel on which a protocol is offered, or none.

        Args:
            digest: Hash of the document to offer.
            candidates: URIs of the protocols to offer.

        Raises:
            CallError: The peer cannot be reached, or refuses.
        """
        await self._make_room(target.did)
        meta = self._offer(digest, candidates=candidates)
        channel = await self._links.open_channel(target, meta)
        await self.on_proved(target)
        return channel

    async def reopen(
        self, target: LinkTarget, lost: BoundRequester, demand: Demand
    ) -> BoundRequester:
        """Return an open channel of the agreement of one whose link was lost.

        Raises:
            CallError: `peer_unreachable`; `negotiation_rejected`, the peer does not
                serve the agreement any more.
        """
        agreement = lost.agreement
        async with self._opening.setdefault(target.did, asyncio.Lock()):
            known = self.live(agreement, target.did)
            if known is not None:
                return known
            channel = await self.open(target, agreement.hash)
            await _check_binding(channel, agreement.hash)
            return self.start(channel, lost.protocol, lost.half, agreement, demand)

    async def for_tests(
        self,
        target: LinkTarget,
        protocol: Protocol,
        half: HalfRecord,
        agreement: AgreementRecord,
        demand: Demand,
    ) -> BoundRequester:
        """Open a channel for test cases alone; no call is ever sent on it.

        Raises:
            CallError: `negotiation_rejected`, the peer declines the agreement; or it
                cannot be reached.
        """
        channel = await self.open(target, agreement.hash)
        if channel.peer_meta.used_protocol_hash != agreement.hash:
            await channel.close("nothing to test")
            raise CallError(
                ErrorKind.NEGOTIATION_REJECTED,
                f"the peer declines {agreement.hash[:12]} now; its owner may have "
                "revoked it, or a schema has changed; a call negotiates again",
            )
        bound = BoundRequester(
            channel,
            protocol,
            half,
            agreement,
            demand,
            self._parts,
            on_end=lambda _: None,
        )
        # Until its user closes it.
        channel.in_use = lambda: True
        return bound

    async def reopen_written(
        self, target: LinkTarget, uri: str, code: WrittenCode
    ) -> WrittenRequester:
        """Return an open channel of a protocol of the daemon's own; see `reopen`."""
        async with self._opening.setdefault(target.did, asyncio.Lock()):
            known = self.written(target.did, uri)
            if known is not None:
                return known
            channel = await self.open(target, None, [uri])
            await _check_binding(channel, uri)
            return self.start_written(target.did, channel, uri, code)

    async def _make_room(self, did: str) -> None:
        """End idle channels to a peer without our extensions (DESIGN.md).

        The official SDK sends only under its newest key for a pair of DIDs.
        """
        for bound in self._open:
            channel = bound.channel
            if channel.peer_did != did or EXTENSION_CLOSE in channel.extensions:
                continue
            await bound.wait_idle()
            await channel.close("another protocol is wanted")
            self._ended(bound)
        for (peer, _), written in list(self._written.items()):
            if peer == did and EXTENSION_CLOSE not in written.channel.extensions:
                await written.wait_idle()
                await written.channel.close("another protocol is wanted")

    def asker(self, did: str) -> Asker | None:
        """Return the open channel for natural language with a peer, or None."""
        asker = self._askers.get(did)
        return asker if asker is not None and asker.channel.open else None

    async def open_asker(
        self, target: LinkTarget, mark: Callable[[str], None]
    ) -> Asker:
        """Return a channel on which words are exchanged with a peer (ANP-72).

        Raises:
            CallError: The peer does not take natural language, or cannot be reached.
        """
        async with self._opening.setdefault(target.did, asyncio.Lock()):
            known = self.asker(target.did)
            if known is not None:
                return known
            channel = await self.open(target, None)
            mark("channel open, peer verified")
            if "naturalLanguageProtocol" not in channel.capabilities:
                await channel.close("natural language is not common")
                raise CallError(
                    ErrorKind.POLICY,
                    "one of the two daemons does not offer naturalLanguageProtocol; "
                    "call without --mode natural-language",
                )
            await self._remember(channel)
            asker = Asker(channel, timeout=self._parts.call_timeout)
            self._askers[target.did] = asker
            return asker

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside, as for a call that nobody waits for any more."""
        self._end_soon(work)

    async def close(self) -> None:
        """End what is done beside; the daemon stops."""
        tasks = set(self._retiring)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end_soon(self, ending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(ending)
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    def _ended(self, bound: BoundRequester) -> None:
        self._enforcer.left(bound.channel)
        key = _key(bound.agreement)[:2]
        known = self._bound.get(key, [])
        if bound in known:
            known.remove(bound)
        if not known:
            self._bound.pop(key, None)

    @property
    def _open(self) -> list[BoundRequester]:
        return [bound for known in self._bound.values() for bound in known]


async def _end(bound: BoundRequester) -> None:
    await bound.wait_idle()
    await bound.channel.close("stale: another revision of our half is in use")


async def _check_binding(channel: Channel, binding: str) -> None:
    """Close a channel on which the peer did not confirm its one protocol.

    Raises:
        CallError: `negotiation_rejected`, it did not.
    """
    answer = channel.peer_meta
    if binding not in {answer.used_protocol_hash, answer.selected_protocol}:
        await channel.close("only that protocol is wanted")
        raise CallError(
            ErrorKind.NEGOTIATION_REJECTED, "the peer declines the protocol now"
        )


def _key(agreement: AgreementRecord) -> tuple[str, str, int]:
    return agreement.peer_did, agreement.hash, agreement.revision


async def _ignored(target: LinkTarget) -> None:
    """Do nothing."""
