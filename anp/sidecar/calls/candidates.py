"""Finds the consensus protocols that serve a call of ours (ANP-92).

The order is that of DESIGN.md, How a call flows: one that the caller names, one of the
peer's list whose schemas fit, and a protocol for all capabilities only when the need
names one the peer published with a fitting schema. No model is asked to choose.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from anp.channel.links import LinkTarget
from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.stored import DocumentCandidate
from anp.sidecar.bundles.format import read_bundle
from anp.sidecar.consensus.registry import ConsensusDesk, WrittenEntry
from anp.sidecar.halves.workshop import Workshop
from anp.sidecar.minds.minds import Think
from anp.sidecar.peers.lists import PeerLists
from cache.store import Store
from negotiation.consensus.listing import Listed, ProtocolListing
from negotiation.consensus.registry import MAX_CANDIDATES
from negotiation.consensus.selection import (
    Misfits,
    Pick,
    Published,
    fits_document,
    meant_capability,
    pick_generic,
    published_demand,
    published_for,
    reaching,
)
from negotiation.document.shape import document_hash
from negotiation.errors import DocumentError, HalfError, MindError, NegotiationError
from negotiation.mind import Demand, HalfSource
from negotiation.need import Capability, Role, meaning_hash, need_key, shape_of
from negotiation.rules.rules import RulesMind, published_document
from negotiation.schema.keywords import keywords_of
from negotiation.strict_json import Json

logger = logging.getLogger(__name__)

MAX_TRIED: Final = 3
"Most documents of one list for which a half is made for one call."

MAX_PICKS: Final = 512
"Decisions about generic protocols that are kept, so that a later call is quick."


@dataclass(frozen=True, slots=True)
class WrittenCandidate:
    """A protocol of the daemon's own, and how a need is put into it."""

    uri: str

    entry: WrittenEntry
    "Its code."

    action: str
    "The action to ask for."

    pick: Pick | None
    "Conversion of data and result; None leaves both as they are."

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that a kept key may be bound to."""
        return (self.uri,)


Candidate = WrittenCandidate | DocumentCandidate

_Key = tuple[str, str, Hashable]
"Key of a decision: a peer, a need, and the shape of the data."

_Picks = OrderedDict[_Key, tuple[ProtocolListing | None, Pick | None]]
"Decisions, each with the list that it was taken from."

_Found = TypeVar("_Found")


class CandidateFinder:
    """Finds the entries of `candidateProtocols` for a call."""

    def __init__(
        self,
        *,
        desk: ConsensusDesk,
        lists: PeerLists,
        store: Store,
        workshop: Workshop,
        think: Think,
        enabled: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the finder.

        Args:
            enabled: False when calls that name no protocol are not to look for one.
        """
        self._desk = desk
        self._lists = lists
        self._store = store
        self._workshop = workshop
        self._think = think
        self.enabled = enabled
        self._clock = clock
        self._misfits = Misfits()
        self._published: OrderedDict[_Key, tuple[ProtocolListing, Published | None]] = (
            OrderedDict()
        )
        self._picks: _Picks = OrderedDict()
        self._named_picks: _Picks = OrderedDict()

    async def find(
        self, target: LinkTarget, demand: Demand, *, named: str | None, ask: bool = True
    ) -> list[Candidate]:
        """Return the protocols to offer, best first; none means: negotiate.

        Args:
            named: The URI that the caller or the `[[need]]` names.
            ask: True when the peer may be asked for its list.

        Raises:
            CallError: `usage` or `generated_code`, the named one cannot be spoken.
        """
        if named is not None:
            return [await self._named(target, named, demand)]
        if not self.enabled:
            return []
        listing = await self._lists.listing(target, ask=ask)
        if listing is None or not listing.protocols:
            return []
        return await self._listed(target, listing, demand)

    async def published(self, target: LinkTarget, demand: Demand) -> Published | None:
        """Return the document that a peer publishes of the capability a need names."""
        if not self.enabled:
            return None
        listing = await self._lists.listing(target)
        if listing is None or not listing.documents:
            return None
        key = _key_of(target, demand)
        known = self._published.get(key)
        if known is None or known[0] is not listing:
            found = await asyncio.to_thread(published_for, listing, demand)
            known = listing, found
            _keep(self._published, key, known)
        return known[1]

    async def meaning(
        self, target: LinkTarget, capability: str
    ) -> tuple[str, str] | None:
        """Return the hash and the words of what a peer says of a capability by now.

        Returns:
            None when its list does not say, or is not to be looked at.
        """
        if not self.enabled:
            return None
        listing = await self._lists.listing(target)
        for one in () if listing is None else listing.capabilities:
            if one.name == capability:
                return meaning_hash(one), one.description
        return None

    async def with_half(
        self, target: LinkTarget, published: Published, demand: Demand
    ) -> DocumentCandidate | None:
        """Return a published document with our half, or None when rules make none.

        Raises:
            CallError: `usage`, the data lacks what the capability takes.
        """
        wanted = published_demand(published, demand)
        text: str | None = None
        with contextlib.suppress(DocumentError):
            text = await asyncio.to_thread(published_document, published.capability)
        if text is None or document_hash(text) != published.hash:
            # Its rules write in another way than ours.
            text = await self._lists.document(target, published.hash)
        if text is None or await asyncio.to_thread(
            self._store.is_revoked, published.hash, target.did
        ):
            return None
        if demand.need.input_schema is None and not await self._takes(
            published.capability, demand.arguments
        ):
            return None
        try:
            half = await self._half(target, text, wanted)
        except (HalfError, MindError, NegotiationError) as exc:
            logger.info(
                "no code for published protocol hash=%s reason=%r",
                published.hash[:12],
                str(exc)[:200],
            )
            return None
        return DocumentCandidate(None, text, half, published.capability.name)

    async def _takes(self, capability: Capability, arguments: Json) -> bool:
        """Return whether a capability takes data as it is.

        Data with names that the capability does not know may mean the same in other
        words, which only a negotiation finds out.

        Raises:
            CallError: `usage`, the data surely is not what the capability takes.
        """
        findings = await self._workshop.validator.validate(
            capability.input_schema, arguments
        )
        if not findings:
            return True
        taken = keywords_of(capability.input_schema).get("properties", {})
        missing = set(keywords_of(capability.input_schema).get("required", ()))
        given = set(arguments) if isinstance(arguments, dict) else set()
        if given <= taken.keys() or missing <= given:
            raise CallError(
                ErrorKind.USAGE,
                f"{capability.name} does not take this input: {'; '.join(findings)}",
            )
        return False

    def does_not_serve(self, target: LinkTarget, uri: str, demand: Demand) -> None:
        """Remember that a protocol does not know what a need asks for at a peer."""
        key = need_key(demand.need)
        self._misfits.note(target.did, uri, key, now=self._clock())
        # The peer's list is wrong, or out of date.
        self._lists.forget(target)
        logger.info("protocol does not serve the need uri=%s peer=%s", uri, target.did)

    def declined(
        self,
        target: LinkTarget,
        demand: Demand | None = None,
        *,
        named: str | None = None,
    ) -> None:
        """Ask a peer for its list again the next time: it serves something else now.

        Args:
            named: URI that the caller named and the peer did not select; it is not
                offered again for a while, or every call would negotiate anew.
        """
        self._lists.forget(target)
        if named is not None and demand is not None:
            key = need_key(demand.need)
            self._misfits.note(target.did, named, key, now=self._clock())

    def is_misfit(self, target: LinkTarget, uri: str, demand: Demand) -> bool:
        """Return whether a protocol is known not to serve a need at a peer."""
        return self._misfits.known(
            target.did, uri, need_key(demand.need), now=self._clock()
        )

    def still_named(
        self, target: LinkTarget, candidate: WrittenCandidate, demand: Demand
    ) -> bool:
        """Return whether `find` would give this for the protocol's name, unasked."""
        known = self._named_picks.get(_key_of(target, demand))
        return (
            known is not None
            and known[1] is candidate.pick
            and self._lists.is_current(target, known[0])
            and self._desk.written(candidate.uri) is candidate.entry
            and not self.is_misfit(target, candidate.uri, demand)
        )

    def still_means(
        self, target: LinkTarget, uri: str, digest: str, demand: Demand
    ) -> bool:
        """Return whether `digest` would give this hash without asking the peer."""
        if self._desk.written(uri) is not None or self.is_misfit(target, uri, demand):
            return False
        known = self._desk.registry.get(uri)
        if known is not None:
            return known.hash == digest
        listing = self._lists.current(target)
        listed = None if listing is None else listing.get(uri)
        return listed is not None and listed.hash == digest

    async def digest(self, target: LinkTarget, uri: str) -> str | None:
        """Return the hash that a URI stands for, if one exchange is its document."""
        if self._desk.written(uri) is not None:
            return None
        known = self._desk.registry.get(uri)
        if known is not None:
            return known.hash
        listing = await self._lists.listing(target)
        listed = None if listing is None else listing.get(uri)
        return None if listed is None else listed.hash

    # Of the peer's list.

    async def _listed(
        self, target: LinkTarget, listing: ProtocolListing, demand: Demand
    ) -> list[Candidate]:
        key = _key_of(target, demand)
        known = self._picks.get(key)
        documents: list[Listed] = []
        meant: Capability | None = None
        if known is not None and known[0] is listing:
            generic = known[1]
        else:
            meant = await asyncio.to_thread(meant_capability, listing, demand)
            generic = None
            if meant is not None:
                documents = [
                    one
                    for one in reaching(listing, meant)
                    if self._desk.written(one.uri) is None and not one.generic
                ]
                generic = await asyncio.to_thread(pick_generic, meant, demand)
        found: dict[str, Candidate] = {}
        for one in documents[:MAX_TRIED]:
            if not self.is_misfit(target, one.uri, demand):
                made = await self._document(target, one.uri, one.hash, demand)
                if made is not None:
                    found[one.uri] = _told(made, one)
        if not found:
            # The next call with such data need not think about it again.
            _keep(self._picks, key, (listing, generic))
        if generic is not None:
            for uri, entry in self._written(listing, generic.capability):
                if not self.is_misfit(target, uri, demand):
                    action = generic.capability.name
                    found[uri] = WrittenCandidate(uri, entry, action, generic)
        order = self._desk.registry.in_order(
            (uri, isinstance(one, WrittenCandidate)) for uri, one in found.items()
        )
        return [found[uri] for uri in order[:MAX_CANDIDATES]]

    def _written(
        self, listing: ProtocolListing, capability: Capability
    ) -> list[tuple[str, WrittenEntry]]:
        return [
            (one.uri, entry)
            for one in reaching(listing, capability)
            if (entry := self._desk.written(one.uri)) is not None
            # Sessions, such as those of GB/Z, are for tasks; a call may name them.
            and entry.protocol.generic
            # Another text under this URI is another protocol, whatever it is called.
            and entry.protocol.hash == one.hash
            and not entry.only_named
        ]

    # By name.

    async def _named(self, target: LinkTarget, uri: str, demand: Demand) -> Candidate:
        entry = self._desk.written(uri)
        listing = await self._lists.listing(target)
        listed = None if listing is None else listing.get(uri)
        if entry is not None:
            key = _key_of(target, demand)
            picked = self._named_picks.get(key)
            if picked is None or picked[0] is not listing:
                meant = None if listing is None else meant_capability(listing, demand)
                pick = None if meant is None else pick_generic(meant, demand)
                picked = listing, pick
                _keep(self._named_picks, key, picked)
            pick = picked[1]
            if pick is not None:
                return WrittenCandidate(uri, entry, pick.capability.name, pick)
            # Nothing is published that says more, so the need is the action itself.
            return WrittenCandidate(uri, entry, demand.need.requirement.strip(), None)
        known = self._desk.registry.get(uri)
        if known is not None:
            digest, text = known.hash, known.text
        elif listed is not None:
            digest, text = listed.hash, None
        else:
            raise CallError(
                ErrorKind.USAGE,
                f"the protocol {uri[:200]!r} is not known here, and the peer does not "
                "publish it; `anpd protocols published` lists those known here",
            )
        made = await self._document(target, uri, digest, demand, text=text, firm=True)
        if made is None:
            raise CallError(
                ErrorKind.GENERATED_CODE,
                f"there is no code here for {uri[:200]!r} and this need: its protocol "
                "text does not fit the need, is revoked, or cannot be fetched",
            )
        return made if listed is None else _told(made, listed)

    # Halves.

    async def _document(
        self,
        target: LinkTarget,
        uri: str,
        digest: str,
        demand: Demand,
        *,
        text: str | None = None,
        firm: bool = False,
    ) -> DocumentCandidate | None:
        """Return a protocol with our half for a need, or None when there is none.

        Args:
            firm: True when our mind may think hard about it, which may cost something.
        """
        if await asyncio.to_thread(self._store.is_revoked, digest, target.did):
            return None
        if text is None:
            known = self._desk.registry.get(uri)
            if known is not None and known.hash == digest:
                text = known.text
            else:
                text = await self._lists.document(target, digest)
        if text is None:
            return None
        bundled = await self._bundled(uri, text, demand)
        if bundled is not None:
            return bundled
        if not firm and not await asyncio.to_thread(fits_document, text, demand):
            return None
        try:
            half = await self._half(target, text, demand, firm=firm)
        except (HalfError, MindError, NegotiationError) as exc:
            logger.info("no code for protocol uri=%s reason=%r", uri, str(exc)[:200])
            return None
        return DocumentCandidate(uri, text, half)

    async def _half(
        self, target: LinkTarget, text: str, demand: Demand, *, firm: bool = False
    ) -> HalfSource:
        """Return our half as rules write it, or as our mind does, to fill its gaps.

        Raises:
            HalfError: There is none.
        """
        if not firm:
            half = await self._workshop.prepare(
                text, demand, mind=RulesMind(), name=_occasion()
            )
            if not half.empty:
                return half
        mind = self._think(target.did, ours=True).mind
        return await self._workshop.prepare(text, demand, mind=mind, name=_occasion())

    async def _bundled(
        self, uri: str, text: str, demand: Demand
    ) -> DocumentCandidate | None:
        data = self._desk.bundle(uri)
        if data is None:
            return None
        bundle = await asyncio.to_thread(read_bundle, data)
        ours = bundle.half(Role.REQUESTER)
        if ours is None or bundle.text != text:
            return None
        # Whoever the bundle says wrote it: it needs the full isolation.
        half = HalfSource(ours.source, "imported")
        try:
            async with self._workshop.trial(half, text, name=_occasion()) as trial:
                found = await trial.check(demand)
            problems = found.problems
        except HalfError as exc:
            problems = (str(exc),)
        if problems:
            logger.info("bundle does not serve uri=%s reason=%r", uri, problems[0])
            return None
        return DocumentCandidate(uri, text, replace(half, samples=found.samples))


def _told(made: DocumentCandidate, listed: Listed) -> DocumentCandidate:
    """Return a protocol with the one capability that its peer says it calls."""
    if len(listed.capabilities) != 1 or listed.hash != document_hash(made.text):
        return made
    return replace(made, capability=listed.capabilities[0].name)


def _key_of(target: LinkTarget, demand: Demand) -> _Key:
    return target.did, need_key(demand.need), shape_of(demand.arguments)


def _keep(kept: OrderedDict[_Key, _Found], key: _Key, value: _Found) -> None:
    """Keep a decision as the newest, and drop the oldest if there are too many."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > MAX_PICKS:
        kept.popitem(last=False)


def _occasion() -> str:
    return f"consensus:{secrets.token_hex(4)}"
