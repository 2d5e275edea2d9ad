"""Allowed code of a half means the same as in CPython (SANDBOX.md, items 1 to 8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sandbox.language.loaded import findings_of, outcome_fenced, outcome_plain

CONSTRUCTS = Path(__file__).parent.parent / "corpus" / "constructs"


def _snippets() -> list[tuple[str, str]]:
    """Return the snippets of all files with their names; `# --- name` begins one."""
    found = []
    for path in sorted(CONSTRUCTS.glob("*.txt")):
        for part in path.read_text("utf-8").split("# --- ")[1:]:
            name, _, source = part.partition("\n")
            found.append((f"{path.stem}: {name.strip()}", source))
    return found


SNIPPETS = _snippets()


def test_there_are_many_snippets_with_names_of_their_own() -> None:
    assert len(SNIPPETS) >= 150
    assert len({name for name, _ in SNIPPETS}) == len(SNIPPETS)


@pytest.mark.parametrize("source", [pytest.param(s, id=n) for n, s in SNIPPETS])
def test_a_construct_gives_what_it_gives_in_plain_python(source: str) -> None:
    assert findings_of(source) == []
    assert outcome_fenced(source) == outcome_plain(source)
    assert "result" in source
