"""dashboard: a link to the owner's pages."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from anp.cli.client import Client, home_of
from anp.cli.output import print_json

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("dashboard")(dashboard)


def dashboard(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print a link that opens the dashboard in one browser of this machine, once."""
    made = Client(home_of(context.obj)[0]).post("/v1/dashboard", {})
    if as_json:
        print_json(made)
        return
    print(made["link"])
    minutes = made["expires_in"] / 60
    print(
        f"good once, for {minutes:.0f} minutes; the browser stays signed in for 12 h",
        file=sys.stderr,
    )
