"""Halves that are tried in the sandbox before they are used."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from anp.sidecar.halves.workshop import HalfTrial, Workshop
from cache.records.records import AgreementRole, HalfRecord, hash_text
from negotiation.document.reader import read_document
from negotiation.errors import CapabilityFailed, HalfError
from negotiation.mind import Demand, HalfSource, Offer
from negotiation.need import Capability, Need
from negotiation.rules.halves import write_half
from negotiation.rules.rules import RulesMind, propose, published_document
from sandbox.pool.pool import Sandbox, SandboxConfig
from tests.clauses import clause
from tests.negotiation.formats import strict
from tests.negotiation.inprocess import JsonschemaValidator

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


async def test_a_source_that_the_sandbox_refuses_is_told_line_by_line(
    workshop: Workshop,
) -> None:
    half = HalfSource("import os\n", "model")
    with pytest.raises(HalfError, match=r"line 1: .*import os"):
        async with workshop.trial(half, TEXT, name="test"):
            raise AssertionError("it was loaded")
