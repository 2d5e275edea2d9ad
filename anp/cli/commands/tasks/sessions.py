"""sessions: the conversations that tasks belong to."""

from __future__ import annotations

from typing import Annotated

from click import Context

from anp.cli.client import client_of, segment
from anp.cli.commands.tasks.tasks import print_tasks
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.options import Json
from anp.cli.output import Column, print_bytes, print_list, print_one, when
from anp.interaction.elements import party_name

sessions_app = Commands(help="Conversations that tasks belong to.")

SessionId = Annotated[str, Argument(metavar="SESSION", help="Id of the session.")]


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.add(sessions_app, "sessions")


@sessions_app.command("list")
def list_sessions(
    context: Context,
    limit: Annotated[int, Option(help="Most sessions, the newest first.")] = 100,
    as_json: Json = False,
) -> None:
    """List sessions, the newest first."""
    found = client_of(context).get("/v1/sessions", limit=str(limit))
    columns: dict[str, Column] = {
        "ID": "id",
        "BEGAN": lambda one: when(one["created"]),
        "CHANGED": lambda one: when(one["changed"]),
        "BY": "made_by",
        "STATE": lambda one: "open" if one["open"] else "closed",
        "BUSY": lambda one: "yes" if one["busy"] else "no",
        "EVENTS": "events",
        "BYTES": "size",
    }
    print_list(found, found["sessions"], columns, as_json=as_json)


@sessions_app.command("outbox")
def list_outbox(
    context: Context,
    retry: Annotated[
        bool, Option("--retry", help="Try all again, dead letters too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the news that wait for peers which want them brought to an address."""
    client = client_of(context)
    found = client.post("/v1/outbox/retry") if retry else client.get("/v1/outbox")
    columns: dict[str, Column] = {
        "SESSION": "session",
        "PEER": "peer",
        "ADDRESS": "address",
        "EVENTS": "waiting",
        "SINCE": lambda one: when(one["since"]),
        "STATE": lambda one: "DEAD" if one["dead"] else "waits",
        "PROBLEM": "problem",
    }
    names = client.peer_names
    print_list(found, found["letters"], columns, as_json=as_json, names=names)


@sessions_app.command("show")
def show_session(context: Context, session: SessionId, as_json: Json = False) -> None:
    """Show a session with its parties and tasks."""
    client = client_of(context)
    found = client.get(f"/v1/sessions/{segment(session)}")
    told = [
        ("session", found["id"]),
        ("state", "open" if found["open"] else "closed"),
        ("began", when(found["created"])),
        ("requester", party_name(found["requester"]["id"])),
        ("participants", [one["id"] for one in found["participants"]]),
        ("events", found["events"]),
    ]
    print_one(found, told, as_json=as_json)
    if not as_json:
        print()
        print_tasks(found, found["tasks"], client)


@sessions_app.command("export")
def export_session(context: Context, session: SessionId) -> None:
    """Print everything that is kept of a session, one JSON object a line."""
    print_bytes(client_of(context).get_bytes(f"/v1/sessions/{segment(session)}/export"))


@sessions_app.command("close")
def close_session(context: Context, session: SessionId, as_json: Json = False) -> None:
    """End a session of ours; its open tasks are asked to end."""
    found = client_of(context).post(f"/v1/sessions/{segment(session)}/close")
    print_one(found, [f"session {found['id']} is closed"], as_json=as_json)


@sessions_app.command("delete")
def delete_session(context: Context, session: SessionId, as_json: Json = False) -> None:
    """Delete what is kept here of a session that has no open tasks."""
    found = client_of(context).post(f"/v1/sessions/{segment(session)}/delete")
    print_one(found, [f"session {found['id']} is deleted here"], as_json=as_json)
