"""Prints the table of measures; `make house`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.house.circles import circles, import_graph
from tests.house.folders import (
    complex_functions,
    count_documentation,
    count_lines,
    flat_files,
    gerund_modules,
    repeated_file_names,
)
from tests.house.limits import (
    GERUND_NOUNS,
    MAX_CALL_FILES,
    MAX_CALL_FILES_BEFORE_SEND,
    MAX_CIRCLES,
    MAX_COMPLEX_FUNCTIONS,
    MAX_COMPLEXITY,
    MAX_FILE_LINES,
    MAX_FLAT_FILES,
    MAX_GERUND_MODULES,
    MAX_LINES,
    MAX_NAMES_TWICE,
    MAX_NAMES_TWICE_IN_PACKAGE,
    MAX_QUICK_CPU_SECONDS,
    MAX_REPEATED_FILE_NAMES,
    MAX_RIDDLES,
    MAX_ROOMS_WITHOUT_ORDER,
    MAX_SINGLE_HEIRS,
    MAX_SMALL_FILES,
    MIN_DOCUMENTATION,
)
from tests.house.rooms import contracts_of, ordered_rooms, rooms_of
from tests.house.sources import read_sources
from tests.house.warm_call import CallFiles, measure_warm_call
from tests.house.words import (
    class_names,
    names_twice,
    riddles,
    single_heirs,
    twice_in_package,
)

SMALL = 100
"Lines under which a file counts as small."

SHORT = 8
"Lines of details per measure, unless all are asked for."


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the table."""

    name: str
    now: float
    limit: float | None
    "The figure that landed last, over which `now` may not rise; None without one."

    details: Sequence[str] = ()
    "The lines behind the figure."

    is_least: bool = False
    "True where `limit` is the least that `now` may be."

    @property
    def is_kept(self) -> bool:
        """Say if the limit is kept."""
        if self.limit is None:
            return True
        return self.now >= self.limit if self.is_least else self.now <= self.limit


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.house")
    parser.add_argument(
        "--tree", type=Path, default=Path(), help="the checkout to measure"
    )
    parser.add_argument(
        "--static", action="store_true", help="start no daemons, trace no call"
    )
    parser.add_argument(
        "--list", action="store_true", help="print all details, also of kept limits"
    )
    options = parser.parse_args()
    tree: Path = options.tree.resolve()
    if not (tree / "pyproject.toml").exists():
        parser.error(f"{tree} is no checkout of this project: no pyproject.toml")
    measures = list(_static(tree))
    if not options.static:
        measures.extend(_traced(measure_warm_call(tree)))
    print(f"{tree}\n")
    _print_table(measures)
    for one in measures:
        _print_details(one, whole=options.list)
    return 0 if all(one.is_kept for one in measures) else 1


def _static(tree: Path) -> Iterator[Measure]:
    sources = read_sources(tree)
    folders = flat_files(sources)
    yield Measure(
        "Python files flat in the fullest folder",
        folders[0][1] if folders else 0,
        MAX_FLAT_FILES,
        [f"{count:4} {name}" for name, count in folders if count > MAX_FLAT_FILES],
    )
    ordered = ordered_rooms(contracts_of(tree))
    rooms = rooms_of(sources)
    yield Measure(
        f"rooms without an import order, of {len(rooms)}",
        len([name for name in rooms if name not in ordered]),
        MAX_ROOMS_WITHOUT_ORDER,
        [
            *(f"none: {name}" for name in rooms if name not in ordered),
            *(f"{name}: {line}" for name in ordered for line in ordered[name]),
        ],
    )
    found = circles(import_graph(sources))
    yield Measure(
        "circles of imports",
        len(found),
        MAX_CIRCLES,
        [f"{len(one):4} {' '.join(one)}" for one in found],
    )
    lines = count_lines(sources)
    yield Measure(
        "lines of product code",
        sum(lines.values()),
        MAX_LINES,
        [f"{count:6} {name}" for name, count in lines.items()],
    )
    documentation, code = count_documentation(sources)
    yield Measure(
        "lines of documentation for each line of code",
        documentation / code,
        MIN_DOCUMENTATION,
        is_least=True,
    )
    longest = sorted(((one.lines, str(one.path)) for one in sources), reverse=True)
    yield Measure(
        "lines of the longest file",
        longest[0][0],
        MAX_FILE_LINES,
        [f"{count:5} {name}" for count, name in longest if count > MAX_FILE_LINES],
    )
    small = [f"{one.lines:4} {one.path}" for one in sources if one.lines < SMALL]
    yield Measure(
        f"files of under {SMALL} lines, of {len(sources)}",
        len(small),
        MAX_SMALL_FILES,
        small,
    )
    heirs = single_heirs(sources)
    yield Measure("bases with a single heir", len(heirs), MAX_SINGLE_HEIRS, heirs)
    hard = complex_functions(tree, MAX_COMPLEXITY)
    yield Measure(
        f"functions of complexity over {MAX_COMPLEXITY}",
        len(hard),
        MAX_COMPLEX_FUNCTIONS,
        hard,
    )
    names = class_names(sources)
    twice = names_twice(names)
    yield Measure(
        f"public class names of two modules, of {len(names)}",
        len(twice),
        MAX_NAMES_TWICE,
        [f"{name}: {' '.join(where)}" for name, where in twice.items()],
    )
    inside = twice_in_package(names)
    yield Measure(
        "public class names of two modules in one package",
        len(inside),
        MAX_NAMES_TWICE_IN_PACKAGE,
        [f"{name}: {' '.join(where)}" for name, where in inside.items()],
    )
    texts = riddles(sources)
    yield Measure("documentation in riddles", len(texts), MAX_RIDDLES, texts)
    gerunds = gerund_modules(sources, GERUND_NOUNS)
    yield Measure("gerund module names", len(gerunds), MAX_GERUND_MODULES, gerunds)
    repeated = repeated_file_names(sources)
    yield Measure(
        "file names in more than one folder",
        len(repeated),
        MAX_REPEATED_FILE_NAMES,
        [f"{name}: {' '.join(where)}" for name, where in repeated.items()],
    )
    quick = tree / "build" / "quick.json"
    if quick.exists():
        seconds = json.loads(quick.read_text(encoding="utf-8"))["cpu_seconds"]
        yield Measure("CPU seconds of make quick", seconds, MAX_QUICK_CPU_SECONDS)


def _traced(files: CallFiles) -> Iterator[Measure]:
    before = [f"caller, before: {_entered(one)}" for one in files.before.items()]
    yield Measure(
        "files a warm call enters before its bytes leave",
        len(files.before),
        MAX_CALL_FILES_BEFORE_SEND,
        before,
    )
    yield Measure(
        "files a warm call enters, both sides",
        len(files.both),
        MAX_CALL_FILES,
        [
            f"{len(files.before):3} in the caller before, {len(files.after)} after, "
            f"{len(files.provider)} in the provider",
            *(f"caller, after: {_entered(one)}" for one in files.after.items()),
            *(f"provider: {_entered(one)}" for one in files.provider.items()),
        ],
    )


def _entered(item: tuple[str, str]) -> str:
    file, function = item
    return f"{file} by {function.partition(':')[0]}"


def _print_table(measures: Sequence[Measure]) -> None:
    rows = [("measure", "now", "limit", "ok")]
    for one in measures:
        kept = "-" if one.limit is None else "yes" if one.is_kept else "NO"
        rows.append((one.name, _shown(one.now), _shown(one.limit), kept))
    width = max(len(row[0]) for row in rows)
    for name, now, limit, kept in rows:
        print(f"{name:{width}} | {now:>7} | {limit:>7} | {kept}")


def _shown(figure: float | None) -> str:
    if figure is None:
        return "-"
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:,.4g}"


def _print_details(measure: Measure, *, whole: bool) -> None:
    if not measure.details or (measure.is_kept and not whole):
        return
    print(f"\n{measure.name}:")
    shown = measure.details if whole else measure.details[:SHORT]
    for line in shown:
        print(f"  {line}")
    if hidden := len(measure.details) - len(shown):
        print(f"  and {hidden} more; --list prints them all")


if __name__ == "__main__":
    sys.exit(main())
