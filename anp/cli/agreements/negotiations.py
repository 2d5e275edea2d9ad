"""negotiations: how protocols came about, what waits for the owner, and their word."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from anp.cli.agreements.protocols import WHY_UNUSED
from anp.cli.client import Client, home_of, segment
from anp.cli.output import Settings, print_json, table, visible, when
from anp.errors import CallError, ErrorKind

__all__ = ["changes", "next_steps", "register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Beginning of its id.")]

MAX_FILE = 1024 * 1024
"Largest edited document that is read, in bytes; a daemon takes far less."

MAX_DIFF_LINES = 4_000
"Most lines of two documents that are compared; comparing more takes very long."

SPEAKERS = {"owner": "you", "tests": "earlier test cases"}
"Who said something about a document, other than our mind."

negotiations_app = typer.Typer(
    no_args_is_help=True, help="How protocols came about, and what waits for you."
)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(negotiations_app, name="negotiations")


@negotiations_app.command("list")
def list_negotiations(
    context: typer.Context,
    open_only: Annotated[
        bool, typer.Option("--open", help="Only those that wait for you.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List negotiations, the running ones first."""
    wanted = {"open": "1"} if open_only else {}
    found = _client(context).get("/v1/negotiations", **wanted)
    if as_json:
        print_json(found)
        return
    table(
        ("ID", "STARTED", "ROLE", "OUTCOME", "ROUNDS", "PEER", "REASON"),
        (
            (
                n["id"],
                when(n["started"]),
                n["role"],
                n["outcome"],
                n["rounds"],
                n["peer"],
                n["reason"],
            )
            for n in found["negotiations"]
        ),
    )


@negotiations_app.command("show")
def show_negotiation(
    context: typer.Context,
    negotiation: Id,
    document: Annotated[
        bool,
        typer.Option("--document", help="Only the last document, to be edited."),
    ] = False,
    model: Annotated[
        bool, typer.Option("--model", help="What our model was asked, and said.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show one negotiation in order, with a diff between consecutive documents."""
    found = _client(context).get(f"/v1/negotiations/{segment(negotiation)}")
    if document:
        _print_document(found)
    elif model:
        for line in _exchanges(found):
            print(line)
    elif as_json:
        print_json(_with_changes(found))
    else:
        for line in _told(found, _command(context.obj)):
            print(line)


def _exchanges(found: dict[str, Any]) -> Iterator[str]:
    """Tell what our model was asked and what it said, in order."""
    if not found["exchanges"]:
        yield "no model was asked on our side"
    for number, exchange in enumerate(found["exchanges"], 1):
        yield (
            f"== {number}. {exchange['step']}: {visible(exchange['outcome'])}, "
            f"{exchange['input_tokens']} + {exchange['output_tokens']} tokens, "
            f"{exchange['ms']:.0f} ms"
        )
        for message in exchange["messages"]:
            yield f"-- {message['role']}"
            yield from map(visible, message["content"].splitlines())
        yield "-- answer"
        yield from map(visible, exchange["answer"].splitlines())


@negotiations_app.command("cancel")
def cancel_negotiation(
    context: typer.Context,
    negotiation: Id,
    reason: Annotated[
        str, typer.Option(help="Why, for the record; the peer does not see it.")
    ] = "",
    as_json: Json = False,
) -> None:
    """End a running negotiation; the peer is told."""
    path = f"/v1/negotiations/{segment(negotiation)}/cancel"
    done = _client(context).post(path, {"reason": reason})
    if as_json:
        print_json(done)
        return
    print(f"negotiation {done['id']} is being ended")


@negotiations_app.command("hint")
def hint_negotiation(
    context: typer.Context,
    negotiation: Id,
    text: Annotated[str, typer.Argument(help="Your words, for your side alone.")],
    as_json: Json = False,
) -> None:
    """Give our mind a hint for the next round, or for the next such negotiation."""
    path = f"/v1/negotiations/{segment(negotiation)}/hint"
    done = _client(context).post(path, {"text": text})
    _print_said(done, as_json=as_json)


@negotiations_app.command("decide")
def decide_negotiation(
    context: typer.Context,
    negotiation: Id,
    verdict: Annotated[
        str, typer.Argument(metavar="VERDICT", help="accept, reject or edit.")
    ],
    file: Annotated[
        str | None, typer.Option(help="The edited document; - is standard input.")
    ] = None,
    note: Annotated[
        str, typer.Option(help="Why; a rejection passes it on to the peer.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Accept or reject a document, or send one that you edited (ANP-34)."""
    if (verdict == "edit") != (file is not None):
        raise CallError(ErrorKind.USAGE, "edit needs --file, and nothing else takes it")
    body: dict[str, Any] = {"verdict": verdict, "note": note}
    if file is not None:
        body["document"] = _read(file)
    path = f"/v1/negotiations/{segment(negotiation)}/decision"
    _print_said(_client(context).post(path, body), as_json=as_json)


@negotiations_app.command("decisions")
def list_decisions(context: typer.Context, as_json: Json = False) -> None:
    """List what you said that waits for a negotiation, or was used by one."""
    found = _client(context).get("/v1/decisions")
    if as_json:
        print_json(found)
        return
    table(
        ("SAID", "ABOUT", "ROLE", "DOCUMENT", "UNTIL", "USED", "PEER", "NOTE"),
        (
            (
                word["verdict"],
                word["negotiation_id"],
                word["role"],
                (word["hash"] or "-")[:12],
                when(word["expires"]),
                word["used_by"] or "-",
                word["peer_did"],
                word["note"],
            )
            for word in found["decisions"]
        ),
    )


def changes(before: str, after: str) -> list[str]:
    """Return a unified diff between two documents, or all of the second one."""
    old, new = before.splitlines(), after.splitlines()
    if not old or len(old) + len(new) > MAX_DIFF_LINES:
        return [f"  {line}" for line in new]
    return list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]


def next_steps(found: dict[str, Any], command: str) -> list[str]:
    """Return what the owner can do about a negotiation, as exact commands.

    Args:
        command: How `anpd` is called for this home.
    """
    name = found["id"]
    ours = f"{command} negotiations"
    decide = f"{ours} decide {name}"
    if found["waiting"]:
        return [
            f"{decide} accept            # it waits for you now",
            f"{decide} reject --note TEXT",
            f"{decide} edit --file FILE",
        ]
    if found["running"]:
        return [f"{ours} hint {name} TEXT", f"{ours} cancel {name}"]
    if found["outcome"] == "agreed":
        return [f"{command} protocols show {(found['hash'] or '')[:12]}"]
    steps = []
    received = any(
        turn["direction"] == "received" and turn["candidate"] for turn in found["turns"]
    )
    if found["pending"] or received:
        steps += [
            f"{decide} accept            # next time",
            f"{decide} reject --note TEXT",
        ]
    if received or found["role"] == "requester":
        steps += [
            f"{ours} show {name} --document > FILE",
            f"{decide} edit --file FILE  # after your changes",
            f"{ours} hint {name} TEXT",
        ]
    if steps and found["role"] == "requester":
        steps.append(f"{command} call PEER TASK         # to negotiate again")
    return steps


def _told(found: dict[str, Any], command: str) -> Iterator[str]:
    """Give the lines of `show`."""
    task = found["task"]["requirement"] if found["task"] else None
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
        ("peer", found["peer"]),
        ("task", task),
        ("started", f"{when(found['started'])}{took}"),
        ("rounds", f"{found['rounds']}, model calls of ours: {found['model_calls']}"),
        ("agreed", found["hash"]),
        ("tests", ", ".join(checks)),
        ("test cases", cases),
        ("not used", unused),
    ):
        if value:
            yield f"{name:<11}  {visible(str(value))}"
    for hint in found["hints"]:
        yield f"{'your hint':<11}  {visible(hint)}"
    before = ""
    for seconds, entry in _in_order(found):
        yield ""
        at = when(found["started"] + seconds)
        if "verdict" in entry:
            who = SPEAKERS.get(entry["by"], "our mind")
            yield f"{at}  {who}: {entry['verdict']} {entry['hash'][:12]}"
            yield from _indented(entry["reason"])
            continue
        who = "we" if entry["direction"] == "sent" else "the peer"
        yield f"{at}  {who}: {entry['status']} [{entry['sequence_id']}]"
        yield from _indented(entry["summary"])
        candidate = entry["candidate"]
        if candidate and candidate != before:
            for line in changes(before, candidate):
                yield f"    {visible(line)}"
            before = candidate
    pending = found["pending"]
    if pending:
        yield ""
        what = "our document" if pending["ours"] else "the peer's document"
        yield f"waits for your word: {what} {pending['hash'][:12]}"
        half = pending["half"]
        if half:
            calls = ", ".join(half["capabilities"]) or "nothing"
            yield f"    our code for it ({half['origin']}) may call: {visible(calls)}"
        if pending["document"] != before:
            for line in changes(before, pending["document"]):
                yield f"    {visible(line)}"
    yield ""
    if found["reason"]:
        yield f"reason       {visible(' '.join(found['reason'].split()))}"
    for word in found.get("decisions", []):
        use = f"used by {word['used_by']}" if word["used_by"] else "waits"
        note = f": {visible(word['note'])}" if word["note"] else ""
        yield (
            f"said         {when(word['created'])} {word['verdict']}{note} "
            f"({use}, until {when(word['expires'])})"
        )
    for number, step in enumerate(next_steps(found, command)):
        yield f"{'what now' if number == 0 else '':<11}  {step}"


def _in_order(found: dict[str, Any]) -> Iterator[tuple[float, dict[str, Any]]]:
    """Give turns, and before each turn the verdicts that led to it, with their time."""
    verdicts = [*found["verdicts"]]
    for number, turn in enumerate([*found["turns"], None]):
        while verdicts and (turn is None or verdicts[0]["turn"] <= number):
            said = verdicts.pop(0)
            yield float(said["seconds"]), said
        if turn is not None:
            yield float(turn["seconds"]), turn


def _indented(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"    {visible(line)}"


def _with_changes(found: dict[str, Any]) -> dict[str, Any]:
    """Return the answer with a diff in each turn that brought a new document."""
    before, turns = "", []
    for turn in found["turns"]:
        candidate = turn["candidate"]
        diff = changes(before, candidate) if candidate and candidate != before else []
        before = candidate or before
        turns.append({**turn, "diff": diff})
    return {**found, "turns": turns}


def _print_document(found: dict[str, Any]) -> None:
    candidates = [turn["candidate"] for turn in found["turns"] if turn["candidate"]]
    if found["pending"]:
        candidates.append(found["pending"]["document"])
    if not candidates:
        raise CallError(ErrorKind.USAGE, f"negotiation {found['id']} has no document")
    sys.stdout.buffer.write(candidates[-1].encode("utf-8"))
    sys.stdout.buffer.flush()


def _print_said(done: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    word = done["decision"]
    if word is None:
        print("done: it goes into the negotiation that is running")
        return
    who = "asks again" if word["role"] == "provider" else "is called again"
    print(
        f"kept: {word['verdict']} counts once, when {visible(word['peer_did'])} {who}, "
        f"until {when(word['expires'])}"
    )


def _read(file: str) -> str:
    data = sys.stdin.buffer.read(MAX_FILE + 1) if file == "-" else _bytes(Path(file))
    if len(data) > MAX_FILE:
        raise CallError(ErrorKind.USAGE, f"{file} has over {MAX_FILE} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise CallError(ErrorKind.USAGE, f"{file} is not UTF-8") from None


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_FILE + 1)


def _client(context: typer.Context) -> Client:
    return Client(home_of(context.obj)[0])


def _command(settings: Settings) -> str:
    return f"anpd --home {settings.home}" if settings.home else "anpd"
