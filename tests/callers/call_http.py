"""A program that speaks HTTP and knows nothing else: standard library alone.

MODE is `tcp` for the port of loopback with its token, or `socket` for the Unix socket.
"""

from __future__ import annotations

import http.client
import json
import socket
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def main(mode: str, request: dict[str, Any]) -> None:
    api = json.loads((Path(request["home"]) / "api.json").read_text())
    headers = {"content-type": "application/json"}
    connection: http.client.HTTPConnection
    if mode == "socket":
        connection = SocketConnection(api["socket"])
    else:
        token = Path(api["token_file"]).read_text().strip()
        headers["authorization"] = f"Bearer {token}"
        connection = http.client.HTTPConnection(urlsplit(api["api_url"]).netloc)
    outputs = []
    for call in request["calls"]:
        body = json.dumps({"peer": request["peer"], **call})
        connection.request("POST", "/v1/calls", body, headers)
        answer = connection.getresponse()
        found = json.load(answer)
        assert answer.status == 200, found
        outputs.append(found["output"])
    print(json.dumps(outputs))


if __name__ == "__main__":
    main(sys.argv[1], json.load(sys.stdin))
