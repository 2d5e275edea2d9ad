"""The order in which shares get their turns, and the bounds of each."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.pool.shares import OWNER, FairQueue, Rank, Share, TooManyWait, UseLimits

LISTED = Share(Rank.LISTED, "did:key:zFriend")
OTHER = Share(Rank.LISTED, "did:key:zOther")
NEAR, FAR = Share(Rank.COMMON, "192.0.2.1"), Share(Rank.COMMON, "192.0.2.2")
SHARES = [OWNER, LISTED, OTHER, NEAR, FAR]
LIMITS = UseLimits(max_waiting=3, max_waiting_common=5)


def drained(queue: FairQueue[str], *, now: float = 0.0, common: bool = True) -> str:
    """Return the works in the order of their turns."""
    found = []
    while (work := queue.take(now=now, common=common)) is not None:
        found.append(work)
    return "".join(found)


def test_the_owner_comes_first_then_listed_peers_then_all_others() -> None:
    queue: FairQueue[str] = FairQueue()
    for share, work in ((NEAR, "n"), (LISTED, "l"), (OWNER, "o"), (OTHER, "m")):
        queue.put(share, work)
    assert drained(queue) == "olmn"


def test_shares_that_used_equally_much_take_turns() -> None:
    queue: FairQueue[str] = FairQueue()
    for work in "abc":
        queue.put(NEAR, work)
    for work in "xy":
        queue.put(FAR, work)
    assert drained(queue) == "axbyc"


def test_who_used_less_goes_first_until_it_is_forgiven() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.use(NEAR, 2.0, now=0.0)
    for share, work in ((NEAR, "n"), (NEAR, "N"), (FAR, "f"), (FAR, "F")):
        queue.put(share, work)
    assert queue.take(now=0.0) == "f"
    assert queue.used(NEAR, now=10.0) == 1.0
    # After twenty seconds nothing is left of it, and they take turns.
    assert [queue.take(now=0.5), queue.take(now=0.5)] == ["F", "n"]
    assert queue.used(NEAR, now=20.0) == 0.0


def test_what_is_kept_for_listed_peers_goes_to_no_other() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.put(NEAR, "n")
    assert queue.take(now=0.0, common=False) is None
    queue.put(LISTED, "l")
    assert drained(queue, common=False) == "l"
    assert drained(queue) == "n"


def test_listed_peers_leave_a_turn_to_the_others_and_the_owner_leaves_none() -> None:
    queue: FairQueue[str] = FairQueue()
    for share, work in ((NEAR, "n"), (LISTED, "l"), (OWNER, "o")):
        for _ in range(8):
            queue.put(share, work)
    assert drained(queue) == "oooooooo" + "llln" * 2 + "lln" + "nnnnn"


def test_each_share_has_a_bound_and_the_common_rank_one_together() -> None:
    queue: FairQueue[str] = FairQueue(LIMITS)
    for share in (NEAR, LISTED):
        for _ in range(3):
            queue.put(share, "x")
        with pytest.raises(TooManyWait):
            queue.put(share, "x")
    queue.put(FAR, "x")
    queue.put(FAR, "x")
    with pytest.raises(TooManyWait):
        queue.put(FAR, "x")
    for _ in range(99):
        queue.put(OWNER, "x")
    queue.put(OTHER, "x")


def test_a_share_that_used_much_has_a_pause_and_the_others_have_none() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.use(NEAR, 5.0, now=0.0)
    assert queue.pause(NEAR, now=0.0) == 0
    queue.use(NEAR, 2.0, now=0.0)
    assert queue.pause(NEAR, now=0.0) == 20
    assert queue.pause(NEAR, now=20.0) == 0
    assert queue.pause(FAR, now=0.0) == 0
    queue.use(OWNER, 100.0, now=0.0)
    assert queue.pause(OWNER, now=0.0) == 0


def test_the_use_of_any_number_of_addresses_is_bounded() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.use(NEAR, 4.0, now=0.0)
    for number in range(5_000):
        queue.use(Share(Rank.COMMON, f"198.51.100.{number}"), 0.1, now=0.0)
    assert len(queue._used) <= 1_000
    assert queue.used(NEAR, now=0.0) == 4.0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(SHARES)),
        st.tuples(st.just("use"), st.sampled_from(SHARES)),
        st.tuples(st.just("take"), st.booleans()),
        st.tuples(st.just("drop"), st.sampled_from(SHARES)),
    ),
    max_size=60,
)


@given(STEPS)
def test_nothing_is_lost_or_doubled_and_each_share_keeps_its_order(
    steps: list[tuple[str, object]],
) -> None:
    queue: FairQueue[tuple[Share, int]] = FairQueue(LIMITS)
    waiting: dict[Share, list[tuple[Share, int]]] = {share: [] for share in SHARES}
    for number, (step, what) in enumerate(steps):
        now = number / 10
        if step == "take":
            work = queue.take(now=now, common=bool(what))
            able = [s for s in SHARES if waiting[s] and (what or s.rank < Rank.COMMON)]
            assert (work is None) == (not able)
            if work is not None:
                assert work == waiting[work[0]].pop(0)
                assert work[0] is OWNER or OWNER not in able
            continue
        assert isinstance(what, Share)
        if step == "use":
            queue.use(what, 0.3, now=now)
        elif step == "drop" and waiting[what]:
            queue.drop(what, waiting[what].pop())
        elif step == "put":
            work = (what, number)
            try:
                queue.put(what, work)
                waiting[what].append(work)
            except TooManyWait:
                assert what.rank is not Rank.OWNER
        assert len(queue) == sum(map(len, waiting.values()))


@given(st.lists(st.sampled_from([NEAR, FAR]), min_size=1, max_size=40))
def test_a_flood_of_one_share_delays_another_by_one_turn(flood: list[Share]) -> None:
    queue: FairQueue[Share] = FairQueue(UseLimits(max_waiting=99))
    for share in flood:
        queue.put(share, share)
    turns = []
    while (work := queue.take(now=0.0)) is not None:
        turns.append(work)
    seen: Counter[Share] = Counter()
    for share in turns:
        seen[share] += 1
        other = FAR if share == NEAR else NEAR
        if flood.count(other) > seen[other]:
            assert abs(seen[NEAR] - seen[FAR]) <= 1
