"""Asks the daemon of a home over its local API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from anp.cli.output import Settings
from anp.errors import CallError, ErrorKind
from anp.sidecar.home import Home, find_home

__all__ = ["Client", "home_of"]


def home_of(settings: Settings) -> tuple[Home, bool]:
    """Return the home that the options mean, and whether it was named."""
    return find_home(Path(settings.home) if settings.home else None)


class Client:
    """One daemon's local API."""

    def __init__(self, home: Home) -> None:
        address = home.read_api()
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=address.socket),
            base_url="http://anpd",
            timeout=None,
        )
        self._home = home

    def get(self, path: str, **params: str) -> Any:
        """Return the JSON at `path`."""
        return self._ask("GET", path, params=params).json()

    def get_bytes(self, path: str) -> bytes:
        """Return the bytes at `path`."""
        return self._ask("GET", path).content

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Post JSON and return the answer."""
        return self._ask("POST", path, json=body if body is not None else {}).json()

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **options)
        except httpx.HTTPError as exc:
            raise CallError(
                ErrorKind.DAEMON_UNREACHABLE,
                f"the daemon of {self._home.path} does not answer ({exc}); start it "
                f"with: anpd --home {self._home.path} up",
            ) from exc
        if answer.is_success:
            return answer
        try:
            problem = answer.json()
            kind = ErrorKind(problem["kind"])
            detail = str(problem["detail"])
        except (ValueError, KeyError, TypeError):
            raise CallError(
                ErrorKind.UNEXPECTED, f"the daemon answered {answer.status_code}"
            ) from None
        raise CallError(kind, detail)
