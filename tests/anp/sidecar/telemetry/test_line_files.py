"""Files of lines stay within their size and age, also across restarts."""

from __future__ import annotations

import os
from pathlib import Path

from anp.sidecar.telemetry.line_files import LineFiles, Place

DAY = 86_400.0


class Clock:
    """A time that the test chooses."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def series(folder: Path, clock: Clock, *, max_size: int = 8_000) -> LineFiles:
    return LineFiles(
        folder,
        "served",
        max_size=max_size,
        keep=8 * DAY,
        time_of=lambda line: float(line.split()[0]),
        clock=clock,
    )


def lines(clock: Clock, *numbers: int, pad: int = 80) -> list[bytes]:
    return [f"{clock.now} {one:06d} {'x' * pad}\n".encode() for one in numbers]


def read(files: LineFiles, place: Place | None = None) -> list[int]:
    found = files.backwards(files.end() if place is None else place)
    return [int(line.split()[1]) for line, _ in found]


def size_of(folder: Path) -> int:
    return sum(one.stat().st_size for one in folder.iterdir())


def test_lines_come_back_the_newest_first_over_all_files(tmp_path: Path) -> None:
    clock = Clock()
    files = series(tmp_path / "calls", clock)
    assert read(files) == []
    files.append(lines(clock, *range(30)))
    assert len(list((tmp_path / "calls").iterdir())) > 2
    assert read(files) == [*reversed(range(30))]
    assert (tmp_path / "calls").stat().st_mode & 0o777 == 0o700
    assert {one.stat().st_mode & 0o777 for one in (tmp_path / "calls").iterdir()} == {
        0o600
    }


def test_the_files_never_have_more_than_their_size(tmp_path: Path) -> None:
    clock = Clock()
    for start in range(0, 2_000, 100):
        # A new object each time, as after a restart.
        files = series(tmp_path, clock)
        files.append(lines(clock, *range(start, start + 100)))
        assert size_of(tmp_path) <= 8_000
    shown = read(files)
    assert shown == [*range(1_999, 1_999 - len(shown), -1)]
    assert 50 < len(shown) <= 80


def test_old_lines_go_and_newer_ones_stay_also_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    series(tmp_path, clock).append(lines(clock, 1))
    clock.now += 2 * DAY
    files = series(tmp_path, clock)
    files.prune()
    files.append(lines(clock, 2))
    assert read(files) == [2, 1]
    clock.now += 7 * DAY
    _age(tmp_path, clock, days=(9.0, 7.0))
    again = series(tmp_path, clock)
    again.prune()
    assert read(again) == [2]
    clock.now += 9 * DAY
    _age(tmp_path, clock, days=(9.0,))
    again.prune()
    assert list(tmp_path.iterdir()) == []


def _age(folder: Path, clock: Clock, *, days: tuple[float, ...]) -> None:
    """Give the files, the oldest first, the age that the clock of the test means."""
    for path, past in zip(sorted(folder.iterdir()), days, strict=True):
        os.utime(path, (clock.now - past * DAY,) * 2)


def test_a_place_stays_while_files_are_renamed_and_deleted(tmp_path: Path) -> None:
    clock = Clock()
    files = series(tmp_path, clock)
    files.append(lines(clock, *range(5)))
    place = [at for _, at in files.backwards(files.end())][2]
    files.append(lines(clock, *range(5, 40)))
    assert read(files, place) == [1, 0]
    files.append(lines(clock, *range(40, 300)))
    assert read(files, place) == []


def test_a_line_cut_off_by_a_crash_harms_no_other(tmp_path: Path) -> None:
    clock = Clock()
    files = series(tmp_path, clock)
    files.append(lines(clock, 1, 2))
    with (tmp_path / "served.jsonl").open("ab") as stream:
        stream.write(b"1000.0 000")
    again = series(tmp_path, clock)
    again.append(lines(clock, 3))
    shown = [line for line, _ in again.backwards(again.end())]
    numbers = [line.split()[1] for line in shown]
    assert numbers == [b"000003", b"000", b"000002", b"000001"]


def test_a_file_without_line_ends_is_read_in_little_memory(tmp_path: Path) -> None:
    clock = Clock()
    files = series(tmp_path, clock, max_size=80_000_000)
    files.append(lines(clock, 1))
    with (tmp_path / "served.jsonl").open("ab") as stream:
        stream.write(b"y" * 1_000_000)
    files.append(lines(clock, 2))
    found = [line for line, _ in files.backwards(files.end())]
    assert found[0].split()[1] == b"000002"
    assert max(map(len, found)) <= 3 * 64 * 1024
