"""The tokens of the callers of the A2A face: a file of the home with their hashes."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from anp.sidecar.a2a.callers import A2aCaller
from anp.sidecar.home.home import Home, write_atomic

__all__ = ["TokenBook", "token_book"]

logger = logging.getLogger(__name__)

FILE: Final = "a2a-tokens.json"
"Name of the file in the home."

GATEWAY_FILE: Final = "a2a-gateway-tokens.json"
"The same for the local agents that use the gateway."

MAX_FILE: Final = 4 * 1024 * 1024
"Largest file that is read, in bytes."


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    expose: tuple[str, ...] | None = None


_ENTRIES: Final = TypeAdapter(list[_Entry])

Changed = Callable[[Mapping[str, tuple[str, ...]]], None]
"Told what is exposed to single callers, by their ids."


class TokenBook:
    """Knows the callers by their tokens; the file is read again when it changed."""

    def __init__(self, path: Path, on_change: Changed | None = None) -> None:
        self._path = path
        self._on_change = on_change
        self._stamp: tuple[int, int] | None = None
        self._callers: dict[str, A2aCaller] = {}

    def find(self, headers: Mapping[str, str]) -> A2aCaller | None:
        """Return who has the bearer token of a request, or None."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        # The hash of a guess tells nothing by the time that a look-up of it takes.
        return self._read().get(_hash(token.strip()))

    def callers(self) -> list[A2aCaller]:
        """Return everybody who has a token, by name."""
        return sorted(self._read().values(), key=lambda one: one.name)

    def add(self, caller: A2aCaller, token: str) -> None:
        """Store a caller with its token; it replaces one of that name."""
        callers = {
            known: one for known, one in self._read().items() if one.name != caller.name
        }
        callers[_hash(token)] = caller
        self._write(callers)

    def revoke(self, name: str) -> bool:
        """Drop a caller; False if there is none of that name."""
        callers = self._read()
        kept = {known: one for known, one in callers.items() if one.name != name}
        if len(kept) == len(callers):
            return False
        self._write(kept)
        return True

    def _read(self) -> dict[str, A2aCaller]:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return self._take({}, None)
        stamp = found.st_mtime_ns, found.st_ino
        if stamp == self._stamp:
            return self._callers
        try:
            with self._path.open("rb") as file:
                entries = _ENTRIES.validate_json(file.read(MAX_FILE), strict=False)
        except (OSError, ValidationError) as exc:
            # Nobody is let in by what cannot be read.
            logger.error("tokens not read file=%s reason=%s", self._path, type(exc))
            return self._take({}, stamp)
        callers = {
            one.sha256: A2aCaller(name=one.name, expose=one.expose) for one in entries
        }
        return self._take(callers, stamp)

    def _take(
        self, callers: dict[str, A2aCaller], stamp: tuple[int, int] | None
    ) -> dict[str, A2aCaller]:
        is_new = callers != self._callers
        self._callers, self._stamp = callers, stamp
        if is_new and self._on_change is not None:
            self._on_change(
                {
                    one.id: one.expose
                    for one in callers.values()
                    if one.expose is not None
                }
            )
        return callers

    def _write(self, callers: Mapping[str, A2aCaller]) -> None:
        entries = [
            {"name": one.name, "sha256": known, "expose": one.expose}
            for known, one in callers.items()
        ]
        write_atomic(self._path, json.dumps(entries, indent=1).encode())
        self._stamp = None


def token_book(
    home: Home, on_change: Changed | None = None, *, gateway: bool = False
) -> TokenBook:
    """Return the tokens of a home: those of callers, or of users of the gateway."""
    return TokenBook(home.path / (GATEWAY_FILE if gateway else FILE), on_change)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
