"""The messages of errors, read from the source code.

A message is the text of an exception that people read: `ConfigError`, `CallError`, what
derives from them, and what becomes their text. `…` stands for what differs.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache

from anp.errors import ErrorKind
from tests.documents import ROOT

ANYTHING = "…"

KINDS = {
    "ConfigError": ErrorKind.CONFIGURATION,
    "AttachmentError": ErrorKind.CONFIGURATION,
    "BundleError": ErrorKind.CONFIGURATION,
    "OpenApiError": ErrorKind.CONFIGURATION,
    "ApiError": ErrorKind.USAGE,
    "UnknownError": ErrorKind.USAGE,
    "ConflictError": ErrorKind.USAGE,
    "BusyError": ErrorKind.POLICY,
}
"Exceptions of one kind, unless they say another."

PACKAGES = ("anp", "negotiation", "sandbox", "cache", "jsonic")


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """One message."""

    kind: ErrorKind
    "The kind of the error, which gives the exit code."

    text: str
    "What stands behind `anpd: `."


@cache
def messages() -> tuple[Message, ...]:
    """Return all messages that say something, without doubles, in order."""
    return tuple(sorted(_read()[0]))


@cache
def texts() -> frozenset[str]:
    """Return every text of the code, with `…` for what is put into it."""
    return frozenset(_read()[1])


@cache
def _read() -> tuple[set[Message], set[str]]:
    found, every = set(), set()
    for path in sorted(one for name in PACKAGES for one in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if text := _text(node):
                every.add(text)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                kind = KINDS.get(node.func.id)
                said = [*node.args[:1], *(one.value for one in node.keywords)]
                if node.func.id in ("CallError", "ApiError"):
                    kind = next((one for one in map(_kind, said) if one), kind)
                text = next((one for one in map(_text, node.args) if one), "")
                if kind is not None and len(text.strip("….,:; ")) > 8:
                    found.add(Message(kind, text))
    return found, every


def _kind(node: ast.expr) -> ErrorKind | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        known = ErrorKind.__members__
        return known.get(node.attr) if node.value.id == "ErrorKind" else None
    return None


def _text(node: ast.AST) -> str:
    """Return the text that an expression makes, or "" if it makes none."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(_text(one) or ANYTHING for one in values)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return (_text(left) or ANYTHING) + (_text(right) or ANYTHING)
    return ""
