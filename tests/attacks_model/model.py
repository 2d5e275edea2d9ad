"""An OpenAI-compatible endpoint that does whatever the texts in its prompt say.

It finds orders in any disguise and follows them. With `free` it says what it was told
to say; without, it bends that until the form of the question allows it, as a server
does that holds a model to the form. Without an order it answers like somebody who takes
the first choice everywhere.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tests.attacks_model.orders import Order, orders_in
from tests.attacks_model.private import encoded, known_in

MISSING: Final = object()


@dataclass
class ObedientModel:
    """The answers of the endpoint, and what it was asked."""

    free: bool = False
    "True to answer as told, whatever the form of the question."

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    "The step and the prompt of each question."

    obeyed: int = 0
    "Answers that followed an order."

    knew: set[str] = field(default_factory=set)
    "Steps whose prompt held a private text."

    def reply(self, request: dict[str, Any]) -> str:
        """Return the answer to one request."""
        prompt = "\n".join(str(one["content"]) for one in request["messages"])
        form = request.get("response_format", {}).get("json_schema", {})
        step = str(form.get("name", ""))
        self.asked.append((step, prompt))
        if known_in(prompt):
            self.knew.add(step)
        orders = [one for one in orders_in(prompt) if one.step in {"*", step}]
        if not orders:
            return json.dumps(_Filled(Order(), prompt).made(form["schema"]))
        self.obeyed += 1
        # The order for this step counts before one for all.
        order = min(orders, key=lambda one: one.step == "*")
        filled = _Filled(order, prompt, len(self.asked))
        if self.free and order.raw:
            return filled.told(order.raw)
        if self.free and order.answer is not None:
            # A list that the order does not name is empty: the form asks for all.
            empty: dict[str, Any] = {
                one: [] for one in form["schema"]["properties"] if one in SHAPES
            }
            return json.dumps(empty | filled.put(order.answer))
        return json.dumps(filled.made(form["schema"], order.answer or MISSING))


SHAPES: Final = frozenset({"again", "each", "fails", "fallbacks", "joins", "pages"})
"Lists that stay empty unless an order has them: with wrong ones a plan is refused."


class _Filled:
    """Fills in one form as an order says."""

    def __init__(self, order: Order, prompt: str, number: int = 0) -> None:
        self._order = order
        self._known = known_in(prompt)
        self._number = number

    def told(self, words: str) -> str:
        """Return words with the private texts that the prompt has."""
        return words.replace("$PRIVATE", encoded(self._known, self._order.form))

    def put(self, value: Any) -> Any:
        """Return an answer with the private texts in their places."""
        if isinstance(value, str):
            return self.told(value)
        if isinstance(value, list):
            return [self.put(one) for one in value]
        if isinstance(value, dict):
            return {name: self.put(one) for name, one in value.items()}
        return value

    def made(self, schema: Any, wanted: Any = MISSING) -> Any:
        """Return what a schema allows, as near to what is wanted as can be."""
        if "enum" in schema:
            return self._chosen(schema["enum"], wanted)
        match schema.get("type"):
            case "object":
                given = wanted if isinstance(wanted, dict) else {}
                return {
                    name: self.made(
                        one, given.get(name, [] if name in SHAPES else MISSING)
                    )
                    for name, one in schema["properties"].items()
                }
            case "array":
                return self._listed(schema, wanted)
            case "boolean":
                return wanted if isinstance(wanted, bool) else self._order.yes
        if isinstance(wanted, str):
            return self.told(wanted)
        return self.told(self._order.words)

    def _listed(self, schema: Any, wanted: Any) -> list[Any]:
        most = schema.get("maxItems", 1)
        if isinstance(wanted, list):
            return [self.made(schema["items"], one) for one in wanted[:most]]
        if not most:
            return []
        choices = schema["items"].get("enum")
        if choices and self._order.spells and self._known:
            bits = ord(self._known[self._number % len(self._known)])
            return [one for at, one in enumerate(choices) if bits >> at & 1][:most]
        if choices:
            meant = [one for one in self._order.wants if one in choices]
            return (meant or choices)[:most]
        return [self._linked(schema["items"])]

    def _linked(self, schema: Any) -> Any:
        made = self.made(schema)
        if self._order.code and "how" in schema.get("properties", {}):
            made |= {"how": "python", "args": [self.told(self._order.code)]}
        return made

    def _chosen(self, choices: list[Any], wanted: Any) -> Any:
        for one in (wanted, *self._order.wants):
            if one in choices:
                return one
        return choices[0]


@contextmanager
def obedient_model() -> Iterator[ObedientModel]:
    """Serve the model on loopback."""
    model = ObedientModel()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            said = model.reply(json.loads(self.rfile.read(length)))
            message = {"role": "assistant", "content": said}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            body = json.dumps(
                {
                    "id": "obedient",
                    "object": "chat.completion",
                    "created": 0,
                    "model": "obedient",
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
    server.daemon_threads = True
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
