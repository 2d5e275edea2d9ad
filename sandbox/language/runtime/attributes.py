"""The run-time guards of attributes: they allow or refuse reading and writing.

A half's own classes are recognised by their module, which no source can set.
"""

from __future__ import annotations

import abc
import builtins
import collections
import decimal
import enum
import types
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn
from xml.etree.ElementTree import Element

from sandbox.language import names
from sandbox.language.advice import ATTRIBUTES
from sandbox.language.runtime.classes import BASES, is_own_class
from sandbox.language.runtime.texts import TextWrapper, format_map_text, format_text

_NEVER = frozenset(
    {
        types.ModuleType,
        types.FrameType,
        types.CodeType,
        types.TracebackType,
        types.CellType,
    }
)
"Types of values that no attribute may return."

_LOOKED_AT = _NEVER | {types.FunctionType, types.MappingProxyType}
"Types of values whose return depends on the object that has the attribute."

_PLAIN = frozenset(
    {
        bool,
        bytearray,
        bytes,
        dict,
        float,
        frozenset,
        int,
        list,
        memoryview,
        set,
        str,
        tuple,
        types.GeneratorType,
        collections.OrderedDict,
        collections.Counter,
        collections.defaultdict,
        collections.deque,
        decimal.Decimal,
    }
)
"Types whose objects may be asked for their special methods."

_WRITABLE = frozenset(
    {
        Element,
        decimal.Context,
        collections.defaultdict,
        collections.UserDict,
        collections.UserList,
        types.SimpleNamespace,
        TextWrapper,
    }
)
"Types from elsewhere whose objects a half may set attributes of."

_GUARDED_BY_ANY_NAME = frozenset(
    name for name in names.GUARDED_ATTRIBUTES if not name.startswith(names.PREFIX)
)
"Guarded names in the form in which a source may contain them."

_MISSING: Any = object()


class Hold:
    """Carries a value into a pattern, where only attributes are allowed."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _refuse(name: str) -> NoReturn:
    instead = ATTRIBUTES.get(name)
    text = f"{names.plain_text(name)} is not available"
    raise AttributeError(f"{text}; {instead}" if instead else text)


def read(value: Any, name: str) -> Any:
    """Return an attribute whose name was checked when the source was compiled."""
    result = getattr(value, name)
    if type(result) in _LOOKED_AT:
        return _look_at(result, value, name)
    return result


def _look_at(result: Any, value: Any, name: str) -> Any:
    if type(result) in _NEVER:
        _refuse(name)
    if type(result) is types.MappingProxyType:
        # A comparison would hand the underlying dictionary to the other operand.
        return result if _is_own(value) else types.MappingProxyType(dict(result))
    if type(value) is super:
        return _method_of(super.__self_class__.__get__(value), name, result)  # type: ignore[attr-defined]  # a member of every `super`
    return _method_of(value, name, result) if isinstance(value, type) else result


def _method_of(asked: type, name: str, function: Any) -> Any:
    """Return a method of a class that only takes instances of that class as `self`.

    A method that the half did not write may set attributes of `self` without a guard:
    one of the standard library, which own subclasses inherit, and one that the library
    made for an own class, such as the `__init__` of a dataclass.
    """
    if function.__code__.co_filename == names.FILENAME:
        return function
    kind, found = next(
        ((base, vars(base)[name]) for base in asked.__mro__ if name in vars(base)),
        (asked, None),
    )
    if isinstance(found, staticmethod):
        return function

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        # Not `issubclass`, which believes what was registered with an abstract class.
        if kind not in type(self).__mro__:
            raise TypeError(f"{name} needs a {kind.__name__}")
        return function(self, *args, **kwargs)

    return method


def read_guarded(value: Any, name: str) -> Any:
    """Return an attribute of `GUARDED_ATTRIBUTES`, depending on the object."""
    if name in {"format", "format_map"}:
        return _format_method(value, name)
    if name == "obj" and isinstance(value, AttributeError):
        _refuse(name)
    if name == "register" and isinstance(value, abc.ABCMeta):
        return _registration(value)
    if name in {"_value_", "_name_"} and not isinstance(value, enum.Enum):
        _refuse(name)
    if name.startswith(names.PREFIX):
        return _tuple_attribute(value, name)
    if name.startswith("__"):
        return _special_attribute(value, name)
    return read(value, name)


def _registration(kind: abc.ABCMeta) -> Any:
    """Return the `register` of an abstract class, if both classes are the half's own.

    Any other class would remember the registration in all later calls too.
    """
    if not is_own_class(kind):
        _refuse("register")

    def register(subclass: Any) -> Any:
        if not isinstance(subclass, type) or not is_own_class(subclass):
            raise TypeError("register takes a class of your own")
        return kind.register(subclass)

    return register


def _format_method(value: Any, name: str) -> Any:
    result = read(value, name)
    safe = format_text if name == "format" else format_map_text
    # The result is checked, since the method is reachable in many ways: `super()`...
    if type(result) is types.BuiltinMethodType:
        owner = result.__self__
        return partial(safe, owner) if isinstance(owner, str) else result
    if type(result) is types.MethodDescriptorType and result.__objclass__ is str:
        return safe
    return result


def _tuple_attribute(value: Any, name: str) -> Any:
    result = getattr(value, name, _MISSING)
    if result is not _MISSING:
        return result
    kind = value if isinstance(value, type) else type(value)
    plain = names.plain_text(name)
    if issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple):
        named = getattr(value, plain)
        return dict(named) if plain == "_field_defaults" else named
    raise AttributeError(f"{kind.__name__!r} object has no attribute {plain!r}")


def _special_attribute(value: Any, name: str) -> Any:
    if name == "__class__":
        return guarded_type(value)
    if name in {"__name__", "__qualname__", "__doc__"}:
        result = getattr(value, name)
        return names.plain_text(result) if isinstance(result, str) else result
    if name == "__members__" and isinstance(value, enum.EnumMeta):
        return types.MappingProxyType(dict(value.__members__))
    if name == "__cause__" and isinstance(value, BaseException):
        return value.__cause__
    if name == "__setattr__":
        if value is object:
            return _set_plainly
        if type(value) is super:
            return partial(_set_plainly, getattr(value, "__self__"))  # noqa: B009  # typed without
    elif name in names.SPECIAL_METHODS and (
        type(value) is super
        or type(value) in _PLAIN
        or (isinstance(value, type) and value in BASES)
        or _is_own(value)
        or isinstance(value, BaseException)
    ):
        return read(value, name)
    _refuse(name)


def _is_own(value: Any) -> bool:
    return type(value).__module__ == names.OWN_MODULE or (
        isinstance(value, type) and is_own_class(value)
    )


def _set_plainly(value: Any, name: str, new: Any) -> None:
    object.__setattr__(writable(value), _asked_name(name), new)


def writable(value: Any) -> Any:
    """Return `value` if the half may set its attributes; TypeError if not."""
    kind = type(value)
    if kind.__module__ == names.OWN_MODULE or kind in _WRITABLE:
        return value
    if issubclass(kind, type):
        if is_own_class(value) and not issubclass(value, BaseExceptionGroup):
            return value
        raise TypeError(f"attributes of {value.__name__} may not be set")
    if issubclass(kind, BaseException) and not issubclass(kind, BaseExceptionGroup):
        return value
    raise TypeError(
        f"attributes of a {kind.__name__} may not be set; use an object of a class of "
        "your own"
    )


def _asked_name(name: Any) -> str:
    """Check a name that was made at run time; return the attribute's real name."""
    if type(name) is not str:
        raise TypeError("attribute name must be string")
    if name in names.BLOCKED_ATTRIBUTES:
        _refuse(name)
    if name.startswith("_") and name != "_":
        if names.is_reserved(name):
            _refuse(name)
        return names.PREFIX + name
    if names.is_reserved(name):
        raise AttributeError(f"{name}: names with this beginning are reserved")
    return name


def guarded_getattr(value: Any, name: Any, default: Any = _MISSING, /) -> Any:
    """Replaces `getattr`; a name that may not be read counts as absent."""
    try:
        if type(name) is str and name in _GUARDED_BY_ANY_NAME:
            return read_guarded(value, name)
        inside = _asked_name(name)
        if inside in names.GUARDED_ATTRIBUTES:
            return read_guarded(value, inside)
        return read(value, inside)
    except AttributeError:
        if default is _MISSING:
            raise
        return default


def guarded_hasattr(value: Any, name: Any, /) -> bool:
    """Replaces `hasattr`."""
    return guarded_getattr(value, name, _MISSING_TOO) is not _MISSING_TOO


_MISSING_TOO: Any = object()


def guarded_setattr(value: Any, name: Any, new: Any, /) -> None:
    """Replaces `setattr`."""
    setattr(writable(value), _asked_name(name), new)


def guarded_delattr(value: Any, name: Any, /) -> None:
    """Replaces `delattr`."""
    delattr(writable(value), _asked_name(name))


class _TypeOfTypes(type):
    """Lets `type` be called, compared and tested against, but never extended."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if bases:
            raise TypeError("type cannot be a base; write a class statement")
        return super().__new__(mcs, name, bases, body)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            raise TypeError("type() takes 1 argument; write a class statement")
        kind = builtins.type(args[0])
        if issubclass(kind, builtins.type):
            return cls
        return _HIDDEN.get(kind, kind)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, builtins.type)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return issubclass(subclass, builtins.type)

    def __getitem__(cls, item: Any) -> Any:
        return object


def _hidden(name: str) -> Callable[..., Any]:
    return builtins.type(name, (), {"__slots__": (), "__module__": "builtins"})


_HIDDEN: dict[type, Any] = {
    kind: _hidden(kind.__name__)
    for kind in (
        types.FunctionType,
        types.BuiltinFunctionType,
        types.GetSetDescriptorType,
        types.MemberDescriptorType,
        types.MethodType,
        *_NEVER,
    )
}
"Results of `type` for objects whose real type could make objects out of code."

guarded_type: Any = _TypeOfTypes("type", (), {"__module__": "builtins"})
"""Replaces `type` with one argument."""
