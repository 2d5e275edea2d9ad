"""protocols: what was agreed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from anp.cli.client import Client, home_of, segment
from anp.cli.output import print_json, table, visible, when
from anp.errors import CallError, ErrorKind

__all__ = ["register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
WHY_UNUSED = {
    "failed": "its agreed test cases fail with this peer, so it is not used",
    "testing": "its test cases came to no end yet, so it is not used",
}
"States of agreements that are not used because of their test cases."

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
                p["peer"] or "any",
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
        if agreement["cases"]:
            print(f"{'cases':<8} {visible(agreement['cases'])}")
        if agreement["state"] in WHY_UNUSED:
            print(f"{agreement['state']}: {WHY_UNUSED[agreement['state']]}")
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
    if any(agreement["state"] == "failed" for agreement in found["agreements"]):
        print(f"\nto have it agreed anew at once: anpd protocols release {short}")
    if found["quarantined"]:
        print(f"\nquarantined: {found['quarantined']}")
        print(f"to use it again: anpd protocols release {short}")
    print(f"\nmore: anpd protocols show {short} --document | --code")


@protocols_app.command("export")
def export_protocol(
    context: typer.Context,
    digest: Annotated[str, typer.Argument(metavar="HASH", help="Or its beginning.")],
    role: Annotated[
        str, typer.Option(help="requester or provider; both when left out.")
    ] = "",
    peer: Annotated[str, typer.Option(help="The peer whose revision is meant.")] = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A file; else stdout.")
    ] = None,
    with_did: Annotated[
        bool, typer.Option("--with-did", help="Say in it who exported it.")
    ] = False,
    without_tests: Annotated[
        bool, typer.Option("--without-tests", help="Leave out tests and their data.")
    ] = False,
) -> None:
    """Write a protocol and our halves of it into a bundle."""
    options = {"role": role, "peer": peer, "did": "1" if with_did else ""}
    options["tests"] = "0" if without_tests else ""
    data = Client(home_of(context.obj)[0]).get_bytes(
        f"/v1/protocols/{segment(digest)}/export",
        **{name: value for name, value in options.items() if value},
    )
    if output is not None:
        output.write_bytes(data)
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@protocols_app.command("import")
def import_protocol(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A bundle; - for stdin.")],
    peer: Annotated[
        str, typer.Option(help="Only for this peer: name, DID or URL#DID.")
    ] = "",
    role: Annotated[
        str, typer.Option(help="Only this half: requester or provider.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Try the halves of a bundle, and use them from the next channel on."""
    options = {"role": role, "peer": peer}
    found = Client(home_of(context.obj)[0]).post_bytes(
        "/v1/protocols/import",
        _bundle(file),
        **{name: value for name, value in options.items() if value},
    )
    if as_json:
        print_json(found)
        return
    for half in found["halves"]:
        peers = ", ".join(half["peers"]) or "any peer"
        print(
            f"imported {found['hash'][:12]}, {half['role']} half, revision "
            f"{half['revision']}, for {visible(peers)}"
        )
    print("calls in flight end with the code they began with; new ones use this one")


def _bundle(file: Path) -> bytes:
    """Read a bundle, and not much more than the largest there is."""
    from anp.sidecar.bundle_format import MAX_BUNDLE

    if str(file) == "-":
        data = sys.stdin.buffer.read(MAX_BUNDLE + 1)
    else:
        with file.open("rb") as stream:
            data = stream.read(MAX_BUNDLE + 1)
    if len(data) > MAX_BUNDLE:
        raise CallError(
            ErrorKind.USAGE, f"{file} has more than {MAX_BUNDLE} bytes; no bundle does"
        )
    return data


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
    """Use a quarantined protocol again, or have one whose cases failed agreed anew."""
    client = Client(home_of(context.obj)[0])
    found = client.post(f"/v1/protocols/{segment(digest)}/release", {})
    what = "released" if found["released"] else "was not held back"
    print(f"{found['hash'][:12]} {what}")
