"""The work of strangers is done in turns, on the event loop and beside all else."""

from __future__ import annotations

import asyncio
import time

import pytest

from anp.channel.admission import Admission, Guest
from anp.channel.stranger_work import StrangerWork, counted, current_meter, own_turn
from tests.waiting import until


def burn(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def enter(admission: Admission, address: str, port: int) -> Guest:
    assert admission.enter((address, port), lambda: None)
    guest = admission.find((address, port))
    assert guest is not None
    return guest


class Clock:
    """Counts the time of tasks, which never wait for a turn."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def worked(self, seconds: float) -> None:
        self.seconds.append(seconds)

    async def turn(self, after: float) -> None:
        pass


async def test_a_flood_leaves_the_loop_to_others_and_a_newcomer_is_next() -> None:
    work = StrangerWork()
    done: list[str] = []

    def piece(name: str) -> None:
        burn(0.004)
        done.append(name)

    for _ in range(50):
        work.do("flood", lambda: piece("flood"))
    # 200 ms of work; a part was done at once, and nobody waits for the rest.
    assert len(done) < 10
    await asyncio.sleep(0)
    work.do("new", lambda: piece("new"))
    await until(lambda: "new" in done)
    assert done.index("new") < 12


async def test_a_piece_that_follows_from_another_one_is_counted_once() -> None:
    # As a large message is read: each piece asks for the next one.
    work = StrangerWork()
    left = 2_000
    done = asyncio.Event()

    def piece() -> None:
        nonlocal left
        left -= 1
        if left:
            work.do("large", piece)
        else:
            done.set()

    began = time.monotonic()
    work.do("large", piece)
    async with asyncio.timeout(5):
        await done.wait()
    # Each piece counts for 30 us, of which strangers have a third.
    assert time.monotonic() - began < 1.5


async def test_work_whose_caller_has_gone_is_not_done() -> None:
    admission = Admission(256)
    guest = enter(admission, "192.0.2.1", 1)
    guest.charge(0.05)
    done: list[str] = []
    waiting = asyncio.create_task(guest.done(lambda: done.append("gone")))
    await asyncio.sleep(0)
    waiting.cancel()
    await guest.done(lambda: done.append("here"))
    assert done == ["here"]


async def test_an_error_in_a_piece_reaches_its_caller_and_the_next_has_its_turn() -> (
    None
):
    guest = enter(Admission(256), "192.0.2.1", 1)

    def broken() -> None:
        raise ValueError("broken")

    guest.charge(0.05)
    first = asyncio.create_task(guest.done(broken))
    await guest.done(lambda: None)
    with pytest.raises(ValueError, match="broken"):
        await first


async def test_work_of_a_listed_peer_is_done_at_once() -> None:
    admission = Admission(256)
    friend = enter(admission, "192.0.2.1", 1)
    friend.charge(10.0)
    admission.prove(friend, "friend", listed=True)
    done: list[int] = []
    friend.do(lambda: done.append(1))
    await friend.done(lambda: done.append(2))
    assert done == [1, 2]


async def test_the_time_in_which_counted_work_runs_counts_and_no_waiting() -> None:
    clock = Clock()
    current_meter.set(clock)

    async def work() -> str:
        burn(0.01)
        await asyncio.sleep(0.2)
        burn(0.01)
        return "done"

    assert await asyncio.create_task(counted(work())) == "done"
    assert 0.02 <= sum(clock.seconds) < 0.15


async def test_counted_work_ends_as_other_work_does() -> None:
    current_meter.set(Clock())
    cleaned: list[str] = []

    async def work(error: Exception | None) -> None:
        try:
            if error is not None:
                raise error
            await asyncio.sleep(60)
        finally:
            cleaned.append("done")

    broken = asyncio.create_task(counted(work(ValueError("broken"))))
    with pytest.raises(ValueError, match="broken"):
        await broken
    given_up = asyncio.create_task(counted(work(None)))
    await asyncio.sleep(0)
    assert "work" in repr(given_up)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    assert cleaned == ["done", "done"]


async def test_work_for_others_is_not_measured() -> None:
    async def work() -> None:
        pass

    given = work()
    assert counted(given) is given
    await given


async def admission_with(*, friend: bool) -> Admission:
    """Return an admission for which a listed peer may have had work a moment ago."""
    admission = Admission(256)
    if friend:
        listed = enter(admission, "192.0.2.9", 9)
        admission.prove(listed, "friend", listed=True)
        await listed.done(lambda: None)
    return admission


@pytest.mark.parametrize("somebody", [True, False])
async def test_work_of_tasks_makes_strangers_wait_while_others_are_there(
    *, somebody: bool
) -> None:
    admission = await admission_with(friend=somebody)
    guest = enter(admission, "192.0.2.1", 1)
    guest.worked(60.0)
    done: list[int] = []
    began = time.monotonic()
    guest.do(lambda: done.append(1))
    assert done == ([] if somebody else [1])
    await until(lambda: done == [1])
    # However much was done, a turn comes soon.
    assert time.monotonic() - began < 2.0


@pytest.mark.parametrize("somebody", [True, False])
async def test_pieces_of_tasks_of_strangers_leave_the_loop_to_others(
    *, somebody: bool
) -> None:
    # As 16 negotiations do, each of which has a large schema to read.
    admission = await admission_with(friend=somebody)

    judged = 0

    async def judge() -> None:
        nonlocal judged
        await own_turn()
        burn(0.005)
        judged += 1

    tasks = []
    for number in range(16):
        current_meter.set(enter(admission, f"192.0.2.{number}", number))
        tasks.append(asyncio.create_task(counted(judge())))
    current_meter.set(None)
    most = 0
    async with asyncio.timeout(5):
        while judged < len(tasks):
            before = judged
            await asyncio.sleep(0)
            most = max(most, judged - before)
    # A few follow one another after a while in which nobody worked.
    assert most <= 6 if somebody else most == len(tasks)
