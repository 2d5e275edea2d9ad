# kind: small template language
"""Templates with {{ name|filter }}, {% if %} and {% for %}."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

_TOKEN = re.compile(r"(\{\{.*?\}\}|\{%.*?%\})")


class TemplateError(Exception):
    """The template is wrong."""


def _lookup(context: dict[str, Any], path: str) -> Any:
    value: Any = context
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step, "")
        elif isinstance(value, list) and step.isdigit():
            value = value[int(step)] if int(step) < len(value) else ""
        else:
            return ""
    return value


class Node:
    def render(self, context: dict[str, Any]) -> str:
        raise NotImplementedError


@dataclass
class Text(Node):
    text: str

    def render(self, context: dict[str, Any]) -> str:
        return self.text


@dataclass
class Variable(Node):
    path: str
    filters: list[str] = field(default_factory=list)

    FILTERS: ClassVar[dict[str, Callable[[Any], str]]] = {
        "upper": lambda v: str(v).upper(),
        "escape": lambda v: html.escape(str(v)),
        "money": lambda v: f"{v:,.2f}",
        "join": ", ".join,
        "length": lambda v: str(len(v)),
    }

    def render(self, context: dict[str, Any]) -> str:
        value = _lookup(context, self.path)
        for name in self.filters:
            if name not in self.FILTERS:
                raise TemplateError(f"no filter {name!r}")
            value = self.FILTERS[name](value)
        return str(value)


@dataclass
class Block(Node):
    children: list[Node] = field(default_factory=list)

    def render(self, context: dict[str, Any]) -> str:
        return "".join(child.render(context) for child in self.children)


@dataclass
class If(Block):
    path: str = ""

    def render(self, context: dict[str, Any]) -> str:
        return super().render(context) if _lookup(context, self.path) else ""


@dataclass
class For(Block):
    name: str = ""
    path: str = ""

    def render(self, context: dict[str, Any]) -> str:
        parts = []
        for index, item in enumerate(_lookup(context, self.path) or []):
            parts.append(super().render({**context, self.name: item, "index": index + 1}))
        return "".join(parts)


def _parse(tokens: Iterator[str], block: Block, until: str | None = None) -> Block:
    for token in tokens:
        if token.startswith("{{"):
            path, *filters = (part.strip() for part in token[2:-2].split("|"))
            block.children.append(Variable(path, filters))
        elif token.startswith("{%"):
            match token[2:-2].split():
                case ["if", path]:
                    block.children.append(_parse(tokens, If(path=path), "endif"))
                case ["for", name, "in", path]:
                    block.children.append(_parse(tokens, For(name=name, path=path), "endfor"))
                case [word] if word == until:
                    return block
                case words:
                    raise TemplateError(f"unexpected {' '.join(words)!r}")
        elif token:
            block.children.append(Text(token))
    if until is not None:
        raise TemplateError(f"missing {until}")
    return block


def render(template: str, context: dict[str, Any]) -> str:
    return _parse(iter(_TOKEN.split(template)), Block()).render(context)
