"""calls list, tap: the calls that were made and served, and those that end now."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

from click import Context

from anp.cli.client import client_of
from anp.cli.commands.protocol_actions import seconds_of
from anp.cli.grammar import Commands, Option
from anp.cli.options import Json
from anp.cli.output import (
    Column,
    call_line,
    event_line,
    outcome_of,
    print_list,
    progress,
    protocol_of,
    when,
)

calls_app = Commands(help="Calls that your agent made and served.")

Lines = Annotated[bool, Option("--json", help="Print one JSON object a line.")]


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.add(calls_app, "calls")
    app.command("tap")(tap)


@calls_app.command("list")
def list_calls(
    context: Context,
    made: Annotated[
        bool, Option("--made", help="Only calls that your agent made.")
    ] = False,
    served: Annotated[
        bool, Option("--served", help="Only calls of peers, refused ones too.")
    ] = False,
    peer: Annotated[str, Option(help="Only with this peer.")] = "",
    capability: Annotated[str, Option(help="Only of this capability.")] = "",
    protocol: Annotated[
        str, Option(help="Only through this one: URI, hash or its beginning.")
    ] = "",
    outcome: Annotated[
        str, Option(help="Only with this outcome; failed is all but good ones.")
    ] = "",
    since: Annotated[str, Option(help="Only the last 90s, 30m, 12h or 7d.")] = "",
    limit: Annotated[int, Option(min=1, max=1000, help="Most calls in a page.")] = 50,
    after: Annotated[
        str,
        Option(
            help="Start after this place, which the page before printed at its end."
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """List calls in both directions, the latest first, a page at a time."""
    if made and served:
        made = served = False
    client = client_of(context)
    options = {
        "direction": "made" if made else "served" if served else "",
        "peer": peer,
        "capability": capability,
        "protocol": protocol,
        "outcome": outcome,
        "since": _since(since),
    }
    found: list[dict[str, Any]] = []
    more: str | None = after
    while more is not None and len(found) < limit:
        wanted = {**options, "limit": str(limit - len(found)), "after": more}
        page = client.get(
            "/v1/calls", **{name: value for name, value in wanted.items() if value}
        )
        found += page["calls"]
        more = page["next"]
    columns: dict[str, Column] = {
        "TIME": lambda one: when(one["at"]),
        "DIRECTION": "direction",
        "OUTCOME": outcome_of,
        "MS": lambda one: f"{one['ms']:.0f}",
        "CAPABILITY": lambda one: one["capability"] or one["need"] or "-",
        "PROTOCOL": protocol_of,
        "SOURCE": "source",
        "MODEL CALLS": _model_calls,
        "PEER": lambda one: one["peer"] or one["asked"] or "-",
        "REASON": lambda one: one["reason"] or "-",
    }
    notes = [] if more is None else [f"next page: the same command with --after {more}"]
    answer = {"calls": found, "next": more}
    print_list(
        answer, found, columns, as_json=as_json, notes=notes, names=client.peer_names
    )


def tap(
    context: Context,
    everything: Annotated[
        bool, Option("--all", help="All events, not only calls that end.")
    ] = False,
    as_json: Lines = False,
) -> None:
    """Print each call as it ends, made or served, until Ctrl-C."""
    for event in client_of(context).events("/v1/events"):
        if not event:
            progress("following calls; Ctrl-C ends")
            continue
        is_call = event["type"] in {"call.made", "call.served"}
        if is_call and not everything:
            told = {name: one for name, one in event["data"].items() if name != "call"}
            print(json.dumps(told) if as_json else call_line(told), flush=True)
        elif everything:
            print(json.dumps(event) if as_json else event_line(event), flush=True)


def _model_calls(one: dict[str, Any]) -> str:
    """Return our model calls, and the peer's where it told them."""
    peers = one["peer_llm_calls"]
    return f"{one['llm_calls']}" if peers is None else f"{one['llm_calls']}+{peers}"


def _since(age: str) -> str:
    """Return the time that lies an age back, as the API reads it."""
    return str(max(0, int(time.time() - seconds_of(age)))) if age else ""
