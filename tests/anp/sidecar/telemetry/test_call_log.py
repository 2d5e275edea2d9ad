"""The access log: entries, pages, its limit on failed calls, and its bounds."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from anp.sidecar.config.settings import AccessLogConfig
from anp.sidecar.telemetry.call_entry import CallEntry, clean, read_entry
from anp.sidecar.telemetry.call_log import MAX_CAUSES, MAX_FAILED, CallLog, page_start

NOW = 1_700_000_000.0

GOOD = CallEntry(
    id="00", direction="served", at=NOW, ms=3.0, outcome="ok", peer="did:key:zA"
)


class Clock:
    """A time that the test chooses."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def log_in(folder: Path, clock: Clock | None = None, **settings: float) -> CallLog:
    clock = clock or Clock()
    config = AccessLogConfig(**settings)  # type: ignore[arg-type]  # numbers
    return CallLog(folder / "calls", config, clock=clock, monotonic=clock)


def everything(entry: CallEntry) -> bool:
    return True


async def shown(log: CallLog, **options: str) -> list[str]:
    """Return the ids of all entries, read in pages of seven."""
    found: list[str] = []
    after: str | None = None
    while True:
        page = await log.page(everything, after=after, limit=7, **options)  # type: ignore[arg-type]  # directions
        found += [one.id for one in page.entries]
        after = page.next
        if after is None:
            return found


async def test_both_directions_come_in_one_order_page_by_page(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    for number in range(40):
        way = "made" if number % 3 else "served"
        log.add(
            replace(GOOD, id=f"{number:02}", at=NOW + number, direction=way)  # type: ignore[arg-type]  # a direction
        )
    assert await shown(log) == [f"{number:02}" for number in range(39, -1, -1)]
    served = [f"{number:02}" for number in range(39, -1, -3)]
    assert await shown(log, direction="served") == served
    # The access log itself: one JSON line for each served call.
    lines = (tmp_path / "calls" / "served.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == served[::-1]
    # The same after a restart.
    assert await shown(log_in(tmp_path)) == await shown(log)


async def test_new_calls_do_not_move_a_page_that_is_read(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    for number in range(10):
        log.add(replace(GOOD, id=f"{number}", at=NOW + number))
    page = await log.page(everything, limit=3)
    assert [one.id for one in page.entries] == ["9", "8", "7"]
    log.add(replace(GOOD, id="new", direction="made", at=NOW + 60))
    log.add(replace(GOOD, id="newer", at=NOW + 61))
    following = await log.page(everything, after=page.next, limit=3)
    assert [one.id for one in following.entries] == ["6", "5", "4"]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"need": 'of "é"', "peer_cost": 0.5},
        {"cost": 1e-5},
        {"ms": 1e300},
        {"reason": "\x7f\ud800"},
    ],
)
def test_a_line_has_the_same_bytes_however_it_is_written(
    change: dict[str, Any],
) -> None:
    entry = replace(GOOD, **change)
    line = json.dumps(asdict(entry), separators=(",", ":"))
    assert entry.line() == f"{line}\n".encode()


@pytest.mark.parametrize("after", ["x", "served.1", "served.1.x", "other.1.2", "1.2.3"])
def test_a_place_that_no_page_gave_is_an_error(after: str) -> None:
    with pytest.raises(ValueError):
        page_start(after)


async def test_failed_calls_of_a_peer_fill_no_disk(tmp_path: Path) -> None:
    clock = Clock()
    told: list[CallEntry] = []
    config = AccessLogConfig()
    log = CallLog(
        tmp_path / "calls", config, publish=told.append, clock=clock, monotonic=clock
    )
    for number in range(10_000):
        log.add(replace(GOOD, id=f"{number}", outcome="policy", reason="403: no"))
    log.add(GOOD)
    log.add(replace(GOOD, outcome="policy", peer="did:key:zB"))
    assert len(told) == MAX_FAILED + 2
    clock.now += 61
    log.add(replace(GOOD, outcome="policy", id="later"))
    counted = [one for one in told if one.count > 1]
    assert [(one.peer, one.outcome, one.count) for one in counted] == [
        ("did:key:zA", "policy", 10_000 - MAX_FAILED)
    ]
    await log.close()
    lines = (tmp_path / "calls" / "served.jsonl").read_text().splitlines()
    assert len(lines) == len(told) == MAX_FAILED + 4


async def test_many_identities_share_one_limit(tmp_path: Path) -> None:
    clock = Clock()
    log = log_in(tmp_path, clock)
    for number in range(20 * MAX_CAUSES):
        for _ in range(3):
            log.add(replace(GOOD, outcome="policy", peer=f"did:key:z{number}"))
    await log.close()
    found = (tmp_path / "calls" / "served.jsonl").read_text().splitlines()
    assert len(found) <= 3 * MAX_CAUSES + MAX_FAILED + 1
    last = json.loads(found[-1])
    assert (last["peer"], last["outcome"]) == (None, "policy")
    assert last["count"] == 3 * 19 * MAX_CAUSES - MAX_FAILED


async def test_our_own_failed_calls_have_a_line_each(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    for number in range(200):
        log.add(replace(GOOD, id=str(number), direction="made", outcome="timeout"))
    assert len(await shown(log)) == 200


async def test_the_log_keeps_its_size_and_its_age(tmp_path: Path) -> None:
    clock = Clock()
    log = log_in(tmp_path, clock, max_size=64 * 1024, keep=3_600.0)
    own = replace(GOOD, id="own", direction="made", at=NOW)
    log.add(own)
    for number in range(500):
        clock.now += 1
        log.add(replace(GOOD, id=str(number), at=clock.now, reason="x" * 150))
        if not number % 50:
            await log.flush()
    found = await shown(log)
    files = list((tmp_path / "calls").iterdir())
    assert sum(one.stat().st_size for one in files) <= 64 * 1024
    assert found[0] == "499"
    # Calls of peers push out none of ours.
    assert "own" in found
    assert 20 < len(found) < 100
    clock.now += 3_601
    assert await shown(log) == []


async def test_a_log_that_is_off_writes_nothing_and_still_tells(tmp_path: Path) -> None:
    told: list[CallEntry] = []
    log = CallLog(
        tmp_path / "calls", AccessLogConfig(enabled=False), publish=told.append
    )
    log.add(GOOD)
    assert await shown(log) == []
    await log.close()
    assert len(told) == 1
    assert not (tmp_path / "calls").exists()


async def test_a_disk_that_takes_nothing_ends_no_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "calls").write_text("a file in the place of the folder")
    log = log_in(tmp_path)
    log.add(GOOD)
    await log.flush()
    assert "access log not written" in caplog.text


def test_words_of_peers_are_cut_and_stay_on_their_line() -> None:
    evil = replace(
        GOOD,
        capability="a\nb\x1b[31m\u202e" + "c" * 5_000,
        reason="\ud800\r\n{}",
        peer="did:web:" + "x" * 4_000,
    ).cleaned()
    assert evil.capability is not None
    assert evil.capability.startswith("a<a>b<1b>[31m<202e>c")
    assert len(evil.capability) <= 200
    assert evil.reason == "<d800><d><a>{}"
    assert evil.peer is not None
    assert len(evil.peer) <= 1_024
    line = evil.line()
    assert line.count(b"\n") == 1
    assert len(line) < 16 * 1024
    assert read_entry(line) == evil
    assert clean("good") == "good"


@pytest.mark.parametrize("line", [b"", b"{}\n", b"[]\n", b'{"id":1}\n', b"\xff\n"])
def test_a_damaged_line_is_no_entry(line: bytes) -> None:
    assert read_entry(line) is None
