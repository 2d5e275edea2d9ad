"""A task in a terminal: its text as it streams, progress, questions and end."""

from __future__ import annotations

import contextlib
import hashlib
import json
import mimetypes
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from anp.cli.client import Client, segment
from anp.cli.output import json_line, progress, visible
from anp.errors import CallError, ErrorKind
from anp.sidecar.files.call_folder import names_for

# Files of tasks in a folder of the user's, under the names that peers gave.


def save_file(
    folder: Path,
    name: str,
    data: Iterable[bytes],
    *,
    size: int | None = None,
    sha256: str = "",
) -> Path:
    """Write a file under a peer's name for it, and return its path.

    The name is data: of a path only its end counts, dots at the beginning go, and a
    file or link that is there already is left alone; the new one gets a number. It has
    its name only when all of it is there.

    Args:
        size: Bytes that it has to have; None if that is not known.
        sha256: Its SHA-256; empty if that is not known.

    Raises:
        CallError: It cannot be written, or is another one.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = folder / f".{secrets.token_hex(8)}.part"
        try:
            _write(written, data, size=size, sha256=sha256)
            return _named(written, name)
        finally:
            written.unlink(missing_ok=True)
    except OSError as exc:
        raise CallError(
            ErrorKind.LOCAL_RESOURCE, f"cannot save in {folder}: {exc.strerror}"
        ) from exc


def _write(path: Path, data: Iterable[bytes], *, size: int | None, sha256: str) -> None:
    found, hashed = 0, hashlib.sha256()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o666), "wb") as stream:
        for piece in data:
            stream.write(piece)
            found += len(piece)
            hashed.update(piece)
    if (size is not None and size != found) or sha256 not in ("", hashed.hexdigest()):
        raise CallError(
            ErrorKind.UNEXPECTED, "what came is not the file that was announced"
        )


def _named(written: Path, name: str) -> Path:
    """Give a file its name, or the next one that is free."""
    for tried in names_for(name):
        path = written.parent / tried
        try:
            # Other than a move, this takes no name that is in use.
            os.link(written, path)
        except FileExistsError:
            continue
        return path
    raise CallError(
        ErrorKind.LOCAL_RESOURCE, f"{written.parent} has too many files of one name"
    )


PATIENCE: Final = 60.0
"Seconds for which a watcher waits for a daemon that went away."

PAUSE: Final = 0.5
"Seconds between two attempts to reach it."

BAR: Final = 30
"Characters of a progress bar."


class TaskWatch:
    """Follows one task to its end; see `run`."""

    def __init__(
        self,
        connect: Callable[[], Client],
        task: str,
        *,
        as_json: bool,
        save: Path | None,
        after: int = 0,
    ) -> None:
        """Take a task.

        Args:
            connect: Gives the daemon's local API, also after a restart.
            task: Our own id of it.
            as_json: Print each event as it came, one a line.
            save: Folder that gets the bytes; None keeps none.
            after: Only events with higher numbers.
        """
        self._connect = connect
        self._client = connect()
        self._task = task
        self._path = f"/v1/tasks/{segment(task)}"
        self._as_json = as_json
        self._save = save
        self._last = after
        self._screen = _Screen()
        self._asks = not as_json and _is_terminal(sys.stdin, sys.stderr)
        self._own = ""
        self._begun: dict[str, str] = {}
        "Contents of which the end has not come, by the number of each."

        self._missing: list[str] = []
        "Contents that should be in the folder and are not."

    def run(self) -> dict[str, Any]:
        """Show what happens until the task has ended; return it.

        Raises:
            CallError: The user left it at work, or the daemon went away for good.
        """
        found: dict[str, Any] = self._client.get(self._path)
        self._own = found["executor" if found["made_by"] == "peer" else "requester"]
        while True:
            try:
                for event in self._events():
                    self._show(event)
                for about in self._begun.values():
                    self._missed(about, "it ended early")
                self._screen.end()
                ended: dict[str, Any] = self._client.get(self._path)
                return ended
            except KeyboardInterrupt:
                self._screen.end()
                self._interrupted()

    def check_saved(self) -> None:
        """Check that every file that came is in the folder; CallError if not."""
        if self._missing and self._save is not None:
            raise CallError(
                ErrorKind.APPLICATION_ERROR,
                f"not in {self._save}: {', '.join(self._missing)}",
            )

    def _events(self) -> Iterator[dict[str, Any]]:
        """Give the events to the end of the task, also over restarts of the daemon."""
        limit = None
        while True:
            try:
                for event in self._client.events(
                    f"{self._path}/events", after=self._last
                ):
                    limit = None
                    if event:
                        self._last = event["number"]
                        yield event
                if self._client.get(self._path)["ended"]:
                    return
            except CallError as exc:
                # One that starts may not know our token yet, nor we its new one.
                if limit is None and exc.kind is not ErrorKind.DAEMON_UNREACHABLE:
                    raise
                if limit is not None and time.monotonic() > limit:
                    raise
            if limit is None:
                limit = time.monotonic() + PATIENCE
                self._screen.line("the daemon is away; waiting for it")
            time.sleep(PAUSE)
            try:
                self._client = self._connect()
            except CallError:
                if time.monotonic() > limit:
                    raise

    def _interrupted(self) -> None:
        """Ask whether to leave or to cancel; CallError if it is left."""
        answer = ""
        if self._asks:
            try:
                answer = _read("leave it at work, or cancel it? [l/c] ")
            except (KeyboardInterrupt, EOFError):
                progress("")
        if answer.strip().lower() in {"c", "cancel"}:
            self._client.post(f"{self._path}/cancel")
            return
        raise CallError(
            ErrorKind.INTERRUPTED,
            f"left task {self._task} at work; go on with: anpd tasks watch "
            f"{self._task} --after {self._last}, or end it with: anpd tasks cancel "
            f"{self._task}",
        )

    def _show(self, event: dict[str, Any]) -> None:
        data = event["data"]
        if self._as_json:
            print(json_line(event), flush=True)
        match event["type"]:
            case "task.message":
                self._show_message(data["message"])
            case "task.state" if not self._as_json:
                self._screen.line(f"[{data['state']}]")
            case "task.progress" if not self._as_json:
                self._screen.bar(data["progress"], data["total"], data["text"])

    def _show_message(self, message: dict[str, Any]) -> None:
        for part in message["parts"]:
            if part["kind"] == "bytes" and message["by"] != self._own:
                self._show_bytes(part)
        if self._as_json:
            return
        if message["purpose"] == "result":
            for part in message["parts"]:
                self._show_result(part)
            return
        who = "you" if message["by"] == self._own else "the peer"
        words = [_words(part) for part in message["parts"] if part["kind"] != "bytes"]
        self._screen.line(f"{who}: {' '.join(words)}")
        if message["by"] != self._own:
            self._answer(message)

    def _show_result(self, part: dict[str, Any]) -> None:
        if part["kind"] == "text":
            self._screen.text(part["text"])
        elif part["kind"] == "json":
            self._screen.fresh(json_line(part["value"]))
        elif part["kind"] == "uri":
            self._screen.fresh(part["uri"])

    def _show_bytes(self, part: dict[str, Any]) -> None:
        name = part.get("name", "")
        about = f"{part['media_type']} {name}".strip()
        if part.get("continued"):
            # Its end comes in a later event.
            self._begun[part["artifact"]] = about
            return
        about = self._begun.pop(part["artifact"], about)
        if self._save is None:
            if not self._as_json:
                self._screen.line(f"[{about}: --save DIR keeps it]")
            return
        if not name:
            ending = mimetypes.guess_extension(part["media_type"]) or ""
            name = f"content-{part['artifact']}{ending}"
        try:
            path = self._saved(self._save, name, part)
        except CallError as exc:
            if exc.kind in (ErrorKind.LOCAL_RESOURCE, ErrorKind.DAEMON_UNREACHABLE):
                raise
            self._missed(about, exc.detail)
        else:
            self._screen.line(f"[{about}: {path.stat().st_size} bytes in {path}]")

    def _missed(self, about: str, reason: str) -> None:
        """Say that a content did not come; the others still do."""
        self._missing.append(about)
        self._screen.line(f"[{about} did not come: {reason}]")

    def _saved(self, folder: Path, name: str, part: dict[str, Any]) -> Path:
        """Save a content when it is here, also over restarts of the daemon."""
        place = f"{self._path}/artifacts/{segment(part['artifact'])}"
        # A piece of a longer content tells its own size only.
        whole = (
            {"size": part["size"], "sha256": part["sha256"]} if "sha256" in part else {}
        )
        limit = None
        while True:
            try:
                return save_file(folder, name, self._client.download(place), **whole)
            except CallError as exc:
                away = exc.kind is ErrorKind.DAEMON_UNREACHABLE
                if not away and exc.retry_after is None:
                    raise
                if away and limit is None:
                    limit = time.monotonic() + PATIENCE
                    self._screen.line("the daemon is away; waiting for it")
                elif away and limit is not None and time.monotonic() > limit:
                    raise
                elif not away:
                    limit = None
                    self._screen.line(exc.detail)
            time.sleep(PAUSE)
            with contextlib.suppress(CallError):
                self._client = self._connect()

    # Questions

    def _answer(self, message: dict[str, Any]) -> None:
        """Ask the user what the task waits for, if it still waits for that."""
        found = self._client.get(self._path)
        question = found["question"]
        if question is None or question["number"] != message["number"]:
            return
        if not self._asks:
            self._screen.line(
                f"it waits; answer with: anpd tasks send {self._task} TEXT"
            )
            return
        try:
            body = _asked(question, found["executor"])
        except EOFError:
            progress("")
            body = {"action": "decline"}
        try:
            self._client.post(f"{self._path}/messages", body)
        except CallError as exc:
            # It ended meanwhile, for one.
            self._screen.line(f"not answered: {exc.detail}")


class _Screen:
    """Results on standard output; what is said about them on standard error."""

    def __init__(self) -> None:
        self._one = _is_terminal(sys.stdout, sys.stderr)
        self._has_bar = sys.stderr.isatty()
        self._bar = False
        self._inside = False

    def text(self, text: str) -> None:
        """Print a piece of text as it is."""
        if not text:
            return
        self._wipe()
        shown = "\n".join(
            "\t".join(map(visible, line.split("\t"))) for line in text.split("\n")
        )
        print(shown, end="", flush=True)
        self._inside = not text.endswith("\n")

    def fresh(self, line: str) -> None:
        """Print a line of its own."""
        self.end()
        print(visible(line), flush=True)

    def line(self, line: str) -> None:
        """Say something beside the results."""
        self._wipe()
        if self._one:
            self.end()
        progress(line)

    def bar(self, done: float | None, total: float | None, text: str) -> None:
        """Show how far the task is; a line of its own where there is no terminal."""
        share = None
        if done is not None and total:
            share = min(max(done / total, 0.0), 1.0)
        amount = "" if done is None else f"{done:g}"
        if total is not None and amount:
            amount += f"/{total:g}"
        if share is not None:
            full = round(share * BAR)
            amount = f"[{'#' * full}{'.' * (BAR - full)}] {share:4.0%} {amount}"
        words = visible(f"{amount} {text}".strip()[:200])
        if not words:
            return
        if not self._has_bar:
            progress(words)
        elif not (self._one and self._inside):
            # A bar would wipe out the beginning of a line of text.
            print(f"\r\x1b[K{words[: _width()]}", end="", file=sys.stderr, flush=True)
            self._bar = True

    def end(self) -> None:
        """Finish the line at hand."""
        self._wipe()
        if self._inside:
            print(flush=True)
            self._inside = False

    def _wipe(self) -> None:
        if self._bar:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._bar = False


def end_of(task: dict[str, Any]) -> None:
    """Raise the error that a task ended with, unless it is completed.

    Raises:
        CallError: Its kind gives the exit code.
    """
    state, code = task["state"], task["code"]
    if state == "completed":
        return
    kinds = {
        "rejected": ErrorKind.NEGOTIATION_REJECTED,
        "failed": ErrorKind.APPLICATION_ERROR,
        "canceled": {
            "no_answer": ErrorKind.PEER_UNREACHABLE,
            "dependency_failed": ErrorKind.APPLICATION_ERROR,
        }.get(code, ErrorKind.INTERRUPTED),
    }
    about = " ".join(one for one in (f"the task is {state}", code) if one)
    detail = f"{about}: {task['reason']}" if task["reason"] else about
    raise CallError(
        kinds.get(state, ErrorKind.UNEXPECTED),
        detail,
        may_have_run=task["may_have_run"],
    )


def _asked(question: dict[str, Any], peer: str) -> dict[str, Any]:
    """Return the user's answer as a message; EOFError if there is none."""
    if question["url"] is not None:
        progress(f"{peer} wants you to open this page; nobody has opened it:")
        progress(f"  {question['url']}")
        answer = _read("Enter when it is done, or n to decline: ")
        return {"action": "decline"} if answer.lower().startswith("n") else {"text": ""}
    fields = (question["schema"] or {}).get("properties")
    if not isinstance(fields, dict) or not fields:
        return {"text": _read("> ")}
    required = (question["schema"] or {}).get("required") or []
    value: dict[str, Any] = {}
    for name, schema in fields.items():
        text = _read(f"{name}{'' if name in required else ' (optional)'}> ")
        if text or name in required:
            value[name] = _typed(text, schema)
    return {"value": value}


def _typed(text: str, schema: Any) -> Any:
    """Return what was typed as the JSON value that a field wants."""
    wanted = schema.get("type") if isinstance(schema, dict) else None
    if wanted == "boolean" and text.lower() in {"y", "yes", "n", "no"}:
        return text.lower().startswith("y")
    if wanted in {None, "string"}:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _words(part: dict[str, Any]) -> str:
    if part["kind"] == "text":
        return " ".join(part["text"].split())
    return json_line(part["value"]) if part["kind"] == "json" else str(part["uri"])


def _read(prompt: str) -> str:
    # On standard error, since results go to standard output.
    print(visible(prompt), end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def _is_terminal(*streams: Any) -> bool:
    return all(stream is not None and stream.isatty() for stream in streams)


def _width() -> int:
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        columns = 0
    # Some terminals do not know how wide they are.
    return max(20, (columns or 80) - 1)
