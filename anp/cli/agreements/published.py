"""protocols published|publish|unpublish: agreed protocols under URIs (ANP-95)."""

from __future__ import annotations

from typing import Annotated

import typer

from anp.cli.agreements.protocols import protocols_app
from anp.cli.client import Client, home_of
from anp.cli.output import print_json, table, visible

__all__ = ["register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Uri = Annotated[
    str,
    typer.Option(help="A URI of yours, of this version alone; it is never fetched."),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file to `protocols`; they are there on import."""


@protocols_app.command("published")
def published(context: typer.Context, as_json: Json = False) -> None:
    """List the protocols that are known by a URI, and which peers are shown."""
    found = Client(home_of(context.obj)[0]).get("/v1/consensus")
    if as_json:
        print_json(found)
        return
    table(
        ("HASH", "VERSION", "CODE", "LISTED", "URI", "SUMMARY"),
        (
            (
                one["hash"][:12],
                one["version"],
                one["code"] or "-",
                "yes" if one["published"] else "served" if one["served"] else "no",
                visible(one["uri"]),
                visible(one["problem"] or one["summary"]),
            )
            for one in found["protocols"]
        ),
    )
    if not found["publishes"]:
        print("the list is not served; consensus.publish = true serves it to anybody")


@protocols_app.command("publish")
def publish(
    context: typer.Context,
    digest: Annotated[str, typer.Argument(metavar="HASH", help="Or its beginning.")],
    uri: Uri,
    version: Annotated[str, typer.Option(help="For people.")] = "1.0",
    summary: Annotated[str, typer.Option(help="One line for people.")] = "",
    as_json: Json = False,
) -> None:
    """Put an agreed protocol under a URI, so that others need not negotiate."""
    found = Client(home_of(context.obj)[0]).post(
        "/v1/consensus/publish",
        {"protocol": digest, "uri": uri, "version": version, "summary": summary},
    )
    if as_json:
        print_json(found)
        return
    where = (
        "in the list that peers read"
        if found["listed"]
        else "served to who names it; the list is off (consensus.publish)"
    )
    print(f"{found['hash'][:12]} is {visible(found['uri'])} now, {where}")


@protocols_app.command("unpublish")
def unpublish(context: typer.Context, uri: Uri, as_json: Json = False) -> None:
    """Take a URI back; agreements that came of it stay."""
    found = Client(home_of(context.obj)[0]).post(
        "/v1/consensus/unpublish", {"uri": uri}
    )
    if as_json:
        print_json(found)
        return
    print(f"{visible(found['uri'])} is taken back; {found['hash'][:12]} stays agreed")
