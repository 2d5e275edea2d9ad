# kind: recursive validation with paths to what is wrong
"""Checks messages against a small schema language before they are sent."""

from __future__ import annotations

import re
from typing import Any, Iterator

Path = tuple[str | int, ...]
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}


class SchemaViolation(ValueError):
    def __init__(self, problems: list[str]) -> None:
        super().__init__(f"{len(problems)} problem{'s' * (len(problems) != 1)}: " + "; ".join(problems))
        self.problems = problems


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool) and name in ("integer", "number"):
        return False
    return isinstance(value, _TYPES[name])


def _show(path: Path) -> str:
    return "$" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path)


def _problems(value: Any, schema: dict[str, Any], path: Path = ()) -> Iterator[tuple[Path, str]]:
    wanted = schema.get("type", [])
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield path, f"expected {' or '.join(kinds)}, got {type(value).__name__}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield path, f"{value!r} is not one of {schema['enum']}"
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10**6):
            yield path, f"length {len(value)}"
        if (pattern := schema.get("pattern")) and not re.search(pattern, value):
            yield path, f"does not match {pattern}"
    elif isinstance(value, (int, float)):
        if "minimum" in schema and value < schema["minimum"]:
            yield path, f"{value} < {schema['minimum']}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _problems(item, schema.get("items", {}), (*path, index))
        if schema.get("unique") and len({repr(item) for item in value}) < len(value):
            yield path, "has duplicates"
    elif isinstance(value, dict):
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield path + (name,), "missing"
        for name, item in value.items():
            if name in properties:
                yield from _problems(item, properties[name], path + (name,))
            elif schema.get("closed"):
                yield path + (name,), "unexpected"


def problems(value: Any, schema: dict[str, Any]) -> list[str]:
    return [f"{_show(path)}: {text}" for path, text in _problems(value, schema)]


def check(value: Any, schema: dict[str, Any]) -> Any:
    if found := problems(value, schema):
        raise SchemaViolation(found)
    return value
