"""capabilities: the attached capabilities, listed, shown and tried."""

from __future__ import annotations

from typing import Any

from click import Context

from anp.cli.client import client_of, segment
from anp.cli.grammar import Commands
from anp.cli.input import read_data
from anp.cli.options import Capability, Data, Json
from anp.cli.output import Column, print_json, print_list
from anp.errors import CallError, ErrorKind

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
    context: Context,
    name: Capability,
    data: Data = "{}",
    as_json: Json = False,
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
