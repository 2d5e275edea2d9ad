"""capabilities: what the owner looks into."""

from __future__ import annotations

from typing import Annotated

import typer

from anp.cli.client import Client, home_of, segment
from anp.cli.commands.daemon import read_data
from anp.cli.output import print_json, table
from anp.errors import CallError, ErrorKind

__all__ = ["register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
capabilities_app = typer.Typer(no_args_is_help=True, help="What peers can be offered.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(capabilities_app, name="capabilities")


@capabilities_app.command("list")
def list_capabilities(context: typer.Context, as_json: Json = False) -> None:
    """List every attached capability."""
    found = Client(home_of(context.obj)[0]).get("/v1/capabilities")
    if as_json:
        print_json(found)
        return
    table(
        ("CAPABILITY", "EXPOSED", "READ-ONLY", "DESCRIPTION"),
        (
            (
                c["name"],
                "yes" if c["exposed"] else "no",
                "yes" if c["read_only"] else "no",
                c["description"],
            )
            for c in found["capabilities"]
        ),
    )


@capabilities_app.command("show")
def show_capability(context: typer.Context, name: str, as_json: Json = False) -> None:
    """Show one capability with its schemas."""
    found = Client(home_of(context.obj)[0]).get("/v1/capabilities")["capabilities"]
    for capability in found:
        if name in (capability["name"], capability["name"].partition(".")[2]):
            print_json(capability)
            return
    raise CallError(ErrorKind.USAGE, f"no capability is called {name}")


@capabilities_app.command("test")
def try_capability(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Its full name, or the short one.")],
    data: Annotated[
        str, typer.Option("--data", "-d", help="JSON, @file or - for stdin.")
    ] = "{}",
    as_json: Json = False,
) -> None:
    """Call one exposed capability as a peer would, without a protocol."""
    client = Client(home_of(context.obj)[0])
    found = client.post(
        f"/v1/capabilities/{segment(name)}/test", {"input": read_data(data)}
    )
    print_json(found if as_json else found["output"])
