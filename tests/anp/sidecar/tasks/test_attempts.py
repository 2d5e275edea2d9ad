"""Peers that have no room, and the time for which they are given nothing new."""

from __future__ import annotations

import math

from anp.sidecar.tasks.delivery.attempts import MOST_PAUSE, MOST_TOLD, Pauses


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_pause_doubles_to_a_minute_and_is_never_shorter_than_the_peer_says() -> None:
    clock = Clock()
    pauses = Pauses(clock)
    assert pauses.left("peer") == 0
    found = []
    for _ in range(7):
        # All refusals of one moment are one.
        for _ in range(3):
            pauses.refused("peer", 2.0)
        found.append(pauses.left("peer"))
        clock.now += found[-1]
        assert pauses.left("peer") == 0
    assert found == [2, 4, 8, 16, 32, 60, 60]
    pauses.refused("peer", 90.0)
    assert pauses.left("peer") == 90
    # Who took everything for a while begins anew.
    clock.now += 90 + MOST_PAUSE
    pauses.refused("peer", 0.5)
    assert pauses.left("peer") == 1
    assert pauses.left("other") == 0


def test_no_peer_brings_about_a_pause_without_end() -> None:
    pauses = Pauses(Clock())
    pauses.refused("peer", 1e300)
    assert pauses.left("peer") == MOST_TOLD
    pauses.refused("liar", math.inf)
    assert pauses.left("liar") == 1
