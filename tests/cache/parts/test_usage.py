"""Spending is kept, in order, and the ledger stays within its limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cache.errors import RecordError
from cache.parts import usage
from cache.records.negotiations import ModelCallRecord, SpendRecord
from cache.store import Store
from tests.cache.samples import ANSWER, MODEL_CALL, PEER, SPEND


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as store:
        yield store


def test_an_account_is_replaced_and_a_call_is_added(store: Store) -> None:
    store.save_spend(SPEND)
    later = replace(SPEND, calls=3)
    second = replace(MODEL_CALL, id="c2", at=MODEL_CALL.at + 1)
    store.save_spend(later, MODEL_CALL)
    store.save_spend(later, second)
    assert store.spends(since=SPEND.day) == [later]
    assert store.model_calls(since=SPEND.day) == [second, MODEL_CALL]
    assert store.model_calls(since=SPEND.day, limit=1) == [second]


def test_days_are_told_apart_newest_first(store: Store) -> None:
    kept = [
        replace(SPEND, day=day, account=account)
        for day in ("2026-03-02", "2026-03-01", "2026-02-28")
        for account in (PEER, "owner", "unlisted")
    ]
    for record in reversed(kept):
        store.save_spend(record)
    assert store.spends(since="2026-02-28") == kept
    assert store.spends(since="2026-03-01") == kept[:6]
    assert store.spends(since="2026-03-03") == []
    old = replace(MODEL_CALL, day="2026-02-28", at=MODEL_CALL.at - 1)
    store.save_spend(SPEND, old)
    store.save_spend(SPEND, MODEL_CALL)
    assert store.model_calls(since="2026-03-01") == [MODEL_CALL]


def test_it_lasts_over_a_restart(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_spend(SPEND, MODEL_CALL)
    with Store(tmp_path) as store:
        assert store.spends(since=SPEND.day) == [SPEND]
        assert store.model_calls(since=SPEND.day) == [MODEL_CALL]
        assert store.check() == ([], ())


def test_the_ledger_keeps_the_newest_calls_of_a_day(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "MAX_LEDGER_DAY", 2)
    monkeypatch.setattr(usage, "MAX_LEDGER", 3)
    for n in range(3):
        call = replace(MODEL_CALL, id=f"c{n}", at=MODEL_CALL.at + n)
        store.save_spend(SPEND, call)
    assert [c.id for c in store.model_calls(since=SPEND.day)] == ["c2", "c1"]
    for n in range(3, 5):
        call = replace(MODEL_CALL, id=f"c{n}", day="2026-03-02", at=MODEL_CALL.at + n)
        store.save_spend(SPEND, call)
    assert [c.id for c in store.model_calls(since=SPEND.day)] == ["c4", "c3", "c2"]


def test_the_oldest_accounts_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "MAX_ACCOUNTS", 2)
    for day in ("2026-03-01", "2026-03-02", "2026-03-03"):
        store.save_spend(replace(SPEND, day=day))
    found = [record.day for record in store.spends(since="2026-01-01")]
    assert found == ["2026-03-03", "2026-03-02"]


@pytest.mark.parametrize(
    "change",
    [
        {"calls": -1},
        {"held_tokens": -1},
        {"cost": -0.1},
        {"cost": float("nan")},
        {"day": "2026-3-1"},
        {"day": "2026-03-01/x"},
        {"account": "somebody"},
        {"account": "did:key:a/b"},
        {"account": "owner\n"},
    ],
)
def test_an_account_that_makes_no_sense_is_not_stored(
    store: Store, change: dict[str, Any]
) -> None:
    with pytest.raises(RecordError):
        store.save_spend(replace(SPEND, **change))
    assert store.spends(since="") == []


@pytest.mark.parametrize(
    "change", [{"step": "A step"}, {"outcome": ""}, {"id": "../x"}, {"peer": "zPeer"}]
)
def test_a_call_that_makes_no_sense_takes_its_account_with_it(
    store: Store, change: dict[str, Any]
) -> None:
    with pytest.raises(RecordError):
        store.save_spend(SPEND, replace(MODEL_CALL, **change))
    assert store.spends(since="") == []


def test_records_hold_numbers_and_names_but_nothing_that_was_said() -> None:
    texts = {"day", "account", "id", "peer", "negotiation_id", "step", "model"}
    for kind in (SpendRecord, ModelCallRecord):
        fields = kind.__dataclass_fields__.values()
        found = {f.name for f in fields if "float" not in str(f.type)}
        assert not found & {"prompt", "answer", "messages", "key", "headers"}
        assert texts & found


def test_an_answer_is_there_until_it_expires_and_the_oldest_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cache.parts.usage.MAX_ANSWERS", 10)
    with Store(tmp_path) as store:
        store.save_answer(ANSWER)
        assert store.answer(ANSWER.question, now=ANSWER.expires - 1) == ANSWER
        assert store.answer(ANSWER.question, now=ANSWER.expires) is None
        assert store.answer("b" * 64, now=ANSWER.at) is None
        for number in range(1, 11):
            later = replace(ANSWER, question=f"{number:064x}", at=ANSWER.at + number)
            store.save_answer(later)
        left = [n for n in range(1, 11) if store.answer(f"{n:064x}", now=ANSWER.at)]
        assert left == list(range(2, 11))
        assert store.answer(ANSWER.question, now=ANSWER.at) is None
