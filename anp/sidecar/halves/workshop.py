"""The workshop loads module halves into the sandbox, and tries those that are new."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from anp.channel.stranger_work import own_turn
from anp.sidecar.halves.planned import PlannedHalf, code_told
from anp.sidecar.halves.protocol import Protocol
from cache.records.records import HalfRecord, hash_text
from negotiation.document.reader import read_document
from negotiation.document.shape import Document
from negotiation.errors import CapabilityFailed, HalfError
from negotiation.mind import (
    HalfRunner,
    HalfSource,
    Mind,
    Offer,
    OnStream,
    Side,
    Validator,
)
from negotiation.need import Schema, schema_hash
from negotiation.rules.plan_run import ProviderRun, RequesterRun, plan_of
from negotiation.strict_json import Json
from negotiation.trial.acceptance import check_half, prepare_half
from negotiation.trial.trial import Findings
from sandbox.errors import CapabilityFailure, SandboxError
from sandbox.pool.module import Module
from sandbox.pool.pool import Sandbox


class LoadedHalf:
    """A half loaded into a worker; fits `negotiation.mind.HalfRunner`."""

    def __init__(self, module: Module, *, deadline: float) -> None:
        self._module = module
        self._deadline = deadline

    async def encode_request(self, message_id: str, arguments: dict[str, Any]) -> bytes:
        """Return the request's bytes; HalfError when the half cannot."""
        return _bytes(await self._call("encode_request", message_id, arguments))

    async def decode_response(self, data: bytes) -> dict[str, Any]:
        """Return `message_id`, with `result`, `error` or, of an update, `update`."""
        return _dict("decode_response", await self._call("decode_response", data))

    async def read_message(self, kind: str, data: bytes) -> dict[str, Any]:
        """Return the values of a message whose bytes are not JSON.

        Args:
            kind: `request`, `response` or `update`.

        Raises:
            HalfError: The half has no such function, or cannot read the bytes.
        """
        return _dict("read_message", await self._call("read_message", kind, data))

    async def handle_request(
        self,
        data: bytes,
        on_call: Callable[[str, Any], Awaitable[Any]],
        on_stream: OnStream | None = None,
    ) -> bytes:
        """Run the provider half on one request; `on_call` makes its calls.

        Args:
            on_stream: Makes those whose updates the half writes.
        """

        async def adapted(name: str, params: Any) -> Any:
            with _capability_errors():
                return await on_call(name, params)

        async def streamed(name: str, params: Any, write: Any) -> Any:
            async def written(value: Any) -> bytes:
                with _half_errors():
                    return _bytes(await write(value))

            assert on_stream is not None
            with _capability_errors():
                return await on_stream(name, params, written)

        with _half_errors():
            answer = await self._module.run(
                "handle_request",
                data,
                on_call=adapted,
                on_stream=None if on_stream is None else streamed,
                deadline=self._deadline,
            )
        return _bytes(answer)

    async def _call(self, function: str, *args: Any) -> Any:
        with _half_errors():
            return await self._module.call(function, *args, deadline=self._deadline)


@dataclass(frozen=True, slots=True)
class HalfTrial:
    """A half that is loaded for a trial, and for nothing else."""

    half: HalfSource

    document: Document
    "The document that it should speak."

    runner: HalfRunner
    "The loaded half."

    validator: Validator
    "Judges values."

    planned: bool = False
    "True for a half of our rules that is tried, and will be run, as a plan."

    async def check(self, side: Side) -> Findings:
        """Check the half as every half is checked (`check_half`)."""
        return await check_half(
            self.half, self.document, side, runner=self.runner, validator=self.validator
        )


PIECE: Final = 0.001
"Seconds that a trial works for a stranger before others have their turn."

RULES: Final = "rules"
"Origin of a half that no model had a part in."

MAX_PASSED: Final = 64
"Trials of plans that are remembered."


@dataclass(frozen=True, slots=True)
class _Passed:
    """A trial that was passed."""

    trial: tuple[str, Offer, tuple[str, ...]]
    """The hash of the half's source, the offer that it was tried for, and the hashes of
    its schemas: for Python a schema with 1 equals one with `true`."""

    findings: Findings


MoreChecks = Callable[[HalfTrial], Awaitable[tuple[str, ...]]]
"Returns further faults of a half that passed its check, in words."


class Workshop:
    """Loads halves for use, tries new ones and has minds write them."""

    def __init__(
        self,
        sandbox: Sandbox,
        validator: Validator,
        *,
        deadline: float,
        plans: bool = True,
    ) -> None:
        """Make the workshop.

        Args:
            deadline: Seconds of its own time that each call of a half may take.
            plans: Halves that rules wrote run as plans, outside the workers.
        """
        self.validator = validator
        self._plans = plans
        self._passed: dict[str, _Passed] = {}
        "The latest plans that passed their trial, by the hash of their document."
        self._sandbox = sandbox
        self._deadline = deadline

    async def protocol(
        self,
        half: HalfRecord,
        document: str,
        *,
        peer_did: str,
        sides: Sequence[Side] = (),
    ) -> Protocol:
        """Load a stored half for one peer; equal loads share a worker.

        Args:
            document: The agreed text.
            peer_did: The peer in its canonical form.
            sides: Sides of ours that it may have been written for. If our rules write
                just this code for one of them, it runs as their plan.

        Raises:
            HalfError: The source was refused, is in quarantine, or did not load.
            DocumentError: The text cannot be read any more.
        """

        async def load() -> LoadedHalf:
            return await self._load(
                f"{half.role}:{peer_did}:{half.hash}:{half.revision}",
                half.source,
                origin=half.origin,
                protocol=half.hash,
                peer=peer_did,
            )

        def check() -> None:
            reason = self.quarantined(half, peer_did)
            if reason is not None:
                raise HalfError("quarantined", reason)

        await own_turn(PIECE)
        read = read_document(document)
        plan = self._plan(read, sides, half.source, half.origin)
        if plan is None:
            return Protocol(half.hash, read, await load(), self.validator)
        check()
        planned = PlannedHalf(plan, load, check=check)
        return Protocol(half.hash, read, planned, self.validator)

    def _plan(
        self, document: Document, sides: Sequence[Side], source: str, origin: str
    ) -> RequesterRun | ProviderRun | None:
        """Return the plan that a source is run as, if it is."""
        if not self._plans or origin != RULES:
            return None
        return plan_of(document, sides, source)

    async def _load(
        self, key: str, source: str, *, origin: str, protocol: str, peer: str
    ) -> LoadedHalf:
        with _half_errors():
            module = await self._sandbox.load(
                key, source, origin=origin, protocol=protocol, peer=peer
            )
        return LoadedHalf(module, deadline=self._deadline)

    def quarantined(self, half: HalfRecord, peer_did: str) -> str | None:
        """Return why a half may not run for a peer any more, or None."""
        return self._sandbox.quarantined(half.hash, source=half.source, peer=peer_did)

    @contextlib.asynccontextmanager
    async def trial(
        self, half: HalfSource, text: str, *, name: str, sides: Sequence[Side] = ()
    ) -> AsyncIterator[HalfTrial]:
        """Load a half into a worker for a trial, and unload it afterwards.

        Args:
            text: The document.
            name: The occasion; the same code is quarantined for each occasion alone.
            sides: As for `protocol`: a half that will run as a plan is tried as one.

        Raises:
            HalfError: The source was refused or did not load.
        """
        document = read_document(text)
        key = f"trial:{name}:{secrets.token_hex(4)}"
        try:
            loaded = await self._load(
                key,
                half.text,
                origin=half.origin,
                # Apart from its use: a failed attempt must not quarantine the next.
                protocol=f"trial:{hash_text(text)}",
                peer=name,
            )

            async def load() -> LoadedHalf:
                return loaded

            plan = self._plan(document, sides, half.text, half.origin)
            runner = plan and PlannedHalf(plan, load, on_trial=True)
            yield HalfTrial(
                half,
                document,
                runner or loaded,
                _InTurns(self.validator),
                planned=runner is not None,
            )
        finally:
            await self._sandbox.unload(key)

    async def prepare(
        self,
        text: str,
        side: Side,
        *,
        mind: Mind,
        name: str,
        findings: tuple[str, ...] = (),
        replaces: str = "",
        also: MoreChecks | None = None,
    ) -> HalfSource:
        """Let a mind write a half until it passes; see `prepare_half`.

        Args:
            name: The occasion, as for `trial`.
            also: Checks a half that has passed all others.

        Raises:
            HalfError: None passed.
            MindError: The mind failed.
        """

        async def check(half: HalfSource, text: str) -> Findings:
            if also is None and (passed := self._passed_before(half, text, side)):
                return passed
            async with self.trial(half, text, name=name, sides=(side,)) as trial:
                found = await trial.check(side)
                if trial.planned and not found.problems:
                    self._remember(half, text, side, found)
                if found.problems or also is None:
                    return found
                return replace(found, problems=await also(trial))

        return await prepare_half(
            text, side, mind=mind, check=check, findings=findings, replaces=replaces
        )

    def _passed_before(
        self, half: HalfSource, text: str, side: Side
    ) -> Findings | None:
        """Return what the trial of the same half found, if it passed as a plan.

        Many peers agree on one text; a plan is ours, and its trial draws no lots.
        """
        known = self._passed.get(hash_text(text))
        if known is None or half.origin != RULES or not isinstance(side, Offer):
            return None
        return known.findings if known.trial == _trial_of(half, side) else None

    def _remember(
        self, half: HalfSource, text: str, side: Side, found: Findings
    ) -> None:
        if not isinstance(side, Offer):
            # It would keep the data of a call.
            return
        self._passed[hash_text(text)] = _Passed(_trial_of(half, side), found)
        if len(self._passed) > MAX_PASSED:
            del self._passed[next(iter(self._passed))]


def _trial_of(half: HalfSource, side: Offer) -> tuple[str, Offer, tuple[str, ...]]:
    schemas = tuple(schema_hash(one) for one in side.capabilities)
    return hash_text(half.text), side, schemas


class _InTurns:
    """A validator for a trial, in which a stranger's work gives way to others.

    A trial of a large schema is many pieces of some milliseconds, with a validation
    between any two. Meanwhile it may hold a worker, but only one of those that
    strangers have together (`Sandbox`), and never one that a listed peer waits for.
    """

    def __init__(self, validator: Validator) -> None:
        self._validator = validator

    async def check_schema(self, schema: Schema) -> list[str]:
        await own_turn(PIECE)
        return await self._validator.check_schema(schema)

    async def validate(self, schema: Schema, value: Json) -> list[str]:
        await own_turn(PIECE)
        return await self._validator.validate(schema, value)

    async def validate_json(
        self, schema: Schema, data: bytes, values: Json = None
    ) -> list[str]:
        await own_turn(PIECE)
        return await self._validator.validate_json(schema, data, values)

    def fits(self, schema: Schema, data: bytes, value: Json) -> bool:
        # It cannot wait for its turn; `validate_json` does.
        return False


@contextlib.contextmanager
def _capability_errors() -> Iterator[None]:
    """Turn a failed capability into the error that the sandbox knows."""
    try:
        yield
    except CapabilityFailed as exc:
        raise CapabilityFailure(code_told(exc), exc.told) from exc


@contextlib.contextmanager
def _half_errors() -> Iterator[None]:
    """Turn errors of the sandbox into the `HalfError` that negotiation knows."""
    try:
        yield
    except SandboxError as exc:
        reason = exc.reason
        if exc.findings:
            # All of them, with their source: a mind that writes again sees no more.
            reason = "; ".join(
                f"line {finding.line}: {finding.reason}: {finding.source.strip()}"
                for finding in exc.findings
            )
        raised = exc.outcome == "error"
        raise HalfError(exc.outcome, reason, exc.line, raised=raised) from exc


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise HalfError("error", f"the half returned {type(value).__name__}, not bytes")
    return value


def _dict(function: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise HalfError("error", f"{function} did not return a dict")
    return value
