"""Test cases between two daemons: agreed, run over PT=11, stored (ANP-48 to ANP-54)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cache.records.records import AgreementRole
from tests.clauses import clause
from tests.e2e.house import House, house_in


def kept_by(house: House, role: AgreementRole) -> dict[str, object]:
    """Return what one side kept of the test cases."""
    daemon = house.provider if role is AgreementRole.PROVIDER else house.caller
    [agreement] = [one for one in daemon.store.all_agreements() if one.role is role]
    kept = agreement.tests["cases"]
    assert isinstance(kept, dict)
    return kept


@clause("ANP-48", "ANP-49", "ANP-53", "ANP-75")
async def test_a_new_protocol_is_tested_before_its_first_call(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        result = await house.result("count", {"step": 4})
        # The tests ran on fixtures: the capability was called for the call alone.
        assert result.output == {"calls": 1, "step": 4}
        # Proposal, accepted, two codes; then the cases: proposed, filled in, accepted.
        assert result.negotiation_messages == 7
        ours = kept_by(house, AgreementRole.REQUESTER)
        assert ours["mode"] == "wire"
        results = ours["results"]
        assert isinstance(results, list)
        assert len(results) >= 2
        assert all(one["passed"] for one in results)
        theirs = kept_by(house, AgreementRole.PROVIDER)
        assert theirs["text"] == ours["text"]
        assert "fixtures" in theirs
        assert "fixtures" not in ours
        again = await house.result("count", {"step": 5})
        assert again.negotiation_messages == 0


@clause("ANP-81")
async def test_without_verification_the_cases_are_run_offline(tmp_path: Path) -> None:
    listed = ["testCasesNegotiation"]
    async with house_in(tmp_path, negotiation__capabilities=listed) as house:
        assert await house.call("count", step=4) == {"calls": 1, "step": 4}
        ours = kept_by(house, AgreementRole.REQUESTER)
        assert ours["mode"] == "offline"


@clause("ANP-48", "ANP-77", "ANP-81")
async def test_without_test_cases_the_agreement_says_untested(tmp_path: Path) -> None:
    async with house_in(tmp_path, negotiation__capabilities=[]) as house:
        result = await house.result("twice", {"number": 4})
        assert result.output == {"twice": 8}
        assert result.negotiation_messages == 4
        ours = kept_by(house, AgreementRole.REQUESTER)
        assert ours["mode"] == "untested"
        assert ours["reason"]


async def test_the_owner_may_leave_the_tests_out(tmp_path: Path) -> None:
    async with house_in(tmp_path, negotiation__test_cases=False) as house:
        result = await house.result("twice", {"number": 4})
        assert result.negotiation_messages == 4


async def test_two_callers_with_one_task_make_one_negotiation(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        results = await asyncio.gather(
            *(house.result("twice", {"number": n}) for n in range(4))
        )
        assert [one.output["twice"] for one in results] == [0, 2, 4, 6]
        assert sorted(one.source for one in results) == [
            "agreement",
            "agreement",
            "agreement",
            "negotiated",
        ]
        assert len(house.caller.store.negotiations()) == 1
        assert len(house.provider.store.negotiations()) == 1
