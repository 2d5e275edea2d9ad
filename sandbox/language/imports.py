"""Import statements: rewritten so that they bind facades and their members.

The interpreter's own import would look for a missing name in `sys.modules` and return
a real module; an assignment cannot.
"""

from __future__ import annotations

import ast
from typing import Any

from RestrictedPython.transformer import RestrictingNodeTransformer

from sandbox.language.advice import MEMBERS, refused_module
from sandbox.language.build import build_call, build_constant, place
from sandbox.language.facades.modules import MODULE_MEMBERS
from sandbox.language.names import is_reserved

__all__ = ["ImportRules"]


class ImportRules(RestrictingNodeTransformer):
    """The visitors of import statements, and the check of members that are read."""

    def bind(self, node: ast.AST, name: str) -> str:
        """Check a name that the source binds (`HalfTransformer`)."""
        raise NotImplementedError

    _modules: dict[str, str]
    _bound: set[str]

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
