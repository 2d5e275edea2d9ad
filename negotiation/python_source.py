"""Text of Python taken apart, never run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

MOST_TRIES: Final = 10
"""Attempts at one text. Older releases of Python 3.11 fail with `SystemError` when two
threads take texts apart at the same moment (CPython issue 106905); the next attempt
finds the text in order."""


def module_tree(source: str) -> ast.Module:
    """Return the syntax tree of a module.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: As `ast.parse` does.
    """
    return _again(lambda: ast.parse(source))


def expression_tree(source: str) -> ast.Expression:
    """Return the syntax tree of one expression.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: As `ast.parse` does.
    """
    return _again(lambda: ast.parse(source, mode="eval"))


def _again(parse: Callable[[], T]) -> T:
    for _ in range(MOST_TRIES - 1):
        try:
            return parse()
        except SystemError:
            continue
    return parse()
