"""tasks: work of peers that lasts: started, watched, answered, cancelled."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from click import Context

from anp.cli.client import Client, client_of, segment
from anp.cli.commands.tasks.watch import TaskWatch, end_of
from anp.cli.completion import complete_task
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.input import read_data, read_input
from anp.cli.options import Json
from anp.cli.output import Column, Line, print_list, print_one, progress, when
from anp.errors import CallError, ErrorKind
from anp.interaction.elements import party_name

MAX_INLINE = 1024 * 1024
"Bytes of all files that go in the message itself; larger ones follow by themselves."

tasks_app = Commands(help="Work of peers that lasts, streams and asks back.")

TaskId = Annotated[
    str, Argument(metavar="TASK", help="Id of the task.", autocompletion=complete_task)
]
Text = Annotated[str | None, Option("--text", help="Plain words.")]
Files = Annotated[
    list[str] | None,
    Option("--file", metavar="NAME=PATH", help="A file that is sent along."),
]
MoreData = Annotated[
    str | None, Option("--data", "-d", help="JSON, @FILE, or - for standard input.")
]
Save = Annotated[
    Path | None, Option(help="Folder for files that come; none there is overwritten.")
]
Timeout = Annotated[
    float | None, Option(help="Seconds for the whole; the rest is cancelled.")
]
Parent = Annotated[
    str | None, Option(help="Task for whose sake this is: its id, or its key here.")
]
Lines = Annotated[bool, Option("--json", help="Print one JSON object a line.")]


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.add(tasks_app, "tasks")


@tasks_app.command("start")
def start_task(
    context: Context,
    peer: Annotated[
        str,
        Argument(
            help="Name, DID, URL or URL#DID; left out with --session, --find, --group."
        ),
    ] = "",
    capability: Annotated[
        str, Argument(help="Capability; left out when the words say it.")
    ] = "",
    data: MoreData = None,
    text: Text = None,
    file: Files = None,
    session: Annotated[
        str | None, Option(help="Id of the session that it belongs to.")
    ] = None,
    after: Annotated[
        list[str] | None,
        Option(
            metavar="TASK[=STATE,…]",
            help="Task that has to be completed before, or to end in such a state.",
        ),
    ] = None,
    after_any: Annotated[
        bool, Option("--after-any", help="One task of --after is enough.")
    ] = False,
    find: Annotated[
        str | None,
        Option(
            metavar="CAPABILITY",
            help="Let the daemon choose among the allowed peers that publish this.",
        ),
    ] = None,
    candidate: Annotated[
        list[str] | None,
        Option(
            metavar="PEER",
            help="Peers in order, in place of PEER: the next gets what is handed back.",
        ),
    ] = None,
    group: Annotated[
        str | None,
        Option(
            metavar="GROUP",
            help="Offer it to a group, in place of PEER: the first to accept does it.",
        ),
    ] = None,
    proxy: Annotated[
        bool, Option("--proxy", help="With --find: go on as with --candidate.")
    ] = False,
    timeout: Timeout = None,
    parent: Parent = None,
    watch: Annotated[
        bool, Option("--watch", help="Show what comes until it has ended.")
    ] = False,
    save: Save = None,
    notify: Annotated[
        bool, Option("--notify", help="Let the peer dial this daemon with its news.")
    ] = False,
    protocol: Annotated[
        str, Option(metavar="URI", help="Protocol that has to carry it.")
    ] = "",
    trust_first_use: Annotated[bool, Option("--trust-first-use")] = False,
    as_json: Lines = False,
) -> None:
    """Start a task; it goes on by itself, also when nobody watches."""
    client = client_of(context)
    body: dict[str, Any] = {"trust_first_use": trust_first_use, "notify": notify}
    body["protocol"] = protocol
    needed = [_needed(one) for one in after or []]
    if session is None and needed:
        session = client.get(f"/v1/tasks/{segment(needed[0]['task'])}")["session"]
    if candidate:
        body |= {"candidates": candidate, "capability": capability or peer}
    elif group is not None:
        body |= {"group": group, "capability": capability or peer}
    else:
        body |= _whom(peer, capability, session=session, find=find)
    body |= _of_plan(proxy=proxy or None, timeout=timeout, parent=parent)
    if data is not None:
        body["input"] = read_data(data)
    if text is not None:
        body["text"] = text
    body |= {"parts": _parts(client, file or []), "depends_on": needed}
    if after_any:
        body["depends_any"] = True
    _started(context, client.post("/v1/tasks", body), watch, as_json=as_json, save=save)


@tasks_app.command("split")
def split_task(
    context: Context,
    part: Annotated[
        list[str],
        Option(
            "--part",
            metavar="JSON",
            help="A part: JSON as in the local API, with peer, capability and input.",
        ),
    ],
    serial: Annotated[
        bool, Option("--serial", help="Each after the end of the one before.")
    ] = False,
    any_of: Annotated[
        bool, Option("--any", help="One completed part ends the others.")
    ] = False,
    timeout: Timeout = None,
    parent: Parent = None,
    watch: Annotated[
        bool, Option("--watch", help="Show what comes until it has ended.")
    ] = False,
    as_json: Lines = False,
) -> None:
    """Start one task whose parts are given to several peers."""
    body: dict[str, Any] = {
        "subtasks": [read_data(one) for one in part],
        "dispatch": "serial" if serial else "parallel",
        "wait": "any" if any_of else "all",
    }
    body |= _of_plan(timeout=timeout, parent=parent)
    found = client_of(context).post("/v1/tasks", body)
    _started(context, found, watch, as_json=as_json)


def _of_plan(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _started(
    context: Context,
    found: dict[str, Any],
    watch: bool,
    *,
    as_json: bool,
    save: Path | None = None,
) -> None:
    if not as_json:
        said = "task" if watch else "next: anpd tasks watch"
        progress(f"{said} {found['id']}")
    if watch:
        _watch(context, found["id"], as_json=as_json, save=save)
    else:
        # Nothing but the id on standard output, so that a script can take it.
        print_one(found, [found["id"]], as_json=as_json)


def _whom(
    peer: str, capability: str, *, session: str | None, find: str | None
) -> dict[str, Any]:
    """Return what the request says of the peer and the capability."""
    if find is not None:
        if peer or session is not None:
            raise CallError(ErrorKind.USAGE, "--find stands without PEER and session")
        return {"find": find}
    if not peer:
        raise CallError(ErrorKind.USAGE, "give PEER and CAPABILITY, or --find")
    if session is None:
        return {"peer": peer, "capability": capability}
    return {"session": session, "capability": capability or peer}


@tasks_app.command("wait")
def wait_tasks(
    context: Context,
    tasks: Annotated[list[str], Argument(metavar="TASK…", help="Their ids.")],
    any_of: Annotated[bool, Option("--any", help="One is enough.")] = False,
    state: Annotated[
        list[str] | None,
        Option(help="State besides the final ones that ends the waiting."),
    ] = None,
    timeout: Annotated[float, Option(help="Seconds.")] = 3600.0,
    as_json: Json = False,
) -> None:
    """Wait until tasks have ended, and print how; exit code 9 when the time is over."""
    body = {
        "tasks": tasks,
        "mode": "any" if any_of else "all",
        "states": state or [],
        "timeout": timeout,
    }
    found = client_of(context).post("/v1/tasks/wait", body)
    told = [(one["id"], one["state"]) for one in found["tasks"]]
    print_one(found, told, as_json=as_json)
    if not found["done"]:
        raise CallError(ErrorKind.TIMEOUT, f"not ended within {timeout:g} s")


@tasks_app.command("list")
def list_tasks(
    context: Context,
    open_only: Annotated[
        bool, Option("--open", help="Only those that have not ended.")
    ] = False,
    limit: Annotated[int, Option(help="Most tasks, the newest first.")] = 100,
    as_json: Json = False,
) -> None:
    """List tasks, the newest first: those given to peers, and those of peers."""
    wanted = {"open": "1"} if open_only else {}
    client = client_of(context)
    found = client.get("/v1/tasks", limit=str(limit), **wanted)
    print_tasks(found, found["tasks"], client, as_json=as_json)


def print_tasks(
    answer: Any, tasks: list[dict[str, Any]], client: Client, *, as_json: bool = False
) -> None:
    """Print tasks in columns."""
    columns: dict[str, Column] = {
        "ID": "id",
        "STATE": "state",
        "STARTED": lambda one: when(one["created"]),
        "BY": "made_by",
        "CAPABILITY": lambda one: one["capability"] or "-",
        "PEER": _peer_of,
    }
    names = client.peer_names
    print_list(answer, tasks, columns, as_json=as_json, names=names)


@tasks_app.command("show")
def show_task(context: Context, task: TaskId, as_json: Json = False) -> None:
    """Show a task, its newest messages, and what it waits for."""
    found = client_of(context).get(f"/v1/tasks/{segment(task)}")
    print_one(found, _told(found), as_json=as_json)


@tasks_app.command("watch")
def watch_task(
    context: Context,
    task: TaskId,
    after: Annotated[int, Option(help="Only events with higher numbers.")] = 0,
    save: Save = None,
    as_json: Lines = False,
) -> None:
    """Show what comes of a task until it has ended, and answer its questions."""
    _watch(context, task, as_json=as_json, save=save, after=after)


@tasks_app.command("send")
def send_message(
    context: Context,
    task: TaskId,
    text: Annotated[str | None, Argument(help="Plain words.")] = None,
    data: MoreData = None,
    file: Files = None,
    decline: Annotated[
        bool, Option("--decline", help="Give no answer to its question.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Send a message about a task, such as the answer to its question."""
    client = client_of(context)
    body: dict[str, Any] = {"parts": _parts(client, file or [])}
    if text is not None:
        body["text"] = text
    if data is not None:
        body["value"] = read_data(data)
    if decline:
        body["action"] = "decline"
    found = client.post(f"/v1/tasks/{segment(task)}/messages", body)
    told = f"sent; the task is {found['state']}"
    if found["state"].startswith("x-"):
        # Its executor has not told yet what it does with the answer.
        told = f"sent; the answer is on its way: `anpd tasks watch {task}` goes on"
    print_one(found, [told], as_json=as_json)


@tasks_app.command("cancel")
def cancel_task(context: Context, task: TaskId, as_json: Json = False) -> None:
    """Ask for the end of a task; how it ends is its executor's report."""
    found = client_of(context).post(f"/v1/tasks/{segment(task)}/cancel")
    told = (
        f"the task is {found['state']}"
        if found["ended"]
        else f"asked for its end; the task is {found['state']}"
    )
    print_one(found, [told], as_json=as_json)


def _watch(
    context: Context, task: str, *, as_json: bool, save: Path | None, after: int = 0
) -> None:
    def connect() -> Client:
        return client_of(context)

    watch = TaskWatch(connect, task, as_json=as_json, save=save, after=after)
    end_of(watch.run())
    watch.check_saved()


def _needed(text: str) -> dict[str, Any]:
    """Return a dependency as the API takes it, from `TASK` or `TASK=STATE,…`."""
    task, _, states = text.partition("=")
    return {"task": task, **({"states": states.split(",")} if states else {})}


def _peer_of(task: dict[str, Any]) -> str:
    return party_name(task["requester" if task["made_by"] == "peer" else "executor"])


def _told(found: dict[str, Any]) -> Iterator[Line]:
    """Give the lines of `show`."""
    ran = " (it may have run)" if found["may_have_run"] else ""
    waits = found["question"]
    for name, value in (
        ("task", found["id"]),
        ("session", found["session"]),
        ("state", f"{found['state']}{ran}"),
        ("capability", found["capability"]),
        ("peer", _peer_of(found)),
        ("started", when(found["created"])),
        ("changed", when(found["changed"])),
        ("code", found["code"]),
        ("reason", found["reason"]),
        ("waits for", waits and (waits["text"] or waits["url"])),
    ):
        if value:
            yield name, value
    for message in found["messages"]:
        for part in message["parts"]:
            shown = part.get("text", part.get("value", part.get("uri")))
            if part["kind"] == "bytes":
                shown = f"{part['media_type']}, {part['size']} bytes"
            yield when(message["at"]), " ".join(str(shown).split())[:200]
    if waits:
        yield "next", f"anpd tasks send {found['id']} TEXT"
    elif not found["ended"]:
        yield "next", f"anpd tasks watch {found['id']}"


def _parts(client: Client, files: list[str]) -> list[dict[str, str]]:
    """Return the files that are given as `NAME=PATH`; large ones are uploaded first."""
    parts, left = [], MAX_INLINE
    for one in files:
        name, equals, text = one.partition("=")
        if not (name and equals and text):
            raise CallError(ErrorKind.USAGE, f"--file {one}: give NAME=PATH")
        path = Path(text)
        media_type = mimetypes.guess_type(text)[0] or "application/octet-stream"
        about = {"name": name, "media_type": media_type}
        if text != "-" and path.is_file() and path.stat().st_size > left:
            parts.append({"file": client.upload(path, **about)["id"]})
            continue
        data = read_input(text, most=left)
        left -= len(data)
        parts.append({"bytes": base64.b64encode(data).decode("ascii"), **about})
    return parts
