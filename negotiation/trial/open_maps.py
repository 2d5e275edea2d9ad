"""Names that a half looks up in a map whose names no schema lists.

A schema may say only that there are numbers by some name, such as rates by currency. A
half that reads one of them is right, though no sample has that name by chance. So the
samples get the names that the half's source reads, and the texts of the request where
it reads by one of those.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeGuard

from negotiation.need import Schema
from negotiation.python_source import module_tree
from negotiation.schema.keywords import keywords_of
from negotiation.schema.samples import make_samples
from negotiation.schema.values import contradiction
from negotiation.schema.variants import leaves
from negotiation.strict_json import Json

COMPUTE: Final = "anp_compute"
"The beginning of functions that hold a model's expression."

MAX_NAMES: Final = 32
"Most names that a map gets."

MAX_LENGTH: Final = 200
"Longest of them, in characters."

PLAIN: Final = frozenset(
    {"type", "description", "title", "additionalProperties", "properties", "required"}
)
"Keywords of a map to which any name may be added."


@dataclass(frozen=True, slots=True)
class LookedUp:
    """The names that a half reads."""

    names: tuple[str, ...] = ()
    "Those that stand in its source."

    given: bool = False
    "True when it also reads by a name that is given to it."

    def filled(self, value: Json, schema: Schema, request: Json) -> Json:
        """Return an output with these names in its maps, as its schema allows it.

        All have the value of one name that was there, so that they vary with it.
        """
        names = list(self.names)
        if self.given:
            names += [one for one in leaves(request).values() if isinstance(one, str)]
        names = [one for one in names if len(one) <= MAX_LENGTH][:MAX_NAMES]
        if not names:
            return value
        changed = _filled(value, schema, names)
        return changed if contradiction(schema, changed) is None else value


def looked_up(source: str) -> LookedUp:
    """Return what the expressions in a half read by name; the source is not run."""
    try:
        tree = module_tree(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Another check reports a text that is not Python.
        return LookedUp()
    keys = [
        key
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name.startswith(COMPUTE)
        for key in _keys(function)
    ]
    names = [
        key.value
        for key in keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    ]
    given = any(not isinstance(key, ast.Constant | ast.Slice) for key in keys)
    return LookedUp(tuple(dict.fromkeys(names)), given)


def _keys(function: ast.FunctionDef) -> Iterator[ast.expr]:
    for one in ast.walk(function):
        if isinstance(one, ast.Subscript):
            yield one.slice
        elif _gets(one) and one.args:
            yield one.args[0]


def _gets(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "get"


def _filled(value: Json, schema: Schema, names: Iterable[str]) -> Json:
    inner = keywords_of(schema)
    if not isinstance(value, dict):
        return value
    listed = inner.get("properties", {})
    result = {
        name: _filled(one, listed.get(name, True), names) for name, one in value.items()
    }
    rest = inner.get("additionalProperties", not listed)
    if rest is False or inner.keys() - PLAIN:
        return result
    free = [one for name, one in value.items() if name not in listed]
    made = free or [one.value for one in make_samples(rest).values][:1]
    for name in names:
        if made and name not in result and name not in listed:
            result[name] = made[0]
    return result
