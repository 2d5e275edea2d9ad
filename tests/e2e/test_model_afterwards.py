"""Questions to the model after the agreement: doubts, faults, repairs; and costs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from anp.sidecar.api.operations.negotiations import (
    NegotiationDetails,
    negotiation_view,
)
from anp.sidecar.daemon import Daemon
from cache.records.records import AgreementRole
from tests.clauses import clause
from tests.e2e.scripted_model import says, scripted_model
from tests.e2e.test_model import PROVIDER_ANSWER, TASK, Kitchen, kitchen
from tests.negotiation.llm.scripted import link, offer_answer, reply_answer

WRONG = {
    **PROVIDER_ANSWER,
    "result": [
        link(
            "result:/celsius",
            "python",
            "a if a == 392 else (a - 32) / 1.8",
            of=["kitchen.read_oven:/fahrenheit"],
        ),
        PROVIDER_ANSWER["result"][1],
    ],
}
"A mapping that overlooks the unit where no sample of the trial shows it."

SCEPTIC = """
import json

def encode_request(message_id, arguments):
    return json.dumps({"messageId": message_id, "input": arguments}).encode()

def decode_response(data):
    response = json.loads(data)
    if response["output"]["celsius"] > 300:
        raise ValueError("no oven is as hot as that")
    return {"message_id": response["messageId"], "result": response["output"]}
"""
"A caller's half that cannot believe what the wrong mapping gives."

REPLY = reply_answer(
    [link("request:/seconds", "scale", "60", "0", of=["arguments:/minutes"])],
    [
        link("result:/celsius", "scale", "5/9", "-160/9", of=["response:/fahrenheit"]),
        link("result:/litres", "scale", "1/1000", "0", of=["response:/volume_ml"]),
    ],
)
"How a caller reads the oven's own terms."

RULE = "Temperature of the oven in degrees Celsius"


def verdicts(*, follows: bool) -> Any:
    rule = "" if follows else f"{RULE}: 392 is Fahrenheit"
    fine = {"follows": True, "rule": ""}
    return {"verdicts": {"1": fine, "2": {"follows": follows, "rule": rule}}}


def fault(*, breaks: bool) -> Any:
    reason = "The value is in Fahrenheit." if breaks else "The value is right."
    return {"breaks": breaks, "rule": RULE if breaks else "", "reason": reason}


async def doubt(house: Kitchen) -> None:
    """Make the caller's half one that doubts the answers."""
    store = house.caller.store
    [agreement] = store.all_agreements()
    [half] = store.halves(agreement.hash)
    document = store.document(agreement.hash)
    assert document is not None
    other = replace(half, source=SCEPTIC, revision=0, origin="hand-written")
    store.save_agreement(document, other, agreement)
    # The next call opens a channel anew and loads it.
    await asyncio.gather(*(one.close() for one in house.provider.links._links))


def steps(daemon: Daemon) -> list[str]:
    """Return what the owner sees that the model was asked, in order."""
    [record] = daemon.store.negotiations()
    shown = negotiation_view(NegotiationDetails, record, decisions=())
    assert shown.model_calls == len(shown.model_requests)
    return [one["step"] for one in shown.model_requests]


@clause("ANP-9", "ANP-56", "ANP-60")
async def test_a_deviation_that_no_schema_shows_is_found_told_and_repaired(
    tmp_path: Path,
) -> None:
    with (
        scripted_model(says(verdicts(follows=False))) as ours,
        scripted_model(
            says(WRONG), says(fault(breaks=True)), says(PROVIDER_ANSWER)
        ) as theirs,
    ):
        async with kitchen(tmp_path, caller=ours, provider=theirs) as house:
            first = await house.ask(TASK, {"oven": "left", "minutes": 5})
            assert first.output["celsius"] == 392.0
            # Nobody doubted it, so nobody's model looked at it.
            assert first.llm_calls == 0
            await doubt(house)
            second = await house.ask(TASK, {"oven": "left", "minutes": 5})
            assert second.output == {"celsius": 200.0, "litres": 3.0}
            assert second.llm_calls == 1
            assert steps(house.caller) == ["messages"]
            assert steps(house.provider) == ["offer", "fault", "offer"]
            third = await house.ask(TASK, {"oven": "left", "minutes": 10})
            assert third.output == {"celsius": 200.0, "litres": 6.0}
            assert third.llm_calls == 0
            paid = {
                one.account: one.calls for one in house.caller.store.spends(since="")
            }
            assert paid == {"owner": 1}
            paid = {
                one.account: one.calls for one in house.provider.store.spends(since="")
            }
            assert paid == {"unlisted": 3}
        # What the peer said is in the question, and what was wrong in the repair.
        assert "392 is Fahrenheit" in str(theirs.asked[1])
        assert "The value is in Fahrenheit." in str(theirs.asked[2])


@clause("ANP-9", "ANP-60")
async def test_a_doubt_that_the_peer_does_not_share_ends_the_call_with_its_reason(
    tmp_path: Path,
) -> None:
    with (
        scripted_model(says(verdicts(follows=False))) as ours,
        scripted_model(says(WRONG), says(fault(breaks=False))) as theirs,
    ):
        async with kitchen(tmp_path, caller=ours, provider=theirs) as house:
            await house.ask(TASK, {"oven": "left", "minutes": 5})
            await doubt(house)
            with pytest.raises(CallError) as caught:
                await house.ask(TASK, {"oven": "left", "minutes": 5})
            assert caught.value.kind is ErrorKind.GENERATED_CODE
            assert "The value is right" in caught.value.detail
            assert steps(house.provider) == ["offer", "fault"]


@clause("ANP-9")
async def test_an_answer_that_follows_the_document_is_our_own_halfs_fault(
    tmp_path: Path,
) -> None:
    with (
        scripted_model(says(verdicts(follows=True))) as ours,
        scripted_model(says(WRONG)) as theirs,
    ):
        async with kitchen(tmp_path, caller=ours, provider=theirs) as house:
            await house.ask(TASK, {"oven": "left", "minutes": 5})
            await doubt(house)
            # The rules write a half that reads it; that costs nothing.
            again = await house.ask(TASK, {"oven": "left", "minutes": 5})
            assert again.output["celsius"] == 392.0
            assert again.llm_calls == 1
            [agreement] = house.caller.store.all_agreements()
            half = house.caller.store.half(
                agreement.hash, AgreementRole.REQUESTER, agreement.revision
            )
            assert half is not None
            assert half.origin == "rules"
        assert len(theirs.asked) == 1


async def test_a_call_without_budget_ends_as_policy_and_names_the_setting(
    tmp_path: Path,
) -> None:
    with scripted_model(says("never")) as ours, scripted_model() as theirs:
        async with kitchen(
            tmp_path,
            caller=ours,
            provider=theirs,
            budget={"budget.day_calls": 0},
        ) as house:
            need = replace(TASK, output_schema=None)
            with pytest.raises(CallError) as caught:
                await house.ask(need, {"oven": "left", "minutes": 5})
            assert caught.value.kind is ErrorKind.POLICY
            assert "budget.day_calls = 0" in caught.value.detail
            [record] = house.caller.store.negotiations()
            assert "budget.day_calls = 0" in record.reason
        assert ours.asked == []
        assert theirs.asked == []


async def test_calls_at_once_share_a_negotiation_and_pay_for_it_once(
    tmp_path: Path,
) -> None:
    need = replace(TASK, requirement="read_oven in Celsius")
    with scripted_model(says(REPLY)) as model:
        async with kitchen(tmp_path, caller=model, provider=None) as house:
            results = await asyncio.gather(
                *(house.ask(need, {"oven": "left", "minutes": n}) for n in range(1, 6))
            )
            assert [one.output["celsius"] for one in results] == [200.0] * 5
            assert sum(one.llm_calls for one in results) == 1
            assert sorted(one.source for one in results) == [
                *["agreement"] * 4,
                "negotiated",
            ]
            assert steps(house.caller) == ["reply"]
        assert len(model.asked) == 1


async def test_a_repair_without_budget_ends_the_call_as_policy(tmp_path: Path) -> None:
    need = replace(TASK, requirement="read_oven in Celsius")
    with scripted_model(
        says(REPLY), says({"verdicts": verdicts(follows=True)["verdicts"]})
    ) as model:
        async with kitchen(
            tmp_path, caller=model, provider=None, budget={"budget.day_calls": 4}
        ) as house:
            await house.ask(need, {"oven": "left", "minutes": 5})
            store = house.caller.store
            [agreement] = store.all_agreements()
            [half] = store.halves(agreement.hash)
            document = store.document(agreement.hash)
            assert document is not None
            # Other names and units: the rules cannot write this half anew.
            broken = half.source.replace(
                "def decode_response(data):",
                "def decode_response(data):\n    raise ValueError('never')\n",
            )
            other = replace(half, source=broken, revision=0)
            store.save_agreement(document, other, agreement)
            await asyncio.gather(*(one.close() for one in house.provider.links._links))
            with pytest.raises(CallError) as caught:
                await house.ask(need, {"oven": "left", "minutes": 5})
            assert caught.value.kind is ErrorKind.POLICY
            assert "budget.day_calls = 4" in caught.value.detail
            assert caught.value.may_have_run
        assert len(model.asked) == 2


async def test_what_a_model_refused_is_refused_ten_times_for_one_question(
    tmp_path: Path,
) -> None:
    unserved = offer_answer(missing="an oven with a scale")
    with scripted_model(*[says(unserved)] * 10) as theirs:
        async with kitchen(tmp_path, caller=None, provider=theirs) as house:
            for _ in range(10):
                with pytest.raises(CallError, match="an oven with a scale"):
                    await house.ask(TASK, {"oven": "left", "minutes": 5})
            paid = {
                one.account: one.calls for one in house.provider.store.spends(since="")
            }
            assert paid == {"unlisted": 1}
        assert len(theirs.asked) == 1
