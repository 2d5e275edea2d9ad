"""Every clause is shown by a test, or it is said why not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.clauses import ALL, IMPLEMENTED, INFORMATIVE, OPEN, problems

ROOT = Path(__file__).parent


def marked_clauses() -> dict[str, list[str]]:
    """Return each clause id that a `@clause(...)` names, with the tests that do."""
    found: dict[str, list[str]] = {}
    for path in sorted(ROOT.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for mark in node.decorator_list:
                if (
                    isinstance(mark, ast.Call)
                    and isinstance(mark.func, ast.Name)
                    and mark.func.id == "clause"
                ):
                    for argument in mark.args:
                        name = ast.literal_eval(argument)
                        where = f"{path.relative_to(ROOT)}::{node.name}"
                        found.setdefault(name, []).append(where)
    return found


def test_every_clause_is_informative_open_or_shown_by_a_test() -> None:
    assert problems(marked_clauses()) == []


def test_the_list_of_clauses_is_the_whole_of_it() -> None:
    numbers = [
        int(name.removeprefix("ANP-")) for name in ALL if name.startswith("ANP-")
    ]
    assert numbers == sorted(set(numbers))
    assert (numbers[0], numbers[-1], len(numbers)) == (1, 98, 91)
    others = ALL[len(numbers) :]
    assert others[:30] == tuple(f"ENV-{number}" for number in range(1, 31))
    assert others[30:-39] == tuple(f"GBZ-{number}" for number in range(1, 67))
    assert others[-39:-13] == tuple(f"A2A-{number}" for number in range(1, 27))
    assert others[-13:] == tuple(f"INT-{number}" for number in range(1, 14))


@pytest.mark.parametrize("name", sorted(IMPLEMENTED))
def test_an_implemented_clause_without_a_test_is_noticed(name: str) -> None:
    marked = dict.fromkeys(IMPLEMENTED - {name})
    assert problems(marked) == [f"{name} is implemented, but no test is marked with it"]


@pytest.mark.parametrize(
    ("group", "members", "name"),
    [("IMPLEMENTED", IMPLEMENTED, "ANP-15"), ("INFORMATIVE", INFORMATIVE, "ANP-36")],
)
def test_a_clause_in_no_group_is_noticed(
    group: str, members: set[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"tests.clauses.{group}", members - {name})
    assert problems(dict.fromkeys(ALL)) == [f"{name} is in no group"]


def test_a_clause_in_two_groups_or_of_no_seed_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reasons = {**OPEN, "ANP-15": "issue 4", "ANP-999": "issue 4"}
    monkeypatch.setattr("tests.clauses.OPEN", reasons)
    assert problems(dict.fromkeys(ALL)) == [
        "ANP-15 is in IMPLEMENTED and OPEN",
        "ANP-999 of OPEN does not exist",
    ]


def test_every_open_clause_names_its_issue() -> None:
    assert all(re.match(r"issue \d+: .", reason) for reason in OPEN.values())


def test_marks_name_clauses_that_exist() -> None:
    numbered = {
        name for name in marked_clauses() if re.fullmatch(r"(ANP|ENV|GBZ)-\d+", name)
    }
    assert numbered <= {*ALL}
