# kind: JSON pointer, patch and diff
"""Partial updates: JSON pointers, patches, and the difference of two documents."""

from __future__ import annotations

from copy import deepcopy
from typing import Any


class PatchError(Exception):
    """A patch cannot be applied."""

    def __init__(self, operation: dict, reason: str) -> None:
        super().__init__(f"{operation.get('op')} {operation.get('path')}: {reason}")


def _tokens(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"invalid pointer {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _child(node: Any, token: str) -> Any:
    return node[int(token)] if isinstance(node, list) else node[token]


def get(document: Any, pointer: str) -> Any:
    for token in _tokens(pointer):
        document = _child(document, token)
    return document


def _apply(document: Any, operation: dict) -> None:
    *parents, last = _tokens(operation["path"])
    node = document
    for token in parents:
        node = _child(node, token)
    match operation:
        case {"op": "add", "value": value}:
            if not isinstance(node, list):
                node[last] = value
            elif last == "-":
                node.append(value)
            else:
                node.insert(int(last), value)
        case {"op": "remove"}:
            del node[int(last) if isinstance(node, list) else last]
        case {"op": "replace", "value": value}:
            _child(node, last)
            node[int(last) if isinstance(node, list) else last] = value
        case {"op": "test", "value": value}:
            if (actual := _child(node, last)) != value:
                raise PatchError(operation, f"is {actual!r}")
        case {"op": "move" | "copy" as verb, "from": source}:
            value = deepcopy(get(document, source))
            if verb == "move":
                _apply(document, {"op": "remove", "path": source})
            _apply(document, {"op": "add", "path": operation["path"], "value": value})
        case _:
            raise PatchError(operation, "unsupported")


def apply(document: Any, patch: list[dict]) -> Any:
    """Return a patched copy; nothing is changed when one operation fails."""
    result = deepcopy(document)
    for operation in patch:
        try:
            _apply(result, operation)
        except (LookupError, TypeError, ValueError) as exc:
            raise PatchError(operation, f"no such place ({type(exc).__name__})") from exc
    return result


def diff(old: Any, new: Any, path: str = "") -> list[dict]:
    if isinstance(old, dict) and isinstance(new, dict):
        changes = []
        for key in sorted({*old, *new}):
            here = path + "/" + key.replace("~", "~0").replace("/", "~1")
            if key not in new:
                changes.append({"op": "remove", "path": here})
            elif key not in old:
                changes.append({"op": "add", "path": here, "value": new[key]})
            else:
                changes += diff(old[key], new[key], here)
        return changes
    return [] if old == new else [{"op": "replace", "path": path, "value": new}]
