"""Quarantine: a protocol that fails is no longer used, for one peer or for all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox.pool.history import Quarantine, QuarantineConfig

CONFIG = QuarantineConfig(kills=3, window=10.0, duration=100.0)


def kill(quarantine: Quarantine, *kills: tuple[str, float]) -> None:
    for peer, now in kills:
        quarantine.killed("p", "v1", peer, "timeout", now=now)


def test_one_peer_is_refused_after_its_third_kill_in_the_window() -> None:
    quarantine = Quarantine(CONFIG)
    kill(quarantine, ("a", 0.0), ("a", 1.0))
    assert quarantine.reason("p", peer="a", now=1.0) is None
    kill(quarantine, ("a", 9.9))
    assert quarantine.reason("p", peer="a", now=9.9)
    assert quarantine.reason("p", peer="b", now=9.9) is None
    assert quarantine.reason("p", peer=None, now=9.9)
    assert quarantine.reason("q", peer="a", now=9.9) is None


def test_a_kill_at_the_end_of_the_window_is_forgotten() -> None:
    quarantine = Quarantine(CONFIG)
    kill(quarantine, ("a", 0.0), ("a", 1.0), ("a", 10.0))
    assert quarantine.reason("p", peer="a", now=10.0) is None


def test_kills_from_two_peers_refuse_all() -> None:
    quarantine = Quarantine(CONFIG)
    kill(quarantine, ("a", 0.0), ("a", 1.0), ("b", 2.0))
    for peer in ("a", "b", "c", None):
        assert quarantine.reason("p", peer=peer, now=2.0)


def test_it_ends_by_itself_and_by_the_owner() -> None:
    quarantine = Quarantine(CONFIG)
    kill(quarantine, ("a", 0.0), ("a", 1.0), ("a", 2.0))
    assert quarantine.reason("p", peer="a", now=101.9)
    assert quarantine.reason("p", peer="a", now=102.0) is None
    kill(quarantine, ("a", 102.0), ("a", 102.1), ("a", 102.2))
    assert quarantine.release("p")
    assert not quarantine.release("p")
    assert quarantine.reason("p", peer="a", now=102.2) is None
    kill(quarantine, ("a", 102.3))
    assert quarantine.reason("p", peer="a", now=102.3) is None


def test_it_tells_its_beginning_once() -> None:
    quarantine = Quarantine(CONFIG)
    told = [quarantine.killed("p", "v1", "a", "crashed", now=i / 10) for i in range(6)]
    assert told[:2] == [None, None]
    assert told[2] is not None
    assert "crashed" in told[2]
    assert told[3:] == [None, None, None]


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=60))
def test_memory_is_bounded(kills: list[tuple[str, str]]) -> None:
    quarantine = Quarantine(QuarantineConfig(max_remembered=5))
    for now, (protocol, peer) in enumerate(kills):
        quarantine.killed(protocol, "v1", peer, "memory", now=float(now))
    assert len(quarantine._kills) <= 5


def test_a_repaired_code_starts_afresh() -> None:
    quarantine = Quarantine(CONFIG)
    kill(quarantine, ("a", 0.0), ("a", 1.0), ("a", 2.0))
    assert quarantine.reason("p", code="v1", now=2.0)
    assert quarantine.reason("p", code="v2", now=2.0) is None
    assert quarantine.reason("p", now=2.0)
