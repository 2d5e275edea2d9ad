"""status: the state of a daemon on one screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from click import Context

from anp.cli.client import client_of, home_of
from anp.cli.commands.running.decisions import Waiting, find_waiting, ways
from anp.cli.grammar import Commands
from anp.cli.options import Json
from anp.cli.output import Line, print_one, shown_did, when


def register(app: Commands) -> None:
    """Add the command of this file."""
    app.command("status")(status)


def status(context: Context, as_json: Json = False) -> None:
    """Show if a daemon runs, its peers, what it exposes, and what waits for you."""
    client = client_of(context)
    home, _ = home_of(context.obj)
    info = client.get("/v1/info")
    linked = [
        {"did": one["did"], "names": one["names"]}
        for one in client.get("/v1/peers", limit="1000")["peers"]
        if one["connected"]
    ]
    exposed = [
        one["name"]
        for one in client.get("/v1/capabilities")["capabilities"]
        if one["exposed"] or one.get("exposed_to")
    ]
    waiting = find_waiting(client)
    answer = {
        "running": True,
        "home": str(home.path),
        "pid": home.read_api().pid,
        "version": info["version"],
        "started": info["started"],
        "address": info["address"],
        "connected": linked,
        "exposed": exposed,
        "attachments": info["attachments"],
        "waiting": [asdict(one) for one in waiting],
    }
    print_one(answer, _told(answer, waiting), as_json=as_json)


def _told(answer: dict[str, Any], waiting: list[Waiting]) -> Iterator[Line]:
    yield "daemon", f"runs since {when(answer['started'])}, process {answer['pid']}"
    yield "version", answer["version"]
    yield "home", answer["home"]
    yield "address", answer["address"]
    peers = [(*one["names"], shown_did(one["did"]))[0] for one in answer["connected"]]
    yield "connected", peers or "to no peer"
    for one in answer["attachments"]:
        if not one["healthy"]:
            yield "attachment", f"{one['name']} is DOWN: {one['problem']}"
    exposed = answer["exposed"]
    yield "exposed", exposed or "nothing (anpd attach, anpd expose)"
    if not waiting:
        yield "waiting", "nothing waits for your decision"
    for one in waiting:
        yield "waiting", f"{one.kind} {shown_did(one.id)}: {one.text}"
    if waiting:
        yield from (("", way) for way in ways(waiting))
