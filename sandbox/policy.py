"""The static policy: what source text may say, with findings by line."""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

from RestrictedPython.compile import compile_restricted_exec
from RestrictedPython.transformer import RestrictingNodeTransformer

from sandbox.guards import ALLOWED_MODULES

__all__ = ["FILENAME", "compile_half"]

FILENAME = "<half>"
"Name of a module's source in tracebacks."


class HalfPolicy(RestrictingNodeTransformer):
    """RestrictedPython's rules, and an allow-list of imports.

    The wide language subset of SANDBOX.md comes with the next issue.
    """

    def visit_Import(self, node: ast.Import) -> Any:
        """Allow only modules that have a facade."""
        for name in node.names:
            if name.name not in ALLOWED_MODULES:
                self.error(node, f"{name.name} may not be imported")
        return super().visit_Import(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """Refuse: a facade is used by its name."""
        if node.module in ALLOWED_MODULES:
            self.error(node, f"write `import {node.module}` instead")
        else:
            self.error(node, f"{node.module} may not be imported")
        return node


def compile_half(source: str) -> tuple[CodeType | None, list[str]]:
    """Compile a module's source; called in workers only.

    Returns:
        The code and no findings, or None and findings that name their lines.
    """
    try:
        result = compile_restricted_exec(source, filename=FILENAME, policy=HalfPolicy)
    except (RecursionError, MemoryError, ValueError) as exc:
        return None, [f"the source cannot be compiled: {type(exc).__name__}"]
    if result.errors or result.code is None:
        return None, [str(error)[:300] for error in result.errors][:20]
    return result.code, []
