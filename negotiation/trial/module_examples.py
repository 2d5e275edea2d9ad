"""Example texts that a half contains for its own check.

A schema may allow any text where the half reads a date, a code or XML. Samples for such
a place cannot be read, and a good half would fail its check. So a module may contain
`EXAMPLES = {"request:/arrival": "31.12.2026"}`: names of places, in `request`,
`arguments`, `response` or the output of a capability, with one text each. The half
never uses them; they are read from the source, which is not run.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final

from negotiation.python_source import module_tree
from negotiation.rules.literals import literal
from negotiation.strict_json import Json

NAME: Final = "EXAMPLES"

MAX_EXAMPLES: Final = 64
"Largest number of places in one half; others are ignored."

MAX_TEXT: Final = 4_096
"Longest example, in characters; a longer one is ignored."

Path = tuple[str, ...]
ITEMS: Final = "*"


def examples_line(examples: Mapping[str, str]) -> str:
    """Return the line of a module with `examples`, by the names of the places."""
    return f"{NAME} = {literal(dict(sorted(examples.items())))}"


def examples_in(source: str) -> dict[str, dict[Path, str]]:
    """Return the examples of a module, by root and path; none if it cannot be read."""
    try:
        tree = module_tree(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Another check reports a text that is not Python.
        return {}
    found: dict[str, dict[Path, str]] = {}
    for name, text in _pairs(tree)[:MAX_EXAMPLES]:
        root, _, pointer = name.partition(":")
        steps = pointer.split("/")[1:]
        path = tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)
        if path and len(text) <= MAX_TEXT:
            found.setdefault(root, {})[path] = text
    return found


def with_examples(value: Json, examples: Mapping[Path, str]) -> Json:
    """Return `value` with each example in place of the text at its path."""
    for path, text in examples.items():
        value = _put(value, path, text)
    return value


def _pairs(tree: ast.Module) -> list[tuple[str, str]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as given) if (
                name == NAME
            ):
                return [
                    (key.value, value.value)
                    for key, value in zip(given.keys, given.values, strict=True)
                    if isinstance(key, ast.Constant)
                    and isinstance(value, ast.Constant)
                    and isinstance(key.value, str)
                    and isinstance(value.value, str)
                ]
    return []


def _put(value: Json, path: Path, text: str) -> Json:
    if not path:
        return text if isinstance(value, str) else value
    first, rest = path[0], path[1:]
    if isinstance(value, dict) and first in value:
        return {**value, first: _put(value[first], rest, text)}
    if isinstance(value, list) and first == ITEMS:
        return [_put(one, rest, text) for one in value]
    return value
