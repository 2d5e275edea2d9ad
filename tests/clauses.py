"""The clauses that the project implements, and those left to later issues.

A test of a clause is marked with `@clause("ANP-21")` or `@clause("WIRE row 16")`.
`test_clauses.py` fails when a clause of `IMPLEMENTED` has no marked test, and when a
clause of the seed is in none of the three groups. When an open clause is built, delete
its line from `OPEN`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest


def clause(*ids: str) -> pytest.MarkDecorator:
    """Mark a test as one that shows the clauses `ids`."""
    return pytest.mark.clause(*ids)


def _clauses(*numbers: int) -> set[str]:
    return {f"ANP-{number}" for number in numbers}


_ENVELOPE: tuple[str, ...] = tuple(f"ENV-{number}" for number in range(1, 31))
"The clauses of the message envelope, seed 003."


_INTERACTION: tuple[str, ...] = tuple(f"GBZ-{number}" for number in range(1, 67))
"The clauses of GB/Z 185.6, seed 000."


_A2A: tuple[str, ...] = tuple(f"A2A-{number}" for number in range(1, 27))
"The clauses of A2A, seed 001."


_INTENT: tuple[str, ...] = tuple(f"INT-{number}" for number in range(1, 14))
"The clauses of the intent extension, seed 004."


ALL: tuple[str, ...] = (
    *(Path(__file__).parent / "vectors" / "clauses" / "ids.txt")
    .read_text(encoding="utf-8")
    .split(),
    *_ENVELOPE,
    *_INTERACTION,
    *_A2A,
    *_INTENT,
)
"Every clause of the seeds that is built, in order; missing numbers were never given."

INFORMATIVE: set[str] = _clauses(1, 2, 35, 36, 37, 54, 62, 90, 96, 97, 98) | {
    *("ENV-30", "GBZ-1", "GBZ-19", "GBZ-54"),
    *("A2A-1", "A2A-7", "INT-13"),
}
"""Clauses of level INFO: nothing to build; a test may still cite them. GBZ-1 gives the
names of the two roles, GBZ-54 figures that the seed has lost, A2A-1 what A2A is for,
A2A-7 the names of its two roles, INT-13 the values of the seed's example."""

OPEN: dict[str, str] = {}
"Clauses that an issue has still to build, with that issue and what it is about."

_NEVER_GIVEN = {38, 39, 47, 55, 63}

IMPLEMENTED: set[str] = (
    (
        _clauses(*({*range(3, 83), *range(84, 89), *range(91, 96)} - _NEVER_GIVEN))
        | {*_ENVELOPE, *_INTERACTION, *_A2A, *_INTENT}
    )
    - INFORMATIVE
    - OPEN.keys()
)
"""Every other clause of ANP-3 to ANP-82, ANP-84 to ANP-88, ANP-91 to ANP-95, the
message envelope, and of GB/Z 185.6."""


def problems(marked: Mapping[str, object]) -> list[str]:
    """Return what is wrong with the account of the clauses, one line each.

    Args:
        marked: The clauses that tests are marked with.
    """
    groups = {"IMPLEMENTED": IMPLEMENTED, "INFORMATIVE": INFORMATIVE, "OPEN": {*OPEN}}
    found = []
    for name in ALL:
        where = [group for group, members in groups.items() if name in members]
        if len(where) != 1:
            found.append(f"{name} is in {' and '.join(where) or 'no group'}")
    for group, members in groups.items():
        found += [f"{name} of {group} does not exist" for name in members - {*ALL}]
    found += [
        f"{name} is implemented, but no test is marked with it"
        for name in IMPLEMENTED - marked.keys()
    ]
    return sorted(found)


def unshown(outcomes: Mapping[str, set[str]]) -> list[str]:
    """Return which implemented clauses a run of all tests did not show, a line each.

    Args:
        outcomes: How the tests of each clause ended: `passed`, `failed`, `skipped`.
            A failed test is told of elsewhere.
    """
    return [
        f"{name} was not shown: every test of it was skipped or did not run"
        for name in ALL
        if name in IMPLEMENTED and not outcomes.get(name, set()) & {"passed", "failed"}
    ]
