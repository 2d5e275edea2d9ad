"""The tokens of the callers of the A2A face: a file of the home with their hashes."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anp.sidecar.a2a.callers import A2aCaller
from anp.sidecar.home.home import write_atomic

__all__ = ["TokenBook"]


class TokenBook:
    """Knows the callers by their tokens; the file is read again when it changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._callers: dict[str, A2aCaller] = {}

    def find(self, headers: Mapping[str, str]) -> A2aCaller | None:
        """Return who has the bearer token of a request, or None."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        wanted = hashlib.sha256(token.strip().encode()).hexdigest()
        found = None
        for known, caller in self._read().items():
            if hmac.compare_digest(known, wanted):
                found = caller
        return found

    def exposed(self) -> dict[str, tuple[str, ...]]:
        """Return what is exposed to single callers, by their ids."""
        callers = self._read().values()
        return {one.id: one.expose for one in callers if one.expose is not None}

    def add(self, caller: A2aCaller, token: str) -> None:
        """Store a caller with its token; it replaces one of that name."""
        callers = {
            known: one for known, one in self._read().items() if one.name != caller.name
        }
        callers[hashlib.sha256(token.encode()).hexdigest()] = caller
        self._write(callers)

    def revoke(self, name: str) -> bool:
        """Drop a caller; False if there is none of that name."""
        callers = self._read()
        kept = {known: one for known, one in callers.items() if one.name != name}
        self._write(kept)
        return len(kept) < len(callers)

    def _read(self) -> dict[str, A2aCaller]:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._callers, self._stamp = {}, None
            return self._callers
        stamp = found.st_mtime_ns, found.st_size
        if stamp != self._stamp:
            entries: list[dict[str, Any]] = json.loads(self._path.read_bytes())
            self._callers = {
                one["sha256"]: A2aCaller(
                    name=one["name"],
                    expose=None if one["expose"] is None else tuple(one["expose"]),
                )
                for one in entries
            }
            self._stamp = stamp
        return self._callers

    def _write(self, callers: Mapping[str, A2aCaller]) -> None:
        entries = [
            {"name": one.name, "sha256": known, "expose": one.expose}
            for known, one in callers.items()
        ]
        write_atomic(self._path, json.dumps(entries, indent=1).encode())
        self._stamp = None
