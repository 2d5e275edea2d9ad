"""The visitors of annotations, imports and match statements.

Annotations only inform readers, so they are removed and never evaluated; those that
dataclasses and named tuples need in a class body are replaced by neutral ones.

Import statements bind facades and their members. The interpreter's own import would
look for a missing name in `sys.modules` and return a real module; an assignment cannot.

A class pattern with patterns inside reads attributes without a guard, and which ones is
decided by the object that the class's name has at run time. So no such pattern is ever
compiled: `case int(x)` of a builtin type becomes `case int() as x`, which means the
same, and all others are refused (SANDBOX.md, list item 2).
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import Any

from RestrictedPython.transformer import RestrictingNodeTransformer

from sandbox.language.advice import MEMBERS, refused_module
from sandbox.language.facades.modules import MODULE_MEMBERS
from sandbox.language.names import is_reserved
from sandbox.language.syntax import ClassScope, build_call, build_constant, place

_ANNOTATIONS_THAT_MEAN = {"ClassVar", "InitVar", "KW_ONLY"}
"Annotations that dataclasses act on; all others only inform readers."

_PLAIN = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
_SELF_MATCHING = {kind.__name__ for kind in _PLAIN}


class StatementRules(RestrictingNodeTransformer, ABC):
    """Visits statements that bind names, and the members of facades that are read."""

    scope: ClassScope | None = None
    "The class body whose statements are being read, or None outside of one."

    _modules: dict[str, str]
    _bound: set[str]
    _captures: list[tuple[str, ast.MatchClass]]

    @abstractmethod
    def bind(self, node: ast.AST, name: str) -> str:
        """Check a name that the source binds (`HalfTransformer`)."""

    # Annotations

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Remove the annotation, or make it neutral where classes need it."""
        if self.scope is None or not isinstance(node.target, ast.Name):
            if node.value is None:
                self.visit(node.target)
                return ast.copy_location(ast.Pass(), node)
            assign = ast.Assign([node.target], node.value)
            return self.node_contents_visit(ast.copy_location(assign, node))
        node.annotation = self._meaning(node.annotation)
        node.target = self.visit(node.target)
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def _meaning(self, annotation: ast.expr) -> ast.expr:
        match annotation:
            case ast.Constant(value=str(text)):
                name = text.partition("[")[0].rpartition(".")[2].strip()
            case (
                ast.Name(id=name)
                | ast.Attribute(attr=name)
                | ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name))
            ):
                pass
            case _:
                name = ""
        if name in _ANNOTATIONS_THAT_MEAN:
            return build_call(
                "_annotation_", [build_constant(name, annotation)], annotation
            )
        return build_constant(None, annotation)

    def visit_If(self, node: ast.If) -> Any:
        """Allow; remove code under TYPE_CHECKING, which only informs readers."""
        test = node.test
        if "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", "")):
            node.test, node.body = (
                build_constant(False, node),
                [ast.Pass(**place(node))],
            )
        return self.node_contents_visit(node)

    def register_by_annotation(self, node: ast.FunctionDef) -> None:
        """Give `@f.register` the class that it would read from an annotation."""
        for index, decorator in enumerate(node.decorator_list):
            arguments = [*node.args.posonlyargs, *node.args.args]
            if (
                isinstance(decorator, ast.Attribute)
                and decorator.attr == "register"
                and arguments
            ):
                last = arguments[0]
                if last.arg == "self" and len(arguments) > 1:
                    last = arguments[1]
                if last.annotation is not None:
                    node.decorator_list[index] = ast.copy_location(
                        ast.Call(decorator, [last.annotation], []), decorator
                    )

    def drop_type_parameters(self, node: Any) -> None:
        """Drop type parameters, which only serve annotations (Python 3.12)."""
        for parameter in getattr(node, "type_params", []):
            self.bind(node, parameter.name)
        if getattr(node, "type_params", None):
            node.type_params = []

    def visit_TypeAlias(self, node: Any) -> ast.AST:
        """Keep the name only: an alias only serves annotations (Python 3.12)."""
        assign = ast.Assign([node.name], build_constant(None, node))
        return self.node_contents_visit(ast.copy_location(assign, node))

    # Match statements

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
        """Allow class patterns that read no attribute; give a capture its new form."""
        capture = None
        if node.patterns or node.kwd_patterns:
            capture = self._capture(node)
            if capture is None:
                self.refuse_pattern(node)
        node.cls = self.visit(node.cls)
        node.patterns, node.kwd_attrs, node.kwd_patterns = [], [], []
        if capture is None or capture.name is None:
            return node
        capture.pattern = node
        capture.name = self.bind(node, capture.name)
        return capture

    def _capture(self, node: ast.MatchClass) -> ast.MatchAs | None:
        """Return the pattern `x` or `_` inside `int(x)`; None if there is another."""
        match node:
            case ast.MatchClass(
                cls=ast.Name(id=name),
                patterns=[ast.MatchAs(pattern=None) as inside],
                kwd_patterns=[],
            ) if name in _SELF_MATCHING:
                # Refused later if the source binds this name to something else.
                self._captures.append((name, node))
                return inside
        return None

    def refuse_pattern(self, node: ast.MatchClass) -> None:
        """Record the finding about a class pattern that would read attributes."""
        shown = ast.unparse(node.cls)
        self.error(
            node,
            "a class pattern reads no attributes here; write "
            f"`case {shown}():` and read them in the body",
        )

    def _value(self, value: ast.expr) -> ast.expr:
        visited: ast.expr = self.visit(value)
        if not isinstance(value, ast.Attribute):
            return visited
        # The grammar requires an attribute here, so the guard's result becomes one.
        held = build_call("_hold_", [visited], value)
        return ast.Attribute(held, "value", ast.Load(), **place(value))

    # Imports

    def visit_Import(self, node: ast.Import) -> Any:
        """Bind facades."""
        assigns = []
        for alias in node.names:
            if alias.name not in MODULE_MEMBERS:
                self.error(node, refused_module(alias.name))
                continue
            top = alias.name.partition(".")[0]
            module = alias.name if alias.asname else top
            assigns.append(
                self._assign(alias.asname or top, module, None, node, facade=module)
            )
        return assigns or ast.Pass(**place(node))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """Bind members of facades."""
        module = node.module or ""
        if module == "__future__" and not node.level:
            return ast.Pass(**place(node))
        if node.level or module not in MODULE_MEMBERS:
            self.error(node, refused_module("." * node.level + module))
            return ast.Pass(**place(node))
        assigns = []
        for alias in node.names:
            below = f"{module}.{alias.name}"
            if alias.name == "*":
                self.error(node, f"name what you need of {module} instead of *")
            elif alias.name not in MODULE_MEMBERS[module]:
                self._refuse_member(node, module, alias.name)
            else:
                assigns.append(
                    self._assign(
                        alias.asname or alias.name,
                        module,
                        alias.name,
                        node,
                        facade=below if below in MODULE_MEMBERS else None,
                    )
                )
        return assigns or ast.Pass(**place(node))

    def _assign(
        self,
        name: str,
        module: str,
        member: str | None,
        node: ast.AST,
        *,
        facade: str | None,
    ) -> ast.Assign:
        was_bound = name in self._bound
        bound = self.bind(node, name)
        if facade is not None and not was_bound:
            # The name is bound to a module, as far as the static check can tell.
            self._bound.discard(name)
            self._modules[name] = facade
        arguments: list[ast.expr] = [build_constant(module, node)]
        if member is not None:
            arguments.append(build_constant(member, node))
        target = ast.Name(bound, ast.Store(), **place(node))
        value = build_call("_import_", arguments, node)
        return ast.Assign([target], value, **place(node))

    def check_member(self, name: str, node: ast.Attribute) -> None:
        """Check `name.attribute` where `name` was bound to a facade."""
        module = self._module(name, node.value)
        if (
            module is not None
            and node.attr not in MODULE_MEMBERS[module]
            and not is_reserved(node.attr)
        ):
            self._refuse_member(node, module, node.attr)

    def _module(self, name: str, node: ast.expr) -> str | None:
        """Return the module that `node`, a chain from the variable `name`, means."""
        if not isinstance(node, ast.Attribute):
            return self._modules.get(name)
        above = self._module(name, node.value)
        below = f"{above}.{node.attr}"
        return below if below in MODULE_MEMBERS else None

    def _refuse_member(self, node: ast.AST, module: str, name: str) -> None:
        instead = MEMBERS.get((module, name))
        if instead is None and f"{module}.{name}" in MODULE_MEMBERS:
            instead = f"write `import {module}.{name}`"
        text = f"{module}.{name} is not available"
        self.error(node, f"{text}; {instead}" if instead else text)
