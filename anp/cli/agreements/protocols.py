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
def list_protocols(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 100,
    after: Annotated[
        str, typer.Option(help="Go on there; the end of a page says where.")
    ] = "",
    peer: Annotated[str, typer.Option(help="Only with this peer.")] = "",
    role: Annotated[str, typer.Option(help="requester or provider.")] = "",
    state: Annotated[
        str,
        typer.Option(help="active, testing, failed, stale, revoked or quarantined."),
    ] = "",
    as_json: Json = False,
) -> None:
    """List agreements, a page at a time."""
    client = Client(home_of(context.obj)[0])
    options = {"peer": peer, "role": role, "state": state}
    found: list[dict[str, Any]] = []
    more: str | None = after
    page: dict[str, Any] = {}
    while more is not None and len(found) < limit:
        wanted = {**options, "limit": str(limit - len(found)), "after": more}
        page = client.get(
            "/v1/protocols", **{name: value for name, value in wanted.items() if value}
        )
        found += page["protocols"]
        more = page["next"]
    if as_json:
        print_json({"protocols": found, "next": more, "usage": page["usage"]})
        return
    table(
        (
            *("HASH", "ROLE", "STATE", "ORIGIN", "USES", "LAST USED", "TESTED"),
            *("PEER", "TASK"),
        ),
        (
            (
                p["hash"][:12],
                p["role"],
                p["state"],
                p["origin"],
                p["uses"],
                when(p["last_used"]),
                tested(p["last_run"]),
                p["peer"] or "any",
                p["task"],
            )
            for p in found
        ),
    )
    for p in found:
        if p["reason"]:
            print(f"{p['hash'][:12]} {p['state']}: {visible(p['reason'])}")
    print(usage_line(page["usage"]))
    if more is not None:
        again = " ".join(
            f"--{name} {value}" for name, value in options.items() if value
        )
        print(
            f"there are more: anpd protocols list {again}{' ' if again else ''}"
            f"--after '{visible(more)}'"
        )


def tested(run: dict[str, Any] | None) -> str:
    """Return in a few words how the last test run ended."""
    if run is None:
        return "-"
    return f"{'passed' if run['passed'] else 'FAILED'} {when(run['at'])}"


def share(usage: dict[str, Any]) -> str:
    """Return the share of calls without negotiation, for people."""
    rate = usage["hit_rate"]
    return "-" if rate is None else f"{100 * rate:.1f} %"


def usage_line(usage: dict[str, Any]) -> str:
    """Return counts of calls in one line."""
    return (
        f"calls through protocols: {usage['calls']}, {share(usage)} of them without "
        f"negotiation; in words {usage['natural_language']}, failed {usage['failed']}, "
        f"served {usage['served']}"
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
            # Not all of it is ours: nothing in it may act on the terminal.
            for line in half["source"].split("\n"):
                print(visible(line))
        return
    print(f"hash  {found['hash']}")
    for uri in found["uris"]:
        print(f"uri   {visible(uri)}")
    print(usage_line(found["usage"]))
    for one in found["revocations"]:
        whom = visible(one["peer"] or "all peers")
        why = f": {visible(one['reason'])}" if one["reason"] else ""
        print(f"revoked for {whom} {when(one['at'])}{why}")
    print()
    for agreement in found["agreements"]:
        _print_agreement(agreement)
    for half in found["halves"]:
        _print_half(half)
    for what in ("runs", "trials"):
        _print_runs(what, found[what])
    short = found["hash"][:12]
    if any(agreement["state"] == "failed" for agreement in found["agreements"]):
        print(f"\nto have it agreed anew at once: anpd protocols release {short}")
    if found["quarantined"]:
        print(f"\nquarantined: {found['quarantined']}")
    if found["quarantined"] or found["revocations"]:
        print(f"to use it again: anpd protocols approve {short}")
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
    from anp.sidecar.bundles.format import MAX_BUNDLE

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


def _print_agreement(agreement: dict[str, Any]) -> None:
    """Print what was settled with one peer, and how it does."""
    times = ("created", "last_used")
    for name in ("role", "peer", "task", "state", "samples", "uses", *times):
        value = agreement[name]
        shown = when(value) if name in times else visible(str(value))
        print(f"{name.replace('_', ' '):<10}{shown}")
    if agreement["negotiation_id"]:
        print(f"{'from':<10}anpd negotiations show {agreement['negotiation_id']}")
    if agreement["cases"]:
        print(f"{'cases':<10}{visible(agreement['cases'])}")
    run = agreement["last_run"]
    if run is not None:
        outcome = visible(str(run["outcome"]))
        print(f"{'tested':<10}{tested(run)} ({visible(str(run['mode']))}): {outcome}")
    if agreement["reason"]:
        print(f"{agreement['state']}: {visible(agreement['reason'])}")
    print()


def _print_half(half: dict[str, Any]) -> None:
    """Print a half and where it came from."""
    calls = ", ".join(half["capabilities"]) or "no capability"
    by = half["origin"] + (f" {half['model']}" if half["model"] else "")
    print(
        f"{half['role']} half, revision {half['revision']}, {half['state']}, by "
        f"{visible(by)}, {when(half['created'])}, {half['agreements']} agreements, "
        f"calls {visible(calls)}"
    )
    if half["reason"]:
        print(f"  {half['state']}: {visible(half['reason'])}")
    if half["negotiation_id"]:
        print(f"  from negotiation {half['negotiation_id']}")
    if half["bundle"]:
        print(f"  from the bundle with SHA-256 {half['bundle']}")
    claims = half["claims"]
    if claims is not None:
        said = ", ".join(
            f"{name} {when(value) if isinstance(value, float) else value}"
            for name, value in claims.items()
            if isinstance(value, str | float)
        )
        print(f"  which says of itself: {visible(said)}")


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
            f"{where}: {visible(failure['reason'])}"
        )
        for finding in failure.get("findings", ()):
            print(f"    line {finding['line']}: {visible(finding['reason'])}")
            print(f"      {visible(finding['source'].strip())}")
    if runs["log"]:
        print("  printed, the end:")
        for line in runs["log"].splitlines()[-10:]:
            print(f"    {visible(line)}")


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
