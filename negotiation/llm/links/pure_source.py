"""Names that source of a model must not use, since its result would not be the same."""

from __future__ import annotations

import ast
from typing import Final

from negotiation.python_source import module_tree

CLOCKS: Final = frozenset({"now", "utcnow", "today"})
"Methods that read the clock."

OF_THE_PROCESS: Final = frozenset({"id", "hash"})
"Functions whose results differ between two processes."

MODULES: Final = frozenset(
    {"json", "struct", "re", "math", "base64", "binascii", "datetime", "decimal"}
    | {"zlib", "html", "io", "csv", "xml.etree.ElementTree", "xml.etree"}
)
"Modules that the prompt names; others may read a clock or draw random numbers."


def impurity(source: str) -> str:
    """Return why `source` need not give the same again; empty if it does.

    Source that cannot be parsed has no such reason: its reader says what is wrong.
    """
    try:
        tree = module_tree(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    nodes = list(ast.walk(tree))
    bound = {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    } | {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        match node:
            case ast.Attribute(attr=name) if name in CLOCKS:
                return f"{name} reads the clock"
            case ast.Name(id=name) if name in OF_THE_PROCESS - bound:
                return f"{name} differs between two processes"
            case ast.Import(names=names):
                found = [one.name for one in names if one.name not in MODULES]
            case ast.ImportFrom(module=name):
                found = [] if name in MODULES else [name or "."]
            case _:
                continue
        if found:
            return f"{found[0]} cannot be imported here"
    return ""
