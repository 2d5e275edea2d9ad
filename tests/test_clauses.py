"""Every implemented clause is shown by a test."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.clauses import IMPLEMENTED, INFORMATIVE, OPEN

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


def test_every_implemented_clause_has_a_marked_test() -> None:
    missing = IMPLEMENTED - INFORMATIVE - set(marked_clauses())
    assert not missing, f"no test is marked with {sorted(missing)}"


def test_every_open_clause_names_a_later_issue() -> None:
    assert all(reason.startswith("issue ") for reason in OPEN.values())
