from __future__ import annotations

import ast
from typing import Any

import pytest

from negotiation.python_source import MOST_TRIES, expression_tree, module_tree


class Interrupted:
    """Fails for some time as the interpreter does when another thread parses, too."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.parse = ast.parse

    def __call__(self, source: str, **how: Any) -> Any:
        if self.left:
            self.left -= 1
            raise SystemError("AST constructor recursion depth mismatch")
        return self.parse(source, **how)


def test_a_text_is_read_again_when_another_thread_disturbed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for times in (1, MOST_TRIES - 1):
        monkeypatch.setattr(ast, "parse", Interrupted(times))
        assert ast.unparse(module_tree("a = 1")) == "a = 1"
        monkeypatch.undo()
        monkeypatch.setattr(ast, "parse", Interrupted(times))
        assert ast.unparse(expression_tree("a + 1")) == "a + 1"
        monkeypatch.undo()


def test_a_fault_that_stays_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ast, "parse", Interrupted(MOST_TRIES))
    with pytest.raises(SystemError):
        module_tree("a = 1")


def test_text_that_is_not_python_is_refused() -> None:
    with pytest.raises(SyntaxError):
        module_tree("a =")
    with pytest.raises(SyntaxError):
        expression_tree("a = 1")
