"""protocols list|show|usage|published: agreed protocols and their states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from click import Context

from anp.cli.client import client_of, segment
from anp.cli.grammar import Commands, Option
from anp.cli.options import Hash, Json
from anp.cli.output import (
    Column,
    Line,
    call_line,
    print_bytes,
    print_list,
    print_one,
    when,
)

WHY_UNUSED = {
    "failed": "an agreed test case failed with this peer, so it is not used",
    "testing": "its test cases are not finished yet, so it is not used",
}
"States of agreements that are not used because of their test cases."

protocols_app = Commands(help="Agreed protocols: list, show, revoke, test, export.")


@protocols_app.command("list")
def list_protocols(
    context: Context,
    limit: Annotated[
        int, Option(min=1, max=1000, help="Most entries in a page.")
    ] = 100,
    after: Annotated[
        str,
        Option(
            help="Start after this place, which the page before printed at its end."
        ),
    ] = "",
    peer: Annotated[str, Option(help="Only with this peer.")] = "",
    role: Annotated[str, Option(help="requester or provider.")] = "",
    state: Annotated[
        str, Option(help="active, testing, failed, stale, revoked or quarantined.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List agreements, a page at a time."""
    client = client_of(context)
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
    columns: dict[str, Column] = {
        "HASH": lambda one: one["hash"][:12],
        "ROLE": "role",
        "STATE": "state",
        "CAPABILITY": lambda one: one["capability"] or (one["uris"] or ["-"])[0],
        "ORIGIN": "origin",
        "USES": "uses",
        "LAST USED": lambda one: when(one["last_used"]),
        "TESTED": lambda one: tested(one["last_run"]),
        "PEER": lambda one: one["peer"] or "any",
        "NEED": "need",
    }
    notes = [
        f"{one['hash'][:12]} {one['state']}: {one['reason']}"
        for one in found
        if one["reason"]
    ]
    notes.append(usage_line(page["usage"]))
    if more is not None:
        again = "".join(f"--{name} {said} " for name, said in options.items() if said)
        notes.append(f"next page: anpd protocols list {again}--after '{more}'")
    answer = {"protocols": found, "next": more, "usage": page["usage"]}
    print_list(
        answer, found, columns, as_json=as_json, notes=notes, names=client.peer_names
    )


@protocols_app.command("published")
def published(context: Context, as_json: Json = False) -> None:
    """List the protocols that are known by a URI: published and built-in ones."""
    found = client_of(context).get("/v1/consensus")
    columns: dict[str, Column] = {
        "HASH": lambda one: one["hash"][:12],
        "VERSION": "version",
        "CODE": lambda one: one["code"] or "-",
        "LISTED": lambda one: (
            "yes" if one["published"] else "served" if one["served"] else "no"
        ),
        "URI": "uri",
        "SUMMARY": lambda one: one["problem"] or one["summary"],
    }
    off = "peers cannot read this list; set consensus.publish = true to serve it"
    notes = [] if found["publishes"] else [off]
    print_list(found, found["protocols"], columns, as_json=as_json, notes=notes)


@protocols_app.command("usage")
def usage(context: Context, as_json: Json = False) -> None:
    """Count the calls with and without a negotiation."""
    found = client_of(context).get("/v1/protocols/usage")
    told = [
        usage_line(found),
        f"through agreements {found['agreement']}, by URI {found['consensus']}, "
        f"published {found['published']}, negotiated {found['negotiated']}, "
        f"without negotiation {share(found)}",
    ]
    print_one(found, told, as_json=as_json)


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
    context: Context,
    digest: Hash,
    text: Annotated[
        bool, Option("--text", help="The protocol text, byte for byte.")
    ] = False,
    code: Annotated[bool, Option("--code", help="Our code for it.")] = False,
    as_json: Json = False,
) -> None:
    """Show one protocol."""
    client = client_of(context)
    path = f"/v1/protocols/{segment(digest)}"
    if text:
        print_bytes(client.get_bytes(f"{path}/text"))
        return
    found = client.get(path)
    if code or as_json:
        print_one(found, _source(found), as_json=as_json)
        return
    calls = client.get("/v1/calls", protocol=found["hash"], limit="10")["calls"]
    print_one(found, [*_told(found), *_calls(calls)], as_json=False)


def _source(found: dict[str, Any]) -> Iterator[str]:
    """Give our code for each role."""
    for half in found["code"]:
        yield f"# code for the {half['role']}, revision {half['revision']}"
        yield from half["source"].split("\n")


def _told(found: dict[str, Any]) -> Iterator[Line]:
    """Give the lines of `show`."""
    yield "hash", found["hash"]
    for uri in found["uris"]:
        yield "uri", uri
    yield usage_line(found["usage"])
    for one in found["revocations"]:
        why = f": {one['reason']}" if one["reason"] else ""
        yield f"revoked for {one['peer'] or 'all peers'} {when(one['at'])}{why}"
    yield ""
    for agreement in found["agreements"]:
        yield from _agreement(agreement)
    for half in found["code"]:
        yield from _half(half)
    for what in ("runs", "trials"):
        yield from _runs(what, found[what])
    short = found["hash"][:12]
    if any(agreement["state"] == "failed" for agreement in found["agreements"]):
        yield ""
        yield f"to agree on it again at once: anpd protocols release {short}"
    if found["quarantined"]:
        yield ""
        yield f"quarantined: {found['quarantined']}"
    if found["quarantined"] or found["revocations"]:
        yield f"to use it again: anpd protocols approve {short}"
    yield ""
    yield f"more: anpd protocols show {short} --text | --code"


def _calls(calls: list[dict[str, Any]]) -> Iterator[Line]:
    """Give the latest calls through the protocol, made and served."""
    if calls:
        yield ""
        yield "latest calls:"
    for one in calls:
        yield f"  {call_line(one)}"


def _agreement(agreement: dict[str, Any]) -> Iterator[Line]:
    """Give the facts of one agreement."""
    for name in ("role", "peer", "capability", "need", "state", "samples", "uses"):
        yield name, agreement[name]
    yield "created", when(agreement["created"])
    yield "last used", when(agreement["last_used"])
    if agreement["negotiation_id"]:
        yield "from", f"anpd negotiations show {agreement['negotiation_id']}"
    if agreement["cases"]:
        yield "cases", agreement["cases"]
    for note in agreement["notes"]:
        yield "note", note
    run = agreement["last_run"]
    if run is not None:
        yield "tested", f"{tested(run)} ({run['mode']}): {run['outcome']}"
    if agreement["reason"]:
        yield f"{agreement['state']}: {agreement['reason']}"
    yield ""


def _half(half: dict[str, Any]) -> Iterator[str]:
    """Give the origin and the rights of our code for one role."""
    calls = ", ".join(half["capabilities"]) or "no capability"
    by = half["origin"] + (f" {half['model']}" if half["model"] else "")
    yield (
        f"code for the {half['role']}, revision {half['revision']}, {half['state']}, "
        f"by {by}, {when(half['created'])}, {half['agreements']} agreements, "
        f"may call {calls}"
    )
    if half["reason"]:
        yield f"  {half['state']}: {half['reason']}"
    if half["negotiation_id"]:
        yield f"  from negotiation {half['negotiation_id']}"
    if half["bundle"]:
        yield f"  from the bundle with SHA-256 {half['bundle']}"
    claims = half["claims"]
    if claims is not None:
        said = ", ".join(
            f"{name} {when(value) if isinstance(value, float) else value}"
            for name, value in claims.items()
            if isinstance(value, str | float)
        )
        yield f"  claims of the bundle: {said}"


def _runs(what: str, runs: dict[str, Any]) -> Iterator[str]:
    """Give the outcomes since the daemon started, and the latest failures."""
    if not runs["outcomes"]:
        return
    counts = ", ".join(f"{name} {n}" for name, n in sorted(runs["outcomes"].items()))
    yield ""
    yield f"{what} since the daemon started: {counts}"
    if what == "trials" and "error" in runs["outcomes"]:
        yield "  an error is the right answer to the broken messages that a trial sends"
    for failure in runs["failures"]:
        where = f" line {failure['line']}" if "line" in failure else ""
        place = failure.get("function", failure["stage"])
        yield f"  {failure['outcome']} {place}{where}: {failure['reason']}"
        for finding in failure.get("findings", ()):
            yield f"    line {finding['line']}: {finding['reason']}"
            yield f"      {finding['source'].strip()}"
    if runs["log"]:
        yield "  last lines of its output:"
        yield from (f"    {line}" for line in runs["log"].splitlines()[-10:])
