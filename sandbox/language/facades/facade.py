"""Facades: read-only objects with the allowed members of a module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from sandbox.language.advice import MEMBERS


class Facade:
    """Stands for a module.

    The members are attributes of the facade's own class and the object has no
    `__dict__`, so that no code can change them through a dictionary.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        module = type(self).__name__
        instead = MEMBERS.get((module, name))
        text = f"{module}.{name} is not available"
        raise AttributeError(f"{text}; {instead}" if instead else text)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{name} of a module cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name} of a module cannot be deleted")

    def __copy__(self) -> Facade:
        return self

    def __deepcopy__(self, memo: Any) -> Facade:
        return self

    def __repr__(self) -> str:
        return f"<module {type(self).__name__!r}>"


def facade_of(module: str, members: Mapping[str, Any]) -> Facade:
    """Return the facade of `module` with these members."""
    body = {name: _as_it_is(value) for name, value in members.items()}
    kind = type(module, (Facade,), {"__slots__": (), **body})
    facade: Facade = kind()
    return facade


def _as_it_is(value: Any) -> Any:
    # A function stored in a class would become a method of its objects.
    binds = hasattr(type(value), "__get__") and not isinstance(value, type)
    return staticmethod(value) if binds else value
