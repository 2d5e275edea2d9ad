"""Results of agreed test cases in words, and the refusal of a failed text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ErrorKind
from anp.sidecar.agreement.outcomes import (
    HOLD,
    MAX_TEXTS,
    failed_texts,
    in_words,
    proposed_again,
    ruled_out,
)
from cache.records.records import AgreementRecord, AgreementRole, AgreementState

NOW = 1_000_000.0
BAD = {"title": "the largest", "passed": False, "detail": "/output is\nnot 7"}
GOOD = {"title": "the least", "passed": True, "detail": ""}
SKIPPED = {"title": "more", "passed": False, "detail": "not run"}


def agreement(digest: str = "a", at: float = NOW, **changes: Any) -> AgreementRecord:
    """Return an agreement whose cases failed."""
    record = AgreementRecord(
        own_did="did:key:zOwn",
        peer_did="did:key:zPeer",
        role=AgreementRole.REQUESTER,
        need_key="b" * 64,
        hash=digest * 64,
        revision=1,
        need=None,
        samples="full",
        tests={"cases": {"mode": "wire", "results": [GOOD, BAD], "at": at}},
        negotiation_id=None,
        created=at - 5.0,
        state=AgreementState.FAILED,
    )
    return replace(record, **changes)


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        (None, ""),
        ({"mode": "wire", "results": [GOOD, GOOD]}, "2 of 2 test cases passed (wire)"),
        (
            {"mode": "wire", "results": [GOOD, BAD, SKIPPED]},
            "1 of 3 test cases failed, 1 not run: the largest: /output is not 7",
        ),
        ({"mode": "untested", "reason": "no\nrequest"}, "untested: no request"),
        ({"mode": "agreed", "text": "x"}, "agreed with the peer, which runs them"),
    ],
)
def test_what_came_of_the_cases_is_told_in_one_line(cases: Any, words: str) -> None:
    assert in_words({"acceptance": "passed", "cases": cases}) == words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["mode", "results", "title", "detail", "passed", "at"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_tests_of_a_bundle_break_the_words_or_the_hold(value: Any) -> None:
    assert "\n" not in in_words({"cases": value})
    record = agreement(tests={"cases": value})
    for one in failed_texts([record], now=NOW):
        assert NOW < one.until <= NOW + HOLD
        assert one.error(now=NOW).detail


def test_a_text_is_refused_until_its_hold_is_over() -> None:
    record = agreement()
    [failed] = failed_texts([record], now=NOW + HOLD - 0.1)
    assert failed.until == NOW + HOLD
    assert failed_texts([record], now=NOW + HOLD) == []


@pytest.mark.parametrize(
    "state", [state for state in AgreementState if state != "failed"]
)
def test_only_what_failed_is_refused(state: AgreementState) -> None:
    assert failed_texts([agreement(state=state)], now=NOW) == []


def test_a_clock_that_was_set_back_holds_nothing_longer() -> None:
    early = NOW - 3 * HOLD
    [held] = failed_texts([agreement(created=early - 1.0)], now=early)
    assert held.until == early - 1.0 + HOLD
    assert failed_texts([agreement()], now=early) == []


def test_one_failed_text_leaves_room_for_another_one() -> None:
    assert ruled_out([]) is None
    assert ruled_out(failed_texts([agreement()], now=NOW)) is None


def test_a_text_that_is_proposed_again_ends_the_trying() -> None:
    record = agreement()
    again = replace(record, tests=proposed_again(record, now=NOW))
    assert in_words(again.tests) == in_words(record.tests)
    failed = failed_texts([agreement("c"), again], now=NOW)
    found = ruled_out(failed)
    assert found is not None
    assert found.agreement == again


def test_so_many_texts_may_fail_and_no_more() -> None:
    records = [agreement(digest) for digest in "abcdef"[:MAX_TEXTS]]
    assert ruled_out(failed_texts(records[1:], now=NOW)) is None
    assert ruled_out(failed_texts(records, now=NOW)) is not None


def test_the_error_says_what_failed_and_what_to_do() -> None:
    [failed] = failed_texts([agreement()], now=NOW + 600.0)
    error = failed.error(now=NOW + 600.0)
    assert error.kind is ErrorKind.GENERATED_CODE
    assert error.retry_after == HOLD - 600.0
    assert "the largest: /output is not 7" in error.detail
    assert "in 50 min" in error.detail
    assert f"anpd protocols release {'a' * 12}" in error.detail
    # The peer learns neither titles nor details from us.
    assert "largest" not in failed.for_peer(now=NOW)
