"""The time of a call, by the owner's settings."""

from __future__ import annotations

import pytest

from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.sidecar.config.entries import PeerEntry
from anp.sidecar.config.interaction import InteractionConfig
from anp.sidecar.config.settings import CallConfig
from anp.sidecar.offer.call_times import CallTimes, TimeLimit

DID, OTHER = (
    Identities.of_method(PrivateKey.generate(), "did:key").primary.did for _ in range(2)
)
FRIEND = PeerEntry(name="friend", did=DID, max_timeout=600.0)


def test_listed_peers_have_an_hour_and_others_a_minute() -> None:
    times = CallTimes(CallConfig())
    assert str(times.of_peer(DID, listed=True)) == "3600 s (call.max_timeout)"
    common = times.of_peer(DID, listed=False)
    assert str(common) == "60 s (call.max_timeout_unlisted)"
    assert times.of_ours("anything", DID).seconds == 3_600


def test_tasks_have_longer_limits_of_their_own() -> None:
    times = CallTimes(CallConfig(), [FRIEND])
    listed = times.of_peer(OTHER, listed=True, lasts=True)
    assert str(listed) == "86400 s (interaction.max_time)"
    common = times.of_peer(OTHER, listed=False, lasts=True)
    assert str(common) == "3600 s (interaction.max_time_unlisted)"
    assert times.of_peer(DID, listed=True, lasts=True).seconds == 600
    ours = times.of_ours("anything", OTHER, lasts=True)
    assert str(ours) == "86400 s (interaction.max_time)"
    assert times.of_ours("friend", OTHER, lasts=True).seconds == 600
    times.put(CallConfig(), [], InteractionConfig(max_time=5.0))
    assert times.of_peer(OTHER, listed=True, lasts=True).seconds == 5


def test_a_peer_may_have_a_limit_of_its_own_in_both_directions() -> None:
    times = CallTimes(CallConfig(), [FRIEND])
    own = TimeLimit(600.0, "max_timeout of the peer friend")
    assert times.of_peer(DID, listed=True) == own
    assert times.of_ours("friend", OTHER) == own
    assert times.of_ours("ws://somewhere", DID) == own
    assert times.of_peer(OTHER, listed=True).seconds == 3_600
    times.put(CallConfig(), [], InteractionConfig())
    assert times.of_peer(DID, listed=True).seconds == 3_600


@pytest.mark.parametrize(
    ("asked", "of_tools", "expected"),
    [
        (None, {}, "30 s (call.timeout)"),
        (90.0, {}, "90 s (the deadline of the caller)"),
        (9_000.0, {}, "3600 s (call.max_timeout)"),
        (90.0, {"work": 5.0}, "5 s (max_timeout of work)"),
        (90.0, {"*": 6.0}, "6 s (max_timeout of work)"),
        (90.0, {"*": 6.0, "work": 7.0}, "7 s (max_timeout of work)"),
        (90.0, {"other": 6.0}, "90 s (the deadline of the caller)"),
        (-1.0, {}, "0.001 s (the deadline of the caller)"),
    ],
)
def test_the_shortest_time_counts_and_is_named(
    asked: float | None, of_tools: dict[str, float], expected: str
) -> None:
    times = CallTimes(CallConfig())
    most = times.of_peer(DID, listed=True)
    assert str(times.granted(asked, most, of_tools, "work")) == expected
