"""Halves that break the protocol in real use: found, repaired, used (ANP-56)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from anp.errors import CallError, ErrorKind
from cache.records.records import AgreementRole, HalfRecord
from tests.clauses import clause
from tests.e2e.house import House, house_in

NO_STATUS = """
import json

def handle_request(data):
    request = json.loads(data)
    output = yield call("count.count", request["input"])
    answer = {"messageId": request["messageId"], "output": output}
    if request["input"]["step"] < 1000:
        answer["status"] = {"code": 200, "message": "OK"}
    return json.dumps(answer).encode()
"""

RAISES = """
import json

def handle_request(data):
    request = json.loads(data)
    output = yield call("count.count", request["input"])
    raise ValueError("no idea")
"""

CALLS_ANOTHER_WAY = """
import json

def handle_request(data):
    request = json.loads(data)
    output = yield call("count.count", {"step": 1})
    return json.dumps({"messageId": request["messageId"], "output": output}).encode()
"""

CANNOT_READ = """
import json

def encode_request(message_id, arguments):
    return json.dumps({"messageId": message_id, "input": arguments}).encode()

def decode_response(data):
    response = json.loads(data)
    if response["output"]["step"] >= 1000:
        raise ValueError("too large for me")
    return {"message_id": response["messageId"], "result": response["output"]}
"""


async def replace_half(house: House, role: AgreementRole, source: str) -> HalfRecord:
    """Replace a side's half of `count`, as if a model had written it."""
    assert (await house.call("count", step=1))["calls"] == 1
    daemon = house.provider if role is AgreementRole.PROVIDER else house.caller
    [agreement] = [a for a in daemon.store.all_agreements() if a.role is role]
    [half] = [h for h in daemon.store.halves(agreement.hash) if h.role is role]
    document = daemon.store.document(agreement.hash)
    assert document is not None
    broken = replace(half, source=source, revision=0, origin="model")
    stored = daemon.store.save_agreement(document, broken, agreement)
    # The next call opens a channel anew and loads it.
    await asyncio.gather(*(link.close() for link in house.provider.links._links))
    return replace(broken, revision=stored.revision)


@clause("ANP-56", "ANP-57", "ANP-59", "ANP-60")
async def test_a_wrong_answer_is_reported_repaired_and_encoded_again(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        broken = await replace_half(house, AgreementRole.PROVIDER, NO_STATUS)
        fine = await house.result("count", {"step": 5})
        assert fine.output == {"calls": 2, "step": 5}
        assert fine.negotiation_messages == 0
        result = await house.result("count", {"step": 1000})
        # The capability ran once for this call: its answer was kept.
        assert result.output == {"calls": 3, "step": 1000}
        # Reported, accepted, generated.
        assert result.negotiation_messages == 3
        store = house.provider.store
        [agreement] = store.all_agreements()
        assert agreement.revision != broken.revision
        half = store.half(agreement.hash, AgreementRole.PROVIDER, agreement.revision)
        assert half is not None
        assert half.origin == "rules"
        assert await house.call("count", step=2000) == {"calls": 4, "step": 2000}


async def test_several_wrong_answers_in_flight_are_all_repaired(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await replace_half(house, AgreementRole.PROVIDER, NO_STATUS)
        outputs = await asyncio.gather(
            *(house.call("count", step=1000 + n) for n in range(6))
        )
        assert sorted(output["step"] for output in outputs) == [
            1000 + n for n in range(6)
        ]
        assert sorted(output["calls"] for output in outputs) == list(range(2, 8))


@clause("ANP-60")
async def test_our_own_half_that_cannot_read_a_good_answer_is_repaired_here(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        await replace_half(house, AgreementRole.REQUESTER, CANNOT_READ)
        assert await house.call("count", step=2) == {"calls": 2, "step": 2}
        result = await house.result("count", {"step": 1000})
        assert result.output == {"calls": 3, "step": 1000}
        # The peer was not at fault and heard nothing of it.
        assert result.negotiation_messages == 0


async def test_a_half_that_raises_ends_the_call_at_once(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await replace_half(house, AgreementRole.PROVIDER, RAISES)
        with pytest.raises(CallError) as caught:
            await house.call("count", step=1)
        assert caught.value.kind is ErrorKind.GENERATED_CODE
        assert caught.value.may_have_run
        assert "cannot answer" in caught.value.detail


async def test_a_repair_that_would_call_the_capability_again_is_an_error(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        await replace_half(house, AgreementRole.PROVIDER, CALLS_ANOTHER_WAY)
        with pytest.raises(CallError) as caught:
            await house.call("count", step=7)
        assert caught.value.may_have_run
        # One call before, one of the broken half, none of the repair.
        assert await house.call("count", step=8) == {"calls": 3, "step": 8}


async def test_without_fix_error_negotiation_a_wrong_answer_closes_the_channel(
    tmp_path: Path,
) -> None:
    listed = ["testCasesNegotiation", "verificationProtocol"]
    async with house_in(tmp_path, negotiation__capabilities=listed) as house:
        await replace_half(house, AgreementRole.PROVIDER, NO_STATUS)
        with pytest.raises(CallError) as caught:
            await house.call("count", step=1000)
        assert caught.value.may_have_run
        assert await house.call("count", step=3) == {"calls": 3, "step": 3}
