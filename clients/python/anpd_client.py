"""A client of anpd's local API in one file: Python 3.10 or later, no dependencies.

Copy it beside your program:

    from anpd_client import Anpd

    with Anpd() as anpd:
        answer = anpd.call("shop", "get_product", {"id": "p1"})
        print(answer.output)

Work that lasts is a task; what comes of it comes as it happens:

        task = anpd.start_task("shop", "write_report", {"year": 2026})
        for event in anpd.task_events(task.id):
            print(event["type"], event["data"])

It finds the daemon by `ANPD_SOCKET` (set by `anpd run`), or by the daemon's home:
the argument `home`, `ANPD_HOME`, or the default. Over TCP it takes `url` and `token`.
"""

from __future__ import annotations

import base64
import http.client
import json
import mimetypes
import os
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

MAX_ANSWER = 64 * 1024 * 1024
"Largest answer that is read, in bytes."

COPY_SIZE = 256 * 1024
"Bytes of a file that are in memory at a time."

MAX_FILE = 1024 * 1024 * 1024
"Largest content of a task that is read, in bytes."

Json = Any
Task = str | Mapping[str, Json]


class AnpdError(Exception):
    """The daemon refused, failed, or could not be reached.

    Attributes:
        kind: `usage`, `policy`, `timeout`, `application_error`, `peer_unreachable`,
            `daemon_unreachable`, …: the names of anpd's exit codes.
        detail: One line for people.
        may_have_run: The peer may have acted on the request.
        retry_after: Seconds after which it may go better, or None.
        problem: The problem document of the API (RFC 9457).
    """

    def __init__(self, problem: Mapping[str, Json]) -> None:
        self.problem = dict(problem)
        self.kind = str(problem.get("kind", "unexpected"))
        self.detail = str(problem.get("detail", "the daemon gave no reason"))
        self.may_have_run = problem.get("may_have_run") is True
        after = problem.get("retry_after")
        self.retry_after: float | None = (
            float(after) if isinstance(after, (int, float)) else None
        )
        super().__init__(f"{self.kind}: {self.detail}")


class ApprovalPending(AnpdError):
    """An owner has to approve first; the daemon asks again by itself.

    `call_id` follows it (`Anpd.wait`) or takes it back (`Anpd.cancel`).
    """

    def __init__(self, call_id: str, problem: Mapping[str, Json]) -> None:
        super().__init__(problem)
        self.call_id = call_id


@dataclass(frozen=True)
class Result:
    """What came of a call."""

    output: Json
    "The peer's answer."

    source: str
    "`agreement`, `published`, `consensus`, `negotiated` or `natural_language`."

    capability: str | None
    "Full name of the peer's capability that ran; None where the peer did not say it."

    protocol: str | None
    "Hash of the document it went through."

    peer_did: str
    "The DID that the peer proved."

    negotiation_messages: int
    "Messages it took to agree; 0 from the second call on."

    llm_calls: int
    "Model calls on our side."

    cost: float
    "What those cost at the owner's prices."

    ms: float
    "Milliseconds for everything."


@dataclass(frozen=True)
class Call:
    """A call that goes on by itself."""

    id: str
    "Its id."

    state: str
    "`running`, `waiting`, `done`, `failed` or `cancelled`."

    result: Result | None
    "What came of it, when it is done."

    problem: dict[str, Json] | None
    "Why it failed or waits."


@dataclass(frozen=True)
class TaskState:
    """A task that goes on by itself, as it is now."""

    id: str
    "Its id."

    session: str
    "Id of the session that it belongs to; further tasks may join it."

    state: str
    "`working`, `completed`, `failed`, `canceled`, `rejected`, `x-input-required`, …"

    ended: bool
    "True when the state never changes again."

    code: str
    "Code of a failure or refusal."

    reason: str
    "Reason of a failure or refusal, in words."

    may_have_run: bool
    "True for one that did not end well, and may have been done all the same."

    question: dict[str, Json] | None
    "What it waits for: `text`, `schema` of the answer, `url` to go to."

    messages: list[dict[str, Json]]
    "Its newest messages, in order; empty in a list and at its start."


class Anpd:
    """One daemon. Not for several threads at once: give each its own."""

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        socket_path: str | Path | None = None,
        url: str | None = None,
        token: str | None = None,
    ) -> None:
        """Find the daemon; nothing is sent yet.

        Args:
            home: The daemon's home.
            socket_path: Its Unix socket, in place of the home.
            url: Its loopback address, such as `http://127.0.0.1:8764`.
            token: The text of its token file; needed with `url`. With the owner's
                token in its place everything is allowed, and calls alone without.

        Raises:
            AnpdError: `daemon_unreachable`, no daemon runs in this home.
        """
        self._token = token
        self._address: tuple[str, int] | None = None
        self._socket = ""
        if url is not None:
            parts = urlsplit(url)
            self._address = (parts.hostname or "127.0.0.1", parts.port or 80)
        elif socket_path is not None:
            self._socket = str(socket_path)
        elif home is None and os.environ.get("ANPD_SOCKET"):
            self._socket = os.environ["ANPD_SOCKET"]
        else:
            self._socket = _socket_of(Path(home) if home is not None else _home())

    def __enter__(self) -> Anpd:
        """Use it in a block; there is nothing to close, each request has its own."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the block."""

    def info(self) -> dict[str, Json]:
        """Return who the daemon is and how it is doing."""
        return self._get("/v1/info")

    def call(
        self,
        peer: str,
        need: Task,
        input: Mapping[str, Json] | None = None,
        *,
        timeout: float | None = None,
        mode: str = "auto",
        idempotency_key: str | None = None,
        trust_first_use: bool = False,
    ) -> Result:
        """Call a peer and wait for its answer.

        Args:
            peer: Name, DID, URL, or `URL#DID` as `anpd up` prints it.
            task: A text, the name of a `[[need]]`, or an object with `requirement`,
                `input_schema` and `output_schema`.
            input: The data.
            timeout: Seconds for negotiation and call together.
            mode: `auto`, `protocol` or `natural-language`.
            idempotency_key: A repeated call with it gets the first one's result, for 24
                hours, also after the daemon was restarted.
            trust_first_use: Allow a first use over an unencrypted connection; needs
                the owner's token.

        Raises:
            ApprovalPending: An owner has to approve first.
            AnpdError: There is no result.
        """
        body = _body(peer, need, input, timeout, mode, idempotency_key, trust_first_use)
        status, found = self._ask("POST", "/v1/calls", body)
        if status == 202:
            raise ApprovalPending(found["id"], found["problem"] or {})
        return _result(found)

    def start(
        self,
        peer: str,
        need: Task,
        input: Mapping[str, Json] | None = None,
        *,
        timeout: float | None = None,
        mode: str = "auto",
        idempotency_key: str | None = None,
        trust_first_use: bool = False,
    ) -> Call:
        """Begin a call and return at once; see `call` for the arguments."""
        body = _body(peer, need, input, timeout, mode, idempotency_key, trust_first_use)
        headers = {"Prefer": "respond-async"}
        return _call(self._ask("POST", "/v1/calls", body, headers)[1])

    def status(self, call_id: str) -> Call:
        """Return how a call is doing."""
        return _call(self._get(f"/v1/calls/{quote(call_id, safe='')}"))

    def wait(self, call_id: str) -> Result:
        """Wait for the result of a call, also through an approval.

        Raises:
            AnpdError: There is no result.
        """
        try:
            for _ in self.events(call_id):
                pass
            call = self.status(call_id)
        except AnpdError as exc:
            # Nobody is left who knows how far the call came.
            exc.may_have_run = exc.may_have_run or exc.kind == "daemon_unreachable"
            raise
        if call.result is None:
            raise AnpdError(call.problem or {"detail": f"the call is {call.state}"})
        return call.result

    def events(self, call_id: str | None = None) -> Iterator[dict[str, Json]]:
        """Give the events of a call until it is over, or of all our calls, live.

        Each has `type`, `at` and `data`.
        """
        path = "/v1/events"
        if call_id is not None:
            path = f"/v1/calls/{quote(call_id, safe='')}/events"
        return self._stream(path)

    def _stream(self, path: str, after: int = 0) -> Iterator[dict[str, Json]]:
        headers = {"Last-Event-ID": str(after)} if after else {}
        connection = self._connect()
        try:
            answer = self._send(connection, "GET", path, None, headers)
            if answer.status != 200:
                raise AnpdError(_read(answer))
            for line in answer:
                if line.startswith(b"data: "):
                    yield json.loads(line[len(b"data: ") :])
        except (OSError, http.client.HTTPException) as exc:
            raise _unreachable(str(exc)) from exc
        finally:
            connection.close()

    def cancel(self, call_id: str) -> Call:
        """Take a call back."""
        path = f"/v1/calls/{quote(call_id, safe='')}/cancel"
        return _call(self._ask("POST", path, {})[1])

    def start_task(
        self,
        peer: str | None,
        capability: str = "",
        input: Mapping[str, Json] | None = None,
        *,
        text: str | None = None,
        files: Mapping[str, bytes | Path] | None = None,
        session: str | None = None,
        depends_on: Sequence[str | Mapping[str, Json]] = (),
        depends_any: bool = False,
        find: str | None = None,
        candidates: Sequence[str] = (),
        group: str | None = None,
        timeout: float | None = None,
        parent: str | None = None,
        notify: bool = False,
        protocol: str = "",
        trust_first_use: bool = False,
    ) -> TaskState:
        """Start work that lasts at a peer, and return at once.

        Args:
            peer: Name, DID, URL or `URL#DID`; None with `session` or `find`.
            capability: Its name; empty when the text says what to do.
            input: The arguments.
            text: Plain words.
            files: Bytes, or paths of files of any size, that are sent along, by name.
            session: Id of the session that it joins.
            depends_on: Ids of tasks of that session to be completed before, or objects
                with `task` and the final `states` that will do.
            depends_any: One of them is enough.
            find: A capability's name in place of peer and capability: the task goes to
                the best of the allowed peers that publish it.
            candidates: Peers in order, in place of the peer: the next one gets what
                one hands back.
            group: Id of a group in place of the peer: its members are offered the
                task, and the first that accepts does it.
            timeout: Seconds for the whole, with candidates or a group.
            parent: The task for whose sake this one is: its id, or the key with which
                your agent was given it.
            notify: Keep no connection; the peer dials our daemon when it has news.
            protocol: URI of the protocol that has to carry it; empty for the best.
            trust_first_use: Allow a first use over an unencrypted connection; needs
                the owner's token.
        """
        body: dict[str, Json] = {
            "capability": capability,
            "parts": self._parts(files),
            "depends_on": list(depends_on),
            "notify": notify,
            "protocol": protocol,
            "trust_first_use": trust_first_use,
        }
        more: dict[str, Json | None] = {
            "peer": peer,
            "session": session,
            "text": text,
            "find": find,
            "candidates": [*candidates] or None,
            "group": group,
            "parent": parent,
            "timeout": timeout,
        }
        if depends_any:
            body["depends_any"] = True
        body |= {name: value for name, value in more.items() if value is not None}
        if input is not None:
            body["input"] = dict(input)
        return _task(self._ask("POST", "/v1/tasks", body)[1])

    def split_task(
        self,
        subtasks: Sequence[Mapping[str, Json]],
        *,
        dispatch: str = "parallel",
        wait: str = "all",
        timeout: float | None = None,
        parent: str | None = None,
    ) -> TaskState:
        """Start one task whose parts go to several peers, and return at once.

        Its messages have the results, each with the part's number in `metadata`.

        Args:
            subtasks: Objects with `peer`, `candidates` or `find`, and `capability` and
                `input` or `text`.
            dispatch: `parallel`, or `serial`: each after the end of the one before.
            wait: `all` have to be completed, or `any` one.
            timeout: Seconds for the whole; the rest is cancelled then.
            parent: As for `start_task`.
        """
        body: dict[str, Json] = {
            "subtasks": [dict(one) for one in subtasks],
            "dispatch": dispatch,
            "wait": wait,
        }
        more = {"timeout": timeout, "parent": parent}
        body |= {name: value for name, value in more.items() if value is not None}
        return _task(self._ask("POST", "/v1/tasks", body)[1])

    def wait_tasks(
        self,
        task_ids: Sequence[str],
        *,
        any_of: bool = False,
        states: Sequence[str] = (),
        timeout: float = 60.0,
    ) -> tuple[bool, list[TaskState]]:
        """Wait until tasks have ended; return if they have, and how they are.

        Args:
            any_of: One of them is enough.
            states: States besides the final ones that end the waiting.
            timeout: Seconds, at most an hour.
        """
        body = {
            "tasks": list(task_ids),
            "mode": "any" if any_of else "all",
            "states": list(states),
            "timeout": timeout,
        }
        found = self._ask("POST", "/v1/tasks/wait", body)[1]
        return found["done"], [_task(one) for one in found["tasks"]]

    def task(self, task_id: str) -> TaskState:
        """Return how a task is doing, with its newest messages."""
        return _task(self._get(_task_path(task_id)))

    def tasks(self, *, only_open: bool = False) -> Iterator[TaskState]:
        """Give the tasks, the newest first, page by page."""
        query = {"open": "1"} if only_open else {}
        while True:
            page = self._get("/v1/tasks", **query)
            yield from map(_task, page["tasks"])
            if page["next"] is None:
                return
            query["after"] = page["next"]

    def task_events(self, task_id: str, after: int = 0) -> Iterator[dict[str, Json]]:
        """Give the events of a task as they come, until it has ended.

        Each has `number`, `type`, `at` and `data`. The stream also ends when the daemon
        stops; who goes on with the last `number` misses nothing.

        Args:
            after: Only events with higher numbers.
        """
        return self._stream(f"{_task_path(task_id)}/events", after)

    def answer(
        self,
        task_id: str,
        text: str | None = None,
        value: Json = None,
        *,
        files: Mapping[str, bytes | Path] | None = None,
        action: str = "accept",
    ) -> TaskState:
        """Send a message about a task, such as the answer to its question.

        Args:
            text: Plain words.
            value: A JSON value, such as one of the question's schema.
            files: Bytes that are sent along, by name.
            action: `decline` gives no answer.
        """
        body: dict[str, Json] = {"parts": self._parts(files), "action": action}
        if text is not None:
            body["text"] = text
        if value is not None:
            body["value"] = value
        return _task(self._ask("POST", f"{_task_path(task_id)}/messages", body)[1])

    def cancel_task(self, task_id: str) -> TaskState:
        """Ask for the end of a task; how it ends is the peer's report."""
        return _task(self._ask("POST", f"{_task_path(task_id)}/cancel", {})[1])

    def upload(self, path: Path, name: str = "") -> str:
        """Give the daemon a file of any size; return its id, for `file` of a part.

        Args:
            name: Name for the peer; empty for that of the file.
        """
        media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        query = urlencode({"name": name or path.name, "media_type": media_type})
        connection = self._connect()
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                sent = {
                    "Content-Type": "application/octet-stream",
                    "Content-Length": str(size),
                }
                if self._token is not None:
                    sent["Authorization"] = f"Bearer {self._token.strip()}"
                connection.request("POST", f"/v1/files?{query}", file, sent)
                answer = connection.getresponse()
                found = _read(answer)
        except http.client.HTTPException as exc:
            raise _unreachable(str(exc)) from exc
        finally:
            connection.close()
        if answer.status >= 400:
            raise AnpdError(found)
        return str(found["id"])

    def save_artifact(self, task_id: str, number: str, path: Path) -> None:
        """Write the bytes of a part, by its `artifact`, into a new file.

        Of a file that is on its way yet the error has `retry_after`. When less than all
        of it comes, nothing is left.
        """
        target = f"{_task_path(task_id)}/artifacts/{quote(number, safe='')}"
        connection = self._connect()
        written = path.with_name(f".{path.name}.part")
        try:
            answer = self._send(connection, "GET", target, None, {})
            if answer.status != 200:
                raise AnpdError(_read(answer))
            with written.open("wb") as file:
                # An answer that ends early is an error of the library's.
                shutil.copyfileobj(answer, file, COPY_SIZE)
                if file.tell() != int(answer.getheader("Content-Length", "-1")):
                    raise _unreachable("the daemon ended while it gave a file")
            os.link(written, path)
        except http.client.HTTPException as exc:
            raise _unreachable(str(exc)) from exc
        finally:
            connection.close()
            written.unlink(missing_ok=True)

    def _parts(self, files: Mapping[str, bytes | Path] | None) -> list[dict[str, Json]]:
        parts: list[dict[str, Json]] = []
        for name, content in (files or {}).items():
            if isinstance(content, Path):
                parts.append({"file": self.upload(content, name)})
                continue
            media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
            data = base64.b64encode(content).decode("ascii")
            parts.append({"bytes": data, "media_type": media_type, "name": name})
        return parts

    def next_task(
        self, wait: float = 0, *, attachment: str | None = None
    ) -> dict[str, Json] | None:
        """Take a task for our agent, or None; it has to be acknowledged within 60 s.

        Its `input` is what the other agent sent, `fenced` the same for a model to read.

        Args:
            wait: Seconds to wait for one, at most 300.
            attachment: Only tasks for this attachment of kind `inbox`.
        """
        body: dict[str, Json] = {"wait": wait}
        if attachment is not None:
            body["attachment"] = attachment
        found = self._ask("POST", "/v1/inbox/next", body)[1]["task"]
        return None if found is None else dict(found)

    def inbox_events(
        self, *, attachment: str | None = None
    ) -> Iterator[dict[str, Json]]:
        """Give the tasks for our agent as they come, and what becomes of them.

        `inbox.task` is one that was taken, `inbox.answer` the answer to a question,
        `inbox.ended` one for which nobody waits any more; `data` has the `task`.
        """
        query = (
            "" if attachment is None else f"?{urlencode({'attachment': attachment})}"
        )
        return self._stream(f"/v1/inbox{query}")

    def inbox_tasks(self) -> list[dict[str, Json]]:
        """Return the tasks for our agent that have not ended, the oldest first."""
        return list(self._get("/v1/inbox/tasks")["tasks"])

    def inbox_task(self, task_id: str, wait: int = 0) -> dict[str, Json]:
        """Return a task for our agent, after a change or `wait` seconds."""
        return self._get(f"/v1/inbox/{quote(task_id, safe='')}", wait=str(wait))

    def acknowledge(self, task_id: str) -> dict[str, Json]:
        """Keep a task that was taken; so does everything else that is told of it."""
        return self._inbox(task_id, "ack")

    def release(self, task_id: str) -> dict[str, Json]:
        """Give a task back; the next one to ask gets it, marked as redelivered."""
        return self._inbox(task_id, "release")

    def tell_progress(
        self,
        task_id: str,
        progress: float | None = None,
        total: float | None = None,
        text: str = "",
    ) -> dict[str, Json]:
        """Tell the requester how far the work is."""
        return self._inbox(
            task_id, "progress", progress=progress, total=total, text=text
        )

    def tell(self, task_id: str, text: str) -> dict[str, Json]:
        """Send the requester a message that is no part of the result."""
        return self._inbox(task_id, "messages", text=text)

    def give_part(
        self,
        task_id: str,
        text: str | None = None,
        value: Json = None,
        *,
        files: Mapping[str, bytes] | None = None,
    ) -> dict[str, Json]:
        """Send a part of the result: a text, a JSON value, or files by name."""
        return self._inbox(
            task_id, "parts", text=text, value=value, parts=self._parts(files)
        )

    def ask(
        self,
        task_id: str,
        text: str,
        schema: Mapping[str, Json] | None = None,
        *,
        wait: float = 300,
    ) -> dict[str, Json] | None:
        """Ask the requester; return its answer, or None if it gave none in time.

        The answer has `action` (`accept`, `decline` or `cancel`), `text` and `value`.
        """
        found = self._inbox(task_id, "ask", text=text, schema=schema, wait=wait)
        answer = found["answer"]
        return None if answer is None else dict(answer)

    def complete(
        self, task_id: str, output: Mapping[str, Json] | None = None
    ) -> dict[str, Json]:
        """Give the result; None when the parts before are all of it."""
        return self._inbox(task_id, "result", output=output)

    def fail(self, task_id: str, message: str, code: int = 500) -> dict[str, Json]:
        """End a task without a result, with a reason that the requester reads."""
        return self._inbox(task_id, "failure", message=message, code=code)

    def reject(self, task_id: str, reason: str) -> dict[str, Json]:
        """Hand a task back undone, so that its requester asks another agent.

        That is possible until a part of the result was given.
        """
        return self._inbox(task_id, "reject", reason=reason)

    def _inbox(self, task_id: str, what: str, **fields: Json) -> dict[str, Json]:
        body = {name: value for name, value in fields.items() if value is not None}
        return self._ask("POST", f"/v1/inbox/{quote(task_id, safe='')}/{what}", body)[1]

    def artifact(self, task_id: str, number: str) -> bytes:
        """Return the bytes of a part, by its `artifact`."""
        path = f"{_task_path(task_id)}/artifacts/{quote(number, safe='')}"
        connection = self._connect()
        try:
            answer = self._send(connection, "GET", path, None, {})
            if answer.status != 200:
                raise AnpdError(_read(answer))
            data = answer.read(MAX_FILE + 1)
        except (OSError, http.client.HTTPException) as exc:
            raise _unreachable(str(exc)) from exc
        finally:
            connection.close()
        if len(data) > MAX_FILE:
            raise AnpdError({"detail": f"the content has over {MAX_FILE} bytes"})
        return data

    def peers(self) -> list[dict[str, Json]]:
        """Return every peer that proved its DID."""
        return list(self._get("/v1/peers")["peers"])

    def describe(self, peer: str) -> dict[str, Json]:
        """Return what a peer publishes, and what was agreed with it."""
        return self._get("/v1/peers/offers", peer=peer)

    def capabilities(self) -> list[dict[str, Json]]:
        """Return what is attached here, exposed or not."""
        return list(self._get("/v1/capabilities")["capabilities"])

    def protocols(self) -> list[dict[str, Json]]:
        """Return every agreement."""
        return list(self._get("/v1/protocols")["protocols"])

    def groups(self) -> list[dict[str, Json]]:
        """Return the groups of our agent, invitations included.

        Each has `id`, `name`, `state`, `members`, `last`, `waiting` and `invitation`.
        """
        return list(self._get("/v1/groups")["groups"])

    def group(self, group_id: str) -> dict[str, Json]:
        """Return a group with its members."""
        return self._get(_group_path(group_id))

    def create_group(
        self, name: str = "", invite: Sequence[str] = (), **more: Json
    ) -> dict[str, Json]:
        """Make a group whose owner our agent is.

        Args:
            invite: Peers, by name, DID, URL or `URL#DID`.
            more: `policy`, `admins` and `hub`, as the local API has them.
        """
        body = {"name": name, "invite": list(invite), **more}
        return self._ask("POST", "/v1/groups", body)[1]

    def answer_invitation(self, group_id: str, accept: bool = True) -> dict[str, Json]:
        """Join a group that our agent is invited into, or decline."""
        act = "accept" if accept else "decline"
        return self._ask("POST", f"{_group_path(group_id)}/{act}", {})[1]

    def post(
        self,
        group_id: str,
        text: str | None = None,
        value: Json = None,
        *,
        files: Mapping[str, bytes] | None = None,
        wait: float = 10.0,
    ) -> int | None:
        """Say something to all other members of a group.

        Returns:
            Its number; None while the hub is away, which gets it later by itself.

        Args:
            text: Plain words.
            value: A JSON value.
            files: Bytes that are sent along, by name.
            wait: Seconds to wait for the hub, at most 60.
        """
        body: dict[str, Json] = {"parts": self._parts(files), "wait": wait}
        if text is not None:
            body["text"] = text
        if value is not None:
            body["value"] = value
        found = self._ask("POST", f"{_group_path(group_id)}/messages", body)[1]
        number: int | None = found["number"]
        return number

    def follow(self, group_id: str, after: int = 0) -> Iterator[dict[str, Json]]:
        """Give the events of a group in their order, those of before first.

        Each has `number`, `type`, `at` and `data` with `by` and, for a
        `message.send`, the `message`. The stream ends when the daemon stops; who goes
        on with the last `number` misses nothing.

        Args:
            after: Only events with higher numbers.
        """
        return self._stream(f"{_group_path(group_id)}/events", after)

    def _get(self, path: str, **query: str) -> dict[str, Json]:
        target = f"{path}?{urlencode(query)}" if query else path
        return self._ask("GET", target)[1]

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Json] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, Json]]:
        connection = self._connect()
        # Who took the request may have acted on it before it went away.
        sent = False
        try:
            connection.connect()
            sent = method == "POST"
            answer = self._send(connection, method, path, body, headers or {})
            found = _read(answer)
        except (OSError, http.client.HTTPException) as exc:
            raise _unreachable(str(exc), may_have_run=sent) from exc
        except AnpdError as exc:
            exc.may_have_run = sent
            raise
        finally:
            connection.close()
        if answer.status >= 400:
            raise AnpdError(found)
        return answer.status, found

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Mapping[str, Json] | None,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        sent = {"Accept": "application/json, text/event-stream", **headers}
        data = None
        if body is not None:
            sent["Content-Type"] = "application/json"
            data = json.dumps(body, allow_nan=False).encode()
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token.strip()}"
        connection.request(method, path, body=data, headers=sent)
        return connection.getresponse()

    def _connect(self) -> http.client.HTTPConnection:
        if self._address is not None:
            return http.client.HTTPConnection(*self._address, blocksize=COPY_SIZE)
        return _UnixConnection(self._socket)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", blocksize=COPY_SIZE)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)


def _home() -> Path:
    if os.environ.get("ANPD_HOME"):
        return Path(os.environ["ANPD_HOME"]).expanduser()
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "anpd"


def _socket_of(home: Path) -> str:
    try:
        return str(json.loads((home / "api.json").read_text("utf-8"))["socket"])
    except (OSError, ValueError, KeyError, TypeError):
        raise _unreachable(f"no daemon runs in {home}") from None


def _unreachable(why: str, *, may_have_run: bool = False) -> AnpdError:
    detail = f"{why}; start the daemon with: anpd up"
    problem: dict[str, Json] = {"kind": "daemon_unreachable", "detail": detail}
    return AnpdError(problem | ({"may_have_run": True} if may_have_run else {}))


def _read(answer: http.client.HTTPResponse) -> dict[str, Json]:
    data = answer.read(MAX_ANSWER + 1)
    if len(data) > MAX_ANSWER:
        raise AnpdError({"detail": f"the answer has over {MAX_ANSWER} bytes"})
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise AnpdError({"detail": f"the daemon answered {answer.status}, no object"})
    return found


def _body(
    peer: str,
    need: Task,
    input: Mapping[str, Json] | None,
    timeout: float | None,
    mode: str,
    idempotency_key: str | None,
    trust_first_use: bool,
) -> dict[str, Json]:
    body: dict[str, Json] = {
        "peer": peer,
        "need": need if isinstance(need, str) else dict(need),
        "input": dict(input or {}),
        "mode": mode,
        "trust_first_use": trust_first_use,
    }
    if timeout is not None:
        body["timeout"] = timeout
    if idempotency_key is not None:
        body["idempotency_key"] = idempotency_key
    return body


def _task_path(task_id: str) -> str:
    return f"/v1/tasks/{quote(task_id, safe='')}"


def _group_path(group_id: str) -> str:
    return f"/v1/groups/{quote(group_id, safe='')}"


def _task(found: Mapping[str, Json]) -> TaskState:
    defaults: dict[str, Json] = {"question": None, "messages": []}
    names = TaskState.__dataclass_fields__
    return TaskState(**{name: ({**defaults, **found})[name] for name in names})


def _result(found: Mapping[str, Json]) -> Result:
    names = Result.__dataclass_fields__
    return Result(**{name: found[name] for name in names})


def _call(found: Mapping[str, Json]) -> Call:
    result = found["result"]
    return Call(
        found["id"],
        found["state"],
        None if result is None else _result(result),
        found["problem"],
    )
