"""The log of a half: text from `print` and `logging`, limited, for the report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from sandbox.language.facades.facade import Facade, facade_of

MAX_LOG = 64 * 1024
"Largest log that comes with one reply, in bytes of UTF-8."

_CUT = "\n[the log was cut here]\n"

_LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}


_METHODS = ("debug", "info", "warning", "error", "exception", "critical", "log")


class CappedLog:
    """Collects text up to `MAX_LOG`, then adds one note that the rest is missing."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._left = MAX_LOG - len(_CUT)
        self._muted = False

    @cached_property
    def logging(self) -> Facade:
        """The facade of the module `logging`, which writes to this log."""
        return _logging_facade(self)

    def write(self, text: str) -> None:
        """Add text; the part above the limit is lost."""
        if self._muted or self._left <= 0:
            return
        # A character takes at least one byte, so this is enough to fill the log.
        data = text[: self._left + 1].encode("utf-8", "replace")
        if len(data) > self._left:
            self._parts.append(data[: self._left].decode("utf-8", "ignore") + _CUT)
            self._left = 0
            return
        self._parts.append(data.decode("utf-8"))
        self._left -= len(data)

    def take(self) -> str:
        """Return the text written since the last call."""
        text = "".join(self._parts)
        self._parts.clear()
        self._left = MAX_LOG - len(_CUT)
        return text

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Discard text that is written inside the `with` block."""
        before, self._muted = self._muted, True
        try:
            yield
        finally:
            self._muted = before

    def print(
        self,
        *values: Any,
        sep: str | None = None,
        end: str | None = None,
        file: Any = None,
        flush: bool = False,
    ) -> None:
        """Replaces `print`."""
        between, last = " " if sep is None else sep, "\n" if end is None else end
        # A subclass of str could run code of its own when it is joined.
        if type(between) is not str or type(last) is not str:
            raise TypeError("sep and end must be None or a string")
        text = between.join(map(str, values)) + last
        if file is None:
            self.write(text)
        else:
            file.write(text)


class _Logger:
    """Replaces a logger; records of all levels go to the log."""

    __slots__ = ("_log", "_name")

    def __init__(self, log: CappedLog, name: str) -> None:
        self._log = log
        self._name = name

    def _say(self, level: str, message: Any, args: tuple[Any, ...]) -> None:
        text = str(message)
        if args:
            # The logger of the standard library treats a single mapping so.
            only = args[0] if len(args) == 1 and type(args[0]) is dict else args
            text = text % only
        self._log.write(f"{level}:{self._name}:{text}\n")

    def debug(self, message: Any, *args: Any, **kwargs: Any) -> None:
        self._say("DEBUG", message, args)

    def info(self, message: Any, *args: Any, **kwargs: Any) -> None:
        self._say("INFO", message, args)

    def warning(self, message: Any, *args: Any, **kwargs: Any) -> None:
        self._say("WARNING", message, args)

    def error(self, message: Any, *args: Any, **kwargs: Any) -> None:
        self._say("ERROR", message, args)

    def exception(self, message: Any, *args: Any, **kwargs: Any) -> None:
        self._say("ERROR", message, args)

    def critical(self, message: Any, *args: Any, **kwargs: Any) -> None:
        self._say("CRITICAL", message, args)

    def log(self, level: int, message: Any, *args: Any, **kwargs: Any) -> None:
        names = {number: name for name, number in _LEVELS.items()}
        self._say(names.get(level, f"Level {level}"), message, args)

    def setLevel(self, level: Any) -> None:
        """Ignore the level: everything is logged."""

    def addHandler(self, handler: Any) -> None:
        """Ignore the handler: there is only one log."""

    def isEnabledFor(self, level: int) -> bool:
        return True

    def getEffectiveLevel(self) -> int:
        return _LEVELS["DEBUG"]

    def getChild(self, suffix: str) -> _Logger:
        return _Logger(self._log, f"{self._name}.{suffix}")


def _logging_facade(log: CappedLog) -> Facade:
    """Return the facade of the module `logging`, writing to `log`."""

    def get_logger(name: str | None = None) -> _Logger:
        return _Logger(log, str(name or "root"))

    def accept(*args: Any, **kwargs: Any) -> None:
        """Do nothing: the only log is already set up."""

    root = get_logger()
    return facade_of(
        "logging",
        {
            **_LEVELS,
            "NOTSET": 0,
            "WARN": _LEVELS["WARNING"],
            "getLogger": get_logger,
            "basicConfig": accept,
            "NullHandler": accept,
            "StreamHandler": accept,
            "Logger": _Logger,
            **{name: getattr(root, name) for name in _METHODS},
        },
    )


LOGGING_MEMBERS = frozenset(dir(_logging_facade(CappedLog()))) - frozenset(dir(Facade))
"Names of the members of `logging`."
