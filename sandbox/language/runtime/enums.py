"""Enumerations whose functional form can only make plain members.

The original accepts any class as `type` and any name as a member. It could make classes
that no class statement of a half could: with `__reduce__`, or derived from an exception
group.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sandbox.language.names import BLOCKED_ATTRIBUTES, OWN_MODULE


class _EnumMeta(enum.EnumMeta):
    @classmethod
    def _find_new_(cls, body: Any, mixin: type, first: type) -> tuple[Any, ...]:
        # The original sets attributes of whatever `__new__` returns, and a flag calls
        # that of its mixin whenever it makes a combination.
        if issubclass(first, enum.Flag) and any(
            kind.__module__ == OWN_MODULE and "__new__" in vars(kind)
            for kind in mixin.__mro__
        ):
            raise TypeError("the mixin of a Flag cannot define __new__")
        new, *rest = super()._find_new_(body, mixin, first)  # type: ignore[misc]  # known by name only
        return new if new is object.__new__ else _members_only(new), *rest

    def __call__(cls, *values: Any, **options: Any) -> Any:
        if len(values) < 2 and "names" not in options:
            return super().__call__(*values, **options)
        if cls.__members__ or len(values) > 2:
            # Several values are those of one member (Python 3.12).
            return super().__call__(*values, **_only(options))
        name, names = (*values, options.pop("names", ()))[:2]
        if type(name) is not str:
            raise TypeError("the name of an enumeration is a str")
        return super().__call__(
            name,
            names=_members(names),
            module=OWN_MODULE,
            **_only(options, "start", "boundary"),
        )


def _members_only(new: Callable[..., Any]) -> Callable[..., Any]:
    def make(cls: type, *args: Any, **options: Any) -> Any:
        made = new(cls, *args, **options)
        if cls not in type(made).__mro__:
            raise TypeError("__new__ of an enumeration returns a member of it")
        return made

    return make


def _only(options: dict[str, Any], *allowed: str) -> dict[str, Any]:
    for name in options:
        if name not in allowed:
            raise TypeError(f"{name} is not available; write a class statement")
    return options


def _members(names: Any) -> list[Any]:
    if isinstance(names, str):
        given: Iterable[Any] = str.replace(names, ",", " ").split()
    elif isinstance(names, Mapping):
        given = list(names.items())
    else:
        given = list(names)
    return [_member(item) for item in given]


def _member(item: Any) -> Any:
    if isinstance(item, str):
        return _checked(item)
    name, value = item
    return _checked(name), value


def _checked(name: Any) -> str:
    if (
        type(name) is not str
        or not name.isidentifier()
        or name.startswith("_")
        or name in BLOCKED_ATTRIBUTES
    ):
        raise ValueError(f"{name!r} cannot be the name of a member")
    return name


class Enum(enum.Enum, metaclass=_EnumMeta):
    """Replaces `enum.Enum`."""


class IntEnum(enum.IntEnum, metaclass=_EnumMeta):
    """Replaces `enum.IntEnum`."""


class StrEnum(enum.StrEnum, metaclass=_EnumMeta):
    """Replaces `enum.StrEnum`."""


class Flag(enum.Flag, metaclass=_EnumMeta):
    """Replaces `enum.Flag`."""


class IntFlag(enum.IntFlag, metaclass=_EnumMeta):
    """Replaces `enum.IntFlag`."""


ENUMS: dict[str, Any] = {
    kind.__name__: kind for kind in (Enum, IntEnum, StrEnum, Flag, IntFlag)
}
