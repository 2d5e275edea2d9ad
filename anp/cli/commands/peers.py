"""peers: known peers and their rights."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Annotated, Any

from click import Context

from anp.cli.client import client_of
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.input import read_data
from anp.cli.options import Json, PeerWord
from anp.cli.output import Column, Line, Settings, print_list, print_one, when
from anp.errors import CallError

peers_app = Commands(help="Known peers and their rights.")


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.add(peers_app, "peers")


@peers_app.command("list")
def list_peers(context: Context, as_json: Json = False) -> None:
    """List every known peer: its names, how it does, the last contact, and where."""
    found = client_of(context).get("/v1/peers")
    columns: dict[str, Column] = {
        "NAME": lambda one: one["names"],
        "STATE": lambda one: "KEY CHANGED" if one["changed_keys"] else one["state"],
        "HEALTH": lambda one: one["health"],
        "VERSION": lambda one: one["version"] or "-",
        "MS": lambda one: "-" if one["latency_ms"] is None else one["latency_ms"],
        "FAILED": lambda one: f"{one['failed']}/{one['answered'] + one['failed']}",
        "LAST CONTACT": lambda one: (
            "connected" if one["connected"] else when(one["last_seen"])
        ),
        "ADDRESS": lambda one: one["urls"][0] if one["urls"] else None,
        "DID": "did",
    }
    unmet = [
        {
            **one,
            "names": [one["name"]],
            "urls": [one["url"]],
            "did": None,
            "state": "never met",
            "last_seen": None,
            "connected": False,
            "changed_keys": [],
            "health": "unknown" if one["problem"] is None else "away",
            "version": None,
            "latency_ms": None,
            "answered": 0,
            "failed": 0,
        }
        for one in found["unmet"]
    ]
    rows = [*found["peers"], *unmet]
    notes = [line for peer in rows for line in _warnings(peer)]
    print_list(found, rows, columns, as_json=as_json, notes=notes)


@peers_app.command("find")
def find_peers(
    context: Context,
    capability: Annotated[str, Argument(help="Full or short name.")],
    as_json: Json = False,
) -> None:
    """List who publishes a capability: those that --find tries, and others."""
    found = client_of(context).get("/v1/peers/find", capability=capability)
    columns: dict[str, Column] = {
        "PEER": "address",
        "CAPABILITY": "capability",
        "HEALTH": "health",
        "MS": lambda one: "-" if one["latency_ms"] is None else one["latency_ms"],
        "AT WORK": "at_work",
    }
    notes = [line for one in found["announced"] for line in _unlisted(one)]
    print_list(found, found["peers"], columns, as_json=as_json, notes=notes)


@peers_app.command("add")
def add_peer(
    context: Context,
    name: Annotated[str, Argument(help="Name for it, as in `anpd call NAME`.")],
    peer: Annotated[
        str, Argument(help="DID, URL, or URL#DID as its `anpd up` prints it.")
    ],
    as_json: Json = False,
) -> None:
    """Give a peer a name; it gets no rights by that."""
    found = client_of(context).post("/v1/peers/add", {"name": name, "peer": peer})
    told: list[Line] = [
        *((key, found[key]) for key in ("name", "did", "url")),
        "",
        f"its capabilities: {shlex.join([*_anpd(context), 'peers', 'describe', name])}",
    ]
    print_one(found, told, as_json=as_json)


@peers_app.command("remove")
def remove_peer(context: Context, name: str, as_json: Json = False) -> None:
    """Remove a name from the address book; the peer and its rights stay."""
    found = client_of(context).post("/v1/peers/remove", {"name": name})
    print_one(found, [f"removed the name {name}"], as_json=as_json)


@peers_app.command("describe")
def describe_peer(context: Context, peer: PeerWord, as_json: Json = False) -> None:
    """Ask a peer for its capabilities, and show a command that calls each."""
    found = client_of(context).get("/v1/peers/describe", peer=peer)
    command = [*_anpd(context), "call", peer]
    print_one(found, _described(found, command), as_json=as_json)


@peers_app.command("show")
def show_peer(context: Context, peer: PeerWord, as_json: Json = False) -> None:
    """Show one peer, and the capabilities it offers us."""
    client = client_of(context)
    try:
        offers = client.get("/v1/peers/offers", peer=peer)
    except CallError as exc:
        # Away: what is known of it is still good to see.
        offers = {"problem": exc.detail}
    found = client.get("/v1/peers/show", peer=peer)
    told = [*_known(found), *_offered(offers)]
    print_one({**found, "offers": offers}, told, as_json=as_json)


@peers_app.command("allow")
def allow_peer(context: Context, peer: PeerWord, as_json: Json = False) -> None:
    """Let a peer call the exposed capabilities."""
    _tell(context, "allow", peer, as_json)


@peers_app.command("block")
def block_peer(context: Context, peer: PeerWord, as_json: Json = False) -> None:
    """Refuse a peer."""
    _tell(context, "block", peer, as_json)


@peers_app.command("trust")
def trust_peer(context: Context, peer: PeerWord, as_json: Json = False) -> None:
    """Accept the changed key of a peer in place of its former keys."""
    _tell(context, "trust", peer, as_json)


@peers_app.command("forget")
def forget_peer(context: Context, peer: PeerWord, as_json: Json = False) -> None:
    """Delete a peer and its addresses; agreements stay."""
    _tell(context, "forget", peer, as_json)


@peers_app.command("tell")
def tell_peers(
    context: Context,
    event: Annotated[str, Argument(help="Name of the event.")],
    data: Annotated[
        str, Option("--data", "-d", help="JSON, @FILE, or - for standard input.")
    ] = "{}",
    to: Annotated[
        list[str] | None,
        Option(metavar="PEER", help="Only this peer; again for more of them."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Send an event to all allowed peers that listen; they show it as `heard`."""
    body: dict[str, Any] = {"name": event, "data": read_data(data)}
    if to:
        body["peers"] = to
    found = client_of(context).post("/v1/peers/tell", body)
    columns: dict[str, Column] = {
        "PEER": "peer",
        "SENT": lambda one: "yes" if one["sent"] else "no",
        "REASON": lambda one: one["reason"] or "-",
    }
    print_list(found, found["peers"], columns, as_json=as_json)


@peers_app.command("heard")
def heard(
    context: Context,
    after: Annotated[int, Option(help="Only entries with a higher number.")] = 0,
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
    context: Context, peer: PeerWord, question: str, as_json: Json = False
) -> None:
    """Ask a peer a question in words about its protocols."""
    body = {"peer": peer, "question": question}
    found = client_of(context).post("/v1/peers/ask", body)
    print_one(found, [found["answer"]], as_json=as_json)


def _anpd(context: Context) -> list[str]:
    """Return the first words of a command that asks this daemon."""
    settings: Settings = context.obj
    return ["anpd", *(["--home", settings.home] if settings.home else [])]


def _unlisted(one: dict[str, Any]) -> Iterator[str]:
    """Tell of a peer that only a registry knows, below the list."""
    yield ""
    yield f"a registry tells of {json.dumps(one['name'])} at {one['url']}"
    yield f"  anpd peers allow {one['did']}"


def _warnings(peer: dict[str, Any]) -> Iterator[str]:
    """Say what is wrong with a peer, below the list."""
    for key in peer["changed_keys"]:
        yield ""
        yield f"WARNING: {peer['did']} used another key than before and was refused:"
        yield f"  {key}"
        yield "  if its owner confirms the new key in another way, run"
        yield f"  anpd peers trust {peer['did']}"
    if peer["problem"] is not None:
        name = (*peer["names"], *peer["urls"], peer["did"])[0]
        yield ""
        yield f"{name} was not reached at {when(peer['problem_at'])}:"
        yield f"  {peer['problem']}"


def _described(found: dict[str, Any], command: list[str]) -> Iterator[Line]:
    """Give each capability with its schemas and the command that calls it.

    Args:
        command: Words of the command up to the peer.
    """
    yield "did", found["peer_did"]
    yield "address", found["url"]
    if not found["publishes"]:
        yield ""
        yield "it does not tell us its capabilities; call it with a need in words"
    elif not found["capabilities"]:
        yield ""
        yield "it offers us nothing"
    for one in found["capabilities"]:
        marks = [name for name in ("read_only", "idempotent") if one[name]]
        words = [f"({mark.replace('_', '-')})" for mark in marks]
        yield ""
        yield " ".join([one["name"], *words])
        for line in one["description"].splitlines():
            yield f"  {line}"
        for side in ("input", "output"):
            schema = json.dumps(one[f"{side}_schema"], ensure_ascii=False)
            yield f"  {side:<6}  {schema}"
        data = json.dumps(one["example"], ensure_ascii=False)
        needs = [one["name"], *(["-d", data] if one["example"] else [])]
        yield f"  {shlex.join([*command, *needs])}"


def _tell(context: Context, verb: str, peer: str, as_json: bool) -> None:
    found = client_of(context).post(f"/v1/peers/{verb}", {"peer": peer})
    print_one(found, _known(found), as_json=as_json)


def _known(found: dict[str, Any]) -> list[Line]:
    """Give the facts about a peer."""
    times = ("_seen", "_at")
    return [
        (name, when(value) if name.endswith(times) else value)
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
