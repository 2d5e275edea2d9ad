"""The tokens of the callers of the A2A face: a file of the home with their hashes."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.home.home import Home, write_atomic

logger = logging.getLogger(__name__)

FILE: Final = "a2a-tokens.json"
"Name of the file in the home."

GATEWAY_FILE: Final = "a2a-gateway-tokens.json"
"The same for the local agents that use the gateway."
USES: Final = "a2a-token-uses.json"
"Name of the file that says when each was used last."

USE_AGE: Final = 60.0
"Seconds after which a new use of a token is written."

MAX_FILE: Final = 4 * 1024 * 1024
"Largest file that is read, in bytes."


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    expose: tuple[str, ...] | None = None
    expires: float | None = None


_ENTRIES: Final = TypeAdapter(list[_Entry])
_USES: Final = TypeAdapter(dict[str, float])


class TokenBook:
    """Knows the callers by their tokens; the file is read again when it changed."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._on_change: Callable[[], None] = _nothing
        self._stamp: tuple[int, int] | None = None
        self._callers: dict[str, A2aCaller] = {}
        self._uses: dict[str, float] = {}
        self._noted: dict[str, float] = {}

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` whenever the file has other callers than before."""
        self._on_change = on_change

    def find(self, headers: Mapping[str, str]) -> A2aCaller | None:
        """Return who has the bearer token of a request, or None."""
        token = bearer_of(headers)
        # The hash of a guess tells nothing by the time that a look-up of it takes.
        return self._counting(_hash(token)) if token else None

    def counts(self, grant: str) -> bool:
        """Return whether the token of this hash is neither revoked nor expired."""
        return self._counting(grant) is not None

    def _counting(self, grant: str) -> A2aCaller | None:
        caller = self._read().get(grant)
        if caller is None or caller.expires is None:
            return caller
        return caller if self._clock() < caller.expires else None

    def known(self) -> list[A2aCaller]:
        """Return the callers as they were when the file was read last."""
        return list(self._callers.values())

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

    # Uses stand in a file of their own: the tokens are written by commands alone.

    def note_use(self, name: str) -> bool:
        """Note that a caller sent a request; return whether `write_uses` is due."""
        now = self._clock()
        self._uses[name] = now
        if now - self._noted.get(name, 0.0) < USE_AGE:
            return False
        self._noted[name] = now
        return True

    def write_uses(self) -> None:
        """Write when each caller sent its last request; it blocks."""
        found = self.uses() | self._uses
        kept = {one.name: found[one.name] for one in self.known() if one.name in found}
        try:
            write_atomic(self._uses_path, json.dumps(kept).encode())
        except OSError as exc:
            logger.warning("uses of tokens not written reason=%s", exc)

    def uses(self) -> dict[str, float]:
        """Return the Unix time of each caller's last request, as far as is written."""
        try:
            with self._uses_path.open("rb") as file:
                return _USES.validate_json(file.read(MAX_FILE))
        except (OSError, ValidationError):
            return {}

    @property
    def _uses_path(self) -> Path:
        return self._path.with_name(USES)

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
            one.sha256: A2aCaller(
                name=one.name, expose=one.expose, expires=one.expires, grant=one.sha256
            )
            for one in entries
        }
        return self._take(callers, stamp)

    def _take(
        self, callers: dict[str, A2aCaller], stamp: tuple[int, int] | None
    ) -> dict[str, A2aCaller]:
        is_new = callers != self._callers
        self._callers, self._stamp = callers, stamp
        if is_new:
            self._on_change()
        return callers

    def _write(self, callers: Mapping[str, A2aCaller]) -> None:
        entries = [
            {
                "name": one.name,
                "sha256": known,
                "expose": one.expose,
                "expires": one.expires,
            }
            for known, one in callers.items()
        ]
        write_atomic(self._path, json.dumps(entries, indent=1).encode())
        self._stamp = None


def token_book(home: Home, *, gateway: bool = False) -> TokenBook:
    """Return the tokens of a home: those of callers, or of users of the gateway."""
    return TokenBook(home.path / (GATEWAY_FILE if gateway else FILE))


def bearer_of(headers: Mapping[str, str]) -> str:
    """Return the bearer token of a request, empty for none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _nothing() -> None:
    pass


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
