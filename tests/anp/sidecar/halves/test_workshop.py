"""Halves that are tried in the sandbox before they are used."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from anp.channel.stranger_work import current_meter
from anp.sidecar.halves import workshop as workshop_module
from anp.sidecar.halves.workshop import HalfTrial, LoadedHalf, Workshop
from cache.records.records import AgreementRole, HalfRecord, hash_text
from negotiation.document.reader import read_document
from negotiation.errors import CapabilityFailed, HalfError
from negotiation.mind import Demand, HalfSource, Offer, Side
from negotiation.need import Capability, Need
from negotiation.rules.halves import write_half
from negotiation.rules.plan_run import RequesterRun, Written
from negotiation.rules.rules import RulesMind, propose, published_document
from negotiation.trial.trial import Findings
from sandbox.pool.config import SandboxConfig
from sandbox.pool.pool import Sandbox
from sandbox.pool.shares import Rank, Share, current_share
from tests.clauses import clause
from tests.negotiation.formats import strict
from tests.negotiation.inprocess import JsonschemaValidator
from tests.waiting import until

NUMBER = strict(number={"type": "integer"})
NEED = Demand(Need("double", NUMBER, NUMBER), {"number": 2})
TEXT = propose(NEED)


@pytest.fixture
async def workshop() -> AsyncIterator[Workshop]:
    sandbox = Sandbox(SandboxConfig(warm_workers=0))
    await sandbox.start()
    try:
        yield Workshop(sandbox, JsonschemaValidator(), deadline=5.0)
    finally:
        await sandbox.close()


@clause("ANP-7")
async def test_a_prepared_half_says_how_much_of_the_schemas_was_sampled(
    workshop: Workshop,
) -> None:
    half = await workshop.prepare(TEXT, NEED, mind=RulesMind(), name="test")
    assert (half.origin, half.samples) == ("rules", "full")


async def test_further_checks_see_a_half_that_passed_all_others(
    workshop: Workshop,
) -> None:
    tried: list[str] = []

    async def never(trial: HalfTrial) -> tuple[str, ...]:
        assert (await trial.check(NEED)).passed
        tried.append(trial.half.text)
        return ("it is not what we agreed",)

    with pytest.raises(HalfError, match="not what we agreed"):
        await workshop.prepare(TEXT, NEED, mind=RulesMind(), name="test", also=never)
    # Rules write the same text again, which is not tried twice.
    assert len(tried) == 1


async def test_a_half_with_a_plan_is_loaded_for_what_the_plan_cannot_do() -> None:
    sandbox = Sandbox(SandboxConfig(warm_workers=0))
    await sandbox.start()
    try:
        workshop = Workshop(sandbox, JsonschemaValidator(), deadline=5.0)
        half = await workshop.prepare(TEXT, NEED, mind=RulesMind(), name="test")
        record = HalfRecord(
            hash=hash_text(TEXT),
            role=AgreementRole.REQUESTER,
            revision=1,
            source=half.text,
            origin="rules",
            capabilities={},
            created=0.0,
        )
        protocol = await workshop.protocol(
            record, TEXT, peer_did="did:key:z1", sides=(NEED,)
        )
        data = await protocol.half.encode_request("a", {"number": 2})
        assert b'"number": 2' in data
        error = b'{"messageId": "a", "status": {"code": 404, "message": "gone"}}'
        assert (await protocol.half.decode_response(error))["error"]["code"] == 404
        assert sandbox.loaded == 0
        with pytest.raises(HalfError):
            await protocol.half.decode_response(b"no JSON")
        assert sandbox.loaded == 1
    finally:
        await sandbox.close()


async def test_a_plan_tells_of_a_failed_capability_itself() -> None:
    text = {"type": "string"}
    tool = Capability("double", "", NUMBER, strict(double=text))
    offer, document = Offer((tool,)), published_document(tool)
    source = write_half(read_document(document), offer).text
    record = HalfRecord(
        hash=hash_text(document),
        role=AgreementRole.PROVIDER,
        revision=1,
        source=source,
        origin="rules",
        capabilities={},
        created=0.0,
    )

    async def fails(name: str, arguments: Any) -> Any:
        raise CapabilityFailed("404", "w" * 600)

    # Nobody started it, so it could not load anything.
    workshop = Workshop(Sandbox(), JsonschemaValidator(), deadline=5.0)
    protocol = await workshop.protocol(record, document, peer_did="p", sides=(offer,))
    request = b'{"messageId": "a", "input": {"number": 2}}'
    answer = json.loads(await protocol.half.handle_request(request, fails))
    assert answer["status"] == {"code": 404, "message": "w" * 500}


async def test_what_passed_as_a_plan_is_not_tried_again_for_the_next_peer(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials: list[str] = []
    check = HalfTrial.check

    async def counted(trial: HalfTrial, side: Side) -> Findings:
        trials.append(trial.half.text)
        return await check(trial, side)

    monkeypatch.setattr(HalfTrial, "check", counted)
    tool = Capability("double", "", NUMBER, strict(double={"type": "string"}))
    document = published_document(tool)

    async def prepare(side: Side, text: str = document) -> HalfSource:
        return await workshop.prepare(text, side, mind=RulesMind(), name="test")

    first = await prepare(Offer((tool,)))
    again = await prepare(Offer((tool,)))
    assert (again, again.samples, len(trials)) == (first, first.samples, 1)
    # The same text for another offer, the caller's side, and a half that a model wrote.
    await prepare(Offer((tool, replace(tool, name="triple"))))
    assert len(trials) == 2
    await prepare(NEED, TEXT)
    await prepare(NEED, TEXT)
    assert len(trials) == 4

    class Model(RulesMind):
        async def write_half(
            self, document: str, side: Side, *, findings: tuple[str, ...] = ()
        ) -> HalfSource:
            half = await super().write_half(document, side, findings=findings)
            return replace(half, origin="model")

    for _ in range(2):
        await workshop.prepare(document, Offer((tool,)), mind=Model(), name="test")
    assert len(trials) == 6


async def test_a_schema_with_true_is_another_one_than_with_1(
    workshop: Workshop,
) -> None:
    one, other = (
        Offer((Capability("double", "", NUMBER, strict(double={"const": value})),))
        for value in (1, True)
    )
    assert one == other
    half = HalfSource("", "rules")
    workshop._remember(half, TEXT, one, Findings((), "full", 1))
    assert workshop._passed_before(half, TEXT, one) is not None
    assert workshop._passed_before(half, TEXT, other) is None


async def test_trials_are_remembered_up_to_a_bound(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workshop_module, "MAX_PASSED", 2)
    for number in range(4):
        schema = strict(double={"type": "string", "maxLength": 90 + number})
        offer = Offer((Capability("double", "", NUMBER, schema),))
        await workshop.prepare(
            published_document(offer.capabilities[0]),
            offer,
            mind=RulesMind(),
            name="test",
        )
    assert len(workshop._passed) == 2


async def test_a_source_that_the_sandbox_refuses_is_told_line_by_line(
    workshop: Workshop,
) -> None:
    half = HalfSource("import os\n", "model")
    with pytest.raises(HalfError, match=r"line 1: .*import os"):
        async with workshop.trial(half, TEXT, name="test"):
            raise AssertionError("it was loaded")


async def test_a_half_that_will_be_a_plan_is_tried_as_one_beside_its_source(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []
    call = LoadedHalf._call

    async def counted(half: LoadedHalf, function: str, *args: Any) -> Any:
        runs.append(function)
        return await call(half, function, *args)

    monkeypatch.setattr(LoadedHalf, "_call", counted)
    await workshop.prepare(TEXT, NEED, mind=RulesMind(), name="test")
    # Of all requests the source makes one: the others are the plan's.
    assert runs.count("encode_request") == 1
    planned, runs[:] = len(runs), []
    workshop._plans = False
    await workshop.prepare(TEXT, NEED, mind=RulesMind(), name="test")
    assert runs.count("encode_request") > 1
    assert len(runs) > planned


async def test_a_plan_that_differs_from_its_source_is_not_used(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = RequesterRun.encode_request

    def other(run: RequesterRun, message_id: str, arguments: dict[str, Any]) -> Written:
        written = encode(run, message_id, arguments)
        return written._replace(data=written.data + b" ")

    monkeypatch.setattr(RequesterRun, "encode_request", other)
    with pytest.raises(HalfError, match="another result than its plan"):
        await workshop.prepare(TEXT, NEED, mind=RulesMind(), name="test")


class NoTurn:
    """The turns of a stranger that never come once its trial has a worker at work."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._share = current_share.get()

    def worked(self, seconds: float) -> None:
        """See `Meter`."""

    async def turn(self, after: float) -> None:
        """See `Meter`."""
        modules = self._sandbox._modules.values()
        if any(one.busy for one in modules if one.share == self._share):
            await asyncio.Event().wait()


async def test_trials_that_wait_for_their_turn_hold_no_worker_of_a_listed_peer() -> (
    None
):
    sandbox = Sandbox(SandboxConfig(warm_workers=0, max_workers=4, share=0.5))
    await sandbox.start()
    workshop = Workshop(sandbox, JsonschemaValidator(), deadline=5.0)
    tool = Capability("double", "", NUMBER, NUMBER)
    side, text = Offer((tool,)), published_document(tool)

    async def prepare(share: Share) -> HalfSource:
        current_share.set(share)
        if share.rank is Rank.COMMON:
            current_meter.set(NoTurn(sandbox))
        return await workshop.prepare(text, side, mind=RulesMind(), name=share.name)

    try:
        strangers = [
            asyncio.create_task(prepare(Share(Rank.COMMON, f"192.0.2.{number}")))
            for number in range(4)
        ]
        await until(lambda: sum(one.busy for one in sandbox._modules.values()) == 2)
        await until(lambda: sum(task.done() for task in strangers) == 2)
        for name in ("a", "b"):
            assert (await prepare(Share(Rank.LISTED, name))).origin == "rules"
        for task in strangers:
            task.cancel()
        found = await asyncio.gather(*strangers, return_exceptions=True)
        assert sum(isinstance(one, HalfError) for one in found) == 2
    finally:
        await sandbox.close()
