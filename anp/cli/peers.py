"""peers: who we know and what they may."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from anp.cli.client import Client, home_of
from anp.cli.output import print_json, table, visible, when

__all__ = ["register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
peers_app = typer.Typer(no_args_is_help=True, help="Who we know and what they may.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(peers_app, name="peers")


@peers_app.command("list")
def list_peers(context: typer.Context, as_json: Json = False) -> None:
    """List every peer that proved its DID."""
    found = Client(home_of(context.obj)[0]).get("/v1/peers")
    if as_json:
        print_json(found)
        return
    table(
        ("STATE", "LAST SEEN", "DID"),
        ((p["state"], when(p["last_seen"]), p["did"]) for p in found["peers"]),
    )


@peers_app.command("show")
def show_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Show one peer."""
    _print(Client(home_of(context.obj)[0]).get("/v1/peers/show", peer=peer), as_json)


@peers_app.command("allow")
def allow_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Let a peer use what is exposed."""
    _tell(context, "allow", peer, as_json)


@peers_app.command("block")
def block_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Refuse a peer."""
    _tell(context, "block", peer, as_json)


@peers_app.command("forget")
def forget_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Forget a peer and where it was met; agreements stay."""
    _tell(context, "forget", peer, as_json)


@peers_app.command("ask")
def ask_peer(
    context: typer.Context, peer: str, question: str, as_json: Json = False
) -> None:
    """Ask a peer about its protocols, in words."""
    client = Client(home_of(context.obj)[0])
    found = client.post("/v1/peers/ask", {"peer": peer, "question": question})
    if as_json:
        print_json(found)
        return
    print(visible(found["answer"]))


def _tell(context: typer.Context, what: str, peer: str, as_json: bool) -> None:
    client = Client(home_of(context.obj)[0])
    _print(client.post(f"/v1/peers/{what}", {"peer": peer}), as_json)


def _print(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        shown = when(value) if name.endswith("_seen") else value
        print(f"{name:<11} {shown}")
