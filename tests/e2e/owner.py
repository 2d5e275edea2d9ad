"""The local API as its owner uses it: with the token of scope `owner`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from anp.sidecar.api.app import make_app
from anp.sidecar.api.guard import Door
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home


def owner_api(daemon: Daemon) -> httpx.AsyncClient:
    """Return a client of the API of a daemon in this process, for the owner."""
    app = make_app(daemon, door=Door(owner_token="owner"))
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://anpd",
        headers={"authorization": "Bearer owner"},
    )


def owner_headers(home: Path) -> dict[str, str]:
    """Return the headers with which the owner asks the daemon of a home."""
    return {"authorization": f"Bearer {Home(home).read_owner().token}"}


def owner_client(home: Path, **more: Any) -> httpx.Client:
    """Return a client of the owner's socket of a daemon that runs."""
    transport = httpx.HTTPTransport(uds=Home(home).read_owner().socket)
    return httpx.Client(
        transport=transport, base_url="http://anpd", headers=owner_headers(home), **more
    )
