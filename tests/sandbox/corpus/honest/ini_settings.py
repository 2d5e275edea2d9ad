# kind: ini-like key=value text
"""Settings as sections of key = value lines with comments and typed values."""

from __future__ import annotations

import re
from typing import Any

_SECTION = re.compile(r"^\[(?P<name>[^\]]+)\]$")
_TRUE, _FALSE = {"yes", "true", "on"}, {"no", "false", "off"}


class SettingsError(Exception):
    def __init__(self, line_number: int, line: str) -> None:
        self.line_number = line_number
        super().__init__("line %d: cannot read %r" % (line_number, line))


def _typed(text: str) -> Any:
    lowered = text.lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            pass
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].replace('\\"', '"').replace("\\n", "\n")
    if "," in text:
        return [_typed(part.strip()) for part in text.split(",")]
    return text


def parse(text: str) -> dict[str, dict[str, Any]]:
    settings: dict[str, dict[str, Any]] = {}
    section = settings.setdefault("default", {})
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if found := _SECTION.match(line):
            section = settings.setdefault(found["name"].strip().lower(), {})
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise SettingsError(number, line)
        section[key.strip()] = _typed(value.split(" #")[0].strip())
    return {name: values for name, values in settings.items() if values}


def _text(value: Any) -> str:
    if value is True or value is False:
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value)


def dump(settings: dict[str, dict[str, Any]]) -> str:
    lines: list[str] = []
    for name, values in settings.items():
        lines += ["", f"[{name}]"] if lines else [f"[{name}]"]
        widest = max(map(len, values), default=0)
        lines.extend("%-*s = %s" % (widest, key, _text(value)) for key, value in values.items())
    return "\n".join(lines) + "\n"
