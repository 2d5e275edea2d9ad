"""A protocol whose agreed test cases fail is not used (DESIGN.md, Negotiation)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement import outcomes
from anp.sidecar.bound import cases
from anp.sidecar.bound.cases import ProviderCases
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.views import Library
from cache.records.records import AgreementRecord, AgreementState
from negotiation.errors import HalfError
from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.house import House, house_in
from tests.e2e.owner import owner_api
from tests.waiting import until

REAL_ANSWER = ProviderCases.answer

WITHOUT_REPORTS = ["testCasesNegotiation", "verificationProtocol"]
"Common capabilities with which a peer cannot be told of an error."


async def other_answer(
    cases: ProviderCases, request: bytes, send: object = None
) -> bytes:
    """Answer a test request with another number than was agreed."""
    answer = json.loads(await REAL_ANSWER(cases, request))
    if "output" in answer:
        answer["output"]["other"] = 7
    return json.dumps(answer).encode()


async def no_answer(cases: ProviderCases, request: bytes, send: object = None) -> bytes:
    """Leave a test request without an answer."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def broken_half(
    cases: ProviderCases, request: bytes, send: object = None
) -> bytes:
    """Fail as a half does that raises."""
    raise HalfError("error", "line 3: KeyError")


def agreements(house: House) -> tuple[AgreementRecord, AgreementRecord]:
    """Return what the caller and the provider hold."""
    [ours] = house.caller.store.all_agreements()
    [theirs] = house.provider.store.all_agreements()
    return ours, theirs


def negotiated(house: House) -> int:
    """Return how many negotiations the provider has seen."""
    return len(house.provider.store.negotiations())


async def check_negotiated(house: House, number: int) -> None:
    """Check that the provider has seen so many negotiations, and no more.

    It writes one down when the caller has ended it already.
    """
    await until(lambda: negotiated(house) >= number)
    await until_unserved(house)
    assert negotiated(house) == number


async def failing_call(house: House, number: int = 4) -> CallError:
    """Call `twice`, which has to fail."""
    with pytest.raises(CallError) as caught:
        await house.call("twice", number=number)
    return caught.value


async def until_unserved(house: House) -> None:
    """Wait until the provider serves no channel."""
    await until(lambda: not house.provider.provider._served)


async def released(daemon: Daemon, digest: str) -> bool:
    """Release a protocol over the local API; say whether there was anything to."""
    async with owner_api(daemon) as api:
        answer = await api.post(f"/v1/protocols/{digest[:12]}/release", json={})
    return bool(answer.json()["released"])


@clause("ANP-49", "ANP-75")
async def test_a_protocol_whose_cases_fail_is_used_by_neither_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProviderCases, "answer", other_answer)
    async with house_in(tmp_path) as house:
        failed = await failing_call(house)
        assert failed.kind is ErrorKind.GENERATED_CODE
        assert "is not used" in failed.detail
        assert "test cases failed" in failed.detail
        ours, theirs = agreements(house)
        assert (ours.state, theirs.state) == (
            AgreementState.FAILED,
            AgreementState.FAILED,
        )
        assert house.provider.store.provider_half(ours.hash, ours.own_did) is None
        await until_unserved(house)
        await check_negotiated(house, 1)

        # From now on the peer would answer as agreed, but nobody can know that.
        monkeypatch.setattr(ProviderCases, "answer", REAL_ANSWER)
        for _ in range(3):
            again = await failing_call(house)
            assert again.kind is ErrorKind.GENERATED_CODE
            assert f"anpd protocols release {ours.hash[:12]}" in again.detail
            assert again.retry_after is not None
            assert 0 < again.retry_after <= outcomes.HOLD
        # One more began, in which our mind came to the same text and ended it.
        await check_negotiated(house, 2)
        assert len(house.caller.store.negotiations()) == 2
        # Another task with the same peer is no matter of this.
        assert await house.call("count", step=1) == {"calls": 1, "step": 1}


async def test_the_owner_may_have_it_tried_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProviderCases, "answer", other_answer)
    async with house_in(tmp_path) as house:
        await failing_call(house)
        monkeypatch.setattr(ProviderCases, "answer", REAL_ANSWER)
        ours, _ = agreements(house)
        assert await released(house.caller, ours.hash)
        assert not await released(house.caller, ours.hash)
        # The provider holds it back as well, and says so.
        refused = await failing_call(house)
        assert refused.kind is ErrorKind.NEGOTIATION_REJECTED
        assert "the agreed test cases of this text failed" in refused.detail
        assert await released(house.provider, ours.hash)
        assert await house.call("twice", number=4) == {"twice": 8}
        assert [one.state for one in agreements(house)] == [AgreementState.ACTIVE] * 2


async def test_it_is_tried_again_when_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProviderCases, "answer", other_answer)
    async with house_in(tmp_path) as house:
        await failing_call(house)
        await failing_call(house)
        monkeypatch.setattr(ProviderCases, "answer", REAL_ANSWER)
        monkeypatch.setattr(outcomes, "HOLD", 0.0)
        assert await house.call("twice", number=4) == {"twice": 8}
        assert await house.call("twice", number=5) == {"twice": 10}


@pytest.mark.parametrize("answer", [other_answer, broken_half])
async def test_what_only_one_side_sees_fail_is_not_used_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    monkeypatch.setattr(ProviderCases, "answer", answer)
    listed = WITHOUT_REPORTS
    async with house_in(tmp_path, negotiation__capabilities=listed) as house:
        assert (await failing_call(house)).kind is ErrorKind.GENERATED_CODE
        ours, theirs = agreements(house)
        assert ours.state is AgreementState.FAILED
        # A half that raises is seen by the provider without being told.
        seen = answer is broken_half
        assert theirs.state is (
            AgreementState.FAILED if seen else AgreementState.ACTIVE
        )
        await until_unserved(house)
        await failing_call(house)
        await failing_call(house)
        await check_negotiated(house, 2)
        assert agreements(house)[0].state is AgreementState.FAILED


@clause("ANP-75")
async def test_a_peer_that_falls_silent_in_its_tests_is_not_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProviderCases, "answer", no_answer)
    monkeypatch.setattr(cases, "ANSWER_TIMEOUT", 0.3)
    async with house_in(tmp_path) as house:
        failed = await failing_call(house)
        assert "no answer in 0.3 s" in failed.detail
        ours, _ = agreements(house)
        assert ours.state is AgreementState.FAILED
        # The rest of the cases was not waited for.
        results = ours.tests["cases"]["results"]
        assert [one["detail"] for one in results[1:]] == ["not run"] * (
            len(results) - 1
        )
        await until_unserved(house)


async def test_tests_that_came_to_no_end_leave_nothing_to_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProviderCases, "answer", no_answer)
    async with house_in(tmp_path) as house:
        calling = asyncio.create_task(house.call("twice", number=4))
        await until(lambda: bool(house.caller.store.all_agreements()))
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        ours, _ = agreements(house)
        assert ours.state is AgreementState.TESTING
        await until_unserved(house)
        # It says nothing about the text, so that is simply negotiated again.
        monkeypatch.setattr(ProviderCases, "answer", REAL_ANSWER)
        result = await house.result("twice", {"number": 4})
        assert (result.output, result.source) == ({"twice": 8}, "negotiated")
        assert agreements(house)[0].state is AgreementState.ACTIVE


@pytest.mark.parametrize("point", ["_remember", "_bind"])
async def test_a_call_given_up_before_its_tests_leaves_no_channel_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    reached = asyncio.Event()

    async def waits(*_: Any) -> None:
        reached.set()
        await asyncio.Event().wait()

    async with house_in(tmp_path) as house:
        monkeypatch.setattr(house.caller.caller._binder, point, waits)
        calling = asyncio.create_task(house.call("twice", number=4))
        await reached.wait()
        await until(lambda: bool(house.provider.provider._served))
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await until_unserved(house)


@pytest.mark.slow
async def test_both_owners_read_in_words_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProviderCases, "answer", other_answer)
    async with house_in(tmp_path) as house:
        await failing_call(house)
        ours, _ = agreements(house)
        assert ours.negotiation_id is not None
        [listed], _ = Library(house.caller.store, house.caller.sandbox).page()
        assert listed.state == "failed"
    monkeypatch.undo()
    for name in ("caller", "provider"):
        with Anpd(tmp_path / name).up() as daemon:
            assert " failed " in daemon.ok("protocols", "list").stdout
            shown = daemon.ok("protocols", "show", ours.hash[:12]).stdout
            assert "\nfailed: " in shown
            assert "test cases failed" in shown
            assert f"anpd protocols release {ours.hash[:12]}" in shown
            [negotiation] = daemon.ok("negotiations", "list", "--json").json()[
                "negotiations"
            ]
            told = daemon.ok("negotiations", "show", negotiation["id"]).stdout
            assert "so it is not used" in told
            done = daemon.ok("protocols", "release", ours.hash[:12])
            assert "released" in done.stdout
            listed = daemon.ok("protocols", "list", "--json").json()["protocols"]
            assert {one["state"] for one in listed} == {"stale"}


async def no_worker(cases: ProviderCases, request: bytes, send: object = None) -> bytes:
    """Find no worker free for a test request."""
    raise HalfError("busy", "all 16 workers for this peer are busy; try again")


async def test_a_provider_that_is_busy_fails_no_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProviderCases, "answer", no_worker)
    async with house_in(tmp_path) as house:
        assert await house.call("twice", number=4) == {"twice": 8}
        assert [one.state for one in agreements(house)] == [AgreementState.ACTIVE] * 2
