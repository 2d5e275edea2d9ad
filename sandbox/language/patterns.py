"""Match statements: checks the patterns that a half may use.

A class pattern reads attributes without a guard. So a pattern inside a class pattern
is allowed only for the builtin types that match themselves (SANDBOX.md, list item 2).
"""

from __future__ import annotations

import ast
from typing import Any

from RestrictedPython.transformer import RestrictingNodeTransformer

from sandbox.language.build import build_call, place

__all__ = ["PatternRules"]

_SELF_MATCHING = {
    "bool",
    "bytearray",
    "bytes",
    "dict",
    "float",
    "frozenset",
    "int",
    "list",
    "set",
    "str",
    "tuple",
}


class PatternRules(RestrictingNodeTransformer):
    """The visitors of match statements."""

    def bind(self, node: ast.AST, name: str) -> str:
        """Check a name that the source binds (`HalfTransformer`)."""
        raise NotImplementedError

    def visit_Match(self, node: ast.Match) -> Any:
        """Allow."""
        return self.node_contents_visit(node)

    def visit_match_case(self, node: ast.match_case) -> Any:
        """Allow."""
        return self.node_contents_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> Any:
        """Let a guard read a dotted value."""
        node.value = self._value(node.value)
        return node

    def visit_MatchSingleton(self, node: ast.MatchSingleton) -> Any:
        """Allow."""
        return node

    def visit_MatchSequence(self, node: ast.MatchSequence) -> Any:
        """Allow."""
        return self.node_contents_visit(node)

    def visit_MatchOr(self, node: ast.MatchOr) -> Any:
        """Allow."""
        return self.node_contents_visit(node)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> Any:
        """Check the name that takes the remaining items."""
        node.keys = [self._value(key) for key in node.keys]
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        if node.rest is not None:
            node.rest = self.bind(node, node.rest)
        return node

    def visit_MatchStar(self, node: ast.MatchStar) -> Any:
        """Check the name."""
        if node.name is not None:
            node.name = self.bind(node, node.name)
        return node

    def visit_MatchAs(self, node: ast.MatchAs) -> Any:
        """Check the name."""
        if node.pattern is not None:
            node.pattern = self.visit(node.pattern)
        if node.name is not None:
            node.name = self.bind(node, node.name)
        return node

    def visit_MatchClass(self, node: ast.MatchClass) -> Any:
        """Allow class patterns that read no attribute."""
        name = node.cls.id if isinstance(node.cls, ast.Name) else None
        if node.kwd_patterns or (node.patterns and name not in _SELF_MATCHING):
            shown = ast.unparse(node.cls)
            self.error(
                node,
                "a class pattern reads no attributes here; write "
                f"`case {shown}():` and read them in the body",
            )
        node.cls = self.visit(node.cls)
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        return node

    def _value(self, value: ast.expr) -> ast.expr:
        visited: ast.expr = self.visit(value)
        if not isinstance(value, ast.Attribute):
            return visited
        # The grammar requires an attribute here, so the guard's result becomes one.
        held = build_call("_hold_", [visited], value)
        return ast.Attribute(held, "value", ast.Load(), **place(value))
