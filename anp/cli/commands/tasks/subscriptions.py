"""subscriptions: tasks that times, events and places start."""

from __future__ import annotations

import time
from typing import Annotated, Any

from click import Context

from anp.cli.client import Client, client_of, segment
from anp.cli.commands.tasks.watch import TaskWatch
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.input import read_data
from anp.cli.options import Json
from anp.cli.output import Column, print_list, print_one, progress, when
from anp.errors import CallError, ErrorKind

LOOK = 1.0
"Seconds between two looks for new runs."

subscriptions_app = Commands(help="Tasks that times, events and places start.")

SubscriptionId = Annotated[
    str, Argument(metavar="SUBSCRIPTION", help="Id of the subscription.")
]
Seconds = Annotated[
    str | None, Option(metavar="TIME", help="Such as 1s, 15m, 2h or 1d.")
]
UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.add(subscriptions_app, "subscriptions")


@subscriptions_app.command("create")
def create_subscription(
    context: Context,
    peer: Annotated[str, Argument(help="Name, DID, URL or URL#DID.")],
    capability: Annotated[
        str, Argument(help="Capability; left out when the words say it.")
    ] = "",
    data: Annotated[
        str | None, Option("--data", "-d", help="Arguments: JSON, @FILE or -.")
    ] = None,
    text: Annotated[str | None, Option("--text", help="Plain words.")] = None,
    give: Annotated[
        str, Option(metavar="NAME", help="Argument that gets the occasion.")
    ] = "",
    at: Annotated[
        list[str] | None, Option(metavar="WHEN", help="Date and time.")
    ] = None,
    every: Seconds = None,
    cron: Annotated[
        str | None, Option(metavar="FIELDS", help="Such as '0 8 * * MON-FRI'.")
    ] = None,
    zone: Annotated[str, Option(help="Zone of --cron, such as Europe/Berlin.")] = "UTC",
    on: Annotated[
        list[str] | None, Option(metavar="EVENT", help="Event that is told.")
    ] = None,
    trigger: Annotated[
        list[str] | None, Option(metavar="JSON", help="Any trigger: JSON, @FILE or -.")
    ] = None,
    match_all: Annotated[
        bool, Option("--all", help="Every trigger has to be there.")
    ] = False,
    window: Seconds = None,
    condition: Annotated[
        str | None, Option(metavar="SCHEMA", help="JSON Schema of occasions.")
    ] = None,
    missed: Annotated[
        str, Option(help="Times while the daemon is away: skip, once or all.")
    ] = "skip",
    max_runs: Annotated[int | None, Option(help="Runs until it ends.")] = None,
    expires: Annotated[
        str | None, Option(metavar="WHEN", help="Date and time of its end.")
    ] = None,
    debounce: Seconds = None,
    by_peer: Annotated[
        bool, Option("--by-peer", help="Let the peer watch the triggers.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Have times, events or places start a task of a peer, and print its id."""
    triggers: list[Any] = [{"type": "time", "at": one} for one in at or []]
    if every is not None:
        triggers.append({"type": "time", "every": _seconds(every)})
    if cron is not None:
        triggers.append({"type": "time", "cron": cron, "zone": zone})
    triggers += [{"type": "event", "event": one} for one in on or []]
    triggers += [read_data(one) for one in trigger or []]
    if not triggers:
        raise CallError(
            ErrorKind.USAGE, "give --at, --every, --cron, --on or --trigger"
        )
    body: dict[str, Any] = {
        "peer": peer,
        "capability": capability,
        "give": give,
        "watcher": "peer" if by_peer else "here",
        "triggers": triggers,
        "match": "all" if match_all else "any",
        "missed": missed,
    }
    more = {
        "input": None if data is None else read_data(data),
        "text": text,
        "window": None if window is None else _seconds(window),
        "condition": None if condition is None else read_data(condition),
        "max_runs": max_runs,
        "expires": expires,
        "debounce": None if debounce is None else _seconds(debounce),
    }
    body |= {name: one for name, one in more.items() if one is not None}
    found = client_of(context).post("/v1/subscriptions", body)
    if not as_json:
        progress(f"next: anpd subscriptions watch {found['id']}")
    print_one(found, [found["id"]], as_json=as_json)


@subscriptions_app.command("list")
def list_subscriptions(
    context: Context,
    limit: Annotated[int, Option(help="Most of them, the newest first.")] = 100,
    as_json: Json = False,
) -> None:
    """List subscriptions, the newest first."""
    client = client_of(context)
    found = client.get("/v1/subscriptions", limit=str(limit))
    columns: dict[str, Column] = {
        "ID": "id",
        "STATE": lambda one: one["ended"] or "open",
        "RUNS": "runs",
        "NEXT": lambda one: when(one["next"]),
        "WATCHER": "watcher",
        "BY": "made_by",
        "CAPABILITY": lambda one: one["capability"] or "-",
        "PEER": "peer",
    }
    names = client.peer_names
    print_list(found, found["subscriptions"], columns, as_json=as_json, names=names)


@subscriptions_app.command("show")
def show_subscription(
    context: Context, subscription: SubscriptionId, as_json: Json = False
) -> None:
    """Show a subscription: its triggers, and when it is due next."""
    found = client_of(context).get(f"/v1/subscriptions/{segment(subscription)}")
    _print(found, as_json=as_json)


@subscriptions_app.command("cancel")
def cancel_subscription(
    context: Context, subscription: SubscriptionId, as_json: Json = False
) -> None:
    """End a subscription; the tasks that it started go on."""
    path = f"/v1/subscriptions/{segment(subscription)}/cancel"
    _print(client_of(context).post(path), as_json=as_json)


@subscriptions_app.command("runs")
def list_runs(
    context: Context,
    subscription: SubscriptionId,
    limit: Annotated[int, Option(help="Most runs, the newest first.")] = 100,
    as_json: Json = False,
) -> None:
    """List the runs of a subscription, each with the state of its task."""
    path = f"/v1/subscriptions/{segment(subscription)}/runs"
    found = client_of(context).get(path, limit=str(limit))
    columns: dict[str, Column] = {
        "RUN": "number",
        "AT": lambda one: when(one["at"]),
        "STATE": lambda one: one["state"] or ("no task" if one["problem"] else "-"),
        "TASK": lambda one: one["task"] or "-",
        "BECAUSE": "key",
        "PROBLEM": "problem",
    }
    print_list(found, found["runs"], columns, as_json=as_json)


@subscriptions_app.command("watch")
def watch_subscription(
    context: Context,
    subscription: SubscriptionId,
    runs: Annotated[int | None, Option(help="Runs after which watching ends.")] = None,
    after: Annotated[int, Option(help="Only runs with higher numbers.")] = 0,
    as_json: Annotated[
        bool, Option("--json", help="Print one JSON object a line.")
    ] = False,
) -> None:
    """Show the results of the runs as they come, until it has ended."""
    client = client_of(context)
    path = f"/v1/subscriptions/{segment(subscription)}"
    seen = 0
    while True:
        ended = client.get(path)["ended"]
        for run in _new_runs(client, path, after):
            progress(f"run {run['number']}: {run['key']}")
            if run["problem"]:
                progress(f"no task: {run['problem']}")
            else:
                TaskWatch(
                    lambda: client_of(context), run["task"], as_json=as_json, save=None
                ).run()
            after, seen = run["number"], seen + 1
            if runs is not None and seen >= runs:
                return
        if ended and not _new_runs(client, path, after):
            progress(f"ended: {ended}")
            return
        time.sleep(LOOK)


@subscriptions_app.command("emit")
def emit_event(
    context: Context,
    event: Annotated[str, Argument(help="Name, such as build.failed.")],
    data: Annotated[
        str | None, Option("--data", "-d", help="JSON, @FILE or -.")
    ] = None,
    name: Annotated[
        str | None, Option("--id", help="Its id; a repeat starts nothing.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell the daemon that something happened; print what that started."""
    body: dict[str, Any] = {"type": event}
    if data is not None:
        body["data"] = read_data(data)
    if name is not None:
        body["id"] = name
    found = client_of(context).post("/v1/events", body)
    print_one(found, found["started"], as_json=as_json)


def _new_runs(client: Client, path: str, after: int) -> list[dict[str, Any]]:
    """Return the runs after a number that have a task or never will, in order."""
    found = client.get(f"{path}/runs", limit="1000")["runs"]
    new = sorted(
        (one for one in found if one["number"] > after), key=lambda one: one["number"]
    )
    ready = []
    for one in new:
        if one["task"] is None and not one["problem"]:
            break
        ready.append(one)
    return ready


def _print(found: dict[str, Any], *, as_json: bool) -> None:
    given = found["subscription"]
    told = [
        ("subscription", found["id"]),
        ("state", found["ended"] or "open"),
        ("reason", found["reason"] or None),
        ("task", f"{found['capability'] or 'words'} at {found['peer']}"),
        ("watched", found["watcher"]),
        ("began", when(found["created"])),
        ("next", when(found["next"])),
        ("runs", found["runs"]),
        ("triggers", [str(one) for one in given["triggers"]]),
        ("limits", [f"{name}={given[name]}" for name in given if name != "triggers"]),
    ]
    print_one(found, told, as_json=as_json)


def _seconds(text: str) -> float:
    """Return the seconds that a text such as 15m means."""
    unit = UNITS.get(text[-1:], 0)
    try:
        return float(text[:-1] if unit else text) * (unit or 1)
    except ValueError:
        raise CallError(
            ErrorKind.USAGE, f"{text[:20]!r} is no time such as 1s, 15m, 2h or 1d"
        ) from None
