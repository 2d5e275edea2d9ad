"""A small MCP server for the tests, which answers as no good server would.

It speaks JSON-RPC over stdio with the standard library alone, so that it starts fast:
`python mcp_server.py STATE`, where STATE is a JSON file with `tools` and `pages`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

TEXT = {"type": "text", "text": "one"}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
OBJECT = {"type": "object"}

ANSWERS: dict[str, dict[str, Any]] = {
    "texts": {"content": [TEXT, {"type": "text", "text": "two"}]},
    "nothing": {"content": []},
    "image": {"content": [TEXT, IMAGE]},
    "error": {"content": [{"type": "text", "text": "no " * 1000}], "isError": True},
    "coded": {
        "content": [TEXT],
        "structuredContent": {"error": {"code": 409, "message": "sold out"}},
        "isError": True,
    },
    "told": {
        "content": [{"type": "text", "text": "Error 404: no such sku"}],
        "isError": True,
    },
    "structured": {"content": [TEXT], "structuredContent": {"n": 1}},
    "unstructured": {"content": [TEXT]},
    "pattern": {"content": [], "structuredContent": {"s": "a" * 40 + "!"}},
    "no_result": {"text": "hello"},
}

writing = threading.Lock()
cancelled = threading.Event()


def write(message: dict[str, Any]) -> None:
    """Write one message."""
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tools(state: Path) -> list[dict[str, Any]]:
    """Return the tools that the state file lists now."""
    listed: list[dict[str, Any]] = json.loads(state.read_text())["tools"]
    return [{"inputSchema": OBJECT, **tool} for tool in listed]


def call(number: int, name: str, arguments: dict[str, Any]) -> None:
    """Answer a call; each runs in a thread of its own."""
    if name == "die":
        os._exit(3)
    if name == "hang":
        return
    if name == "was_cancelled":
        found = str(cancelled.wait(15))
        answer: dict[str, Any] = {"content": [{"type": "text", "text": found}]}
    elif name == "pid":
        answer = {"content": [{"type": "text", "text": str(os.getpid())}]}
    elif name == "env":
        text = json.dumps(dict(os.environ))
        answer = {"content": [{"type": "text", "text": text}]}
    elif name == "large":
        answer = {"content": [{"type": "text", "text": "x" * arguments["n"]}]}
    elif name == "loud":
        sys.stderr.write("y" * 1_000_000)
        sys.stderr.flush()
        with writing:
            sys.stdout.write("this is not JSON\n")
        answer = {"content": [TEXT]}
    elif name == "relist":
        write({"method": "notifications/tools/list_changed"})
        answer = {"content": [TEXT]}
    elif name == "refuse":
        write({"id": number, "error": {"code": -32602, "message": "bad"}})
        return
    else:
        answer = ANSWERS[name]
    write({"id": number, "result": answer})


def main() -> None:
    """Serve until stdin ends."""
    state = Path(sys.argv[1])
    if "last_words" in json.loads(state.read_text()):
        sys.stderr.write("my last words\n")
        sys.exit(1)
    if "silent" in json.loads(state.read_text()):
        sys.stdin.read()
        return
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        params = message.get("params") or {}
        if method == "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "test", "version": "1"},
            }
            write({"id": number, "result": result})
        elif method == "tools/list":
            found, start = tools(state), int(params.get("cursor", 0))
            size = json.loads(state.read_text()).get("page", 100)
            page: dict[str, Any] = {"tools": found[start : start + size]}
            if start + size < len(found):
                page["nextCursor"] = str(start + size)
            write({"id": number, "result": page})
        elif method == "tools/call":
            arguments = (number, params["name"], params.get("arguments", {}))
            threading.Thread(target=call, args=arguments, daemon=True).start()
        elif method == "notifications/cancelled":
            cancelled.set()
        elif number is not None:
            write({"id": number, "error": {"code": -32601, "message": "unknown"}})


if __name__ == "__main__":
    main()
