"""The corpus of honest modules and the control that runs it in plain CPython.

A module is `corpus/honest/<name>.py`, what a model wrote for one half of a protocol;
`<name>.cases` beside it is a Python literal, a list of dicts:

* `function` and `args`: what is called, with what;
* `value`, or `error` as `"ExceptionName: text"`: how it ends;
* `calls`, of a generator half only: the capability calls it makes, in order, each with
  `name`, `params` and either `returns` or `fails` as `[code, message]`.
"""

from __future__ import annotations

import ast
import copy
import inspect
import math
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

CORPUS = Path(__file__).parent / "corpus" / "honest"
_ABSENT = object()


class Refusal(Exception):
    """A case that does not follow the format, or a call that it does not foresee."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One capability call that a case foresees."""

    name: str
    "The capability."

    params: Any
    "What it is called with."

    returns: Any = None
    "What it answers."

    fails: tuple[int, str] | None = None
    "Code and message of the failure it answers with instead."


@dataclass(frozen=True, slots=True)
class Case:
    """One call of one function, and how it ends."""

    function: str
    "The function of the module."

    args: list[Any]
    "Its arguments."

    calls: tuple[Expected, ...] | None
    "The capability calls of a generator half; None for a plain function."

    value: Any = None
    "What it returns."

    error: str | None = None
    "How it fails instead, as `ExceptionName: text`."


class Script:
    """Answers the capability calls of one case, in order.

    The same script serves the control and the sandbox, so both see the same answers.
    """

    def __init__(self, case: Case) -> None:
        self._left = list(case.calls or ())

    def answer(self, name: str, params: Any) -> Any:
        """Return what the capability answers.

        Raises:
            CapabilityError: The case says that the capability fails.
            Refusal: The case foresees another call, or none.
        """
        if not self._left:
            raise Refusal(f"an unforeseen call of {name} with {params!r}")
        expected = self._left.pop(0)
        if name != expected.name or not same(params, expected.params):
            raise Refusal(f"{expected} was foreseen, not {name} with {params!r}")
        if expected.fails is not None:
            raise CapabilityError(*expected.fails)
        return copy.deepcopy(expected.returns)

    def finish(self) -> None:
        """Check that every foreseen call was made."""
        if self._left:
            raise Refusal(f"not called: {[call.name for call in self._left]}")


class CapabilityError(Exception):
    """The error that a module sees when a capability fails."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Wanted:
    """A capability call, made by `call`, for a module to yield."""

    name: str
    "The capability."

    params: Any
    "Its parameters."


def names() -> list[str]:
    """Return the names of all modules of the corpus."""
    return sorted(path.stem for path in CORPUS.glob("*.py"))


def source_of(name: str) -> str:
    """Return the source text of a module."""
    return (CORPUS / f"{name}.py").read_text(encoding="utf-8")


def cases_of(name: str) -> list[Case]:
    """Return the cases of a module.

    Raises:
        Refusal: The file does not follow the format.
    """
    text = (CORPUS / f"{name}.cases").read_text(encoding="utf-8")
    return [_case(entry) for entry in ast.literal_eval(text)]


def run_plain(name: str, case: Case) -> Any:
    """Run one case in this process, without any sandbox, and return its value.

    The modules are our own and reviewed: this is the control, which shows that what a
    case expects is what the language itself does.
    """
    with _imported(name) as module:
        function = getattr(module, case.function)
        if inspect.isgeneratorfunction(function) != (case.calls is not None):
            raise Refusal(f"{name}.{case.function}: generator halves have `calls`")
        result = function(*copy.deepcopy(case.args))
        if case.calls is None:
            return result
        script = Script(case)
        value = _drive(result, script)
        script.finish()
        return value


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal, with the very same plain types inside.

    False is not 0, nor 1.0 the int 1, and a named tuple is no list: a value that only
    looks equal would not cross to the daemon as it is.
    """
    if type(left) is not type(right):
        return False
    if type(left) is dict:
        return list(left) == list(right) and all(
            type(key) is str and same(left[key], right[key]) for key in left
        )
    if type(left) is list:
        return len(left) == len(right) and all(map(same, left, right))
    if type(left) is float:
        return math.isfinite(left) and left == right
    return type(left) in {type(None), bool, int, str, bytes} and bool(left == right)


def _case(entry: dict[str, Any]) -> Case:
    known = {"function", "args", "value", "error", "calls"}
    if entry.keys() - known or ("value" in entry) == ("error" in entry):
        raise Refusal(f"a case needs either `value` or `error`: {entry!r}")
    calls = entry.get("calls", _ABSENT)
    return Case(
        function=entry["function"],
        args=entry["args"],
        calls=None if calls is _ABSENT else tuple(_expected(one) for one in calls),
        value=entry.get("value"),
        error=entry.get("error"),
    )


def _expected(entry: dict[str, Any]) -> Expected:
    if ("returns" in entry) == ("fails" in entry):
        raise Refusal(f"a call needs either `returns` or `fails`: {entry!r}")
    fails = entry.get("fails")
    return Expected(
        name=entry["name"],
        params=entry["params"],
        returns=entry.get("returns"),
        fails=None if fails is None else (fails[0], fails[1]),
    )


@contextmanager
def _imported(name: str) -> Iterator[ModuleType]:
    # Dataclasses and typing look the module up in `sys.modules` by its name.
    module = ModuleType(f"honest_{name}")
    module.__dict__.update(call=Wanted, CapabilityError=CapabilityError)
    sys.modules[module.__name__] = module
    try:
        exec(compile(source_of(name), f"{name}.py", "exec"), module.__dict__)
        yield module
    finally:
        del sys.modules[module.__name__]


def _drive(half: Generator[Any, Any, Any], script: Script) -> Any:
    try:
        wanted = next(half)
        while True:
            if not isinstance(wanted, Wanted):
                raise Refusal(f"yielded {wanted!r} instead of a call")
            try:
                answer = script.answer(wanted.name, wanted.params)
            except CapabilityError as failure:
                wanted = half.throw(failure)
            else:
                wanted = half.send(answer)
    except StopIteration as stop:
        return stop.value
