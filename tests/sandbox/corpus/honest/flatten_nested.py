# kind: recursion over nested data: flatten and unflatten
"""Flatten nested JSON to dotted paths and back; lists use [index]."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Scalar = str | int | float | bool | None
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def _walk(value: Any, path: str = "") -> Iterator[tuple[str, Scalar]]:
    if isinstance(value, Mapping) and value:
        for key, child in value.items():
            yield from _walk(child, f"{path}.{key}" if path else key)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and value:
        for index, child in enumerate(value):
            yield from _walk(child, f"{path}[{index}]")
    else:
        yield path, value


def flatten(value: dict[str, Any]) -> dict[str, Scalar]:
    return dict(_walk(value))


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    for match in _STEP.finditer(path):
        name, index = match.groups()
        steps.append(name if index is None else int(index))
    return steps


def unflatten(flat: dict[str, Scalar]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path, value in flat.items():
        node: Any = root
        *parents, last = _steps(path)
        for step, following in zip(parents, parents[1:] + [last]):
            empty: Any = [] if isinstance(following, int) else {}
            if isinstance(node, list):
                if step == len(node):
                    node.append(empty)
                node = node[step]
            else:
                node = node.setdefault(step, empty)
        if isinstance(node, list):
            node.append(value)
        else:
            node[last] = value
    return root


def depth(value: Any) -> int:
    match value:
        case {}:
            return 1 + max(map(depth, value.values()), default=0)
        case [*items]:
            return 1 + max((depth(item) for item in items), default=0)
        case _:
            return 0


def prune(value: Any) -> Any:
    """Drop None, empty strings and empty containers, bottom up."""
    if isinstance(value, dict):
        return {k: p for k, v in value.items() if (p := prune(v)) not in (None, "", [], {})}
    if isinstance(value, list):
        return [p for p in map(prune, value) if p not in (None, "", [], {})]
    return value
