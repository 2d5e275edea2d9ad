"""Carries calls of our agent to peers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from weakref import ReferenceType, ref

from anp.channel.channel import ChannelClosed
from anp.channel.links import LinkTarget
from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.rulings import is_pending, peer_pending
from anp.sidecar.bound.requester import BoundRequester
from anp.sidecar.bound.work import CallTerms, works
from anp.sidecar.calls.binder import Binder
from anp.sidecar.calls.call import CallRequest, CallResult, CallStep, Mode
from anp.sidecar.calls.candidates import WrittenCandidate
from anp.sidecar.calls.prepared import (
    BoundRequest,
    Outdated,
    Prepared,
    WrittenRequest,
    check_answer,
    check_need,
)
from anp.sidecar.consensus.written import NotServed, WrittenRequester
from anp.sidecar.halves.protocol import Answer
from anp.sidecar.minds.accounts import NO_COST, Cost
from anp.sidecar.offer.call_times import CallTimes
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.telemetry.observer import Observer
from anp.sidecar.telemetry.usage import UseCounter, Way
from cache.errors import CacheError
from cache.store import Store
from negotiation.errors import NegotiationError
from negotiation.mind import Demand, Validator
from negotiation.natural import render_natural_request
from negotiation.need import need_key

GRACE = 5.0
"Seconds beyond a negotiation's own time that a call waits for how it ended."

MAX_ROUTES = 1_024
"Ways of calls that are remembered; the one not used for longest goes."


_RouteKey = tuple[str, str, str | None]
"The peer as the caller wrote it, the need, and the protocol that the caller names."


@dataclass(frozen=True, slots=True)
class _Route:
    """The way that the last call for a need took, while nothing has changed since."""

    target: LinkTarget
    "The peer, as it was found."

    channel: ReferenceType[BoundRequester | WrittenRequester]
    "The open channel; one that ended is not kept for its way."

    candidate: WrittenCandidate | None
    "The protocol that was named, if the channel is no agreement's."

    writes: int
    "`Store.writes` before the way was looked up."

    @property
    def bound(self) -> BoundRequester | WrittenRequester | None:
        """The open channel, or one that ended a moment ago."""
        return self.channel()

    def held(self, writes: int | None) -> BoundRequester | WrittenRequester | None:
        """Return the channel if a look-up would come to it again, else None."""
        bound = self.bound
        if self.writes != writes or bound is None or bound.channel.retired:
            return None
        return bound if bound.alive else None


Use = Callable[[str, str, str | None], Awaitable[None]]
"See `CapabilityWords.use`."


class _Course:
    """The progress of one call."""

    def __init__(self, request: CallRequest) -> None:
        self._request = request
        self.started = time.monotonic()
        self.timeline: list[CallStep] = []
        self.sent = False

    @property
    def ms(self) -> float:
        """Milliseconds since the call began."""
        return round((time.monotonic() - self.started) * 1000, 1)

    def mark(self, what: str) -> None:
        """Note a step, and report it."""
        step = CallStep(what, self.ms)
        self.timeline.append(step)
        if self._request.on_progress is not None:
            self._request.on_progress(what, step.ms)

    async def sends(self, *, repeatable: bool) -> None:
        """Note that a request is about to leave; see `CallRequest.on_send`."""
        if self._request.on_send is not None:
            await self._request.on_send(repeatable)
        self.sent = True


class Caller:
    """Carries calls to peers and back.

    A call whose need went to the same peer before goes out on the same channel without
    any look-up, as long as the store was not written to and `forget_routes` was not
    called. Where other daemons share the store, every call looks up.
    """

    def __init__(
        self,
        *,
        finder: PeerFinder,
        binder: Binder,
        validator: Validator,
        negotiation_timeout: float,
        uses: UseCounter,
        store: Store,
        times: CallTimes,
        use: Use,
        observer: Observer | None = None,
    ) -> None:
        """Make calls possible.

        Args:
            use: Asks the owner about what the owner withdrew from our agent.
        """
        self.use = use
        "Raises `CallError` for what the owner withdrew; see `CapabilityWords.use`."
        self._times = times
        self._observer = observer or Observer()
        self._finder = finder
        self._binder = binder
        self._validator = validator
        self._negotiation_timeout = negotiation_timeout
        self._uses = uses
        self._store = store
        self._routes: dict[_RouteKey, _Route] = {}

    def forget_routes(self) -> None:
        """Have every next call looked up anew; the configuration has changed."""
        self._routes.clear()

    async def call(self, request: CallRequest) -> CallResult:
        """Carry one call to a peer and back.

        Raises:
            CallError: With the kind that programs read.
        """
        with self._observer.call_out(request.peer, mode=request.mode) as seen:
            seen.need = request.need.requirement
            result = await self._call(request)
            seen.source = result.source
            if result.source in {"agreement", "consensus"}:
                self._observer.looked_up(result.source)
            return result

    async def _call(self, request: CallRequest) -> CallResult:
        course = _Course(request)
        if not isinstance(request.arguments, dict):
            raise CallError(ErrorKind.USAGE, "the input has to be a JSON object")
        try:
            if request.timeout is None:
                return await self._carried(request, course)
            async with asyncio.timeout(request.timeout):
                return await self._carried(request, course)
        except TimeoutError:
            late = "no result in time; --timeout gives more"
            if course.sent:
                late += ", the peer may still be at it"
            raise CallError(ErrorKind.TIMEOUT, late, may_have_run=course.sent) from None
        except CacheError as exc:
            raise CallError(
                ErrorKind.LOCAL_RESOURCE, str(exc), may_have_run=course.sent
            ) from exc

    async def _carried(self, request: CallRequest, course: _Course) -> CallResult:
        await check_need(self._validator, request.need, request.arguments)
        try:
            if request.mode is Mode.NATURAL_LANGUAGE:
                return await self._in_words(request, course)
            return await self._through_protocol(request, course)
        except CallError as exc:
            if exc.kind is not ErrorKind.PEER_UNREACHABLE:
                raise
            try:
                await self._finder.refuse_blocked(request.peer)
            except CallError as found:
                # The owner's own word ended it, not the peer or the network.
                raise CallError(
                    found.kind, found.detail, may_have_run=exc.may_have_run
                ) from exc
            raise

    async def ask(self, peer: str, question: str) -> str:
        """Ask a peer about its protocols in words (ANP-64); return its answer.

        Raises:
            CallError: With the kind that programs read.
        """
        target = await self._finder.find(peer, trust_first_use=False)
        return await self._binder.ask(target, question)

    async def _target(self, request: CallRequest) -> LinkTarget:
        target = await self._finder.find(
            request.peer, trust_first_use=request.trust_first_use
        )
        self._observer.current().peer = target.did
        return target

    def _terms(
        self, request: CallRequest, target: LinkTarget, started: float
    ) -> CallTerms:
        """Return the time of a call, and who learns how it goes.

        Raises:
            CallError: `usage`, it is given more than the owner allows.
        """
        terms = CallTerms(
            started=started, on_sign=request.on_sign, updates=request.updates
        )
        if request.timeout is None and not request.lasts:
            return terms
        most = self._times.of_ours(request.peer, target.did, lasts=request.lasts)
        if request.timeout is None:
            return replace(terms, until=started + most.seconds, given=True)
        if request.timeout > most.seconds:
            raise CallError(
                ErrorKind.USAGE,
                f"a timeout of {request.timeout:g} s is over the limit of {most}",
            )
        return replace(terms, until=started + request.timeout, given=True)

    async def _through_protocol(
        self, request: CallRequest, course: _Course
    ) -> CallResult:
        demand, writes = Demand(request.need, request.arguments), self._store.writes
        key = request.peer, need_key(request.need), request.protocol
        target, prepared = await self._by_route(key, request, demand, writes)
        terms = self._terms(request, target, course.started)
        try:
            if prepared is None:
                # The negotiation's own limit is shorter, and ends it with a reason.
                async with asyncio.timeout(self._negotiation_timeout + GRACE):
                    await self.use(target.did, request.need.requirement, None)
                    prepared = await self._binder.prepare(
                        target, demand, course.mark, named=request.protocol
                    )
                    await self._use_of(prepared, target, request)
            prepared.note(self._observer.current())
            prepared, answer, cost = await self._exchange(
                prepared, target, demand, request, terms, course
            )
            prepared.note(self._observer.current(), cost)
        except BaseException:
            self._uses.count(Way.FAILED, None)
            raise
        way, agreement = Way(prepared.source), prepared.agreement
        try:
            await check_answer(self._validator, request.need, answer)
        except BaseException:
            self._uses.count(way, prepared.protocol)
            raise
        self._uses.count(way, prepared.protocol, agreement)
        self._keep_route(key, target, prepared, demand, writes)
        course.mark("result")
        return CallResult(
            output=answer.result,
            protocol=prepared.protocol,
            source=prepared.source,
            peer_did=prepared.channel.peer_did,
            negotiation_id=None if agreement is None else agreement.negotiation_id,
            uri=prepared.uri,
            capability=prepared.capability,
            notes=prepared.notes,
            negotiation_messages=cost.messages,
            proposals=cost.rounds,
            llm_calls=cost.model_calls,
            cost=cost.money,
            ms=course.ms,
            timeline=course.timeline,
        )

    async def _by_route(
        self, key: _RouteKey, request: CallRequest, demand: Demand, writes: int | None
    ) -> tuple[LinkTarget, Prepared | None]:
        """Return the peer, and the request if the way of the last call still holds."""
        route = self._routes.get(key)
        bound = None if route is None else route.held(writes)
        if route is not None and bound is not None:
            try:
                prepared = await self._on(route, bound, demand, request.protocol)
            except NegotiationError:
                # Data that does not fit, or code that fails: the look-up decides.
                prepared = None
            if prepared is not None:
                return route.target, prepared
        return await self._target(request), None

    async def _on(
        self,
        route: _Route,
        bound: BoundRequester | WrittenRequester,
        demand: Demand,
        named: str | None,
    ) -> Prepared | None:
        if isinstance(bound, BoundRequester):
            if named is not None and not self._binder.candidates.still_means(
                route.target, named, bound.agreement.hash, demand
            ):
                return None
            return await BoundRequest.of(bound, demand)
        candidate = route.candidate
        assert candidate is not None, "the channel is no agreement's"
        if not self._binder.candidates.still_named(route.target, candidate, demand):
            return None
        return self._binder.written(route.target, bound, candidate, demand)

    def _keep_route(
        self,
        key: _RouteKey,
        target: LinkTarget,
        prepared: Prepared,
        demand: Demand,
        writes: int | None,
    ) -> None:
        """Remember the way of a call that was answered.

        Args:
            writes: `Store.writes` before the call looked anything up; None keeps none.
        """
        bound: BoundRequester | WrittenRequester
        candidate = None
        match prepared:
            # Words that a template reads are read anew for each call.
            case BoundRequest() if prepared.demand.arguments is demand.arguments:
                bound = prepared.bound
            case WrittenRequest() if key[2] is not None:
                bound, candidate = prepared.bound, prepared.candidate
            case _:
                return
        # The newest stands last, so that the first is the one to go.
        self._routes.pop(key, None)
        if writes is None:
            return
        while len(self._routes) >= MAX_ROUTES:
            del self._routes[next(iter(self._routes))]
        self._routes[key] = _Route(target, ref(bound), candidate, writes)

    async def _in_words(self, request: CallRequest, course: _Course) -> CallResult:
        """Ask in natural language, without a protocol (ANP-71, ANP-72)."""
        target = await self._target(request)
        self._observer.current().source = "natural_language"
        terms = self._terms(request, target, course.started)
        await self.use(target.did, request.need.requirement, None)
        text = render_natural_request(request.need.requirement, request.arguments)
        for last in (False, True):
            asker = await self._binder.requesters.open_asker(target, course.mark)
            await course.sends(repeatable=False)
            try:
                answer = await asker.ask(text, terms)
                break
            except ChannelClosed:
                # Nothing was sent, so it may be tried once more.
                if last:
                    raise
                await self._finder.refuse_blocked(request.peer)
        course.mark("result")
        if is_pending(answer):
            raise peer_pending(answer.partition("\n")[2].removeprefix("# Output\n"))
        self._uses.count(Way.NATURAL_LANGUAGE, None)
        return CallResult(
            output={"text": answer},
            protocol=None,
            source="natural_language",
            peer_did=asker.channel.peer_did,
            negotiation_id=None,
            ms=course.ms,
            timeline=course.timeline,
        )

    async def _exchange(
        self,
        prepared: Prepared,
        target: LinkTarget,
        demand: Demand,
        request: CallRequest,
        terms: CallTerms,
        course: _Course,
    ) -> tuple[Prepared, Answer, Cost]:
        """Send a request; again when that can do no harm, each reason once.

        Returns:
            The request that was answered, the answer, and the cost of all requests.
        """
        cost = NO_COST
        lost = served = False
        outdated: Outdated | None = None
        while True:
            try:
                try:
                    answer = await self._once(prepared, target, terms, course)
                finally:
                    cost += prepared.take_cost()
                return prepared, answer, cost
            except ChannelClosed:
                # Its first byte was not sent, so it may be tried once more.
                if lost:
                    raise
                lost = True
                await self._finder.refuse_blocked(request.peer)
            except NotServed as exc:
                # Not acted on, so the call negotiates, once (DESIGN.md).
                if served:
                    raise
                served = True
                course.mark(f"the protocol does not serve this: {exc.code}")
                self._binder.does_not_serve(target, prepared)
            except Outdated as exc:
                # The peer's list is read anew: either its schemas take the data, or
                # the call negotiates.
                if outdated is not None:
                    raise
                outdated = exc
                course.mark(f"the peer published other data: {exc.detail[:100]}")
            try:
                prepared = await self._binder.prepare(
                    target,
                    demand,
                    course.mark,
                    named=None if served else request.protocol,
                    consensus=not served,
                )
                await self._use_of(prepared, target, request)
            except CallError as exc:
                exc.may_have_run |= outdated is not None and outdated.may_have_run
                raise
            if outdated and outdated.may_have_run and not prepared.repeatable:
                raise outdated

    async def _use_of(
        self, prepared: Prepared, target: LinkTarget, request: CallRequest
    ) -> None:
        """Ask the owner where the protocol that was found calls what is withdrawn."""
        for name in (prepared.capability or "").split(", "):
            await self.use(target.did, request.need.requirement, name)

    async def _once(
        self, prepared: Prepared, target: LinkTarget, terms: CallTerms, course: _Course
    ) -> Answer:
        await course.sends(repeatable=prepared.repeatable)
        if terms.given and not works(prepared.channel):
            course.mark("the peer does not learn the timeout: no `work` there")
        try:
            return await prepared.answer(
                self._binder.requesters, target, terms, course.mark
            )
        except CacheError as exc:
            raise CallError(
                ErrorKind.LOCAL_RESOURCE, str(exc), may_have_run=True
            ) from exc
