"""Providers of a task: services on loopback that behave as their documents say."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from anp.sidecar.attachments import AttachmentSpec
from tests.desk.tasks.task import Fault, Task, Tool

Json = dict[str, Any]


def _described(tool: Tool) -> Json:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input,
        "output_schema": tool.output,
        "read_only": not tool.changes,
    }


def _called(tools: dict[str, Tool], body: Json) -> tuple[int, Json]:
    try:
        return 200, {"output": tools[body["capability"]].call(body["input"])}
    except Fault as exc:
        return 500, {"error": {"code": exc.code, "message": str(exc)}}


@contextmanager
def providers(task: Task) -> Iterator[list[AttachmentSpec]]:
    """Serve the tools of `task`; give one attachment for each of its agents."""
    agents: dict[str, dict[str, Tool]] = {}
    for tool in task.tools:
        agents.setdefault(tool.agent, {})[tool.name] = tool

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tools = agents[self.path.strip("/")].values()
            self._send(200, {"capabilities": list(map(_described, tools))})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(*_called(agents[self.path.strip("/")], body))

        def _send(self, status: int, body: Json) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield [
            AttachmentSpec(
                kind="callback",
                name=name,
                url=f"http://127.0.0.1:{server.server_address[1]}/{name}",
                expose=("*",),
            )
            for name in agents
        ]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
