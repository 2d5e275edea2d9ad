"""The pass rule, and the printed table."""

from __future__ import annotations

from collections.abc import Sequence

from tests.attacks.measure import Run, all_of, percentile

MOST_P99 = 3.0
"A listed peer's p99 during an attack may be so many times its quiet one."

MOST_SECONDS = 5.0
"Seconds that a new peer may have to wait for its first answer."

COLUMNS = (
    ("attack", -24),
    ("p50 x", 7),
    ("p99 x", 7),
    ("new peer s", 10),
    ("quiet p50/p99 ms", 16),
    ("errors", 9),
    ("after x", 7),
    ("others", 6),
    ("MiB", 11),
    ("files", 10),
    ("processes", 9),
    ("CPU s", 6),
    ("log KiB", 8),
    ("store KiB", 9),
)
"Titles and widths; a negative one stands left."

LEGEND = """
p50 x, p99 x   listed peers' calls during the attack, as multiples of the quiet time
new peer s     longest time until a new peer had its first answer; > says it had none
errors         of the listed peers' calls / all of them
after x        p99 in the quiet time after the attack, as a multiple of that before
others         part of the daemon's core that other programs took: noise
MiB, files, processes      of the daemon and those below it, before > at the end
CPU s, log KiB, store KiB  added during the attack
"""


def header() -> str:
    """Return the titles."""
    return _row([title for title, _ in COLUMNS])


def line(run: Run) -> str:
    """Return the line of one run."""
    kept_out = any(not one["served"] for one in run.arrivals)
    before, after, quiet = run.before, run.after, all_of(run.quiet)
    return _row(
        [
            run.attack,
            f"{run.p50:.2f}",
            f"{run.p99:.2f}",
            f"{'>' if kept_out else ''}{run.kept_out:.2f}",
            f"{percentile(quiet, 50):.1f}/{percentile(quiet, 99):.1f}",
            f"{sum(run.errors.values())}/{len(all_of(run.calls))}",
            f"{run.p99_after:.2f}",
            f"{run.others:.0%}",
            f"{_mib(before.memory + before.memory_below)}"
            f">{_mib(after.memory + after.memory_below)}",
            f"{before.files}>{after.files}",
            f"{before.processes}>{after.processes}",
            f"{after.cpu - before.cpu:.1f}",
            f"{(after.log - before.log) / 1024:.0f}",
            f"{(after.store - before.store) / 1024:.0f}",
        ]
    )


def findings(run: Run) -> list[str]:
    """Return what breaks the rule; empty if the run passed."""
    found = []
    if run.trouble:
        found.append(run.trouble)
    if run.p99 > MOST_P99:
        found.append(f"p99 of the listed peers is {run.p99:.1f} times the quiet one")
    if run.p99_after > MOST_P99:
        found.append(f"after the attack it is still {run.p99_after:.1f} times that")
    if run.errors:
        found.append(f"{sum(run.errors.values())} calls of the listed peers failed")
    if run.kept_out > MOST_SECONDS:
        found.append(f"a new peer waited {run.kept_out:.1f} s")
    return found


def remarks(run: Run) -> list[str]:
    """Return what explains a run: what was done, errors, how new peers failed."""
    said = [f"done: {', '.join(f'{n} {what}' for what, n in run.done.items())}"]
    said += [f"error x {n}: {text}" for text, n in list(run.errors.items())[:5]]
    said += [
        f"error in quiet time x {n}: {text}" for text, n in run.quiet_errors.items()
    ]
    for way in sorted({one["way"] for one in run.arrivals}):
        those = [one for one in run.arrivals if one["way"] == way]
        slowest = max(those, key=lambda one: float(one["seconds"]))
        quiet = [one["seconds"] for one in run.quiet_arrivals if one["way"] == way]
        said.append(
            f"new peers by {way}: {sum(one['served'] for one in those)} of {len(those)}"
            f" served, median {_median([one['seconds'] for one in those]):.2f} s, "
            f"slowest {slowest['seconds']:.2f} s in {slowest['tries']} tries"
            f"{slowest['trouble'] and ' (' + slowest['trouble'] + ')'}; "
            f"quiet {_median(quiet):.2f} s"
        )
    return said


def _median(values: Sequence[float]) -> float:
    return percentile(values, 50)


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f}"


def _row(cells: Sequence[str]) -> str:
    return "  ".join(
        cell.rjust(width) if width > 0 else cell.ljust(-width)
        for cell, (_, width) in zip(cells, COLUMNS, strict=True)
    )
