"""decide: all that waits for the owner, and the decision about each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Final

from click import Context

from anp.cli.client import Client, client_of, segment
from anp.cli.commands.negotiations import decide_negotiation
from anp.cli.completion import complete_waiting
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.options import Json, Note
from anp.cli.output import Column, print_list, print_one, shown_did, visible, when
from anp.errors import CallError, ErrorKind

VERDICTS: Final = ("accept", "reject", "edit")


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing that waits for the owner."""

    id: str
    "Name of it for `anpd decide`."

    kind: str
    """`negotiation`, `invitation` into a group, `application` to one, `peer`,
    `changed key` or `question`."""

    since: float | None
    "Seconds since 1970; None if nobody knows."

    peer: str
    "DID of the other side."

    text: str
    "The thing in words."


def register(app: Commands) -> None:
    """Add the command of this file."""
    app.command("decide")(decide)


def decide(
    context: Context,
    waiting: Annotated[
        str,
        Argument(
            metavar="[ID]",
            help="Left out: list all that waits.",
            autocompletion=complete_waiting,
        ),
    ] = "",
    verdict: Annotated[
        str, Argument(metavar="[DECISION]", help="accept, reject or edit.")
    ] = "",
    file: Annotated[
        str | None,
        Option(help="With edit: the edited protocol text; - is standard input."),
    ] = None,
    note: Note = "",
    as_json: Json = False,
) -> None:
    """List all that waits for your decision, or accept or reject one of it."""
    client = client_of(context)
    found = find_waiting(client)
    if not waiting:
        _list(found, as_json=as_json)
        return
    one = _chosen(found, waiting)
    if verdict not in VERDICTS:
        raise CallError(
            ErrorKind.USAGE, f"say accept or reject: anpd decide {one.id} accept"
        )
    if one.kind == "negotiation":
        decide_negotiation(context, one.id, verdict, file, note, as_json)
        return
    path = _path_of(one, verdict)
    body = {"peer": one.peer} if "/peers/" in path else {"note": note}
    done = client.post(path, body)
    told = f"{verdict}ed the {one.kind} of {shown_did(one.peer)}"
    print_one(done, [told], as_json=as_json)


def find_waiting(client: Client) -> list[Waiting]:
    """Return all that waits, decisions about agreements first."""
    return [one for source in SOURCES for one in source(client)]


def _approvals(client: Client) -> Iterator[Waiting]:
    found = client.get("/v1/approvals")
    for one in found["negotiations"]:
        text = f"{one['outcome']}: {one['reason'] or 'a proposal'}"
        yield Waiting(one["id"], "negotiation", one["started"], one["peer"], text)
    for one in found["groups"]:
        text = f"group {one['name'] or one['group']}: {one['text'] or 'no words'}"
        yield Waiting(one["id"], one["kind"], None, one["peer"], text)


def _peers(client: Client) -> Iterator[Waiting]:
    for one in client.get("/v1/peers", limit="1000")["peers"]:
        did, name = one["did"], (*one["names"], one["did"])[0]
        if one["changed_keys"]:
            text = f"{name} has another key than before; accept it if its owner says so"
            yield Waiting(did, "changed key", one["last_seen"], did, text)
        elif one["state"] == "waiting":
            text = f"{name} was refused; accept allows it, reject blocks it"
            yield Waiting(did, "peer", one["last_seen"], did, text)


def _tasks(client: Client) -> Iterator[Waiting]:
    for one in client.get("/v1/tasks", open="1")["tasks"]:
        if one["state"] == "x-input-required" and one["made_by"] != "peer":
            # Asked one by one, as the list of tasks has no questions.
            found = client.get(f"/v1/tasks/{segment(one['id'])}")
            words = (found.get("question") or {}).get("text") or "a question"
            text = f"{one['capability'] or 'a task'} asks: {words}"
            at = one["changed"] or one["created"]
            yield Waiting(one["id"], "question", at, one["executor"], text)


SOURCES: Final[Sequence[Callable[[Client], Iterator[Waiting]]]] = (
    _approvals,
    _peers,
    _tasks,
)


def ways(found: Sequence[Waiting]) -> Iterator[str]:
    """Give the commands that fit what waits."""
    if any(one.kind != "question" for one in found):
        yield "decide with: anpd decide ID accept|reject"
    if any(one.kind == "question" for one in found):
        yield "answer a question with: anpd tasks send ID TEXT (or --decline)"


def _chosen(found: Sequence[Waiting], name: str) -> Waiting:
    # A terminal shows a DID without its middle, and one copies what one sees.
    head, _, tail = name.partition("…")
    chosen = [one for one in found if one.id == name] or [
        one for one in found if one.id.startswith(head) and one.id.endswith(tail)
    ]
    if len(chosen) == 1:
        return chosen[0]
    what = "several wait" if chosen else "nothing waits"
    raise CallError(
        ErrorKind.USAGE, f"{what} under {name}; `anpd decide` lists all that waits"
    )


def _path_of(one: Waiting, verdict: str) -> str:
    """Return the operation of the local API that carries a decision out."""
    ways = {
        ("peer", "accept"): "/v1/peers/allow",
        ("peer", "reject"): "/v1/peers/block",
        ("changed key", "accept"): "/v1/peers/trust",
        ("changed key", "reject"): "/v1/peers/block",
    }
    if one.kind in {"invitation", "application"} and verdict != "edit":
        return f"/v1/approvals/{segment(one.id)}/{verdict}"
    if (one.kind, verdict) in ways:
        return ways[one.kind, verdict]
    if one.kind == "question":
        raise CallError(
            ErrorKind.USAGE,
            f"a question wants an answer: anpd tasks watch {one.id}, or "
            f"anpd tasks send {one.id}",
        )
    raise CallError(ErrorKind.USAGE, "only a negotiation can be edited")


def _list(found: Sequence[Waiting], *, as_json: bool) -> None:
    columns: dict[str, Column] = {
        "ID": lambda one: one.id,
        "KIND": lambda one: one.kind,
        "SINCE": lambda one: when(one.since),
        "WHAT": lambda one: visible(one.text),
        "PEER": lambda one: one.peer,
    }
    answer = {"waiting": [asdict(one) for one in found]}
    if not found and not as_json:
        print_one(answer, ["nothing waits for your decision"], as_json=False)
        return
    notes = ["", *ways(found)]
    print_list(answer, found, columns, as_json=as_json, notes=notes)
