"""Class statements at run time: allowed bases and the classes that result."""

from __future__ import annotations

import abc
import builtins
import collections
import collections.abc
import csv
import datetime
import decimal
import enum
import fractions
import json
import numbers
import sys
import types
import typing
from typing import Any, NoReturn

from sandbox.language.names import OWN_MODULE
from sandbox.language.runtime.enums import ENUMS

_NAMED_TUPLE, _TYPED_DICT = (
    base
    for made in (typing.NamedTuple, typing.TypedDict)
    for base in types.resolve_bases((made,))
)

BASES: frozenset[type] = frozenset(
    {
        object,
        bool,
        bytearray,
        bytes,
        complex,
        dict,
        float,
        frozenset,
        int,
        list,
        set,
        str,
        tuple,
        abc.ABC,
        collections.ChainMap,
        collections.Counter,
        collections.OrderedDict,
        collections.UserDict,
        collections.UserList,
        collections.defaultdict,
        collections.deque,
        csv.Dialect,
        csv.excel,
        csv.excel_tab,
        csv.unix_dialect,
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        datetime.tzinfo,
        decimal.Decimal,
        *ENUMS.values(),
        fractions.Fraction,
        json.JSONDecoder,
        json.JSONEncoder,
        typing.Generic,
        typing.Protocol,
        _NAMED_TUPLE,
        _TYPED_DICT,
        *(
            value
            for module in (collections.abc, numbers)
            for name in module.__all__
            if isinstance(value := getattr(module, name), type)
        ),
        *(
            value
            for value in vars(builtins).values()
            if isinstance(value, type) and issubclass(value, BaseException)
        ),
    }
)
"Foreign classes that a class of a half may extend."


def is_own_class(value: type) -> bool:
    """Return whether the half itself made this class."""
    return bool(type.__getattribute__(value, "__module__") == OWN_MODULE)


def may_be_base(value: Any) -> bool:
    """Return whether a class statement of a half may extend `value`.

    `type` is not allowed, since it would make a metaclass. Exception groups are not
    allowed either: `except*` trusts the results of their methods, to the point of
    corrupting memory (CPython 3.11 to 3.13).
    """
    if not isinstance(value, type) or issubclass(value, type | BaseExceptionGroup):
        return False
    return value in BASES or is_own_class(value)


def build_class(function: Any, name: str, /, *bases: Any, **keywords: Any) -> type:
    """Replaces `__build_class__`; the metaclass is that of the bases."""
    for base in types.resolve_bases(bases):
        if not may_be_base(base):
            shown = getattr(base, "__name__", None) or type(base).__name__
            raise TypeError(f"{shown} cannot be a base of {name}; keep it in a field")
    made: type = builtins.__build_class__(function, name, *bases, **keywords)
    if issubclass(made, _READ_BY_NAME) and hasattr(made, "__dataclass_fields__"):
        # A dataclass reads fields by name, which avoids the guards of `format` and
        # `obj`.
        raise TypeError(f"{name} cannot be a dataclass and extend a builtin")
    # The `__new__` of a library's class may call one of ours further along.
    if not issubclass(made, enum.Enum) and any(
        "__new__" in kind.__dict__ and is_own_class(kind) for kind in made.__mro__
    ):
        _seal(made)
    return made


_READ_BY_NAME = (str, AttributeError)
"Bases with attributes that only a guard may read."


def _seal(made: type) -> None:
    """Forbid copies of a class whose `__new__` may return any object.

    Copying would set attributes of the object that `__new__` returned, without a guard.
    """
    for base in made.__mro__:
        if not is_own_class(base) and base not in _MAY_HAVE_OWN_NEW:
            raise TypeError(f"{made.__name__} cannot define __new__; use __init__")
    type.__setattr__(made, "__reduce_ex__", _no_copy)


def _no_copy(self: Any, version: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__} defines __new__ and cannot be copied; define __copy__"
    )


_MAY_HAVE_OWN_NEW = frozenset(
    {
        abc.ABC,
        bytes,
        complex,
        decimal.Decimal,
        float,
        frozenset,
        int,
        object,
        str,
        tuple,
        typing.Generic,
        typing.Protocol,
    }
)
"Bases with which a class may define `__new__`: they check its result."


def exact_group() -> None:
    """Raise TypeError if the exception being handled is an unsafe exception group.

    `except*` trusts the results of the group's methods, to the point of corrupting
    memory (CPython 3.11 to 3.13), so the group must be of one of the original classes.
    """
    kind = type(sys.exception())
    if issubclass(kind, BaseExceptionGroup) and kind not in _GROUPS:
        raise TypeError("except* takes an ExceptionGroup itself")


_GROUPS = frozenset({BaseExceptionGroup, ExceptionGroup})
