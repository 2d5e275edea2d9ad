"""protocols approve|revoke|test|diff|prune|usage: a word, and a closer look."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from typing import Annotated, Any, Final

import typer

from anp.cli.agreements.protocols import protocols_app, share, usage_line
from anp.cli.client import Client, home_of, segment
from anp.cli.output import print_json, visible
from anp.errors import CallError, ErrorKind

__all__ = ["changes", "register", "seconds_of"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Hash = Annotated[str, typer.Argument(metavar="HASH", help="Or its beginning.")]
Peer = Annotated[
    str, typer.Option(help="Only for this peer: name, DID or URL#DID; else for all.")
]

MAX_DIFF_LINES: Final = 20_000
"Lines of both sides together; longer texts take too long to compare."

UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
"Seconds of each unit of an age."

PLURALS: Final = {"agreement": "agreements", "half": "halves", "document": "texts"}

ROLES: Final = ("requester", "provider")


def register(app: typer.Typer) -> None:
    """Add the commands of this file to `protocols`; they are there on import."""


@protocols_app.command("revoke")
def revoke(
    context: typer.Context,
    digest: Hash,
    peer: Peer = "",
    reason: Annotated[str, typer.Option(help="For yourself; it is never sent.")] = "",
    as_json: Json = False,
) -> None:
    """Take a protocol back: close its channels, decline it, agree it no more."""
    body = {"peer": peer, "reason": reason}
    found = Client(home_of(context.obj)[0]).post(
        f"/v1/protocols/{segment(digest)}/revoke",
        {name: value for name, value in body.items() if value},
    )
    if as_json:
        print_json(found)
        return
    short = found["hash"][:12]
    what = "revoked" if found["revoked"] else "was revoked before"
    print(f"{short} {what} {_whom(found)}; {found['channels_closed']} channels closed")
    print(f"to allow it again: anpd protocols approve {short}")


@protocols_app.command("approve")
def approve(
    context: typer.Context, digest: Hash, peer: Peer = "", as_json: Json = False
) -> None:
    """Allow what you revoked, what is in quarantine, or what waits for your word."""
    found = Client(home_of(context.obj)[0]).post(
        f"/v1/protocols/{segment(digest)}/approve", {"peer": peer} if peer else {}
    )
    if as_json:
        print_json(found)
        return
    short, said = found["hash"][:12], False
    if found["revocation_ended"]:
        said = True
        print(f"{short} may be used again {_whom(found)}")
    if found["quarantine_ended"]:
        said = True
        print(f"{short} is out of quarantine")
    for name in found["negotiations_accepted"]:
        said = True
        print(f"negotiation {name} has your word; the next call goes on with it")
    if not said:
        print(f"nothing held {short} back {_whom(found)}")
        print(f"what it is: anpd protocols show {short}")


@protocols_app.command("test")
def run_tests(
    context: typer.Context,
    digest: Hash,
    peer: Annotated[
        str, typer.Option(help="With this peer, over the wire; else by ourselves.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Run the agreed test cases again; exit code 11 when one fails."""
    found = Client(home_of(context.obj)[0]).post(
        f"/v1/protocols/{segment(digest)}/test", {"peer": peer} if peer else {}
    )
    if as_json:
        print_json(found)
    else:
        for run in found["runs"]:
            _print_run(run)
    if not found["passed"]:
        short = found["hash"][:12]
        error = CallError(
            ErrorKind.GENERATED_CODE,
            f"the tests of {short} failed; it is still used: `anpd protocols revoke "
            f"{short}` ends that",
        )
        if not as_json:
            raise error
        # The answer is on stdout already; only the line and the code are left to say.
        typer.echo(f"anpd: {error.detail}", err=True)
        raise typer.Exit(11)


@protocols_app.command("diff")
def diff(
    context: typer.Context,
    one: Annotated[
        str, typer.Argument(metavar="A", help="HASH, HASH:ROLE or HASH:ROLE:REVISION.")
    ],
    other: Annotated[str, typer.Argument(metavar="B", help="The same.")],
    as_json: Json = False,
) -> None:
    """Compare two documents, or two halves or revisions of one, line by line."""
    client = Client(home_of(context.obj)[0])
    (old_name, old), (new_name, new) = _text(client, one), _text(client, other)
    lines = changes(old, new, names=(old_name, new_name))
    if as_json:
        print_json({"a": old_name, "b": new_name, "equal": old == new, "diff": lines})
        return
    for line in lines:
        # Of peers and models: nothing in it may act on the terminal.
        print(visible(line))
    if old == new:
        print(f"{old_name} and {new_name} are the same")


@protocols_app.command("prune")
def prune(
    context: typer.Context,
    older_than: Annotated[
        str, typer.Option(help="Unused, failed, stale or revoked since: 90d, 12h, 2w.")
    ] = "90d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Drop nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Drop what was not used for long; never what is in use or published."""
    found = Client(home_of(context.obj)[0]).post(
        "/v1/protocols/prune",
        {"older_than": seconds_of(older_than), "dry_run": dry_run},
    )
    if as_json:
        print_json(found)
        return
    verb = "would drop" if found["dry_run"] else "dropped"
    for removed in found["removed"]:
        of_whom = [removed["role"] or "", _revision(removed), removed["peer"] or ""]
        what = " ".join(part for part in of_whom if part)
        print(
            f"{verb} {removed['kind']} {removed['hash'][:12]} "
            f"{visible(what)}: {visible(removed['why'])} "
            f"({removed['bytes']} bytes)"
        )
    counts = Counter(found["counts"])
    left = counts.total() - len(found["removed"])
    if left > 0:
        print(f"and {left} more")
    if not counts:
        print(f"nothing is older than {visible(older_than)} and unused")
        return
    kinds = ", ".join(
        f"{n} {PLURALS.get(name, name)}" for name, n in sorted(counts.items())
    )
    print(f"{verb} {kinds}: {found['bytes']} bytes")


@protocols_app.command("usage")
def usage(context: typer.Context, as_json: Json = False) -> None:
    """Say how many calls needed a negotiation, and how many did not."""
    found = Client(home_of(context.obj)[0]).get("/v1/protocols/usage")
    if as_json:
        print_json(found)
        return
    print(usage_line(found))
    print(
        f"through agreements {found['agreement']}, by URI {found['consensus']}, "
        f"negotiated {found['negotiated']}, without negotiation {share(found)}"
    )


def seconds_of(age: str) -> float:
    """Return the seconds of an age such as `90d`.

    Raises:
        CallError: `usage`, it is none.
    """
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([smhdw])", age.strip())
    if match is None:
        raise CallError(
            ErrorKind.USAGE,
            f"{age[:40]!r} is no age: write a number and s, m, h, d or w, such as 90d",
        )
    return float(match[1]) * UNITS[match[2]]


def changes(old: str, new: str, *, names: tuple[str, str]) -> list[str]:
    """Return a unified diff, empty when both are the same.

    Raises:
        CallError: `usage`, they are too long to compare.
    """
    if old == new:
        return []
    # Only at line feeds, so that any other character stays and is seen.
    before, after = old.split("\n"), new.split("\n")
    if len(before) + len(after) > MAX_DIFF_LINES:
        raise CallError(
            ErrorKind.USAGE,
            f"the two have over {MAX_DIFF_LINES} lines; write them into files with "
            "`anpd protocols show HASH --document` and compare those",
        )
    return list(difflib.unified_diff(before, after, *names, lineterm=""))


def _text(client: Client, wanted: str) -> tuple[str, str]:
    """Return a name and the text of a document or half."""
    prefix, *rest = wanted.removeprefix("sha256:").split(":")
    if not rest:
        data = client.get_bytes(f"/v1/protocols/{segment(prefix)}/document")
        return f"{prefix[:12]} document", data.decode("utf-8", errors="replace")
    if rest[0] not in ROLES or len(rest) > 2 or not all(r.isdigit() for r in rest[1:]):
        raise CallError(
            ErrorKind.USAGE,
            f"{wanted[:100]!r}: write HASH, HASH:requester, HASH:provider or "
            "HASH:ROLE:REVISION",
        )
    found = client.get(f"/v1/protocols/{segment(prefix)}/code", role=rest[0])
    revisions = {str(half["revision"]): half for half in found["halves"]}
    known = ", ".join(revisions) or "none"
    if len(rest) == 2:
        half = revisions.get(str(int(rest[1][:9])))
    else:
        used = [half for half in found["halves"] if half["agreements"]]
        half = (used or found["halves"] or [None])[-1]
    if half is None:
        raise CallError(
            ErrorKind.USAGE,
            f"there is no such {rest[0]} half of {prefix[:12]}; revisions held here: "
            f"{known}",
        )
    short = found["hash"][:12]
    return f"{short} {rest[0]} revision {half['revision']}", str(half["source"])


def _print_run(run: dict[str, Any]) -> None:
    verdict = "passed" if run["passed"] else "FAILED"
    print(
        f"{verdict} {run['role']} half, revision {run['revision']}, "
        f"{visible(run['peer'] or 'any peer')}: {run['mode']}, {run['cases']} cases"
    )
    for one in run["results"]:
        mark = "ok  " if one.get("passed") is True else "FAIL"
        print(f"  {mark} {visible(str(one.get('title')))}")
    for problem in run["problems"]:
        print(f"  {visible(problem)}")
    if run["passed"] and not run["results"]:
        print(f"  {visible(run['outcome'])}")


def _revision(removed: dict[str, Any]) -> str:
    return f"revision {removed['revision']}" if removed["kind"] == "half" else ""


def _whom(found: dict[str, Any]) -> str:
    return f"for {visible(found['peer'])}" if found["peer"] else "for all peers"
