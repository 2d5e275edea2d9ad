"""reload, health: what whoever operates a daemon asks of it."""

from __future__ import annotations

import http.client
import json
import socket
import sys
from typing import Annotated, Any

import typer

from anp.cli.client import Client, home_of
from anp.cli.output import Settings, print_json, visible
from anp.errors import CallError, ErrorKind
from anp.sidecar.home.home import Home

__all__ = ["register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

PROBE_TIMEOUT = 5.0
"Seconds until a daemon that says nothing counts as dead."

MAX_ANSWER = 64 * 1024


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("reload")(reload)
    app.command("health")(health)


def reload(context: typer.Context, as_json: Json = False) -> None:
    """Have a running daemon read its configuration and attachments again."""
    settings: Settings = context.obj
    home, _ = home_of(settings)
    found = Client(home).post("/v1/reload")
    if as_json:
        print_json(found)
        return
    names = ", ".join(found["attachments"]) or "none"
    print(visible(f"attachments  started anew: {names}"))
    print(visible(f"in effect    {', '.join(found['applied']) or 'no other setting'}"))
    if found["restart"]:
        print(
            visible(f"anpd: these need a restart: {', '.join(found['restart'])}"),
            file=sys.stderr,
        )


def health(
    context: typer.Context,
    live: Annotated[bool, typer.Option("--live", help="Only whether it runs.")] = False,
    as_json: Json = False,
) -> None:
    """Ask a daemon how it is; 0 when it can take calls, for probes."""
    home, _ = home_of(context.obj)
    status, found = _ask(home, "/livez" if live else "/readyz")
    if as_json:
        print_json(found)
    else:
        print(visible(str(found.get("status", "unknown"))))
        for name, part in found.get("parts", {}).items():
            print(visible(f"{name:<12} {part['state']:<9} {part['text']}"))
    if status != 200:
        raise CallError(
            ErrorKind.DAEMON_UNREACHABLE,
            f"the daemon of {home.path} runs and is not ready; see above",
        )


def _ask(home: Home, path: str) -> tuple[int, dict[str, Any]]:
    """Ask over the socket with the standard library alone: a probe has to be cheap."""
    address = home.read_api()
    connection = http.client.HTTPConnection("anpd", timeout=PROBE_TIMEOUT)
    try:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(PROBE_TIMEOUT)
        connection.sock = link
        link.connect(address.socket)
        connection.request("GET", path)
        answer = connection.getresponse()
        found = json.loads(answer.read(MAX_ANSWER))
    except (OSError, ValueError, http.client.HTTPException) as exc:
        raise CallError(
            ErrorKind.DAEMON_UNREACHABLE,
            f"the daemon of {home.path} does not answer ({exc}); see its log",
        ) from exc
    finally:
        connection.close()
    return answer.status, found
