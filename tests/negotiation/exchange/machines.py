"""Machines in the states that tests begin with, and what is said to them."""

from __future__ import annotations

import json
from typing import Any

from negotiation.exchange.events import Event, NegotiationFailed
from negotiation.exchange.limits import NegotiationLimits
from negotiation.exchange.machine import Machine
from negotiation.exchange.reactions import NegotiationState
from negotiation.mind import Accept
from negotiation.need import Role

TEXT = "# 需求\nadd two numbers\n\r\n\ttrailing blanks  \n"
OTHER = "# Need\nadd numbers, in our terms\n"
GENERATED = b'{"action": "codeGeneration", "status": "generated"}'
ERROR = b'{"action": "codeGeneration", "status": "error"}'


def turn(number: Any, status: str, text: str | None = None, **more: Any) -> bytes:
    content = {
        "action": "protocolNegotiation",
        "sequenceId": number,
        "status": status,
        **more,
    }
    if text is not None:
        content["candidateProtocols"] = text
    return json.dumps(content).encode()


def events(machine: Machine) -> list[Event]:
    return list(iter(machine.next_event, None))


def sent(machine: Machine) -> list[dict[str, Any]]:
    return [json.loads(data) for data in machine.messages_to_send()]


def failure(machine: Machine) -> NegotiationFailed:
    last = events(machine)[-1]
    assert isinstance(last, NegotiationFailed)
    assert machine.state is NegotiationState.FAILED
    return last


def requester(*, proposed: bool = True, **limits: Any) -> Machine:
    """A requester, by default one that has sent its first candidate."""
    machine = Machine(Role.REQUESTER, NegotiationLimits(**limits), now=0.0)
    if proposed:
        machine.proposal_ready(TEXT, now=0.0)
        sent(machine)
        events(machine)
    return machine


def provider(*, judging: bool = True, **limits: Any) -> Machine:
    """A provider, by default one that has received the first candidate."""
    machine = Machine(Role.PROVIDER, NegotiationLimits(**limits), now=0.0)
    if judging:
        machine.receive_message(turn(0, "negotiating", TEXT), now=0.0)
        events(machine)
    return machine


def accepted_requester(**limits: Any) -> Machine:
    """A requester whose candidate was accepted and that owes its module."""
    machine = requester(**limits)
    machine.receive_message(turn(1, "accepted", TEXT), now=0.0)
    events(machine)
    return machine


def accepting_provider(**limits: Any) -> Machine:
    """A provider that sent `accepted` and `generated`."""
    machine = provider(**limits)
    machine.module_ready(now=0.0)
    machine.verdict_ready(Accept(), now=0.0)
    sent(machine)
    return machine
