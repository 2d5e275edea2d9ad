"""Two sides of a session to test with: they store what a step says, and pass it on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from anp.interaction.conversation import Conversation
from anp.interaction.elements import (
    Message,
    Part,
    Party,
    SenderRole,
    Session,
    SessionEvent,
    SessionHead,
    Task,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import Operation, Send, SessionOpen, refusal
from anp.interaction.record import RECENT_EVENTS, InteractionLimits
from anp.interaction.step import Step
from anp.interaction.stored import (
    event_bytes,
    head_bytes,
    read_event,
    read_head,
    read_task,
    task_bytes,
)

ALICE, BOB, CAROL = "did:key:zAlice", "did:key:zBob", "did:key:zCarol"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def session(**more: Any) -> Session:
    fields = {
        "id": "s",
        "requester": Party(id=ALICE, address="wss://alice.example"),
        "participants": (Party(id=BOB),),
        **more,
    }
    return Session(**fields)


def task(name: str = "t", **more: Any) -> Task:
    fields = {"id": name, "session": "s", "requester": ALICE, "executor": BOB, **more}
    return Task(**fields)


def message(name: str = "m", sender: str = ALICE, **more: Any) -> Message:
    role = SenderRole.REQUESTER if sender == ALICE else SenderRole.SERVICE
    fields = {
        "id": name,
        "session": "s",
        "sender": sender,
        "role": role,
        "parts": (Part.text(name),),
        **more,
    }
    return Message(**fields)


class Side:
    """One side with its store, which a kill leaves as it is."""

    def __init__(self, own: str, limits: InteractionLimits | None = None) -> None:
        self.own = own
        self.limits = limits
        self.now = 0.0
        self.machine: Conversation | None = None
        self.events: list[bytes] = []
        self.tasks: dict[str, bytes] = {}
        self.head: bytes = b""
        self.outgoing: list[Send] = []
        self.steps: list[Step] = []

    @property
    def wall(self) -> datetime:
        return NOW + timedelta(seconds=self.now)

    @property
    def conversation(self) -> Conversation:
        assert self.machine is not None
        return self.machine

    @property
    def log(self) -> list[SessionEvent]:
        return [read_event(data) for data in self.events]

    def begin(self, made: Session | None = None) -> None:
        self.machine, step = Conversation.begin(
            made or session(), wall_now=self.wall, limits=self.limits
        )
        self.store(step)

    def do(self, command: Callable[[Conversation], Step]) -> Step:
        """Give our side a command; InteractionError if it is refused."""
        return self.store(command(self.conversation))

    def store(self, step: Step) -> Step:
        """Keep what a step says, then send."""
        machine = self.conversation
        for event in step.events:
            self.events.append(event_bytes(event))
            assert event.number == len(self.events)
        for name in step.tasks:
            self.tasks[name] = task_bytes(machine.tasks[name])
        self.head = head_bytes(machine.head)
        self.outgoing += step.sends
        self.steps.append(step)
        return step

    def receive(self, send: Send, sender: str) -> Step:
        """Take an operation of a peer, or answer why not."""
        operation, ref = send.operation, send.ref
        try:
            if self.machine is None and isinstance(operation, SessionOpen):
                self.machine, step = Conversation.join(
                    operation.session,
                    own=self.own,
                    sender=sender,
                    ref=ref,
                    wall_now=self.wall,
                    limits=self.limits,
                )
            elif self.machine is None:
                raise InteractionError(InteractionFault.UNKNOWN_SESSION, "no session")
            else:
                step = self.machine.receive(
                    operation,
                    sender=sender,
                    ref=ref,
                    now=self.now,
                    wall_now=self.wall,
                )
        except InteractionError as exc:
            answer: Operation = refusal("s", ref, exc)
            self.outgoing.append(Send(to=sender, ref=0, operation=answer))
            return Step()
        return self.store(step)

    def sent(self) -> list[Send]:
        """Return what is to be sent, and forget it."""
        outgoing, self.outgoing = self.outgoing, []
        return outgoing

    def kill(self) -> None:
        """Lose everything but the store, and start again."""
        self.outgoing = []
        if not self.head:
            self.machine = None
            return
        self.machine = Conversation.restore(
            read_head(self.head),
            [read_task(data) for data in self.tasks.values()],
            self.log[-RECENT_EVENTS:],
            now=self.now,
            limits=self.limits,
        )

    def repeat(self, peer: str) -> None:
        """Send again what the peer has not acknowledged, as over a new connection."""
        if self.machine is None:
            return
        log = self.log
        for number in self.machine.unacknowledged(peer):
            self.outgoing.append(self.machine.operation_of(log[number - 1], peer))


def restored_head(side: Side) -> SessionHead:
    return read_head(side.head)


def pump(one: Side, other: Side) -> None:
    """Let both sides talk until nothing is under way."""
    while one.outgoing or other.outgoing:
        for sender, receiver in ((one, other), (other, one)):
            for send in sender.sent():
                if send.to == receiver.own:
                    receiver.receive(send, sender.own)


def pair() -> tuple[Side, Side]:
    """Return a requester and a service in an open session."""
    alice, bob = Side(ALICE), Side(BOB)
    alice.begin()
    pump(alice, bob)
    return alice, bob
