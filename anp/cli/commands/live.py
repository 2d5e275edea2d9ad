"""negotiations watch, and the progress of a call: live events as lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from anp.cli.client import Client, client_of, problem_error, segment
from anp.cli.commands.negotiations import negotiations_app
from anp.cli.output import event_line, progress

__all__ = ["follow_call", "line_of", "register"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]


def register(app: typer.Typer) -> None:
    """Add the command of this file to its group, which `app` has already."""
    negotiations_app.command("watch")(watch_negotiations)


def watch_negotiations(
    context: typer.Context,
    negotiation: Annotated[
        str,
        typer.Argument(
            metavar="[ID]",
            help="Id of one negotiation, or its first characters; all without it.",
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Watch negotiations live; with an id, until that one has ended."""
    client = client_of(context)
    wanted = None
    events = client.events("/v1/events")
    if negotiation:
        # The stream is open before the question, so that no event falls between.
        next(events)
        found = client.get(f"/v1/negotiations/{segment(negotiation)}")
        wanted = found["id"]
        if not found["running"]:
            progress(f"negotiation {wanted} ended: {found['outcome']}")
            return
    _print(_negotiations(events, wanted), as_json=as_json)


def follow_call(client: Client, body: dict[str, Any]) -> Any:
    """Call a peer and show a line on stderr for each step; Ctrl-C cancels it.

    Raises:
        CallError: There is no result.
    """
    call = client.post("/v1/calls", body, Prefer="respond-async")
    path = f"/v1/calls/{call['id']}"
    try:
        for event in client.events(f"{path}/events"):
            line = line_of(event) if event else None
            if line is not None:
                progress(f"  {line}")
            if event.get("type") == "call.waiting":
                break
        call = client.get(path)
        if call["state"] == "waiting":
            # The word of the owner is kept; the same command asks again.
            return client.take_back(call)
    except KeyboardInterrupt:
        # Its end says if the peer may have begun with it.
        call = client.post(f"{path}/cancel")
    if call["result"] is not None:
        return call["result"]
    raise problem_error(call["problem"])


def line_of(event: dict[str, Any]) -> str | None:
    """Return an event of a call as a line for people, or None for those left out."""
    data = event["data"]
    match event["type"]:
        case "call.progress":
            return f"{data['ms'] / 1000:6.2f} s  {data['what']}"
        case "negotiation.turn":
            who = "we" if data["direction"] == "sent" else "the peer"
            words = [f"proposal {data['proposal']}", who, data["status"]]
            if data["lines_added"] or data["lines_removed"]:
                words.append(f"+{data['lines_added']} -{data['lines_removed']} lines")
            if data["summary"]:
                words.append(" ".join(data["summary"].split())[:100])
            words.append(f"{data['seconds']:.2f} s, {data['tokens']} tokens")
            return f"          {', '.join(words)}"
        case "negotiation.waiting":
            return (
                f"          waits for your decision: anpd approvals show {data['id']}"
            )
        case "call.waiting":
            return f"          {data['detail']}"
    return None


def _negotiations(
    events: Iterable[dict[str, Any]], wanted: str | None
) -> Iterator[dict[str, Any]]:
    for event in events:
        if not event or not event["type"].startswith("negotiation."):
            continue
        if wanted in {None, event["data"]["id"]}:
            yield event
            if wanted is not None and event["type"] == "negotiation.ended":
                return


def _print(events: Iterable[dict[str, Any]], *, as_json: bool) -> None:
    for event in events:
        if event:
            print(json.dumps(event) if as_json else event_line(event), flush=True)
