"""Recorded questions and answers, and an endpoint that serves or makes them."""

from __future__ import annotations

import hashlib
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]
Ask = Callable[[Json], Json]

CASSETTES: Final = Path(__file__).parents[1] / "cassettes"
"Where recordings are kept, one file for each scene."

KEPT: Final = ("messages", "input", "instructions", "tools", "response_format", "text")
"What an answer depends on, of all that a request says."

DESK_TIMEOUT: Final = 900.0
"Seconds that a reader has for one answer."


class NotRecorded(LookupError):
    """A request that is on no cassette: its prompt changed, or the path to it did."""


@dataclass(frozen=True, slots=True)
class Row:
    """One question and its answer."""

    fingerprint: str
    "SHA-256 over what the answer depends on."

    request: Json
    "The whole request, as it was sent."

    message: Json
    "The assistant's message."

    made: str
    "How the answer came about."

    @property
    def sound(self) -> bool:
        """True if the request still gives the fingerprint."""
        return fingerprint(self.request) == self.fingerprint


def fingerprint(request: Json) -> str:
    """Return the SHA-256, in hex, over what the answer to `request` depends on."""
    kept = {key: request.get(key) for key in KEPT}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_cassette(path: Path) -> list[Row]:
    """Return the rows of a cassette, oldest first; none if there is no such file."""
    if not path.exists():
        return []
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return [
        Row(row["fingerprint"], row["request"], row["message"], row.get("made", ""))
        for row in rows
    ]


def write_cassette(path: Path, rows: list[Row]) -> None:
    """Write `rows`, one JSON object a line."""
    lines = [
        json.dumps(
            {
                "fingerprint": row.fingerprint,
                "made": row.made,
                "request": row.request,
                "message": row.message,
            },
            ensure_ascii=False,
        )
        for row in rows
    ]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def replayed(rows: list[Row]) -> Ask:
    """Answer from a recording; a request recorded twice is answered in turn."""
    left: dict[str, list[Json]] = {}
    for row in rows:
        left.setdefault(row.fingerprint, []).append(row.message)

    def ask(request: Json) -> Json:
        answers = left.get(fingerprint(request))
        if not answers:
            raise NotRecorded("this request is not on the cassette, or not so often")
        return answers.pop(0)

    return ask


def posted(base_url: str, more: Json | None = None) -> Ask:
    """Answer by the model, or the reader, at an OpenAI-compatible endpoint.

    Args:
        more: Fields that each question gets, such as a temperature.
    """

    def ask(request: Json) -> Json:
        request = {**request, **(more or {})}
        question = urllib.request.Request(
            f"{base_url}/chat/completions",
            json.dumps(request).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(question, timeout=DESK_TIMEOUT) as reply:
            choice = json.load(reply)["choices"][0]
        message = {"content": choice["message"]["content"]}
        if choice.get("finish_reason") == "length":
            message["finish_reason"] = "length"
        return message

    return ask


def recorded(
    ask: Ask, known: list[Row], made: str, kept: list[Row], path: Path | None = None
) -> Ask:
    """Answer from `known` recordings, and what is new by `ask`.

    Args:
        known: Rows of any cassette; equal questions are not put twice.
        made: How the new answers come about.
        kept: Gets a row for each answer.
        path: Where the rows so far are written after each answer.
    """
    answers = {row.fingerprint: row for row in known if row.sound}

    def answer(request: Json) -> Json:
        mark = fingerprint(request)
        row = answers.get(mark) or Row(mark, request, ask(request), made)
        kept.append(row)
        if path is not None:
            write_cassette(path, kept)
        return row.message

    return answer


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model's server on loopback, with a base URL for each side."""

    port: int
    "The port it listens on."

    asked: dict[str, list[Json]]
    "Requests so far, by side."

    failures: list[str]
    "What could not be answered."

    def url(self, side: str) -> str:
        """Return the base URL of one side."""
        return f"http://127.0.0.1:{self.port}/{side}/v1"

    @property
    def calls(self) -> int:
        """Requests of both sides together."""
        return sum(map(len, self.asked.values()))


@contextmanager
def endpoint(ask: Ask) -> Iterator[Endpoint]:
    """Serve `ask` as an OpenAI-compatible endpoint."""
    lock = threading.Lock()
    asked: dict[str, list[Json]] = {}
    failures: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                asked.setdefault(self.path.split("/")[1], []).append(request)
            try:
                message = ask(request)
            except (LookupError, OSError) as exc:
                failures.append(f"{type(exc).__name__}: {exc}")
                # No server's fault that a client would try again.
                self._send(400, {"error": {"message": str(exc), "type": "desk"}})
                return
            self._send(200, _completion(request, message))

        def _send(self, status: int, body: Json) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: what was asked is kept."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield Endpoint(server.server_address[1], asked, failures)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _completion(request: Json, message: Json) -> Json:
    asked = len(json.dumps(request["messages"], ensure_ascii=False)) // 4
    said = len(json.dumps(message, ensure_ascii=False)) // 4
    message = dict(message)
    reason = message.pop("finish_reason", "stop")
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "finish_reason": reason,
    }
    return {
        "id": "desk",
        "object": "chat.completion",
        "created": 0,
        "model": request.get("model", "desk"),
        "choices": [choice],
        "usage": {
            "prompt_tokens": asked,
            "completion_tokens": said,
            "total_tokens": asked + said,
        },
    }
