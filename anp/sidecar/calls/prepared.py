"""Requests made ready for a channel, whatever protocol it speaks."""

from __future__ import annotations

import asyncio
import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from anp.channel.channel import ChannelClosed
from anp.channel.links import LinkTarget
from anp.errors import CallError, ErrorKind, told_by_peer
from anp.phases import waits_for
from anp.sidecar.agreement.stored import notes_of
from anp.sidecar.bound.requester import BoundRequester
from anp.sidecar.bound.work import CallTerms, CutOff
from anp.sidecar.calls.candidates import WrittenCandidate
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.consensus.written import InputRefused, ResultUnfit, WrittenRequester
from anp.sidecar.halves.protocol import Answer
from anp.sidecar.minds.accounts import NO_COST, Cost
from anp.sidecar.telemetry.observer import CallSeen
from cache.records.records import AgreementRecord
from negotiation.mind import Demand, Validator
from negotiation.need import Need, Schema
from negotiation.schema.plan import PlanError

MAX_FETCH_WAIT = 5.0
"Longest wait between two tries to reach a peer whose link was lost, in seconds."

WAITING = "waiting for the peer's answer"
"Said of a call that the peer has."


class _Call(Protocol):
    """Calls a peer through a written protocol."""

    async def __call__(self, *, output_schema: Schema | None = None) -> Answer: ...


class Outdated(CallError):
    """The peer takes or gives other data than it published; the call may be repeated.

    Nothing ran; or, with `may_have_run`, what ran was harmless by what the peer
    published, and may run again if it still says so.
    """


class Prepared(ABC):
    """A request made ready for the channel it goes out on."""

    repeatable = False
    "By the peer's word a second call does no more than the first."

    def __init__(
        self,
        bound: BoundRequester | WrittenRequester,
        demand: Demand,
        *,
        source: str,
        protocol: str,
        uri: str | None = None,
        cost: Cost = NO_COST,
    ) -> None:
        """Keep the request.

        Args:
            demand: The need as the channel serves it, which may be a template.
            source: `negotiated`, `agreement` or `consensus`.
            protocol: Hash of the document.
            uri: The consensus protocol it goes through.
            cost: Cost of getting this far.
        """
        self.channel = bound.channel
        self.peer = bound.peer
        self.demand = demand
        self.source = source
        self.protocol = protocol
        self.uri = uri
        self._cost = cost
        self.news = ""
        "A sentence for the caller of this call alone; empty for none."
        self._dialogue = bound.dialogue
        self._counted = bound.dialogue.messages

    @property
    def agreement(self) -> AgreementRecord | None:
        """The agreement it goes through; None for a protocol of the daemon's own."""
        return None

    @property
    def capability(self) -> str | None:
        """Full name of the capability that it calls, if the peer published that."""
        return None

    @property
    def notes(self) -> Sequence[str]:
        """See `CallResult.notes`."""
        alone = (self.news,) if self.news else ()
        return (*notes_of(self.agreement), *alone)

    def note(self, seen: CallSeen, cost: Cost = NO_COST) -> None:
        """Tell an observed call its way, and its cost as far as it is known."""
        agreement = self.agreement
        seen.source, seen.protocol, seen.uri = self.source, self.protocol, self.uri
        seen.capability = self.capability
        seen.peer = self.peer
        seen.negotiation_id = None if agreement is None else agreement.negotiation_id
        seen.llm_calls, seen.cost = cost.model_calls, cost.money

    async def answer(
        self,
        requesters: Requesters,
        target: LinkTarget,
        terms: CallTerms,
        mark: Callable[[str], None],
    ) -> Answer:
        """Send the request and return its answer, over several links if it must be.

        Raises:
            ChannelClosed: Nothing was sent.
            CallError: As `send`.
        """
        try:
            return await self.send(terms)
        except CutOff as exc:
            cut = exc
        tries = 0
        try:
            while True:
                mark(f"{cut.detail}; the answer is fetched")
                waits_for("the connection was lost; it is tried again")
                try:
                    await self._reopen(requesters, target, cut, terms)
                    mark("connected again")
                    waits_for(WAITING)
                    return await self.fetch(cut, terms)
                except CutOff as exc:
                    cut = exc
                except ChannelClosed:
                    # Lost before the peer was asked.
                    tries += 1
                    await asyncio.sleep(_wait_of(tries))
        except asyncio.CancelledError:
            requesters.later(self._forsake(requesters, target, cut, terms))
            raise

    async def _reopen(
        self, requesters: Requesters, target: LinkTarget, cut: CutOff, terms: CallTerms
    ) -> None:
        """Open a channel over which an answer can be fetched.

        Raises:
            CallError: There is none before the call's deadline, or never will be.
        """
        tries = 0
        while True:
            try:
                await self.reopen(requesters, target)
                return
            except CallError as exc:
                gone = exc.kind is not ErrorKind.PEER_UNREACHABLE
                wait = _wait_of(tries)
                if gone or terms.remaining(0.0) <= wait:
                    detail = f"{cut.detail}; not reached again: {exc.detail}"
                    raise CallError(cut.kind, detail, may_have_run=True) from exc
            tries += 1
            waits_for(f"the connection was lost; it is tried again in {wait:g} s")
            await asyncio.sleep(wait)

    async def _forsake(
        self, requesters: Requesters, target: LinkTarget, cut: CutOff, terms: CallTerms
    ) -> None:
        """Tell the peer over its next link that nobody waits for the answer."""
        with contextlib.suppress(CallError):
            await self._reopen(requesters, target, cut, terms)
            await self.forget(cut)

    @abstractmethod
    async def send(self, terms: CallTerms) -> Answer:
        """Send the request and return its answer.

        Args:
            terms: Its deadline, and who learns how it goes.

        Raises:
            ChannelClosed: Nothing was sent.
            CutOff: The link was lost, and the answer may be fetched.
            NotServed: The peer does not serve this through the protocol.
            Outdated: The peer published other data than it takes or gives.
            CallError: Any other failure; see `may_have_run`.
        """

    @abstractmethod
    async def reopen(self, requesters: Requesters, target: LinkTarget) -> None:
        """Go on with another channel of the same protocol, as after a lost link.

        Raises:
            CallError: `peer_unreachable`; `negotiation_rejected`, the peer does not
                serve the protocol any more.
        """

    @abstractmethod
    async def fetch(self, cut: CutOff, terms: CallTerms) -> Answer:
        """Return the answer of this request, which was cut off; raises as `send`."""

    @abstractmethod
    async def forget(self, cut: CutOff) -> None:
        """Tell the peer that nobody waits for the answer to this request.

        Raises:
            ChannelClosed: Nothing was sent.
        """

    def _continue(self, bound: BoundRequester | WrittenRequester) -> None:
        self._cost = Prepared.take_cost(self)
        self.channel = bound.channel
        self._dialogue, self._counted = bound.dialogue, bound.dialogue.messages

    def charged(self, cost: Cost) -> Prepared:
        """Return the request, with what else it cost to make it ready."""
        self._cost += cost
        return self

    def take_cost(self) -> Cost:
        """Return the cost so far, repairs and questions meanwhile included."""
        meanwhile = self._dialogue.messages - self._counted
        return self._cost + Cost(messages=meanwhile) if meanwhile else self._cost


class BoundRequest(Prepared):
    """A request that our half encoded, for a channel bound to an agreement."""

    def __init__(
        self,
        bound: BoundRequester,
        demand: Demand,
        message_id: str,
        data: bytes,
        *,
        source: str,
        uri: str | None = None,
        cost: Cost = NO_COST,
    ) -> None:
        protocol = bound.agreement.hash
        super().__init__(
            bound, demand, source=source, protocol=protocol, uri=uri, cost=cost
        )
        self._bound = bound
        self._message_id = message_id
        self._data = data
        self._arguments = _object(demand.arguments)

    @classmethod
    async def of(
        cls,
        bound: BoundRequester,
        demand: Demand,
        *,
        source: str = "agreement",
        uri: str | None = None,
        cost: Cost = NO_COST,
    ) -> BoundRequest:
        """Have our code encode the data of a call for an open channel.

        Raises:
            NegotiationError: Our code fails, or the protocol does not take the data.
        """
        message_id = os.urandom(8).hex()
        data = await bound.protocol.encode(message_id, _object(demand.arguments))
        return cls(bound, demand, message_id, data, source=source, uri=uri, cost=cost)

    @property
    def bound(self) -> BoundRequester:
        """The channel it goes out on."""
        return self._bound

    @property
    def agreement(self) -> AgreementRecord:
        """The agreement it goes through, as a repair may have changed it by now."""
        return self._bound.agreement

    @property
    def capability(self) -> str | None:
        """See `Prepared.capability`."""
        known = self.agreement.tests.get("capability")
        return known if isinstance(known, str) else None

    @property
    def notes(self) -> Sequence[str]:
        """See `CallResult.notes`."""
        return (*super().notes, *self._bound.news)

    async def send(self, terms: CallTerms) -> Answer:
        """See `Prepared.send`."""
        waits_for(WAITING)
        data, self._data = self._data, b""
        exchange = self._bound.exchange(self._message_id, data, self._arguments, terms)
        # Where it is sent anew, it is encoded anew.
        del data
        return await exchange

    async def reopen(self, requesters: Requesters, target: LinkTarget) -> None:
        """See `Prepared.reopen`."""
        self._bound = await requesters.reopen(target, self._bound, self.demand)
        self._continue(self._bound)

    async def fetch(self, cut: CutOff, terms: CallTerms) -> Answer:
        """See `Prepared.fetch`."""
        return await self._bound.fetch(cut, terms)

    async def forget(self, cut: CutOff) -> None:
        """See `Prepared.forget`."""
        await self._bound.forget(cut)

    def take_cost(self) -> Cost:
        """See `Prepared`; of calls at once the first to end pays for the model."""
        return super().take_cost() + self._bound.bill.take()


class WrittenRequest(Prepared):
    """A request for a channel that speaks a protocol of the daemon's own."""

    def __init__(
        self,
        bound: WrittenRequester,
        candidate: WrittenCandidate,
        demand: Demand,
        outdated: Callable[[], None],
    ) -> None:
        """Put the data into the terms of the capability, if one was picked.

        Args:
            outdated: Told when the peer seems to have changed what it published.

        Raises:
            CallError: `usage`, the data does not fit.
        """
        super().__init__(
            bound,
            demand,
            source="consensus",
            protocol=candidate.entry.protocol.hash,
            uri=candidate.uri,
        )
        self._bound = bound
        self.candidate = candidate
        self._code = candidate.entry.code
        self._action = candidate.action
        self._pick = pick = candidate.pick
        self._outdated = outdated
        arguments = demand.arguments
        if pick is not None:
            self.repeatable = pick.capability.read_only or pick.capability.idempotent
            try:
                arguments = pick.arguments.apply(arguments)
            except PlanError as exc:
                raise CallError(
                    ErrorKind.USAGE, f"the input does not fit the capability: {exc}"
                ) from exc
        self._arguments = _object(arguments)

    @property
    def bound(self) -> WrittenRequester:
        """The channel it goes out on."""
        return self._bound

    @property
    def capability(self) -> str | None:
        """See `Prepared.capability`."""
        return None if self._pick is None else self._pick.capability.name

    @property
    def notes(self) -> Sequence[str]:
        """See `CallResult.notes`."""
        return () if self._pick is None else self._pick.notes

    async def send(self, terms: CallTerms) -> Answer:
        """See `Prepared.send`."""
        waits_for(WAITING)
        return await self._settled(
            partial(self._bound.call, self._action, self._arguments, terms=terms)
        )

    async def reopen(self, requesters: Requesters, target: LinkTarget) -> None:
        """See `Prepared.reopen`."""
        self._bound = await requesters.reopen_written(
            target, self._bound.uri, self._code
        )
        self._continue(self._bound)

    async def fetch(self, cut: CutOff, terms: CallTerms) -> Answer:
        """See `Prepared.fetch`."""
        return await self._settled(partial(self._bound.fetch, cut, terms))

    async def forget(self, cut: CutOff) -> None:
        """See `Prepared.forget`."""
        await self._bound.forget(cut)

    async def _settled(self, call: _Call) -> Answer:
        """Return the answer in the terms of the need."""
        pick = self._pick
        if pick is None:
            answer = await call()
            if answer.error is not None:
                self._outdated()
            return answer
        schema = pick.capability.output_schema
        try:
            answer = await call(output_schema=schema)
            if answer.error is None:
                result = pick.result.apply(answer.result)
                # Most plans keep it as it is.
                if result is not answer.result:
                    answer = replace(answer, result=result)
                return answer
        except InputRefused as exc:
            self._outdated()
            raise Outdated(exc.kind, exc.detail) from exc
        except ResultUnfit as exc:
            raise self._unfit(exc.kind, exc.detail) from exc
        except PlanError as exc:
            detail = f"the result is not as the peer publishes it: {exc}"
            raise self._unfit(ErrorKind.GENERATED_CODE, detail) from exc
        self._outdated()
        return answer

    def _unfit(self, kind: ErrorKind, detail: str) -> CallError:
        """Return the meaning of a result outside its schema for the call."""
        self._outdated()
        raised = Outdated if self.repeatable else CallError
        return raised(kind, detail, may_have_run=True)


def _wait_of(tries: int) -> float:
    return float(min(0.1 * 2**tries, MAX_FETCH_WAIT))


def _object(value: object) -> dict[str, Any]:
    assert isinstance(value, dict), "checked before the call"
    return value


# Checks against the caller's own schemas.


async def check_need(
    validator: Validator, need: Need, arguments: dict[str, Any]
) -> None:
    """Check that a need has schemas that can be used, and that the data fits.

    Raises:
        CallError: `usage`, it does not.
    """
    for name, schema in (("input", need.input_schema), ("output", need.output_schema)):
        if schema is not None:
            findings = await validator.check_schema(schema)
            if findings:
                raise CallError(
                    ErrorKind.USAGE, f"the need's {name} schema: {'; '.join(findings)}"
                )
    if need.input_schema is not None:
        findings = await validator.validate(need.input_schema, arguments)
        if findings:
            raise CallError(
                ErrorKind.USAGE,
                f"the input does not fit the need's schema: {'; '.join(findings)}",
            )


async def check_answer(validator: Validator, need: Need, answer: Answer) -> None:
    """Check that an answer is a result that fits the need.

    Raises:
        CallError: `application_error`, the peer says that it failed;
            `generated_code`, it does not fit.
    """
    if answer.error is not None:
        code, message = answer.error
        raise CallError(
            ErrorKind.APPLICATION_ERROR,
            told_by_peer(code, message),
            may_have_run=not answer.not_run,
        )
    if need.output_schema is None:
        return
    findings = await validator.validate(need.output_schema, answer.result)
    if findings:
        raise CallError(
            ErrorKind.GENERATED_CODE,
            f"the result does not fit the need's schema: {'; '.join(findings)}",
            may_have_run=True,
        )
