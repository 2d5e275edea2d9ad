"""New syntax nodes in the place of others, and the private names of class bodies."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from sandbox.language.names import is_reserved, private_attribute


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


_OWN_SCOPE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class ClassScope:
    """The class body that is being read."""

    name: str
    "Name of the class in the source."

    private: frozenset[str]
    "Private names that the body binds."

    def own(self, name: str) -> str:
        """Return the attribute that the private name `name` becomes."""
        return private_attribute(name, self.name)


def bound_names(body: list[ast.stmt]) -> frozenset[str]:
    """Return the private names that the statements of a class body bind."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
                continue
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name)
            case ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.MatchMapping(rest=str(name)):
                found.add(name)
        if not isinstance(node, _OWN_SCOPE):
            waiting.extend(ast.iter_child_nodes(node))
    return frozenset(
        name
        for name in found - {"_", "__"}
        if name.startswith("_") and not is_reserved(name)
    )
