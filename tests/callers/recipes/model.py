"""Answers as a model of OpenAI's API would that calls one tool and tells its answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def playing(tool: str, arguments: dict[str, Any]) -> Iterator[str]:
    """Serve the model on a free port of loopback; give its URL.

    Args:
        tool: End of the name of the tool that it calls first.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            request = json.loads(self.rfile.read(length))
            message = _message(request, tool, arguments)
            called = "tool_calls" in message
            self._send(
                {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 0,
                    "model": request["model"],
                    "choices": [
                        {
                            "index": 0,
                            "message": {"role": "assistant", **message},
                            "finish_reason": "tool_calls" if called else "stop",
                        }
                    ],
                    "usage": {
                        "prompt_tokens": 1,
                        "completion_tokens": 1,
                        "total_tokens": 2,
                    },
                }
            )

        def _send(self, value: object) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()


def _message(
    request: dict[str, Any], tool: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    last = request["messages"][-1]
    answers = [one for one in request["messages"] if one["role"] == "tool"]
    if answers:
        return {"content": f"The tool said: {json.dumps(answers[-1]['content'])}"}
    names = [one["function"]["name"] for one in request.get("tools", ())]
    found = [name for name in names if name.endswith(tool)]
    if not found:
        return {"content": f"no tool {tool} among {names} after {last['role']}"}
    call = {"name": found[0], "arguments": json.dumps(arguments)}
    return {
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
    }
