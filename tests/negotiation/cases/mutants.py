"""Copies of a half with one thing wrong, as a slip of a person or a model would be."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial

Change = Callable[[], ast.AST]

OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.GtE: ast.Lt,
}


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Yield what was changed, with the line it was in, and the changed source."""
    lines = source.splitlines()
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    places = _places(nodes)
    skipped = _docstrings(nodes)
    for node in nodes:
        if id(node) in skipped:
            continue
        for what, change in _changes(node):
            put = places[id(node)]
            changed = change()
            if not hasattr(changed, "lineno"):
                ast.copy_location(changed, node)
            put(changed)
            try:
                text = ast.unparse(tree)
                compile(text, "<mutant>", "exec")
            except SyntaxError:
                continue
            finally:
                put(node)
            line = lines[getattr(node, "lineno", 1) - 1].strip()
            yield f"{what}: {line}", text


def _places(nodes: list[ast.AST]) -> dict[int, Callable[[ast.AST], None]]:
    """Return, by the identity of each node, what puts another in its place."""
    found: dict[int, Callable[[ast.AST], None]] = {}
    for parent in nodes:
        for name, value in ast.iter_fields(parent):
            if isinstance(value, ast.AST):
                found[id(value)] = partial(setattr, parent, name)
            elif isinstance(value, list):
                for index, one in enumerate(value):
                    if isinstance(one, ast.AST):
                        found[id(one)] = partial(value.__setitem__, index)
    return found


def _docstrings(nodes: list[ast.AST]) -> set[int]:
    return {
        id(part)
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for part in (node, node.value)
    }


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """Yield the changes of one node, each with a name."""
    match node:
        case ast.Constant():
            yield from _constants(node.value)
        case ast.Compare(ops=[operator]) if type(operator) in OPPOSITE:
            yield "comparison", partial(_compared, node, OPPOSITE[type(operator)]())
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and/or", partial(ast.BoolOp, other, node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield "no not", partial(_itself, node.operand)
        case ast.IfExp():
            yield "one branch", partial(_itself, node.body)
            yield "other branch", partial(_itself, node.orelse)
        case ast.If():
            for what, value in (("always", True), ("never", False)):
                yield what, partial(ast.If, ast.Constant(value), node.body, node.orelse)
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            # A conversion that is left out.
            what = "no text made" if name == "str" else "bare"
            yield what, partial(_itself, argument)
        case ast.Dict() if len(node.keys) > 1:
            for first in range(len(node.keys) - 1):
                yield "swapped", partial(_swapped, node, first)
            for one in range(len(node.keys)):
                yield "left out", partial(_without, node, one)
        case ast.Assign():
            yield "constant", partial(ast.Assign, node.targets, ast.Dict([], []))
            yield "dropped", ast.Pass
        case ast.Return() if node.value is not None:
            yield "nothing", partial(ast.Return, ast.Constant(None))


def _constants(value: object) -> Iterator[tuple[str, Change]]:
    match value:
        case bool():
            yield "flag", partial(ast.Constant, not value)
        case str():
            yield "text", partial(ast.Constant, value + "x")
            if len(value) == 1 and not value.isalnum():
                yield "no text", partial(ast.Constant, "")
        case int():
            yield "number", partial(ast.Constant, value + 1)


def _itself(node: ast.AST) -> ast.AST:
    return node


def _compared(node: ast.Compare, operator: ast.cmpop) -> ast.Compare:
    return ast.Compare(node.left, [operator], node.comparators)


def _swapped(node: ast.Dict, first: int) -> ast.Dict:
    values = list(node.values)
    values[first], values[first + 1] = values[first + 1], values[first]
    return ast.Dict(list(node.keys), values)


def _without(node: ast.Dict, one: int) -> ast.Dict:
    keys, values = list(node.keys), list(node.values)
    return ast.Dict(keys[:one] + keys[one + 1 :], values[:one] + values[one + 1 :])
