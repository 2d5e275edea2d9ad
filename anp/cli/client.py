"""Asks the daemon of a home over its local API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from anp.cli.output import Settings
from anp.errors import CallError, ErrorKind
from anp.sidecar.home import Home, find_home

if TYPE_CHECKING:
    import httpx

__all__ = ["Client", "home_of", "segment"]


def segment(text: str) -> str:
    """Return `text` as one segment of a path, whatever the user typed."""
    return quote(text, safe="")


def home_of(settings: Settings) -> tuple[Home, bool]:
    """Return the home that the options mean, and whether it was named."""
    return find_home(Path(settings.home) if settings.home else None)


class Client:
    """One daemon's local API."""

    def __init__(self, home: Home) -> None:
        # Imported on first use, so that `--help` stays fast.
        import httpx

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

    def get_bytes(self, path: str, **params: str) -> bytes:
        """Return the bytes at `path`."""
        return self._ask("GET", path, params=params).content

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Post JSON and return the answer."""
        return self._ask("POST", path, json=body if body is not None else {}).json()

    def post_bytes(self, path: str, body: bytes, **params: str) -> Any:
        """Post the bytes of a JSON file as they are, and return the answer."""
        headers = {"content-type": "application/json"}
        return self._ask(
            "POST", path, content=body, headers=headers, params=params
        ).json()

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        import httpx

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
            may_have_run = problem.get("may_have_run") is True
            after = problem.get("retry_after")
            retry_after = float(after) if isinstance(after, int | float) else None
        except (ValueError, KeyError, TypeError):
            raise CallError(
                ErrorKind.UNEXPECTED, f"the daemon answered {answer.status_code}"
            ) from None
        raise CallError(
            kind, detail, may_have_run=may_have_run, retry_after=retry_after
        )
