"""What a module meets at run time: guards, allowed builtins and facades."""

from __future__ import annotations

import builtins
import json
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from RestrictedPython.Guards import (
    guarded_iter_unpack_sequence,
    guarded_unpack_sequence,
    safer_getattr_raise,
)

__all__ = ["ALLOWED_MODULES", "CapabilityCall", "CapabilityError", "fresh_globals"]


class CapabilityError(Exception):
    """A capability call failed; given to modules under this name."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class CapabilityCall:
    """What `call(name, params)` gives; a provider half yields it."""

    __slots__ = ("name", "params")

    def __init__(self, name: str, params: Any) -> None:
        self.name = name
        self.params = params


class _Facade:
    """Named attributes of a module, and nothing else of it."""

    __slots__ = ("_names",)

    def __init__(self, names: dict[str, Any]) -> None:
        object.__setattr__(self, "_names", SimpleNamespace(**names))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "_names"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} cannot be set")


def _loads(text: Any) -> Any:
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _dumps(value: Any, *, ensure_ascii: bool = True, sort_keys: bool = False) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, sort_keys=sort_keys, allow_nan=False
    )


ALLOWED_MODULES: dict[str, Any] = {
    "json": _Facade(
        {"loads": _loads, "dumps": _dumps, "JSONDecodeError": json.JSONDecodeError}
    )
}
"Facades by module name; the wide list comes with the next issue (SANDBOX.md)."

_NAMES = (
    "None",
    "True",
    "False",
    "abs",
    "all",
    "any",
    "bool",
    "bytes",
    "dict",
    "enumerate",
    "filter",
    "float",
    "frozenset",
    "int",
    "isinstance",
    "len",
    "list",
    "map",
    "max",
    "min",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "sorted",
    "str",
    "sum",
    "tuple",
    "zip",
    "Exception",
    "ValueError",
    "TypeError",
    "KeyError",
    "IndexError",
    "AttributeError",
    "LookupError",
    "ArithmeticError",
    "OverflowError",
    "ZeroDivisionError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeError",
    "StopIteration",
    "RuntimeError",
)


def fresh_globals() -> dict[str, Any]:
    """Return a new namespace for one execution of a module."""
    allowed: dict[str, Any] = {
        name: getattr(builtins, name) for name in _NAMES if hasattr(builtins, name)
    }
    allowed["__import__"] = _import
    return {
        "__builtins__": allowed,
        "__name__": "half",
        "__metaclass__": type,
        "_getattr_": safer_getattr_raise,
        "_getitem_": _getitem,
        "_getiter_": _getiter,
        "_iter_unpack_sequence_": guarded_iter_unpack_sequence,
        "_unpack_sequence_": guarded_unpack_sequence,
        "_write_": _write,
        "_apply_": _apply,
        "_inplacevar_": _inplacevar,
        "CapabilityError": CapabilityError,
        "call": CapabilityCall,
    }


def _import(name: str, *args: Any, **kwargs: Any) -> Any:
    if name not in ALLOWED_MODULES:
        raise ImportError(f"{name} may not be imported")
    return ALLOWED_MODULES[name]


def _getitem(value: Any, index: Any) -> Any:
    return value[index]


def _getiter(value: Any) -> Any:
    return value


def _write(value: Any) -> Any:
    if type(value) in (dict, list):
        return value
    raise TypeError(f"a {type(value).__name__} may not be written to")


_INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "//=": operator.ifloordiv,
    "%=": operator.imod,
    "|=": operator.ior,
    "&=": operator.iand,
    "^=": operator.ixor,
}


def _inplacevar(sign: str, value: Any, other: Any) -> Any:
    if sign not in _INPLACE:
        raise TypeError(f"{sign} may not be used")
    return _INPLACE[sign](value, other)


def _apply(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)
