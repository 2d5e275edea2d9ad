"""peers: who we know and what they may."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from anp.cli.client import Client, home_of
from anp.cli.output import print_json, table, visible, when
from anp.errors import CallError

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
        ((_state(p), when(p["last_seen"]), p["did"]) for p in found["peers"]),
    )
    for peer in found["peers"]:
        for key in peer["changed_keys"]:
            print(f"\nWARNING: {peer['did']} came with another key and was refused:")
            print(f"  {key}\n  if its owner confirms it by another way, run")
            print(f"  anpd peers trust {peer['did']}")


@peers_app.command("show")
def show_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Show one peer, and what it offers us."""
    client = Client(home_of(context.obj)[0])
    found = client.get("/v1/peers/show", peer=peer)
    try:
        offers = client.get("/v1/peers/offers", peer=peer)
    except CallError as exc:
        # Away: what is known of it is still good to see.
        offers = {"problem": exc.detail}
    if as_json:
        print_json({**found, "offers": offers})
        return
    _print(found, as_json=False)
    if "problem" in offers:
        print(f"{'offers':<11} unknown: {visible(offers['problem'])}")
        return
    names = {
        capability["name"]: capability["description"]
        for protocol in offers["protocols"]
        for capability in protocol["capabilities"]
    }
    if not offers["publishes"]:
        print(f"{'offers':<11} it publishes nothing; call it with what you want")
    for name, description in sorted(names.items()):
        line = " ".join(description.split())[:72]
        print(f"{'offers':<11} {visible(name):<32} {visible(line)}")
    for agreement in offers["agreements"]:
        task = visible(agreement["task"] or "-")
        print(f"{'agreed':<11} {agreement['hash'][:12]}  {task}")


@peers_app.command("allow")
def allow_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Let a peer use what is exposed."""
    _tell(context, "allow", peer, as_json)


@peers_app.command("block")
def block_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Refuse a peer."""
    _tell(context, "block", peer, as_json)


@peers_app.command("trust")
def trust_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Take the changed key of a peer as its own, in place of those it had."""
    _tell(context, "trust", peer, as_json)


@peers_app.command("forget")
def forget_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Forget a peer and where it was met; agreements stay."""
    _tell(context, "forget", peer, as_json)


@peers_app.command("heard")
def heard(
    context: typer.Context,
    after: Annotated[int, typer.Option(help="Only what has a higher number.")] = 0,
    as_json: Json = False,
) -> None:
    """List what peers told unasked: events, notices, announcements."""
    found = Client(home_of(context.obj)[0]).get("/v1/heard", after=str(after))
    if as_json:
        print_json(found)
        return
    # As JSON, so that nothing a peer says can steer the terminal.
    table(
        ("NO", "WHEN", "KIND", "NAME", "DATA", "DID"),
        (
            (
                one["number"],
                when(one["at"]),
                one["kind"],
                json.dumps(one["name"])[:40],
                json.dumps(one["data"])[:80],
                one["peer_did"],
            )
            for one in found["heard"]
        ),
    )


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


def _state(peer: dict[str, Any]) -> str:
    return "KEY CHANGED" if peer["changed_keys"] else str(peer["state"])


def _print(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        shown = when(value) if name.endswith("_seen") else value
        print(f"{name:<11} {shown}")
