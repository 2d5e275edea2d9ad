"""A small MCP server for the tests, which answers as no good server would.

It speaks JSON-RPC over stdio with the standard library alone, so that it starts fast:
`python mcp_server.py STATE`, where STATE is a JSON file with `tools` and `pages`.
"""

from __future__ import annotations

import json
import os
import queue
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
    "empty_text": {"content": [{"type": "text", "text": ""}, IMAGE]},
    "between": {
        "content": [
            {**IMAGE, "annotations": {"audience": ["user"], "priority": 0.5}},
            TEXT,
        ]
    },
    "noted": {"content": [{**TEXT, "annotations": {"priority": 1}}]},
    "media": {"content": [IMAGE], "structuredContent": {"content": [IMAGE]}},
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
    "broken": {"content": [{**IMAGE, "data": "no base64"}]},
    "blocks": {
        "content": [
            TEXT,
            IMAGE,
            {"type": "audio", "data": "AQID", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "x://a/b", "name": "b", "size": 3},
            {"type": "resource", "resource": {"uri": "x://a/c.txt", "text": "see"}},
            {"type": "resource", "resource": {"uri": "x://a/d", "blob": "AA=="}},
        ]
    },
    "both": {"content": [TEXT, IMAGE], "structuredContent": {"n": 1}},
}
QUESTION = {
    "message": "Which one?",
    "requestedSchema": {
        "type": "object",
        "properties": {"one": {"type": "string"}},
        "required": ["one"],
    },
}
PAGE = {
    "mode": "url",
    "message": "Sign in",
    "url": "https://a.example/in",
    "elicitationId": "1",
}
RESOURCES = [{"uri": "x://a", "name": "a", "mimeType": "text/plain"}]
RELATED = "io.modelcontextprotocol/related-task"

writing = threading.Lock()
cancelled = threading.Event()
visited = threading.Event()
given: queue.Queue[dict[str, Any]] = queue.Queue()
"The client's answers to our own requests."


def write(message: dict[str, Any]) -> None:
    """Write one message."""
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tools(state: Path) -> list[dict[str, Any]]:
    """Return the tools that the state file lists now."""
    listed: list[dict[str, Any]] = json.loads(state.read_text())["tools"]
    return [{"inputSchema": OBJECT, **tool} for tool in listed]


def ask(question: dict[str, Any], method: str = "elicitation/create") -> str:
    """Ask the client, and return its answer as text."""
    write({"id": "q1", "method": method, "params": question})
    message = given.get(timeout=15)
    return json.dumps(message.get("result") or message["error"]["message"])


def work(task: str, arguments: dict[str, Any]) -> None:
    """Serve a task's result: ask in its name, and answer."""
    number = int(arguments["request"])
    text = ask({**QUESTION, "_meta": {RELATED: {"taskId": task}}})
    write({"id": number, "result": {"content": [{"type": "text", "text": text}]}})


def state_of(task: str, status: str) -> dict[str, Any]:
    """Return a task as the protocol has it."""
    now = "2026-01-01T00:00:00Z"
    return {
        "taskId": task,
        "status": status,
        "statusMessage": f"I am {status}",
        "createdAt": now,
        "lastUpdatedAt": now,
        "ttl": None,
        "pollInterval": 200,
    }


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
    elif name == "nan":
        answer = {"content": [], "structuredContent": {"number": float("nan")}}
    elif name == "loud":
        sys.stderr.write("y" * 1_000_000)
        sys.stderr.flush()
        with writing:
            sys.stdout.write("this is not JSON\n")
        answer = {"content": [TEXT]}
    elif name == "relist":
        write({"method": "notifications/tools/list_changed"})
        answer = {"content": [TEXT]}
    elif name == "ask":
        text = ask(QUESTION)
        answer = {"content": [{"type": "text", "text": text}]}
    elif name == "ask_page":
        answer = {"content": [{"type": "text", "text": ask(PAGE)}]}
    elif name == "think":
        text = ask({"messages": [], "maxTokens": 1}, "sampling/createMessage")
        answer = {"content": [{"type": "text", "text": text}]}
    elif name == "behind_page" and not visited.is_set():
        visited.set()
        data = {"elicitations": [PAGE]}
        error = {"code": -32042, "message": "sign in", "data": data}
        write({"id": number, "error": error})
        return
    elif name == "behind_page":
        answer = {"content": [TEXT]}
    elif name == "refuse":
        write({"id": number, "error": {"code": -32602, "message": "bad"}})
        return
    else:
        answer = ANSWERS[name]
    write({"id": number, "result": answer})


def answer_of(
    method: str, params: dict[str, Any], state: Path
) -> dict[str, Any] | None:
    """Return the answer to a request about tasks, prompts or resources."""
    if method == "tasks/get":
        return state_of("t1", "working")
    if method == "tasks/cancel":
        state.with_suffix(".cancelled").touch()
        return state_of("t1", "cancelled")
    if method == "prompts/list":
        wanted = [{"name": "who", "required": True}]
        return {"prompts": [{"name": "greet", "arguments": wanted}]}
    if method == "prompts/get":
        text = f"Greet {params['arguments']['who']}."
        said = {"role": "user", "content": {"type": "text", "text": text}}
        return {"messages": [said, {"role": "assistant", "content": IMAGE}]}
    if method == "resources/list":
        return {"resources": RESOURCES}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"name": "any", "uriTemplate": "x://{one}"}]}
    if method == "resources/read":
        uri = params["uri"]
        blob = {"uri": uri, "blob": "AAEC", "mimeType": "image/png"}
        return {"contents": [{"uri": uri, "text": f"text of {uri}"}, blob]}
    return None


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
        if method is None:
            given.put(message)
        elif method == "initialize":
            able = {"tools": {"listChanged": True}}
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {
                    **able,
                    **json.loads(state.read_text()).get("able", {}),
                },
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
        elif method == "tools/call" and "task" in params:
            write({"id": number, "result": {"task": state_of("t1", "working")}})
        elif method == "tasks/result":
            asked = ("t1", {"request": number})
            threading.Thread(target=work, args=asked, daemon=True).start()
        elif method == "tools/call":
            arguments = (number, params["name"], params.get("arguments", {}))
            threading.Thread(target=call, args=arguments, daemon=True).start()
        elif method == "notifications/cancelled":
            cancelled.set()
        elif (other := answer_of(method, params, state)) is not None:
            write({"id": number, "result": other})
        elif number is not None:
            write({"id": number, "error": {"code": -32601, "message": "unknown"}})


if __name__ == "__main__":
    main()
