"""protocols: what was agreed."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from anp.cli.client import Client, home_of, segment
from anp.cli.output import print_json, table, when

__all__ = ["register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
protocols_app = typer.Typer(no_args_is_help=True, help="What was agreed with whom.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(protocols_app, name="protocols")


@protocols_app.command("list")
def list_protocols(context: typer.Context, as_json: Json = False) -> None:
    """List every agreement."""
    found = Client(home_of(context.obj)[0]).get("/v1/protocols")
    if as_json:
        print_json(found)
        return
    table(
        ("HASH", "ROLE", "STATE", "ORIGIN", "USES", "CREATED", "PEER", "TASK"),
        (
            (
                p["hash"][:12],
                p["role"],
                "quarantined" if p["quarantined"] else p["state"],
                p["origin"],
                p["uses"],
                when(p["created"]),
                p["peer"],
                p["task"],
            )
            for p in found["protocols"]
        ),
    )


@protocols_app.command("show")
def show_protocol(
    context: typer.Context,
    digest: Annotated[str, typer.Argument(metavar="HASH", help="Or its beginning.")],
    document: Annotated[
        bool, typer.Option("--document", help="The agreed text, byte for byte.")
    ] = False,
    code: Annotated[bool, typer.Option("--code", help="Our halves.")] = False,
    as_json: Json = False,
) -> None:
    """Show one protocol."""
    client = Client(home_of(context.obj)[0])
    path = f"/v1/protocols/{segment(digest)}"
    if document:
        sys.stdout.buffer.write(client.get_bytes(f"{path}/document"))
        sys.stdout.buffer.flush()
        return
    found = client.get(path)
    if as_json:
        print_json(found)
        return
    if code:
        for half in found["halves"]:
            print(f"# {half['role']} half, revision {half['revision']}")
            print(half["source"])
        return
    print(f"hash  {found['hash']}\n")
    for agreement in found["agreements"]:
        for name in ("role", "peer", "task", "state", "samples", "uses", "created"):
            value = agreement[name]
            print(f"{name:<8} {when(value) if name == 'created' else value}")
        print()
    for half in found["halves"]:
        calls = ", ".join(half["capabilities"]) or "no capability"
        print(
            f"{half['role']} half, revision {half['revision']}, by {half['origin']}, "
            f"calls {calls}"
        )
    for what in ("runs", "trials"):
        _print_runs(what, found[what])
    short = found["hash"][:12]
    if found["quarantined"]:
        print(f"\nquarantined: {found['quarantined']}")
        print(f"to use it again: anpd protocols release {short}")
    print(f"\nmore: anpd protocols show {short} --document | --code")


def _print_runs(what: str, runs: dict[str, Any]) -> None:
    """Print the outcomes since the daemon started, and the latest failures."""
    if not runs["outcomes"]:
        return
    counts = ", ".join(f"{name} {n}" for name, n in sorted(runs["outcomes"].items()))
    print(f"\n{what} since the start: {counts}")
    for failure in runs["failures"]:
        where = f" line {failure['line']}" if "line" in failure else ""
        print(
            f"  {failure['outcome']} {failure.get('function', failure['stage'])}"
            f"{where}: {failure['reason']}"
        )
        for finding in failure.get("findings", ()):
            print(f"    line {finding['line']}: {finding['reason']}")
            print(f"      {finding['source'].strip()}")
    if runs["log"]:
        print("  printed, the end:")
        for line in runs["log"].splitlines()[-10:]:
            print(f"    {line}")


@protocols_app.command("release")
def release_protocol(
    context: typer.Context,
    digest: Annotated[str, typer.Argument(metavar="HASH", help="Or its beginning.")],
) -> None:
    """End the quarantine of a protocol."""
    client = Client(home_of(context.obj)[0])
    found = client.post(f"/v1/protocols/{segment(digest)}/release", {})
    what = "released" if found["released"] else "was not in quarantine"
    print(f"{found['hash'][:12]} {what}")
