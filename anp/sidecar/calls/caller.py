"""Calls out: our agent uses peers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from anp.channel.channel import ChannelClosed
from anp.channel.links import Target
from anp.errors import CallError, ErrorKind
from anp.sidecar.calls.binder import Binder, Ready
from anp.sidecar.calls.by_uri import Outdated
from anp.sidecar.consensus.written import NotServed
from anp.sidecar.halves.protocol import Answer
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.telemetry.observer import Observer
from anp.sidecar.telemetry.usage import UseCounter, Way
from cache.records.records import Count, Hash
from cache.store import Store
from negotiation.mind import Need
from negotiation.natural import render_natural_request
from negotiation.need import Task
from negotiation.trial.acceptance import Validator

__all__ = ["CallRequest", "CallResult", "Caller", "Mode"]

GRACE = 5.0
"Seconds beyond a negotiation's own time that a call waits for how it ended."


class Mode(StrEnum):
    """How a call is carried."""

    AUTO = "auto"
    "Through a protocol; never in words without being asked to."

    PROTOCOL = "protocol"
    "Through a protocol."

    NATURAL_LANGUAGE = "natural-language"
    "In words, without a protocol (ANP-72)."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """What the local agent asks for."""

    peer: str
    "Name, DID, URL or `URL#DID`."

    task: Task
    "What it wants."

    arguments: Any
    "The data, a JSON object."

    timeout: float | None = None
    "Seconds for everything together, or None for the configured limits."

    trust_first_use: bool = False
    "The owner allows a first use over an unencrypted connection."

    mode: Mode = Mode.AUTO
    "Through a protocol or in words."

    protocol: str | None = None
    "URI of a consensus protocol that is wanted, or None for whatever serves."

    on_progress: Callable[[str, float], None] | None = None
    "Told what was reached, and the milliseconds until then."


@dataclass(frozen=True, slots=True)
class CallStep:
    """One step of a call."""

    what: str
    "The step, in words."

    ms: float
    "Milliseconds since the call began."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What came of a call."""

    output: Any
    "The result."

    protocol: Hash | None
    "Hash of the document it went through; None when it went in words."

    source: Annotated[
        str, Field(pattern="^(negotiated|agreement|consensus|natural_language)$")
    ]
    "`negotiated`, `agreement`, `consensus` or `natural_language`."

    negotiation_messages: Count
    "Meta messages of this call, both directions."

    rounds: Count
    "Candidates that were on the table."

    peer_did: str
    "DID the peer proved."

    negotiation_id: str | None
    "The negotiation the protocol came from."

    uri: str | None = None
    "The consensus protocol it went through, if it was one."

    llm_calls: Count = 0
    "Model calls of this call, on our side."

    cost: float = 0.0
    "What those cost at the owner's prices; 0 where none are set."

    ms: float = 0.0
    "Milliseconds for everything."

    timeline: Sequence[CallStep] = ()
    "The steps of the call, in order."


class Caller:
    """Carries calls to peers and back."""

    def __init__(
        self,
        *,
        finder: PeerFinder,
        binder: Binder,
        store: Store,
        validator: Validator,
        negotiation_timeout: float,
        uses: UseCounter,
        observer: Observer | None = None,
    ) -> None:
        self._observer = observer or Observer()
        self._finder = finder
        self._binder = binder
        self._store = store
        self._validator = validator
        self._negotiation_timeout = negotiation_timeout
        self._uses = uses

    async def call(self, request: CallRequest) -> CallResult:
        """Carry one call to a peer and back.

        Raises:
            CallError: With the kind that programs read.
        """
        with self._observer.call_out(request.peer, mode=request.mode) as seen:
            result = await self._call(request)
            seen.source = result.source
            if result.source in {"agreement", "consensus"}:
                self._observer.looked_up(result.source)
            return result

    async def _call(self, request: CallRequest) -> CallResult:
        started = time.monotonic()
        timeline: list[CallStep] = []

        def mark(what: str) -> None:
            ms = round((time.monotonic() - started) * 1000, 1)
            timeline.append(CallStep(what, ms))
            if request.on_progress is not None:
                request.on_progress(what, ms)

        if not isinstance(request.arguments, dict):
            raise CallError(ErrorKind.USAGE, "the input has to be a JSON object")
        try:
            async with asyncio.timeout(request.timeout):
                await self._check_task(request.task, request.arguments)
                target = await self._finder.find(
                    request.peer, trust_first_use=request.trust_first_use
                )
                if request.mode is Mode.NATURAL_LANGUAGE:
                    result = await self._in_words(target, request, mark)
                else:
                    result = await self._through_protocol(target, request, mark)
        except TimeoutError:
            raise CallError(
                ErrorKind.TIMEOUT,
                "no result in time; --timeout gives more, the peer may still be at it",
                may_have_run=True,
            ) from None
        return replace(
            result,
            ms=round((time.monotonic() - started) * 1000, 1),
            timeline=timeline,
        )

    async def ask(self, peer: str, question: str) -> str:
        """Ask a peer about its protocols in words (ANP-64); return its answer.

        Raises:
            CallError: With the kind that programs read.
        """
        target = await self._finder.find(peer, trust_first_use=False)
        return await self._binder.ask(target, question)

    async def _through_protocol(
        self, target: Target, request: CallRequest, mark: Callable[[str], None]
    ) -> CallResult:
        try:
            ready, answer, repairs = await self._answered(target, request, mark)
        except BaseException:
            self._uses.count(Way.FAILED, None)
            raise
        self._uses.count(Way(ready.source), ready.protocol)
        if answer.error is not None:
            code, message = answer.error
            raise CallError(
                ErrorKind.APPLICATION_ERROR, f"the peer answered {code}: {message}"
            )
        await self._check_result(request.task, answer.result)
        agreement = ready.agreement
        if agreement is not None:
            await asyncio.to_thread(self._store.mark_used, agreement, at=time.time())
        mark("result")
        return CallResult(
            output=answer.result,
            protocol=ready.protocol,
            source=ready.source,
            negotiation_messages=ready.messages + repairs,
            rounds=ready.rounds,
            peer_did=ready.session.channel.peer_did,
            negotiation_id=None if agreement is None else agreement.negotiation_id,
            uri=ready.uri,
            llm_calls=ready.model_calls,
            cost=ready.cost,
        )

    async def _answered(
        self, target: Target, request: CallRequest, mark: Callable[[str], None]
    ) -> tuple[Ready, Answer, int]:
        """Return an answer, what it came through, and the messages about repairs."""
        need = Need(request.task, request.arguments)
        # A little more than the negotiation's own limit, which ends it with a reason.
        async with asyncio.timeout(self._negotiation_timeout + GRACE):
            ready = await self._binder.ready(target, need, mark, named=request.protocol)
        before = ready.session.dialogue.messages
        try:
            ready, answer = await self._exchange(ready, target, need, request, mark)
        finally:
            # Repairs and questions meanwhile; of calls at once the first to end pays.
            ready.take_bill()
        return ready, answer, max(0, ready.session.dialogue.messages - before)

    async def _in_words(
        self, target: Target, request: CallRequest, mark: Callable[[str], None]
    ) -> CallResult:
        """Ask in natural language, without a protocol (ANP-71, ANP-72)."""
        text = render_natural_request(request.task.requirement, request.arguments)
        for last in (False, True):
            asker = await self._binder.asker(target, mark)
            try:
                answer = await asker.ask(text)
                break
            except ChannelClosed:
                # Nothing was sent, so it may be tried once more.
                if last:
                    raise
        mark("result")
        self._uses.count(Way.NATURAL_LANGUAGE, None)
        return CallResult(
            output={"text": answer},
            protocol=None,
            source="natural_language",
            negotiation_messages=0,
            rounds=0,
            peer_did=asker.channel.peer_did,
            negotiation_id=None,
        )

    async def _exchange(
        self,
        ready: Ready,
        target: Target,
        need: Need,
        request: CallRequest,
        mark: Callable[[str], None],
    ) -> tuple[Ready, Answer]:
        """Send a request; again when that can do no harm, each reason once."""
        lost = served = False
        outdated: Outdated | None = None
        while True:
            try:
                return ready, await ready.send()
            except ChannelClosed:
                # Its first byte was not sent, so it may be tried once more.
                if lost:
                    raise
                lost = True
            except NotServed as exc:
                # Not acted on, so the call negotiates, once (DESIGN.md).
                if served:
                    raise
                served = True
                mark(f"the protocol does not serve this: {exc.code}")
                self._binder.does_not_serve(target, ready, need)
            except Outdated as exc:
                # The peer's list is read anew: either its schemas take the data, or
                # the call negotiates.
                if outdated is not None:
                    raise
                outdated = exc
                mark(f"the peer published other data: {exc.detail[:100]}")
            again = await self._binder.ready(
                target,
                need,
                mark,
                named=None if served else request.protocol,
                consensus=not served,
            )
            if outdated is not None and outdated.may_have_run and not again.repeatable:
                raise outdated
            ready = again.after(ready)

    # Checks against the caller's own schemas.

    async def _check_task(self, task: Task, arguments: dict[str, Any]) -> None:
        for name, schema in (
            ("input", task.input_schema),
            ("output", task.output_schema),
        ):
            if schema is not None:
                findings = await self._validator.check_schema(schema)
                if findings:
                    raise CallError(
                        ErrorKind.USAGE,
                        f"the task's {name} schema: {'; '.join(findings)}",
                    )
        if task.input_schema is not None:
            findings = await self._validator.validate(task.input_schema, arguments)
            if findings:
                raise CallError(
                    ErrorKind.USAGE,
                    f"the input does not fit the task's schema: {'; '.join(findings)}",
                )

    async def _check_result(self, task: Task, result: Any) -> None:
        if task.output_schema is None:
            return
        findings = await self._validator.validate(task.output_schema, result)
        if findings:
            raise CallError(
                ErrorKind.GENERATED_CODE,
                f"the result does not fit the task's schema: {'; '.join(findings)}",
                may_have_run=True,
            )
