"""peers: known peers and their rights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from anp.cli.client import client_of
from anp.cli.options import Json
from anp.cli.output import Column, Line, print_list, print_one, when
from anp.errors import CallError

__all__ = ["register"]

peers_app = typer.Typer(no_args_is_help=True, help="Known peers and their rights.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(peers_app, name="peers")


@peers_app.command("list")
def list_peers(context: typer.Context, as_json: Json = False) -> None:
    """List every peer that proved its DID."""
    found = client_of(context).get("/v1/peers")
    columns: dict[str, Column] = {
        "STATE": lambda one: "KEY CHANGED" if one["changed_keys"] else one["state"],
        "LAST SEEN": lambda one: when(one["last_seen"]),
        "DID": "did",
    }
    notes = [
        line
        for peer in found["peers"]
        for key in peer["changed_keys"]
        for line in (
            "",
            f"WARNING: {peer['did']} used another key than before and was refused:",
            f"  {key}",
            "  if its owner confirms the new key in another way, run",
            f"  anpd peers trust {peer['did']}",
        )
    ]
    print_list(found, found["peers"], columns, as_json=as_json, notes=notes)


@peers_app.command("show")
def show_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Show one peer, and the capabilities it offers us."""
    client = client_of(context)
    found = client.get("/v1/peers/show", peer=peer)
    try:
        offers = client.get("/v1/peers/offers", peer=peer)
    except CallError as exc:
        # Away: what is known of it is still good to see.
        offers = {"problem": exc.detail}
    told = [*_known(found), *_offered(offers)]
    print_one({**found, "offers": offers}, told, as_json=as_json)


@peers_app.command("allow")
def allow_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Let a peer call the exposed capabilities."""
    _tell(context, "allow", peer, as_json)


@peers_app.command("block")
def block_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Refuse a peer."""
    _tell(context, "block", peer, as_json)


@peers_app.command("trust")
def trust_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Accept the changed key of a peer in place of its former keys."""
    _tell(context, "trust", peer, as_json)


@peers_app.command("forget")
def forget_peer(context: typer.Context, peer: str, as_json: Json = False) -> None:
    """Delete a peer and its addresses; agreements stay."""
    _tell(context, "forget", peer, as_json)


@peers_app.command("heard")
def heard(
    context: typer.Context,
    after: Annotated[int, typer.Option(help="Only entries with a higher number.")] = 0,
    as_json: Json = False,
) -> None:
    """List messages of peers that answer no call: events, notices, announcements."""
    found = client_of(context).get("/v1/heard", after=str(after))
    # As JSON, so that nothing a peer says can steer the terminal.
    columns: dict[str, Column] = {
        "NO": "number",
        "WHEN": lambda one: when(one["at"]),
        "KIND": "kind",
        "NAME": lambda one: json.dumps(one["name"])[:40],
        "DATA": lambda one: json.dumps(one["data"])[:80],
        "DID": "peer_did",
    }
    print_list(found, found["heard"], columns, as_json=as_json)


@peers_app.command("ask")
def ask_peer(
    context: typer.Context, peer: str, question: str, as_json: Json = False
) -> None:
    """Ask a peer a question in words about its protocols."""
    body = {"peer": peer, "question": question}
    found = client_of(context).post("/v1/peers/ask", body)
    print_one(found, [found["answer"]], as_json=as_json)


def _tell(context: typer.Context, verb: str, peer: str, as_json: bool) -> None:
    found = client_of(context).post(f"/v1/peers/{verb}", {"peer": peer})
    print_one(found, _known(found), as_json=as_json)


def _known(found: dict[str, Any]) -> list[Line]:
    """Give the facts about a peer."""
    return [
        (name, when(value) if name.endswith("_seen") else value)
        for name, value in found.items()
    ]


def _offered(offers: dict[str, Any]) -> Iterator[Line]:
    """List the capabilities a peer offers, and the agreements with it."""
    if "problem" in offers:
        yield "offers", f"unknown: {offers['problem']}"
        return
    names = {
        capability["name"]: capability["description"]
        for protocol in offers["protocols"]
        for capability in protocol["capabilities"]
    }
    if not offers["publishes"]:
        yield "offers", "it publishes nothing; call it with a need in words"
    for name, description in sorted(names.items()):
        yield "offers", f"{name:<32} {' '.join(description.split())[:72]}"
    for agreement in offers["agreements"]:
        yield "agreed", f"{agreement['hash'][:12]}  {agreement['need'] or '-'}"
