"""Two sides of an envelope channel in a test, with time and ids of the test's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any

from anp.protocols.envelope import EnvelopeCode
from negotiation.consensus.written import (
    Ask,
    Flagged,
    Parties,
    WrittenCode,
    WrittenEvent,
    WrittenLimits,
    WrittenProtocol,
)
from negotiation.need import Capability, Role

ALICE = "did:example:alice"
BOB = "did:example:bob"
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

LOOKUP = Capability(
    "shop.lookup",
    "Looks up a price.",
    {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]},
    {"type": "object"},
    read_only=True,
)
SHARED = (
    LOOKUP,
    Capability("shop.order", "Orders.", {"type": "object"}, {"type": "object"}),
)


def counting(start: int = 0) -> Callable[[int], bytes]:
    """Return a source of bytes that never repeats."""
    numbers: Iterator[int] = iter(range(start, start + 1_000_000))
    return lambda size: next(numbers).to_bytes(size, "big")


def calls_in(work: Callable[[], object]) -> int:
    """Return how many functions are called by some work, those written in C too."""
    count = 0

    def hook(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(hook)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def message(
    message_type: str = "request", payload: Any = None, **fields: Any
) -> dict[str, Any]:
    """Return a valid message from Alice to Bob, with some fields changed."""
    payloads: dict[str, Any] = {
        "request": {"action": "shop.lookup", "parameters": {"sku": "A-1"}},
        "response": {"status": "success", "result": {}},
        "event": {"event_name": "restocked", "event_data": {}},
        "error": {"code": "processing_failed", "message": "no"},
    }
    value: dict[str, Any] = {
        "protocol_version": "1.0",
        "message_id": "m-1",
        "timestamp": "2026-11-21T12:00:00Z",
        "sender_id": ALICE,
        "receiver_id": BOB,
        "message_type": message_type,
        "payload": payloads.get(message_type, {}) if payload is None else payload,
    }
    if message_type == "response":
        value["metadata"] = {"correlation_id": "q-1"}
    return {**value, **fields}


def without(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return `value` less one field."""
    return {key: item for key, item in value.items() if key != name}


class Agent:
    """One side, its time, and what came of it."""

    def __init__(
        self,
        role: Role,
        *,
        limits: WrittenLimits | None = None,
        code: WrittenCode | None = None,
        own: str | None = None,
        peer: str | None = None,
        aliases: frozenset[str] = frozenset(),
        offered: tuple[Capability, ...] = (),
        seed: int = 0,
    ) -> None:
        asks = role is Role.REQUESTER
        self.now = 100.0
        self.machine: WrittenProtocol = (code or EnvelopeCode())(
            role,
            Parties(
                own_id=own or (ALICE if asks else BOB),
                peer_id=peer or (BOB if asks else ALICE),
                peer_aliases=aliases,
            ),
            limits=limits or WrittenLimits(),
            random_bytes=counting(seed),
        )
        self.events: list[WrittenEvent] = []
        self.machine.start(now=self.now, wall_now=self.wall)
        if offered:
            self.machine.offer(offered, now=self.now, wall_now=self.wall)

    @property
    def wall(self) -> datetime:
        return NOW + timedelta(seconds=self.now - 100.0)

    def ask(self, call_id: str = "c", action: str = "shop.lookup", **more: Any) -> None:
        call = Ask(call_id=call_id, action=action, arguments={"sku": "A-1"}, **more)
        self.machine.ask(call, now=self.now, wall_now=self.wall)

    def receive(self, data: bytes | Mapping[str, Any]) -> None:
        if not isinstance(data, bytes):
            data = json.dumps(data, ensure_ascii=False).encode()
        self.machine.receive_message(data, now=self.now, wall_now=self.wall)

    def answered(self, call_id: str, output: Any) -> None:
        self.machine.capability_answered(
            call_id, output, now=self.now, wall_now=self.wall
        )

    def failed(self, call_id: str, code: str, text: str, *, ran: bool) -> None:
        self.machine.capability_failed(
            call_id, code, text, ran=ran, now=self.now, wall_now=self.wall
        )

    def tell(self, name: str, data: dict[str, Any]) -> None:
        self.machine.tell(name, data, now=self.now, wall_now=self.wall)

    def wait(self, seconds: float) -> None:
        """Let time pass; the timer rings when it is due."""
        until = self.now + seconds
        while (due := self.machine.get_timer()) is not None and due <= until:
            self.now = max(self.now, due)
            self.machine.handle_timer(now=self.now, wall_now=self.wall)
        self.now = until

    def raw(self) -> list[bytes]:
        """Return what is to be sent."""
        return self.machine.messages_to_send()

    def said(self) -> list[dict[str, Any]]:
        """Return what is to be sent, read."""
        return [json.loads(data) for data in self.raw()]

    def told(self) -> list[WrittenEvent]:
        """Return the new events but for the flags, which are kept in `events`."""
        fresh: list[WrittenEvent] = []
        while (event := self.machine.next_event()) is not None:
            fresh.append(event)
        self.events += fresh
        return [event for event in fresh if not isinstance(event, Flagged)]

    def flags(self) -> list[str]:
        """Return the reasons of all flags so far."""
        self.told()
        return [one.reason for one in self.events if isinstance(one, Flagged)]
