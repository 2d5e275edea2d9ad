"""Circles: groups of modules each of which imports every other by some way.

Every import statement counts wherever it stands: at the top, in a function, and under
`if TYPE_CHECKING`. Only the module that is named counts. That Python also runs the
`__init__` of the packages above it is not counted, or each package whose `__init__`
shows its modules would be a circle.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence, Set

from tests.house.sources import Source


def import_graph(sources: Sequence[Source]) -> dict[str, set[str]]:
    """Return for each module of the product the modules of the product it imports."""
    modules = {one.module for one in sources}
    return {
        one.module: {
            name for name in _imports(one, modules) if name in modules - {one.module}
        }
        for one in sources
    }


def _imports(source: Source, modules: Set[str]) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(source, node)
            for alias in node.names:
                # `from package import name` is either a submodule or a name that
                # the package's `__init__` has.
                below = f"{origin}.{alias.name}"
                yield below if below in modules else origin


def _origin(source: Source, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = source.module.split(".")
    up = node.level - 1 if source.is_package else node.level
    base = parts[: len(parts) - up]
    return ".".join([*base, node.module] if node.module else base)


def circles(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """Return the strongly connected groups of more than one module, the largest first.

    A group is found where each module reaches every other (Tarjan's algorithm, with a
    stack of its own instead of recursion).
    """
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    found: list[list[str]] = []
    for root in sorted(graph):
        work = [] if root in order else [(root, iter(sorted(graph[root])))]
        while work:
            node, rest = work[-1]
            if node not in order:
                order[node] = lowest[node] = len(order)
                waiting.append(node)
            target = next(rest, None)
            if target is None:
                work.pop()
                if work:
                    above = work[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == order[node]:
                    start = waiting.index(node)
                    found.append(sorted(waiting[start:]))
                    del waiting[start:]
            elif target not in order:
                work.append((target, iter(sorted(graph[target]))))
            elif target in waiting:
                lowest[node] = min(lowest[node], order[target])
    groups = [group for group in found if len(group) > 1]
    return sorted(groups, key=lambda group: (-len(group), group))
