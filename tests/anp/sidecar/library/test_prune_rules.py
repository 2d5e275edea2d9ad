"""The rules for dropping protocols, and the states that people are shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anp.sidecar.library.prune_rules import DAY, PruneRules
from anp.sidecar.library.state import revocation_for, standing_of
from anp.sidecar.library.views import UsageCounts
from cache.records.records import AgreementState, RevocationRecord, UsageRecord
from tests.cache.samples import AGREEMENT, HALF, OTHER, PEER, PROVIDER_HALF

NOW = 1000 * DAY
HASH = AGREEMENT.hash


def rules(
    older_than: float = 90 * DAY,
    *,
    revoked: dict[tuple[str, str | None], float] | None = None,
    last_uses: dict[str, float] | None = None,
) -> PruneRules:
    """Return rules for a moment long after the samples were made."""
    return PruneRules(
        now=NOW,
        older_than=older_than,
        revoked=revoked or {},
        last_uses=last_uses or {},
    )


@pytest.mark.parametrize("age", [90 * DAY, 90 * DAY + 1])
def test_an_agreement_stays_until_its_time_is_over(age: float) -> None:
    record = replace(AGREEMENT, created=1.0, last_used=NOW - age)
    goes = rules().agreement(record)
    assert goes == (None if age == 90 * DAY else "last used 90 d ago")


def test_the_last_use_counts_and_not_the_making() -> None:
    assert rules().agreement(replace(AGREEMENT, last_used=NOW)) is None
    assert rules().agreement(AGREEMENT) is not None


def test_a_failure_counts_from_its_test_and_a_revocation_from_the_word() -> None:
    failed = replace(
        AGREEMENT, state=AgreementState.FAILED, tests={"cases": {"at": NOW - 3 * DAY}}
    )
    assert rules().agreement(failed) is None
    assert rules(DAY).agreement(failed) == "failed 3 d ago"
    revoked = replace(AGREEMENT, state=AgreementState.REVOKED, last_used=NOW)
    marks: dict[tuple[str, str | None], float] = {
        (HASH, PEER): NOW - 100 * DAY,
        (HASH, OTHER): NOW,
    }
    assert rules(revoked=marks).agreement(revoked) == "revoked 100 d ago"
    assert rules(revoked={(HASH, None): NOW}).agreement(revoked) is None


def test_a_half_stays_while_an_agreement_or_a_stranger_uses_it() -> None:
    assert rules().half(HALF, True) is None
    assert rules().half(HALF, False) is not None
    assert rules().half(replace(HALF, created=NOW), False) is None
    served = rules(last_uses={HASH: NOW - DAY})
    assert served.half(PROVIDER_HALF, False) is None
    assert (
        served.half(replace(PROVIDER_HALF, state=AgreementState.STALE), False)
        is not None
    )


@pytest.mark.parametrize(
    ("state", "half", "told"),
    [
        (AgreementState.ACTIVE, AgreementState.ACTIVE, "active"),
        (AgreementState.TESTING, AgreementState.ACTIVE, "testing"),
        (AgreementState.FAILED, AgreementState.ACTIVE, "failed"),
        (AgreementState.STALE, AgreementState.ACTIVE, "stale"),
        (AgreementState.ACTIVE, AgreementState.STALE, "stale"),
        (AgreementState.ACTIVE, None, "stale"),
        (AgreementState.ACTIVE, AgreementState.REVOKED, "revoked"),
        (AgreementState.REVOKED, AgreementState.ACTIVE, "revoked"),
    ],
)
def test_only_what_is_used_is_active_and_all_else_has_a_reason(
    state: AgreementState, half: AgreementState | None, told: str
) -> None:
    found = standing_of(state, half=half)
    assert found.state == told
    assert (found.reason == "") is (told == "active")


def test_the_weightier_reason_is_told() -> None:
    for_all = RevocationRecord(HASH, None, 1.0, "prices")
    found = standing_of(
        AgreementState.ACTIVE,
        half=AgreementState.ACTIVE,
        revocation=for_all,
        quarantined="3 workers",
        unfit="no tool",
    )
    assert found.reason == "revoked by you for all: prices"
    found = standing_of(
        AgreementState.ACTIVE,
        half=AgreementState.ACTIVE,
        quarantined="3 workers",
        unfit="no tool",
    )
    assert (found.state, found.reason) == ("quarantined", "3 workers")
    found = standing_of(
        AgreementState.ACTIVE, half=AgreementState.ACTIVE, unfit="no tool"
    )
    assert (found.state, found.reason) == ("stale", "no tool")


def test_a_revocation_is_for_all_or_for_its_peer() -> None:
    one = RevocationRecord(HASH, PEER, 1.0)
    assert revocation_for([one], PEER) is one
    assert revocation_for([one], OTHER) is None
    assert revocation_for([one], None) is None
    for_all = RevocationRecord(HASH, None, 1.0)
    assert revocation_for([for_all, one], OTHER) is for_all


def test_the_share_of_calls_without_negotiation_is_of_those_through_protocols() -> None:
    usage = UsageRecord(
        HASH, agreement=5, consensus=2, negotiated=1, failed=9, natural_language=9
    )
    shown = UsageCounts.of(usage)
    assert (shown.calls, shown.hit_rate) == (8, 0.875)
    assert UsageCounts.of(UsageRecord(HASH)).hit_rate is None
