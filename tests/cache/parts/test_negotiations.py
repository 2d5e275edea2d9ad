"""Words of the owner: kept until used, used once, gone when they lapse."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from cache.errors import RecordError
from cache.parts import negotiations
from cache.records.negotiations import NegotiationRecord, StandingRecord
from cache.store import Store
from tests.cache.samples import NEGOTIATION, OTHER, PEER, STANDING
from tests.clauses import clause

NOW = 1500.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as opened:
        yield opened


@clause("ANP-34")
def test_a_word_outlives_the_daemon_and_is_listed_by_peer(tmp_path: Path) -> None:
    other = replace(STANDING, id="w2", peer_did=OTHER, created=1100.0)
    with Store(tmp_path / "store") as store:
        for word in (STANDING, other):
            store.save_standing(word, now=NOW)
    with Store(tmp_path / "store") as store:
        assert store.standing(PEER) == [STANDING]
        assert store.standing() == [other, STANDING]


@clause("ANP-34")
def test_a_word_is_taken_once_whoever_asks_at_the_same_time(store: Store) -> None:
    store.save_standing(STANDING, now=NOW)
    with ThreadPoolExecutor(4) as threads:
        taken = [
            taken
            for taken in threads.map(
                lambda n: store.take_standing(STANDING, by=f"n{n}", now=NOW), range(8)
            )
            if taken is not None
        ]
    [one] = taken
    assert store.standing() == [one]
    assert one.used == NOW


def test_a_word_that_came_to_nothing_waits_again(store: Store) -> None:
    store.save_standing(STANDING, now=NOW)
    taken = store.take_standing(STANDING, by="n1", now=NOW)
    assert taken is not None
    store.give_back_standing(replace(taken, used_by="n2"))
    assert store.standing() == [taken], "only by the negotiation that took it"
    store.give_back_standing(taken)
    assert store.standing() == [STANDING]


@pytest.mark.parametrize(("now", "counts"), [(1999.9, True), (2000.0, False)])
def test_a_word_counts_until_it_lapses(store: Store, now: float, counts: bool) -> None:
    store.save_standing(STANDING, now=NOW)
    assert (store.take_standing(STANDING, by="n1", now=now) is not None) is counts


def test_lapsed_words_go_with_the_next_one_and_the_oldest_over_the_limit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(negotiations, "MAX_STANDING", 3)
    lapsed = replace(STANDING, id="old", expires=1200.0)
    store.save_standing(lapsed, now=1100.0)
    words = [replace(STANDING, id=f"w{n}", created=1300.0 + n) for n in range(4)]
    for word in words:
        store.save_standing(word, now=NOW)
    assert store.standing() == words[:0:-1]


def test_a_text_under_another_hash_is_no_word() -> None:
    value = {**STANDING.to_json(), "document": "another text"}
    with pytest.raises(RecordError, match="hash"):
        StandingRecord.from_json(value)


def test_ids_are_found_by_their_beginning(store: Store) -> None:
    for name, outcome in (("ab1", "agreed"), ("ab2", "rejected"), ("c", "rejected")):
        store.save_negotiation(replace(NEGOTIATION, id=name, outcome=outcome))
    assert store.negotiation_ids("ab") == ["ab1", "ab2"]
    assert store.negotiation_ids("c") == ["c"]
    assert store.negotiation_ids("") == []
    assert store.negotiation_ids("ab", limit=1) == ["ab1"]


def test_a_negotiation_of_before_the_owners_queue_is_still_read() -> None:
    new = {
        *("own_did", "subject", "verdicts", "hints", "pending", "decision"),
        *("model_calls", "tests"),
    }
    value = {k: v for k, v in NEGOTIATION.to_json().items() if k not in new}
    assert NegotiationRecord.from_json(value) == NEGOTIATION
