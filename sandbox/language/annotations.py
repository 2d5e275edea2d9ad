"""Annotations: they only inform readers, so they are removed and never evaluated.

Annotations that dataclasses and named tuples need in a class body stay, but are
replaced by neutral ones.
"""

from __future__ import annotations

import ast
from typing import Any

from RestrictedPython.transformer import RestrictingNodeTransformer

from sandbox.language.build import build_call, build_constant, place
from sandbox.language.scopes import ClassScope

__all__ = ["AnnotationRules"]

_ANNOTATIONS_THAT_MEAN = {"ClassVar", "InitVar", "KW_ONLY"}
"Annotations that dataclasses act on; all others only inform readers."


class AnnotationRules(RestrictingNodeTransformer):
    """The visitors of annotations and of the statements that serve them."""

    scope: ClassScope | None = None
    "The class body whose statements are being read, or None outside of one."

    def bind(self, node: ast.AST, name: str) -> str:
        """Check a name that the source binds (`HalfTransformer`)."""
        raise NotImplementedError

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
        head = annotation
        if isinstance(head, ast.Constant) and isinstance(head.value, str):
            name = head.value.partition("[")[0].rpartition(".")[2].strip()
            if name in _ANNOTATIONS_THAT_MEAN:
                return build_call(
                    "_annotation_", [build_constant(name, annotation)], annotation
                )
        if isinstance(head, ast.Subscript):
            head = head.value
        name = ""
        if isinstance(head, ast.Name):
            name = head.id
        elif isinstance(head, ast.Attribute):
            name = head.attr
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
