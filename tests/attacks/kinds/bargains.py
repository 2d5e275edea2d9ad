"""Attacks with negotiations: stalled, costly to judge, without end, for the model."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from tests.attacks.kinds.base import (
    Attack,
    agree,
    document,
    open_channel,
    said,
    turn,
)
from tests.attacks.newcomer import ARGUMENTS, NEED
from tests.e2e.raw_peer import RawPeer

PATTERNS = (
    "^(a+)+$",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "^(?=(a+))\\1*b$",
    "(x+x+)+y",
    "^(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)[^a]$",
)
"Patterns that take for ever in an engine that goes back and tries again."

LONG = "a" * 60 + "!"
"A text on which they do."


def hostile(number: int) -> str:
    """Return a document whose schemas have catastrophic patterns and a fitting text."""
    text = {
        "type": "string",
        "pattern": PATTERNS[number % len(PATTERNS)],
        "examples": [LONG],
        "default": LONG,
        "enum": [LONG, f"{number}"],
    }
    schema = {
        "type": "object",
        "properties": {"number": {"type": "integer"}, "text": text},
        "patternProperties": {PATTERNS[(number + 1) % len(PATTERNS)]: {}},
        "required": ["number", "text"],
    }
    return document(NEED, ARGUMENTS, schema)


def large(number: int) -> str:
    """Return a document with schemas of nearly as many nodes as one may have."""
    many = {
        f"p{number}_{n}": {"anyOf": [{"type": "string"}, {"type": "null"}]}
        for n in range(320)
    }
    schema = {
        "type": "object",
        "properties": {"number": {"type": "integer"}, "text": {}, **many},
        "required": ["number", "text"],
    }
    return document(NEED, ARGUMENTS, schema)


class Negotiating(Attack):
    """The base of attacks in which peers propose something and see what comes."""

    places: ClassVar[int] = 24

    async def run(self) -> None:
        """See `Attack`."""
        self._numbers = itertools.count()
        await self.many(self.places, self._place)

    async def _place(self) -> None:
        async with self.link() as peer:
            while True:
                await open_channel(peer)
                await peer.send_meta(turn(0, "negotiating", self.text()))
                self.done["proposals"] += 1
                await self.go_on(peer)

    def text(self) -> str:
        """Return what to propose."""
        return document(NEED, {"number": "no number", "text": 1})

    async def go_on(self, peer: RawPeer) -> None:
        """Wait for the answer, and begin anew."""
        async with asyncio.timeout(60):
            await peer.hear_meta()


class StalledNegotiations(Negotiating):
    """24 negotiations whose counter-proposal is never answered, and new ones after."""

    name = "stalled-negotiations"

    async def go_on(self, peer: RawPeer) -> None:
        """Say nothing more."""
        while True:
            await peer.connection.recv()


class SilentChannels(Attack):
    """100 channels of fresh peers on which nothing is ever proposed."""

    name = "silent-channels"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(100, self._stay)

    async def _stay(self) -> None:
        async with self.link() as peer:
            await open_channel(peer)
            while True:
                await peer.connection.recv()


class HostilePatterns(Negotiating):
    """Proposals whose schemas have patterns that take for ever."""

    name = "hostile-patterns"

    def text(self) -> str:
        """See `Negotiating`."""
        return hostile(next(self._numbers))


class LargeSchemas(Negotiating):
    """Proposals whose schemas have nearly as many nodes as they may."""

    name = "large-schemas"

    def text(self) -> str:
        """See `Negotiating`."""
        return large(next(self._numbers))


class OneSchemaWorker(Negotiating):
    """One single peer that sends hostile patterns over one connection."""

    name = "one-hostile-peer"
    places = 1
    addresses = 1

    def text(self) -> str:
        """See `Negotiating`."""
        return hostile(next(self._numbers))


class EndlessAgreements(Attack):
    """Eight peers that agree on ever new documents, on channels that stay open."""

    name = "endless-agreements"
    places: ClassVar[int] = 8

    async def run(self) -> None:
        """See `Attack`."""
        self._numbers = itertools.count()
        await self.many(self.places, self._place)

    async def _place(self) -> None:
        async with self.link() as peer:
            for _ in range(70):
                await agree(peer, another(next(self._numbers)), capabilities=())
                self.done["agreements"] += 1


class OnePeerAgrees(EndlessAgreements):
    """One peer that agrees on more documents than a link may have channels."""

    name = "one-peer-agrees"
    places = 1
    addresses = 1


def another(number: int) -> str:
    """Return a good document that is unlike all others."""
    schema = {
        "type": "object",
        "properties": {
            "number": {"type": "integer", "description": f"number {number}"},
            "text": {"type": "string"},
        },
        "required": ["number", "text"],
    }
    return document(NEED, ARGUMENTS, schema)


class TestCaseFlood(Attack):
    """Twelve peers that propose test cases for an agreement again and again."""

    name = "test-case-flood"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(12, self._propose)

    async def _propose(self) -> None:
        cases = "# Test case\n\n" + "\n".join(
            f"## Case {n}\n\n- request: {json.dumps({'messageId': 'm', 'input': {}})}"
            for n in range(200)
        )
        async with self.link() as peer:
            await agree(peer, document(NEED, ARGUMENTS))
            while True:
                await peer.send_meta(
                    said("testCasesNegotiation", testCases=cases, status="negotiating")
                )
                await peer.hear_meta()
                self.done["proposals"] += 1


class Asking(Negotiating):
    """The base of attacks on a daemon that has a model, which is slow and useless."""

    settings: ClassVar[Mapping[str, object]] = {
        "llm.model": "slow",
        "llm.base_url": "http://127.0.0.1:18999/v1",
    }
    seconds: ClassVar[float] = 0.5

    async def prepare(self) -> None:
        """Serve a model."""
        attack = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                attack.done["asked of the model"] += 1
                threading.Event().wait(attack.seconds)
                choice = {
                    "index": 0,
                    "message": {"role": "assistant", "content": "no idea"},
                    "finish_reason": "stop",
                }
                body = json.dumps({"choices": [choice], "model": "slow"}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 18999), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def text(self) -> str:
        """Propose fields that rules cannot map."""
        number = next(self._numbers)
        return document(NEED, {f"amount_{number}": 1, f"words_{number}": "x"})


class ModelBudget(Asking):
    """Strangers whose proposals need the model, which answers slowly."""

    name = "model-budget"


class ModelQuestions(Asking):
    """Strangers that ask questions about protocols, which the model answers slowly."""

    name = "model-questions"

    async def _place(self) -> None:
        async with self.link() as peer:
            while True:
                await open_channel(peer)
                await peer.send_meta(question(next(self._numbers)))
                self.done["questions"] += 1
                await self.go_on(peer)


class Questions(Negotiating):
    """Strangers that ask questions about protocols, which the rules answer."""

    name = "questions"

    async def _place(self) -> None:
        async with self.link() as peer:
            await open_channel(peer)
            while True:
                await peer.send_meta(question(next(self._numbers)))
                self.done["questions"] += 1
                await self.go_on(peer)


def question(number: int) -> bytes:
    """Return a question in words."""
    return said(
        "naturalLanguageNegotiation",
        type="REQUEST",
        messageId=f"{number:016}",
        message=f"Can you double things, and how, number {number}? " * 100,
    )


ATTACKS = (
    StalledNegotiations,
    SilentChannels,
    HostilePatterns,
    LargeSchemas,
    OneSchemaWorker,
    EndlessAgreements,
    OnePeerAgrees,
    TestCaseFlood,
    ModelBudget,
    ModelQuestions,
    Questions,
)
