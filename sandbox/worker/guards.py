"""The namespace of a half at run time: guards, allowed builtins and facades."""

from __future__ import annotations

import builtins
import sys
from functools import partial
from types import ModuleType
from typing import Any

from sandbox.language.facades.log import CappedLog
from sandbox.language.facades.modules import import_name
from sandbox.language.facades.objects import ANNOTATIONS, with_private_keywords
from sandbox.language.names import OWN_MODULE
from sandbox.language.runtime.attributes import Hold, read, read_guarded, writable
from sandbox.language.runtime.builtin_names import BUILTINS
from sandbox.language.runtime.classes import exact_group

__all__ = [
    "CapabilityCall",
    "CapabilityError",
    "CappedLog",
    "fresh_globals",
    "plain_globals",
]


class CapabilityError(Exception):
    """A capability call failed; modules know it by this name."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class CapabilityCall:
    """The result of `call(name, params)`; a provider half yields it."""

    __slots__ = ("name", "params")

    def __init__(self, name: str, params: Any) -> None:
        self.name = name
        self.params = params


_GUARDS: dict[str, Any] = {
    "__name__": OWN_MODULE,
    "_annotation_": ANNOTATIONS.__getitem__,
    "_exact_group_": exact_group,
    "_getattr_": read,
    "_getattr_guarded_": read_guarded,
    "_hold_": Hold,
    "_keywords_": with_private_keywords,
    "_write_": writable,
    "CapabilityError": CapabilityError,
    "call": CapabilityCall,
}


def fresh_globals(log: CappedLog | None = None) -> dict[str, Any]:
    """Return a new namespace for one execution of a half.

    Args:
        log: Receives the output of `print` and `logging`; None discards it.
    """
    log = log or CappedLog()
    return {
        **_GUARDS,
        "__builtins__": {**BUILTINS, "print": log.print},
        "_import_": partial(import_name, log),
    }


def plain_globals() -> dict[str, Any]:
    """Return a new namespace with all of Python, for tests of the process."""
    # Dataclasses look up the module of a class by its name.
    module = ModuleType(OWN_MODULE)
    sys.modules[OWN_MODULE] = module
    module.__dict__.update(
        __builtins__=builtins, CapabilityError=CapabilityError, call=CapabilityCall
    )
    return module.__dict__
