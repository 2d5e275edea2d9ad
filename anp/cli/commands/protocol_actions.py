"""protocols revoke|test|export|publish and more: changes to agreed protocols."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

from click import Context

from anp.cli.client import Client, client_of, segment
from anp.cli.commands.protocols import protocols_app
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.input import read_input
from anp.cli.options import Hash, Json
from anp.cli.output import print_bytes, print_one
from anp.errors import CallError, ErrorKind

Peer = Annotated[
    str, Option(help="Only for this peer: name, DID or URL#DID; else for all.")
]
Uri = Annotated[
    str, Option(help="Your URI for exactly this version; it is never fetched.")
]

MAX_DIFF_LINES: Final = 20_000
"Lines of both sides together; longer texts take too long to compare."

UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
"Seconds of each unit of an age."

NOUNS: Final = {
    "agreement": "agreement",
    "half": "code of",
    "document": "protocol text",
}
PLURALS: Final = {
    "agreement": "agreements",
    "half": "revisions of code",
    "document": "protocol texts",
}

ROLES: Final = ("requester", "provider")


def register(app: Commands) -> None:
    """Add all commands of `protocols`."""
    app.add(protocols_app, "protocols")


@protocols_app.command("revoke")
def revoke(
    context: Context,
    digest: Hash,
    peer: Peer = "",
    reason: Annotated[
        str, Option(help="Reason for your own record; it is never sent.")
    ] = "",
    text_only: Annotated[
        bool,
        Option("--text-only", help="Refuse the text, and leave its capabilities open."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Stop a protocol and what it calls: the next use waits for your decision."""
    body: dict[str, Any] = _given({"peer": peer, "reason": reason})
    found = client_of(context).post(
        f"/v1/protocols/{segment(digest)}/revoke",
        body | ({"text_only": True} if text_only else {}),
    )
    short = found["hash"][:12]
    what = "is revoked" if found["revoked"] else "was revoked before"
    told = [
        f"{short} {what} {_whom(found)}; {found['channels_closed']} channels closed",
        *_access("closed until you decide", found["closed"]),
        *_access("still open", found["open"]),
        f"to allow it again: anpd protocols approve {short}",
    ]
    print_one(found, told, as_json=as_json)


@protocols_app.command("approve")
def approve(
    context: Context, digest: Hash, peer: Peer = "", as_json: Json = False
) -> None:
    """End a revocation or quarantine, or accept in a negotiation that waits."""
    found = client_of(context).post(
        f"/v1/protocols/{segment(digest)}/approve", _given({"peer": peer})
    )
    short, told = found["hash"][:12], []
    if found["revocation_ended"]:
        told.append(f"{short} may be used again {_whom(found)}")
    told += _access("open again", found["reopened"])
    if found["quarantine_ended"]:
        told.append(f"{short} is no longer quarantined")
    told += [
        f"negotiation {name} is accepted; the next call goes on with it"
        for name in found["negotiations_accepted"]
    ]
    nothing = [
        f"{short} needed no approval {_whom(found)}",
        f"its state: anpd protocols show {short}",
    ]
    print_one(found, told or nothing, as_json=as_json)


def _access(what: str, found: list[dict[str, Any]]) -> Iterator[str]:
    """Give the lines about access to capabilities, one for each side and peer."""
    names: dict[str, list[str]] = {}
    for one in found:
        peer = one["peer"] or "all peers"
        ours = f"to your agent, of {peer}"
        whom = f"to {peer}" if one["role"] == "provider" else ours
        names.setdefault(whom, []).append(one["capability"])
    for whom, each in names.items():
        yield f"{what} {whom}: {', '.join(each)}"


@protocols_app.command("release")
def release_protocol(context: Context, digest: Hash) -> None:
    """End a quarantine, or agree again on a protocol whose test cases failed."""
    found = client_of(context).post(f"/v1/protocols/{segment(digest)}/release", {})
    what = "is released" if found["released"] else "was neither quarantined nor failed"
    print_one(found, [f"{found['hash'][:12]} {what}"], as_json=False)


@protocols_app.command("test")
def run_tests(
    context: Context,
    digest: Hash,
    peer: Annotated[
        str,
        Option(
            help="Test with this peer, over the wire; without it, only our own code."
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Run the agreed test cases again; exit code 11 when one fails."""
    found = client_of(context).post(
        f"/v1/protocols/{segment(digest)}/test", _given({"peer": peer})
    )
    print_one(found, _runs(found["runs"]), as_json=as_json)
    if not found["passed"]:
        # The answer is on stdout already; only the line and the code are left to say.
        context.obj.json = False
        short = found["hash"][:12]
        raise CallError(
            ErrorKind.GENERATED_CODE,
            f"the tests of {short} failed; it is still used; to stop that, run: anpd "
            f"protocols revoke {short} --text-only",
        )


@protocols_app.command("diff")
def diff(
    context: Context,
    one: Annotated[
        str, Argument(metavar="A", help="HASH, HASH:ROLE or HASH:ROLE:REVISION.")
    ],
    other: Annotated[str, Argument(metavar="B", help="As A.")],
    as_json: Json = False,
) -> None:
    """Compare two protocol texts, or two revisions of code, line by line."""
    client = client_of(context)
    (old_name, old), (new_name, new) = _text(client, one), _text(client, other)
    lines = changes(old, new, names=(old_name, new_name))
    answer = {"a": old_name, "b": new_name, "equal": old == new, "diff": lines}
    same = [f"{old_name} and {new_name} are the same"]
    print_one(answer, same if old == new else lines, as_json=as_json)


@protocols_app.command("prune")
def prune(
    context: Context,
    older_than: Annotated[
        str, Option(help="Least age, such as 90d, 12h or 2w.")
    ] = "90d",
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only list; delete nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete agreements, code and texts that were not used for long."""
    found = client_of(context).post(
        "/v1/protocols/prune",
        {"older_than": seconds_of(older_than), "dry_run": dry_run},
    )
    print_one(found, _pruned(found, older_than), as_json=as_json)


@protocols_app.command("export")
def export_protocol(
    context: Context,
    digest: Hash,
    role: Annotated[
        str, Option(help="requester or provider; both when left out.")
    ] = "",
    peer: Annotated[str, Option(help="Export the revision that this peer uses.")] = "",
    output: Annotated[
        Path | None,
        Option("-o", "--output", help="File to write; without it, standard output."),
    ] = None,
    with_did: Annotated[
        bool, Option("--with-did", help="Add the DID of this daemon.")
    ] = False,
    without_tests: Annotated[
        bool, Option("--without-tests", help="Leave out tests and their data.")
    ] = False,
) -> None:
    """Write a protocol and our code for it into a bundle."""
    options = {"role": role, "peer": peer, "did": "1" if with_did else ""}
    options["tests"] = "0" if without_tests else ""
    data = client_of(context).get_bytes(
        f"/v1/protocols/{segment(digest)}/export", **_given(options)
    )
    if output is not None:
        output.write_bytes(data)
        return
    print_bytes(data)


@protocols_app.command("import")
def import_protocol(
    context: Context,
    file: Annotated[Path, Argument(help="A bundle; - is standard input.")],
    peer: Annotated[str, Option(help="Only for this peer: name, DID or URL#DID.")] = "",
    role: Annotated[
        str, Option(help="Only the code for this role: requester or provider.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Check the code of a bundle, and use it from the next channel on."""
    from anp.sidecar.bundles.format import MAX_BUNDLE

    data = read_input(str(file), most=MAX_BUNDLE)
    options = _given({"role": role, "peer": peer})
    found = client_of(context).post_bytes("/v1/protocols/import", data, **options)
    told = [
        f"imported {found['hash'][:12]}, code for the {half['role']}, revision "
        f"{half['revision']}, used with {', '.join(half['peers']) or 'any peer'}"
        for half in found["code"]
    ]
    told += [
        f"it may call {', '.join(half['capabilities'])}, with arguments of its choice"
        for half in found["code"]
        if half["capabilities"]
    ]
    told.append(
        "calls in flight end with the code they began with; new calls use this code"
    )
    print_one(found, told, as_json=as_json)


@protocols_app.command("publish")
def publish(
    context: Context,
    digest: Hash,
    uri: Uri,
    version: Annotated[str, Option(help="Version, shown to people.")] = "1.0",
    summary: Annotated[str, Option(help="Description in one line.")] = "",
    as_json: Json = False,
) -> None:
    """Publish an agreed protocol under a URI, so that peers need not negotiate."""
    found = client_of(context).post(
        "/v1/consensus/publish",
        {"protocol": digest, "uri": uri, "version": version, "summary": summary},
    )
    where = (
        "it is in the list that peers read"
        if found["listed"]
        else "served to peers that name the URI; the list is off (consensus.publish)"
    )
    told = f"{found['hash'][:12]} is published as {found['uri']}; {where}"
    print_one(found, [told], as_json=as_json)


@protocols_app.command("unpublish")
def unpublish(context: Context, uri: Uri, as_json: Json = False) -> None:
    """Withdraw a URI; agreements that used it stay."""
    found = client_of(context).post("/v1/consensus/unpublish", {"uri": uri})
    told = f"{found['uri']} is withdrawn; agreements on {found['hash'][:12]} stay"
    print_one(found, [told], as_json=as_json)


def seconds_of(age: str) -> float:
    """Return the seconds of an age such as `90d`.

    Raises:
        CallError: `usage`, it is not an age.
    """
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([smhdw])", age.strip())
    if match is None:
        raise CallError(
            ErrorKind.USAGE,
            f"{age[:40]!r} is no age; write a number and s, m, h, d or w, such as 90d",
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
            "`anpd protocols show HASH --text` and compare those",
        )
    return list(difflib.unified_diff(before, after, *names, lineterm=""))


def _text(client: Client, wanted: str) -> tuple[str, str]:
    """Return a name and the content of a protocol text or of code."""
    prefix, *rest = wanted.removeprefix("sha256:").split(":")
    if not rest:
        data = client.get_bytes(f"/v1/protocols/{segment(prefix)}/text")
        return f"{prefix[:12]} text", data.decode("utf-8", errors="replace")
    if rest[0] not in ROLES or len(rest) > 2 or not all(r.isdigit() for r in rest[1:]):
        raise CallError(
            ErrorKind.USAGE,
            f"{wanted[:100]!r}: write HASH, HASH:requester, HASH:provider or "
            "HASH:ROLE:REVISION",
        )
    found = client.get(f"/v1/protocols/{segment(prefix)}/code", role=rest[0])
    revisions = {str(half["revision"]): half for half in found["code"]}
    known = ", ".join(revisions) or "none"
    if len(rest) == 2:
        half = revisions.get(str(int(rest[1][:9])))
    else:
        used = [half for half in found["code"] if half["agreements"]]
        half = (used or found["code"] or [None])[-1]
    if half is None:
        raise CallError(
            ErrorKind.USAGE,
            f"there is no such revision of the {rest[0]}'s code of {prefix[:12]}; "
            f"revisions here: {known}",
        )
    short = found["hash"][:12]
    return f"{short} {rest[0]} revision {half['revision']}", str(half["source"])


def _runs(runs: list[dict[str, Any]]) -> Iterator[str]:
    """Give the results of the test cases, for each revision of our code."""
    for run in runs:
        yield (
            f"{'passed' if run['passed'] else 'FAILED'} code for the {run['role']}, "
            f"revision {run['revision']}, {run['peer'] or 'any peer'}: {run['mode']}, "
            f"{run['cases']} cases"
        )
        for one in run["results"]:
            mark = "ok  " if one.get("passed") is True else "FAIL"
            yield f"  {mark} {one.get('title')}"
        yield from (f"  {problem}" for problem in run["problems"])
        if run["passed"] and not run["results"]:
            yield f"  {run['outcome']}"


def _pruned(found: dict[str, Any], older_than: str) -> Iterator[str]:
    """List the entries that were deleted, or would be."""
    verb = "would delete" if found["dry_run"] else "deleted"
    for removed in found["removed"]:
        of_whom = [removed["role"] or "", _revision(removed), removed["peer"] or ""]
        what = " ".join(part for part in of_whom if part)
        yield (
            f"{verb} {NOUNS[removed['kind']]} {removed['hash'][:12]} "
            f"{what}: {removed['why']} ({removed['bytes']} bytes)"
        )
    counts = Counter(found["counts"])
    left = counts.total() - len(found["removed"])
    if left > 0:
        yield f"and {left} more"
    if not counts:
        yield f"nothing unused is older than {older_than}"
    else:
        kinds = ", ".join(
            f"{n} {PLURALS.get(name, name)}" for name, n in sorted(counts.items())
        )
        yield f"{verb} {kinds}: {found['bytes']} bytes"
    if before := found.get("store_before"):
        yield f"the store took {before} bytes and takes {found['store_after']}"


def _revision(removed: dict[str, Any]) -> str:
    return f"revision {removed['revision']}" if removed["kind"] == "half" else ""


def _whom(found: dict[str, Any]) -> str:
    return f"for {found['peer']}" if found["peer"] else "for all peers"


def _given(options: dict[str, str]) -> dict[str, str]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value}
