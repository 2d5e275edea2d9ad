"""An OpenAI-compatible endpoint that says what a test wrote down, in order."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = dict[str, Any]


def says(content: str | dict[str, Any]) -> Answer:
    """Return an assistant's message of text, or of an object as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    return {"role": "assistant", "content": text}


def calls_tool(name: str, **arguments: Any) -> Answer:
    """Return an assistant's message that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": "call_1", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


class ScriptedModel:
    """The answers still to be given, and the questions so far."""

    def __init__(self, answers: list[Answer]) -> None:
        self.left = list(answers)
        self.asked: list[list[dict[str, Any]]] = []
        self.url = ""

    def answer(self, request: dict[str, Any]) -> Answer | None:
        """Return the next message, or None when the script is over."""
        self.asked.append(request["messages"])
        return self.left.pop(0) if self.left else None


@contextmanager
def scripted_model(*answers: Answer) -> Iterator[ScriptedModel]:
    """Serve a script on loopback."""
    model = ScriptedModel(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            message = model.answer(json.loads(self.rfile.read(length)))
            if message is None:
                self.send_error(500, "the script is over")
                return
            finish = "tool_calls" if "tool_calls" in message else "stop"
            choice = {"index": 0, "message": message, "finish_reason": finish}
            body = json.dumps(
                {
                    "id": "scripted",
                    "object": "chat.completion",
                    "created": 0,
                    "model": "scripted",
                    "choices": [choice],
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: what was asked is kept."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
