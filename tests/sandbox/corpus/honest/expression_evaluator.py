# kind: tokenizer, recursive-descent parser and evaluator
"""Filter and price expressions: numbers, names, + - * / ^, comparisons, and/or/not."""

from __future__ import annotations

import math
import operator
import re
from typing import Any, Callable, Iterator, NamedTuple


class Token(NamedTuple):
    kind: str
    text: str
    position: int


class ExpressionError(ValueError):
    """Invalid expression."""


_SPEC = [
    ("NUMBER", r"\d+(?:\.\d*)?"),
    ("NAME", r"[A-Za-z_][A-Za-z_0-9]*"),
    ("OP", r"<=|>=|==|!=|[-+*/^<>(),]"),
    ("SKIP", r"\s+"),
    ("MISMATCH", r"."),
]
_SCANNER = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _SPEC))
_BINARY: list[dict[str, Callable[[Any, Any], Any]]] = [
    {"or": lambda a, b: a or b},
    {"and": lambda a, b: a and b},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.truediv},
]
_FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max, "sqrt": math.sqrt, "round": round}


def tokenize(text: str) -> Iterator[Token]:
    for match in _SCANNER.finditer(text):
        kind = match.lastgroup or ""
        if kind == "MISMATCH":
            raise ExpressionError(f"unexpected {match.group()!r} at {match.start()}")
        if kind != "SKIP":
            yield Token(kind, match.group(), match.start())
    yield Token("END", "", len(text))


class _Parser:
    def __init__(self, text: str, names: dict[str, Any]) -> None:
        self._tokens = list(tokenize(text))
        self._index = 0
        self._names = names

    @property
    def _current(self) -> Token:
        return self._tokens[self._index]

    def _accept(self, *texts: str) -> str | None:
        if self._current.text in texts and self._current.kind != "END":
            self._index += 1
            return self._tokens[self._index - 1].text
        return None

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            found = self._current.text or "end"
            raise ExpressionError(f"expected {text!r} at {self._current.position}, found {found}")

    def parse(self) -> Any:
        value = self._binary(0)
        if self._current.kind != "END":
            raise ExpressionError(f"unexpected {self._current.text!r}")
        return value

    def _binary(self, level: int) -> Any:
        if level == len(_BINARY):
            return self._unary()
        left = self._binary(level + 1)
        while name := self._accept(*_BINARY[level]):
            left = _BINARY[level][name](left, self._binary(level + 1))
        return left

    def _unary(self) -> Any:
        if self._accept("-"):
            return -self._unary()
        if self._accept("not"):
            return not self._unary()
        base = self._atom()
        return base ** self._unary() if self._accept("^") else base

    def _atom(self) -> Any:
        kind, text, _ = self._current
        if self._accept("("):
            value = self._binary(0)
            self._expect(")")
            return value
        self._index += 1
        if kind == "NUMBER":
            return float(text) if "." in text else int(text)
        if kind == "NAME":
            if self._accept("("):
                return self._call(text)
            if text in self._names:
                return self._names[text]
        raise ExpressionError(f"unknown {text!r}" if text else "unexpected end")

    def _call(self, name: str) -> float:
        if name not in _FUNCTIONS:
            raise ExpressionError(f"no function {name}")
        arguments = [self._binary(0)]
        while self._accept(","):
            arguments.append(self._binary(0))
        self._expect(")")
        return _FUNCTIONS[name](*arguments)


def evaluate(text: str, names: dict[str, Any]) -> Any:
    try:
        return _Parser(text, names).parse()
    except ZeroDivisionError:
        raise ExpressionError("division by zero") from None


def select(items: list[dict], condition: str) -> list[dict]:
    return [item for item in items if evaluate(condition, item)]
