"""An agent that takes calls by POST, with nothing but the standard library.

Run as: python callback_agent.py PORT. With HOOK_KEY in its environment it refuses what
is not signed with it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CAPABILITIES = [
    {
        "name": "greet",
        "description": "Greets somebody.",
        "input_schema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
        "output_schema": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "caller": {"type": "string"}},
            "required": ["text", "caller"],
        },
        "read_only": True,
    }
]


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    def do_GET(self) -> None:
        self.answer(200, {"capabilities": CAPABILITIES})

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        if not self.is_signed(content):
            self.answer(401, {"error": "not signed"})
            return
        call = json.loads(content)
        name = call["input"]["name"]
        if name == "nobody":
            self.answer(404, {"error": "there is nobody"})
            return
        self.answer(
            200, {"output": {"text": f"Hello {name}", "caller": call["caller"]["did"]}}
        )

    def is_signed(self, content: bytes) -> bool:
        key = os.environ.get("HOOK_KEY")
        if key is None:
            return True
        head = self.headers
        message = (
            f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + content
        )
        digest = hmac.digest(key.encode(), message, hashlib.sha256)
        wanted = f"v1,{base64.b64encode(digest).decode()}"
        return hmac.compare_digest(wanted, head["webhook-signature"] or "")

    def answer(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
