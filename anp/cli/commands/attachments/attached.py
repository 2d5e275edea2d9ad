"""attachments: the attached programs, listed and removed."""

from __future__ import annotations

from typing import Any

from click import Context

from anp.cli.client import Client, client_of, home_of, load_settings, segment
from anp.cli.grammar import Commands
from anp.cli.input import read_data
from anp.cli.options import Capability, Data, Json
from anp.cli.output import Column, Settings, print_json, print_list, print_one, progress
from anp.errors import CallError, ErrorKind
from anp.sidecar.home.home import Home

attachments_app = Commands(help="Attached programs: list, remove.")


@attachments_app.command("list")
def list_attachments(context: Context, as_json: Json = False) -> None:
    """List the attachments and their states; without a daemon, what is saved."""
    home, _ = home_of(context.obj)
    if home.is_running():
        found = Client(home).get("/v1/info")["attachments"]
    else:
        found = _saved(context.obj, home)
    columns: dict[str, Column] = {
        "NAME": "name",
        "KIND": "kind",
        "HEALTH": lambda each: HEALTH[each["healthy"]],
        "CAPABILITIES": lambda each: _shown(each["capabilities"]),
        "EXPOSED": lambda each: each["expose"] or "none",
        "PROBLEM": lambda each: each["problem"] or "",
    }
    print_list({"attachments": found}, found, columns, as_json=as_json)
    for each in () if as_json else found:
        for reason in each["skipped"]:
            progress(f"left out of {each['name']}: {reason[:200]}")


HEALTH = {True: "ok", False: "DOWN", None: "-"}
"Words for the health of an attachment; None is while no daemon runs."


def _shown(count: int | None) -> str:
    return "-" if count is None else str(count)


def _saved(settings: Settings, home: Home) -> list[dict[str, Any]]:
    """Return the attachments of the owner's files, as the API would list them."""
    from anp.sidecar.attachments import load_attachments

    specs = (*load_settings(settings).attach, *load_attachments(home.attachments))
    return [
        {
            "name": spec.name,
            "kind": spec.kind,
            "healthy": None,
            "problem": "the daemon is not running",
            "skipped": [],
            "capabilities": None,
            "expose": list(spec.expose),
        }
        for spec in specs
    ]


@attachments_app.command("remove")
def remove(context: Context, name: str, as_json: Json = False) -> None:
    """Remove an attachment."""
    from anp.sidecar.attachments import remove_attachment

    home, _ = home_of(context.obj)
    if not remove_attachment(home.attachments, name):
        raise CallError(
            ErrorKind.USAGE,
            f"{home.attachments} has no attachment {name}; if it is in the "
            "configuration, remove it there",
        )
    daemon = tell_daemon(home)
    print_one(
        {"removed": name, "daemon": daemon},
        [f"removed {name}; daemon {daemon}"],
        as_json=as_json,
    )


def tell_daemon(home: Home) -> str:
    """Have a running daemon read its attachments again; return what came of it."""
    if not home.is_running():
        return "not running"
    Client(home).post("/v1/reload")
    return "reloaded"


# capabilities: the attached capabilities, listed, shown and tried.


capabilities_app = Commands(help="Attached capabilities: list, show, test.")


@capabilities_app.command("list")
def list_capabilities(context: Context, as_json: Json = False) -> None:
    """List the capabilities of all attachments."""
    found = client_of(context).get("/v1/capabilities")
    columns: dict[str, Column] = {
        "CAPABILITY": "name",
        "EXPOSED": _exposed,
        "READ-ONLY": lambda each: "yes" if each["read_only"] else "no",
        "DESCRIPTION": "description",
    }
    print_list(found, found["capabilities"], columns, as_json=as_json)


@capabilities_app.command("show")
def show_capability(context: Context, name: Capability, as_json: Json = False) -> None:
    """Show one capability with its schemas."""
    for capability in client_of(context).get("/v1/capabilities")["capabilities"]:
        if name in (capability["name"], capability["name"].partition(".")[2]):
            print_json(capability)
            return
    raise CallError(ErrorKind.USAGE, f"no capability is called {name}")


@capabilities_app.command("test")
def try_capability(
    context: Context, name: Capability, data: Data = "{}", as_json: Json = False
) -> None:
    """Call one exposed capability as a peer would, without a protocol."""
    path = f"/v1/capabilities/{segment(name)}/test"
    found = client_of(context).post(path, {"input": read_data(data)})
    print_json(found if as_json else found["output"])


def _exposed(capability: dict[str, Any]) -> str:
    if capability["exposed"]:
        return "yes"
    peers = capability.get("exposed_to")
    return f"to {', '.join(peers)}" if peers else "no"
