"""attachments: what is attached, and how it is doing."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from anp.cli.client import Client, home_of
from anp.cli.output import print_json, table, visible
from anp.errors import CallError, ErrorKind
from anp.sidecar.home.home import Home

__all__ = ["register", "tell_daemon"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
attachments_app = typer.Typer(no_args_is_help=True, help="What is attached.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(attachments_app, name="attachments")


@attachments_app.command("list")
def list_attachments(context: typer.Context, as_json: Json = False) -> None:
    """List what is attached and how it is doing."""
    found = Client(home_of(context.obj)[0]).get("/v1/info")["attachments"]
    if as_json:
        print_json({"attachments": found})
        return
    table(
        ("NAME", "KIND", "HEALTH", "CAPABILITIES", "EXPOSED", "PROBLEM"),
        (
            (
                each["name"],
                each["kind"],
                "well" if each["healthy"] else "DOWN",
                each["capabilities"],
                ", ".join(each["expose"]) or "none",
                each["problem"] or "",
            )
            for each in found
        ),
    )
    for each in found:
        for reason in each["skipped"]:
            print(
                f"left out of {each['name']}: {visible(reason)[:200]}", file=sys.stderr
            )


@attachments_app.command("remove")
def remove(context: typer.Context, name: str, as_json: Json = False) -> None:
    """Take an attachment away again."""
    from anp.sidecar.attachments import remove_attachment

    home, _ = home_of(context.obj)
    if not remove_attachment(home.attachments, name):
        raise CallError(
            ErrorKind.USAGE,
            f"{home.attachments} has no attachment {name}; one in the configuration "
            "is removed there",
        )
    running = tell_daemon(home)
    if as_json:
        print_json({"removed": name, "daemon": running})
        return
    print(f"removed {name}; daemon {running}")


def tell_daemon(home: Home) -> str:
    """Tell a running daemon to read its attachments again; return what came of it."""
    if not home.is_running():
        return "not running"
    Client(home).post("/v1/reload")
    return "reloaded"
