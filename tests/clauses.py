"""Which clauses the project implements, and which a later issue will.

A test of a clause is marked with `@clause("ANP-21")` or `@clause("WIRE row 16")`.
`test_clauses.py` fails when a clause of `IMPLEMENTED` has no marked test.
"""

from __future__ import annotations

import pytest

__all__ = ["IMPLEMENTED", "INFORMATIVE", "OPEN", "clause"]


def clause(*ids: str) -> pytest.MarkDecorator:
    """Mark a test as one that shows the clauses `ids`."""
    return pytest.mark.clause(*ids)


INFORMATIVE = {"ANP-35", "ANP-36", "ANP-37"}
"Clauses of level INFO inside the implemented range; a test may still cite them."

OPEN: dict[str, str] = {
    "ANP-15": "issue 4: a longer header of a later version",
    "ANP-34": "issue 4: the owner's queue",
    "ANP-80": "issue 4: versions above 1.0",
}
"Clauses of the implemented range that a later issue names, with that issue."

IMPLEMENTED: set[str] = {
    f"ANP-{n}"
    for n in [*range(11, 48), *range(76, 83), *range(84, 89)]
    if n not in {38, 39, 47}
} - set(OPEN)
"Every clause of ANP-11 to ANP-47 and ANP-76 to ANP-88 (REQUIREMENTS.md)."
