"""Members of facades that replace too powerful ones of the standard library.

Functions that write to a class or a function accept only the half's own. Functions
that evaluate annotations, or read attributes by names given at run time, are left out.
"""

from __future__ import annotations

import abc
import copy
import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, NoReturn
from xml.etree import ElementTree

from jsonic.exact_numbers import ExactEncoder, read_number
from sandbox.language.names import OWN_MODULE, PREFIX, plain_text
from sandbox.language.runtime.attributes import writable
from sandbox.language.runtime.classes import is_own_class


def _own(value: Any, what: str) -> Any:
    if not isinstance(value, type) or not is_own_class(value):
        raise TypeError(f"{what} takes a class of your own")
    return value


# json

_ENCODER = ExactEncoder(allow_nan=False)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=read_number)


def _loads(text: Any, **options: Any) -> Any:
    if type(text) is str and not options and not text.startswith("\ufeff"):
        return _DECODER.decode(text)
    options.setdefault("parse_constant", _no_constant)
    options.setdefault("parse_float", read_number)
    return json.loads(text, **options)


def _dumps(value: Any, **options: Any) -> str:
    if not options:
        return _ENCODER.encode(value)
    # NaN and infinities are not valid JSON, so they are refused by default.
    options.setdefault("allow_nan", False)
    options.setdefault("cls", ExactEncoder)
    return json.dumps(value, **options)


def _load(file: Any, **options: Any) -> Any:
    return _loads(file.read(), **options)


def _dump(value: Any, file: Any, **options: Any) -> None:
    file.write(_dumps(value, **options))


JSON: dict[str, Any] = {
    "JSONDecodeError": json.JSONDecodeError,
    "JSONDecoder": json.JSONDecoder,
    "JSONEncoder": json.JSONEncoder,
    "dump": _dump,
    "dumps": _dumps,
    "load": _load,
    "loads": _loads,
}

COPY: dict[str, Any] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "Error": copy.Error,
}


# dataclasses


def _dataclass(cls: Any = None, /, **options: Any) -> Any:
    if cls is None:
        return functools.partial(_dataclass, **options)
    if issubclass(_own(cls, "dataclass"), str | AttributeError | type):
        # Such a class reads fields by name, which avoids the guards of `format` and
        # `obj`.
        raise TypeError(f"a dataclass cannot extend {cls.__mro__[1].__name__}")
    has_repr = "__repr__" in cls.__dict__ or not options.get("repr", True)
    made: Any = dataclasses.dataclass(cls, **options)
    private = any(f.name.startswith(PREFIX) for f in dataclasses.fields(made))
    if private and not has_repr:
        made.__repr__ = _plain_repr(made.__repr__)
    return made


def _plain_repr(original: Callable[[Any], str]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:
        return plain_text(original(self))

    return __repr__


def _fields(value: Any) -> tuple[dataclasses.Field[Any], ...]:
    return tuple(_plain_field(field) for field in dataclasses.fields(value))


def _plain_field(field: dataclasses.Field[Any]) -> dataclasses.Field[Any]:
    if not field.name.startswith(PREFIX):
        return field
    plain = copy.copy(field)
    plain.name = plain_text(field.name)
    return plain


def _as_dict(value: Any, *, dict_factory: Any = dict) -> Any:
    def factory(pairs: list[tuple[str, Any]]) -> Any:
        return dict_factory([(plain_text(name), item) for name, item in pairs])

    return dataclasses.asdict(value, dict_factory=factory)


def _inside_names(kind: Any, keywords: Mapping[str, Any]) -> dict[str, Any]:
    fields = getattr(kind, "__dataclass_fields__", {})
    return {
        PREFIX + name if PREFIX + name in fields else name: value
        for name, value in keywords.items()
    }


def _replace(value: Any, /, **changes: Any) -> Any:
    return dataclasses.replace(value, **_inside_names(type(value), changes))


def with_private_keywords(function: Any) -> Any:
    """Return `function`, taking private fields of a dataclass by their source names."""
    if isinstance(function, type) and hasattr(function, "__dataclass_fields__"):
        return lambda *args, **kwargs: function(
            *args, **_inside_names(function, kwargs)
        )
    return function


DATACLASSES: dict[str, Any] = {
    "FrozenInstanceError": dataclasses.FrozenInstanceError,
    "InitVar": dataclasses.InitVar,
    "KW_ONLY": dataclasses.KW_ONLY,
    "MISSING": dataclasses.MISSING,
    "Field": dataclasses.Field,
    "asdict": _as_dict,
    "astuple": dataclasses.astuple,
    "dataclass": _dataclass,
    "field": dataclasses.field,
    "fields": _fields,
    "is_dataclass": dataclasses.is_dataclass,
    "replace": _replace,
}

ANNOTATIONS: dict[str, Any] = {
    "ClassVar": typing.ClassVar,
    "InitVar": dataclasses.InitVar,
    "KW_ONLY": dataclasses.KW_ONLY,
}
"Annotations that dataclasses act on."


# functools


def _update_wrapper(wrapper: Any, wrapped: Any) -> Any:
    if not isinstance(wrapper, types.FunctionType) or (
        wrapper.__module__ != OWN_MODULE
    ):
        writable(wrapper)
    for name in ("__name__", "__qualname__", "__doc__"):
        value = getattr(wrapped, name, None)
        if type(value) is str:
            setattr(wrapper, name, value)
    return wrapper


def _wraps(wrapped: Any) -> Callable[[Any], Any]:
    return lambda wrapper: _update_wrapper(wrapper, wrapped)


def _total_ordering(cls: Any) -> Any:
    return functools.total_ordering(_own(cls, "total_ordering"))


def _close_register(dispatcher: Any) -> None:
    """Accept classes only: the original would evaluate annotations as code."""
    original = dispatcher.register

    def register(cls: Any, func: Any = None) -> Any:
        if not isinstance(cls, type | types.UnionType) and (
            typing.get_origin(cls) is not typing.Union
        ):
            raise TypeError(
                "register takes a class: write `@function.register(int)` or annotate "
                "the first argument"
            )
        return original(cls, func)

    dispatcher.register = register


def _single_dispatch(function: Any) -> Any:
    dispatcher = functools.singledispatch(function)
    _close_register(dispatcher)
    return dispatcher


def _single_dispatch_method(function: Any) -> Any:
    method = functools.singledispatchmethod(function)
    _close_register(method.dispatcher)
    return method


def _abstract_method(function: Any) -> Any:
    # The original sets an attribute of its argument.
    kind = type(function)
    if kind not in (property, staticmethod, classmethod) and (
        kind is not types.FunctionType or function.__module__ != OWN_MODULE
    ):
        writable(function)
    return abc.abstractmethod(function)


ABC: dict[str, Any] = {"ABC": abc.ABC, "abstractmethod": _abstract_method}

FUNCTOOLS: dict[str, Any] = {
    "cache": functools.cache,
    "cached_property": functools.cached_property,
    "cmp_to_key": functools.cmp_to_key,
    "lru_cache": functools.lru_cache,
    "partial": functools.partial,
    "partialmethod": functools.partialmethod,
    "reduce": functools.reduce,
    "singledispatch": _single_dispatch,
    "singledispatchmethod": _single_dispatch_method,
    "total_ordering": _total_ordering,
    "update_wrapper": _update_wrapper,
    "wraps": _wraps,
}


# typing


def _runtime_checkable(cls: Any) -> Any:
    return typing.runtime_checkable(_own(cls, "runtime_checkable"))


def _as_it_is(value: Any) -> Any:
    """Return the decorated object unchanged."""
    return value


def _overload(function: Any) -> Any:
    def overloaded(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("an overloaded function needs an implementation")

    return overloaded


def _assert_never(value: Any, /) -> typing.NoReturn:
    raise AssertionError(f"Expected code to be unreachable, but got: {value!r}")


TYPING: dict[str, Any] = {
    "TYPE_CHECKING": False,
    "assert_never": _assert_never,
    "assert_type": lambda value, kind, /: value,
    "cast": lambda kind, value: value,
    "final": _as_it_is,
    "no_type_check": _as_it_is,
    "overload": _overload,
    "override": _as_it_is,
    "runtime_checkable": _runtime_checkable,
}


_NAMESPACES: dict[str, str] = ElementTree._namespace_map  # type: ignore[attr-defined]  # no other way to undo `register_namespace`

_KNOWN_NAMESPACES = dict(_NAMESPACES)


def reset_namespaces() -> None:
    """Forget namespace prefixes that an earlier call registered."""
    if _NAMESPACES != _KNOWN_NAMESPACES:
        _NAMESPACES.clear()
        _NAMESPACES.update(_KNOWN_NAMESPACES)


class _Builder(ElementTree.TreeBuilder):
    """Refuses a document type, the only place where entities are declared."""

    def doctype(self, name: Any, public: Any, system: Any) -> NoReturn:
        raise ElementTree.ParseError("a document type may not be declared")


def _from_string(text: str | bytes) -> ElementTree.Element:
    parser = ElementTree.XMLParser(target=_Builder())
    parser.feed(text)
    root: ElementTree.Element = parser.close()
    return root


def _from_strings(sequence: Any) -> ElementTree.Element:
    parser = ElementTree.XMLParser(target=_Builder())
    for text in sequence:
        parser.feed(text)
    root: ElementTree.Element = parser.close()
    return root


def _register_namespace(prefix: str, uri: str) -> None:
    if type(prefix) is not str or type(uri) is not str:
        raise TypeError("a prefix and a URI are str")
    ElementTree.register_namespace(prefix, uri)


TREE_MEMBERS: dict[str, Any] = {
    "Comment": ElementTree.Comment,
    "Element": ElementTree.Element,
    "ParseError": ElementTree.ParseError,
    "ProcessingInstruction": ElementTree.ProcessingInstruction,
    "QName": ElementTree.QName,
    "SubElement": ElementTree.SubElement,
    "XML": _from_string,
    "fromstring": _from_string,
    "fromstringlist": _from_strings,
    "indent": ElementTree.indent,
    "iselement": ElementTree.iselement,
    "register_namespace": _register_namespace,
    "tostring": ElementTree.tostring,
    "tostringlist": ElementTree.tostringlist,
}
"Members of the facade."
