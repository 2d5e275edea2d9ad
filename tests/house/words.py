"""Measures of words: class names with two meanings, and documentation in riddles."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from tests.house.sources import Source

RIDDLE_WORDS = ("What ", "Who ", "Which ", "Whether ", "How ")
"Beginnings of documentation that names its subject only by a question."


def class_names(sources: Sequence[Source]) -> dict[str, list[str]]:
    """Return the public class names and the modules that define each at their top."""
    found: dict[str, list[str]] = {}
    for one in sources:
        for name in sorted(_public_classes(one.tree)):
            found.setdefault(name, []).append(one.module)
    return dict(sorted(found.items()))


def _public_classes(tree: ast.Module) -> set[str]:
    # Also under a condition, such as one for the version of Python.
    found: set[str] = set()
    bodies: list[ast.AST] = [tree]
    while bodies:
        for node in ast.iter_child_nodes(bodies.pop()):
            if isinstance(node, ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.If | ast.Try | ast.ExceptHandler | ast.With):
                bodies.append(node)
    return {name for name in found if not name.startswith("_")}


def names_twice(names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the names that two or more modules define, with the modules."""
    return {name: list(where) for name, where in names.items() if len(where) > 1}


def twice_in_package(names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the names that two or more modules of one package define."""
    found: dict[str, list[str]] = {}
    for name, where in names.items():
        counts = Counter(module.partition(".")[0] for module in where)
        inside = [one for one in where if counts[one.partition(".")[0]] > 1]
        if inside:
            found[name] = inside
    return found


def riddles(sources: Sequence[Source]) -> list[str]:
    """Return the docstrings and field strings that begin with one of `RIDDLE_WORDS`.

    Each is a line of `file:line` and the first line of the text.
    """
    found: list[tuple[str, int, str]] = []
    for one in sources:
        for node in ast.walk(one.tree):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    line = text.strip().partition("\n")[0]
                    # The word may also end the first line.
                    if f"{line} ".startswith(RIDDLE_WORDS):
                        found.append((str(one.path), node.lineno, line))
    return [f"{path}:{number} {line}" for path, number, line in sorted(found)]


def single_heirs(sources: Sequence[Source]) -> list[str]:
    """Return the classes that only one class extends, which is in another file.

    Classes that a third file names are left out: it uses the base for itself.
    """
    where = {
        node.name: one
        for one in sources
        for node in one.tree.body
        if isinstance(node, ast.ClassDef)
    }
    heirs: dict[str, list[tuple[str, Source]]] = {}
    for one in sources:
        for node in ast.walk(one.tree):
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    if isinstance(base, ast.Name) and base.id in where:
                        heirs.setdefault(base.id, []).append((node.name, one))
    found = []
    for base_name, extending in sorted(heirs.items()):
        own = where[base_name]
        (name, other), more = extending[0], extending[1:]
        users = {
            one.module
            for one in sources
            if re.search(rf"\b{base_name}\b", one.text) and not one.is_package
        }
        if not more and own is not other and users == {own.module, other.module}:
            found.append(f"{base_name} of {own.path}: {name} of {other.path}")
    return found
