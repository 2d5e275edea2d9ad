"""Builds syntax nodes that take the place of others."""

from __future__ import annotations

import ast
from typing import Any

__all__ = ["build_call", "build_constant", "place"]


def place(node: Any) -> dict[str, Any]:
    """Return the position of `node` in the source, as keywords for a new node."""
    return {
        "lineno": node.lineno,
        "col_offset": node.col_offset,
        "end_lineno": node.end_lineno,
        "end_col_offset": node.end_col_offset,
    }


def build_constant(value: Any, node: ast.AST) -> ast.Constant:
    """Return a constant in the place of `node`."""
    return ast.Constant(value, **place(node))


def build_call(guard: str, arguments: list[ast.expr], node: ast.AST) -> ast.Call:
    """Return a call of one of our guards in the place of `node`."""
    where = place(node)
    function = ast.Name(guard, ast.Load(), **where)
    return ast.Call(function, arguments, [], **where)
