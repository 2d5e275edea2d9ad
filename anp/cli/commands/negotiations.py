"""negotiations and approvals: negotiations, and the owner's decisions about them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Annotated, Any

from click import Context

from anp.cli.client import client_of, segment
from anp.cli.commands.protocols import WHY_UNUSED
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.input import read_input
from anp.cli.options import Id, Json, Note
from anp.cli.output import (
    Column,
    Line,
    Settings,
    print_bytes,
    print_list,
    print_one,
    table,
    terminal_width,
    visible,
    when,
)
from anp.errors import CallError, ErrorKind
from anp.interaction.elements import party_name

MAX_FILE = 1024 * 1024
"Largest edited protocol text that is read, in bytes; a daemon takes far less."

MAX_DIFF_LINES = 4_000
"Most lines of two texts that are compared; comparing more takes very long."

SPEAKERS = {"owner": "you", "tests": "earlier test cases"}
"Sources of decisions besides the rules or the model of our side."

OF_GROUPS = ("invitation-", "application-")
"Beginnings of the ids of what waits in groups."

GROUP_COLUMNS: dict[str, Column] = {
    "ID": "id",
    "GROUP": lambda one: visible(one["name"]) or one["group"],
    "PEER": lambda one: party_name(one["peer"]),
    "LISTED": lambda one: "no" if one["stranger"] else "-",
    "WORDS": lambda one: visible(one["text"]),
}

negotiations_app = Commands(help="Negotiations, and your decisions about them.")
approvals_app = Commands(
    help="Negotiations, invitations into groups and applications that wait for you."
)


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.add(negotiations_app, "negotiations")
    app.add(approvals_app, "approvals")


@negotiations_app.command("list")
def list_negotiations(
    context: Context,
    open_only: Annotated[
        bool, Option("--open", help="Only those that wait for your decision.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List negotiations, the running ones first."""
    wanted = {"open": "1"} if open_only else {}
    found = client_of(context).get("/v1/negotiations", **wanted)
    columns: dict[str, Column] = {
        "ID": "id",
        "STARTED": lambda one: when(one["started"]),
        "ROLE": "role",
        "OUTCOME": "outcome",
        "PROPOSALS": "proposals",
        "PEER": lambda one: party_name(one["peer"]),
        "REASON": "reason",
    }
    print_list(found, found["negotiations"], columns, as_json=as_json)


@approvals_app.command("list")
def list_approvals(context: Context, as_json: Json = False) -> None:
    """List what waits for your decision."""
    found = client_of(context).get("/v1/approvals")
    columns: dict[str, Column] = {
        "ID": "id",
        "SINCE": lambda one: when(one["started"]),
        "ROLE": "role",
        "OUTCOME": "outcome",
        "PEER": lambda one: party_name(one["peer"]),
        "REASON": "reason",
    }
    rows, groups = found["negotiations"], found["groups"]
    if groups and not rows:
        print_list(found, groups, GROUP_COLUMNS, as_json=as_json)
        return
    more = table(groups, GROUP_COLUMNS, width=terminal_width())
    notes = ["", *more] if groups else ()
    print_list(found, rows, columns, as_json=as_json, notes=notes)


@approvals_app.command("show")
def show_approval(context: Context, approval: Id, as_json: Json = False) -> None:
    """Show what waits for your decision, a negotiation with all its messages."""
    if not approval.startswith(OF_GROUPS):
        show_negotiation(context, approval, as_json=as_json)
        return
    waiting = client_of(context).get("/v1/approvals")["groups"]
    found = next((one for one in waiting if one["id"] == approval), None)
    if found is None:
        raise CallError(ErrorKind.USAGE, "nothing of this id waits for your decision")
    by = "invited by" if found["kind"] == "invitation" else "applicant"
    told: list[Line] = [
        (found["kind"], found["id"]),
        ("group", f"{found['group']} {visible(found['name'])}".strip()),
        (by, party_name(found["peer"])),
        ("hub", party_name(found["hub"])),
        ("listed", "no, a stranger" if found["stranger"] else None),
        ("sealed", "yes, its hub cannot read it" if found["sealed"] else None),
        ("words", visible(found["text"]) or None),
        ("until", None if found["expires"] is None else when(found["expires"])),
        "",
        f"next: {_command(context.obj)} approvals accept {found['id']}",
        f"  or: {_command(context.obj)} approvals reject {found['id']}",
    ]
    told = [one for one in told if isinstance(one, str) or one[1]]
    print_one(found, told, as_json=as_json)


@approvals_app.command("accept")
def accept_approval(
    context: Context, approval: Id, note: Note = "", as_json: Json = False
) -> None:
    """Accept the proposal, invitation or application that waits for you."""
    _say(context, f"approvals/{segment(approval)}/accept", {"note": note}, as_json)


@approvals_app.command("reject")
def reject_approval(
    context: Context, approval: Id, note: Note = "", as_json: Json = False
) -> None:
    """Reject the proposal, invitation or application that waits for you."""
    _say(context, f"approvals/{segment(approval)}/reject", {"note": note}, as_json)


@negotiations_app.command("show")
def show_negotiation(
    context: Context,
    negotiation: Id,
    text: Annotated[
        bool, Option("--text", help="Only the text of the last proposal, to edit it.")
    ] = False,
    model: Annotated[
        bool, Option("--model", help="The questions to our model, and its answers.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the messages of a negotiation in order, with a diff between proposals."""
    found = client_of(context).get(f"/v1/negotiations/{segment(negotiation)}")
    if text:
        print_bytes(_last_text(found).encode())
    elif model:
        print_one(None, _exchanges(found), as_json=False)
    else:
        told = _told(found, _command(context.obj))
        print_one(_with_changes(found), told, as_json=as_json)


def _exchanges(found: dict[str, Any]) -> Iterator[str]:
    """Give the questions to our model and its answers, in order."""
    if not found["model_requests"]:
        yield "our side asked no model in this negotiation"
    for number, exchange in enumerate(found["model_requests"], 1):
        yield (
            f"== {number}. {exchange['step']}: {exchange['outcome']}, "
            f"{exchange['input_tokens']} + {exchange['output_tokens']} tokens, "
            f"{exchange['ms']:.0f} ms"
        )
        for message in exchange["messages"]:
            yield f"-- {message['role']}"
            yield from message["content"].splitlines()
        yield "-- answer"
        yield from exchange["answer"].splitlines()


@negotiations_app.command("cancel")
def cancel_negotiation(
    context: Context,
    negotiation: Id,
    reason: Annotated[
        str, Option(help="Reason for your own record; it is not sent to the peer.")
    ] = "",
    as_json: Json = False,
) -> None:
    """End a running negotiation; the peer learns that it was ended."""
    path = f"/v1/negotiations/{segment(negotiation)}/cancel"
    done = client_of(context).post(path, {"reason": reason})
    print_one(done, [f"negotiation {done['id']} is being ended"], as_json=as_json)


@negotiations_app.command("hint")
def hint_negotiation(
    context: Context,
    negotiation: Id,
    text: Annotated[str, Argument(help="The hint; it is never sent to the peer.")],
    as_json: Json = False,
) -> None:
    """Give a hint to the rules or model of our side; it is used once."""
    _say(context, f"negotiations/{segment(negotiation)}/hint", {"text": text}, as_json)


@negotiations_app.command("decide")
def decide_negotiation(
    context: Context,
    negotiation: Id,
    verdict: Annotated[
        str, Argument(metavar="DECISION", help="accept, reject or edit.")
    ],
    file: Annotated[
        str | None, Option(help="The edited protocol text; - is standard input.")
    ] = None,
    note: Note = "",
    as_json: Json = False,
) -> None:
    """Accept or reject the last proposal, or send an edited one (ANP-34)."""
    if (verdict == "edit") != (file is not None):
        raise CallError(
            ErrorKind.USAGE,
            "`edit` needs --file FILE; `accept` and `reject` take no --file",
        )
    body: dict[str, Any] = {"verdict": verdict, "note": note}
    if file is not None:
        body["document"] = _read(file)
    _say(context, f"negotiations/{segment(negotiation)}/decision", body, as_json)


@negotiations_app.command("decisions")
def list_decisions(context: Context, as_json: Json = False) -> None:
    """List your decisions and hints, stored and used ones."""
    found = client_of(context).get("/v1/decisions")
    columns: dict[str, Column] = {
        "DECISION": "verdict",
        "NEGOTIATION": "negotiation_id",
        "ROLE": "role",
        "PROTOCOL": lambda one: one.get("capability") or (one["hash"] or "-")[:12],
        "STORED UNTIL": lambda one: when(one["expires"]),
        "USED BY": lambda one: one["used_by"] or "-",
        "PEER": lambda one: party_name(one["peer_did"]),
        "NOTE": "note",
    }
    print_list(found, found["decisions"], columns, as_json=as_json)


def changes(before: str, after: str) -> list[str]:
    """Return a unified diff between two protocol texts, or all of the second one."""
    old, new = before.splitlines(), after.splitlines()
    if not old or len(old) + len(new) > MAX_DIFF_LINES:
        return [f"  {line}" for line in new]
    return list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]


def next_steps(found: dict[str, Any], command: str) -> list[str]:
    """Return what the owner can do about a negotiation, as exact commands.

    Args:
        command: The beginning of a command for this home, `anpd` with its options.
    """
    name = found["id"]
    ours = f"{command} negotiations"
    decide = f"{ours} decide {name}"
    if found["waiting"]:
        return [
            f"{decide} accept            # it waits for your decision",
            f"{decide} reject --note TEXT",
            f"{decide} edit --file FILE",
        ]
    if found["running"]:
        return [f"{ours} hint {name} TEXT", f"{ours} cancel {name}"]
    if found["outcome"] == "agreed":
        return [f"{command} protocols show {(found['hash'] or '')[:12]}"]
    if found["pending"] and "capability" in found["pending"]:
        return [f"{decide} accept", f"{decide} reject --note TEXT"]
    steps = []
    received = any(
        turn["direction"] == "received" and turn["candidate"] for turn in found["turns"]
    )
    if found["pending"] or received:
        steps += [
            f"{decide} accept            # used by the next such negotiation",
            f"{decide} reject --note TEXT",
        ]
    if received or found["role"] == "requester":
        steps += [
            f"{ours} show {name} --text > FILE",
            f"{decide} edit --file FILE  # after your changes",
            f"{ours} hint {name} TEXT",
        ]
    if steps and found["role"] == "requester":
        steps.append(f"{command} call PEER NEED         # to negotiate again")
    return steps


def _told(found: dict[str, Any], command: str) -> Iterator[Line]:
    """Give the lines of `show`."""
    need = found["need"]["requirement"] if found["need"] else None
    until = found["ended"]
    took = "" if until is None else f", took {until - found['started']:.2f} s"
    agreement = found.get("agreement") or {}
    tests = agreement.get("tests") or found["tests"] or {}
    checks = [f"{k}: {v}" for k, v in tests.items() if isinstance(v, str)]
    cases = agreement.get("cases")
    unused = WHY_UNUSED.get(agreement.get("state", ""))
    for name, value in (
        ("negotiation", found["id"]),
        ("outcome", found["outcome"]),
        ("we", f"{found['own_did'] or '-'} as {found['role']}"),
        ("peer", party_name(found["peer"])),
        ("need", need),
        ("started", f"{when(found['started'])}{took}"),
        ("proposals", found["proposals"]),
        ("model calls", found["model_calls"]),
        ("agreed", found["hash"]),
        ("tests", ", ".join(checks)),
        ("test cases", cases),
        ("not used", unused),
    ):
        if value:
            yield name, value
    for hint in found["hints"]:
        yield "your hint", hint
    before = ""
    for seconds, entry in _in_order(found):
        yield ""
        at = when(found["started"] + seconds)
        if "verdict" in entry:
            who = SPEAKERS.get(entry["by"], "our side")
            yield f"{at}  {who}: {entry['verdict']} {entry['hash'][:12]}"
            yield from _indented(entry["reason"].splitlines())
            continue
        who = "we" if entry["direction"] == "sent" else "the peer"
        yield f"{at}  {who}: {entry['status']} [{entry['sequence_id'] + 1}]"
        yield from _indented(entry["summary"].splitlines())
        candidate = entry["candidate"]
        if candidate and candidate != before:
            yield from _indented(changes(before, candidate))
            before = candidate
    pending = found["pending"]
    if pending and "capability" in pending:
        effects = "is read-only" if pending["read_only"] else "may have side effects"
        way = pending["way"].replace("_", " ")
        yield ""
        if pending["way"] == "description":
            yield (
                f"waits for your decision: {pending['capability']}, which {effects}, "
                "is described in other words than when its code was agreed; accept "
                "if callers may go on with that code"
            )
            return
        yield (
            f"waits for your decision: calls of {pending['capability']}, which "
            f"{effects}, by {way}, without a protocol text"
        )
    elif pending:
        yield ""
        what = "our proposal" if pending["ours"] else "the peer's proposal"
        yield f"waits for your decision: {what} {pending['hash'][:12]}"
        half = pending["half"]
        if half:
            calls = ", ".join(half["capabilities"]) or "nothing"
            yield f"    our code for it, by {half['origin']}, may call: {calls}"
        if pending["document"] != before:
            yield from _indented(changes(before, pending["document"]))
    yield from _doubts(pending or {})
    yield ""
    if found["reason"]:
        yield "reason", " ".join(found["reason"].split())
    for one in found.get("decisions", []):
        until = f"stored until {when(one['expires'])}"
        use = f"used by {one['used_by']}" if one["used_by"] else until
        note = f": {one['note']}" if one["note"] else ""
        yield "decision", f"{when(one['created'])} {one['verdict']}{note} ({use})"
    for number, step in enumerate(next_steps(found, command)):
        yield "next" if number == 0 else "", step


def _doubts(pending: dict[str, Any]) -> Iterator[str]:
    """Give the reasons to ask the owner that do not come from `approve`."""
    if withdrawn := pending.get("withdrawn"):
        yield (
            f"    you withdrew {', '.join(withdrawn)} with a revocation; accepting "
            "ends that for this peer"
        )
    if unnamed := pending.get("unnamed"):
        yield (
            f"    it does not name {', '.join(unnamed)}, which may have side effects; "
            "accepting holds for this need of this peer"
        )


def _in_order(found: dict[str, Any]) -> Iterator[tuple[float, dict[str, Any]]]:
    """Give the messages, and before each one the decisions that led to it."""
    verdicts = [*found["verdicts"]]
    for number, turn in enumerate([*found["turns"], None]):
        while verdicts and (turn is None or verdicts[0]["turn"] <= number):
            said = verdicts.pop(0)
            yield float(said["seconds"]), said
        if turn is not None:
            yield float(turn["seconds"]), turn


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _with_changes(found: dict[str, Any]) -> dict[str, Any]:
    """Return the answer with a diff in each message that has a new proposal."""
    before, turns = "", []
    for turn in found["turns"]:
        candidate = turn["candidate"]
        diff = changes(before, candidate) if candidate and candidate != before else []
        before = candidate or before
        turns.append({**turn, "diff": diff})
    return {**found, "turns": turns}


def _last_text(found: dict[str, Any]) -> str:
    candidates = [turn["candidate"] for turn in found["turns"] if turn["candidate"]]
    if found["pending"] and "document" in found["pending"]:
        candidates.append(found["pending"]["document"])
    if not candidates:
        raise CallError(ErrorKind.USAGE, f"negotiation {found['id']} has no proposal")
    return str(candidates[-1])


def _say(context: Context, path: str, body: dict[str, Any], as_json: bool) -> None:
    """Send a decision or a hint, and tell its effect."""
    done = client_of(context).post(f"/v1/{path}", body)
    kept = done["decision"]
    if kept is None:
        told = "done: the running negotiation uses it now"
        if path.startswith(tuple(f"approvals/{one}" for one in OF_GROUPS)):
            told = "done: the group was told"
    else:
        if kept.get("capability"):
            told = (
                f"stored until {when(kept['expires'])}: {kept['verdict']} calls of "
                f"{kept['capability']} by {party_name(kept['peer_did'])}"
            )
            print_one(done, [told], as_json=as_json)
            return
        event = "calls again" if kept["role"] == "provider" else "is called again"
        told = (
            f"stored until {when(kept['expires'])}: {kept['verdict']} is used once, "
            f"when {party_name(kept['peer_did'])} {event}"
        )
    print_one(done, [told], as_json=as_json)


def _read(file: str) -> str:
    try:
        return read_input(file, most=MAX_FILE).decode("utf-8")
    except UnicodeDecodeError:
        raise CallError(ErrorKind.USAGE, f"{file} is not text in UTF-8") from None


def _command(settings: Settings) -> str:
    return f"anpd --home {settings.home}" if settings.home else "anpd"
