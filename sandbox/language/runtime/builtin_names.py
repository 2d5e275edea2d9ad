"""The builtins of a half: a list of allowed names, some replaced by guards."""

from __future__ import annotations

import builtins
import importlib
import sys
from typing import Any

from sandbox.language.runtime.attributes import (
    guarded_delattr,
    guarded_getattr,
    guarded_hasattr,
    guarded_setattr,
    guarded_type,
)
from sandbox.language.runtime.classes import build_class

_NAMES = (
    "None True False Ellipsis NotImplemented "
    "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict "
    "divmod enumerate filter float format frozenset hash hex id int isinstance "
    "issubclass iter len list map max memoryview min next object oct ord pow property "
    "range repr reversed round set slice sorted staticmethod str sum super tuple zip"
)

_WITHOUT = {"SystemExit", "KeyboardInterrupt"}
"Exceptions that control the process; halves do not get them."

_LATE_IMPORTS = (
    "_pylong _strptime collections collections.abc copyreg functools json.decoder re "
    "time types typing unicodedata warnings"
)

LATE_IMPORTS = frozenset(_LATE_IMPORTS.split())
"Modules that C code imports through the builtins of the running half."


def _import_for_interpreter(name: str, *args: Any, **kwargs: Any) -> None:
    """Let C code import a loaded module, which it then takes from `sys.modules`.

    The import statements of a half never come here; it would return None to them.
    """
    if name not in LATE_IMPORTS:
        raise ImportError(f"{name} may not be imported")
    if name not in sys.modules:
        importlib.import_module(name)


BUILTINS: dict[str, Any] = {
    **{name: getattr(builtins, name) for name in _NAMES.split()},
    **{
        name: value
        for name, value in vars(builtins).items()
        if isinstance(value, type)
        and issubclass(value, BaseException)
        and name not in _WITHOUT
    },
    "__build_class__": build_class,
    "__debug__": True,
    "__import__": _import_for_interpreter,
    "delattr": guarded_delattr,
    "getattr": guarded_getattr,
    "hasattr": guarded_hasattr,
    "setattr": guarded_setattr,
    "type": guarded_type,
}
"Builtins by name; `print` comes with the log."
