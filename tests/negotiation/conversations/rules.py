"""Rules of a negotiation, checked from outside of its machine."""

from __future__ import annotations

from negotiation.exchange.machine import Machine
from negotiation.exchange.reactions import END_STATES
from negotiation.messages import Status


def check_ended(machine: Machine, now: float) -> None:
    """Whatever comes after the end has no effect."""
    assert machine.state in END_STATES
    sent = machine.messages_sent
    machine.receive_message(b'{"action":"codeGeneration","status":"error"}', now=now)
    machine.handle_timer(now=now + 1e6)
    machine.cancel("late", now=now)
    machine.link_lost(now=now)
    assert machine.get_timer() is None
    assert machine.messages_sent == sent
    assert machine.messages_to_send() == []
    assert machine.next_event() is None


def check_numbers(machine: Machine) -> None:
    """Both directions share one counter (ANP-21, ANP-Q4), SDK habits aside."""
    numbers = [turn.sequence_id for turn in machine.transcript]
    verdict = next(
        place
        for place, turn in enumerate(machine.transcript)
        if turn.status is Status.ACCEPTED
    )
    assert numbers[0] in {0, 1}
    for place in range(verdict):
        step = numbers[place + 1] - numbers[place]
        assert step == 1 or (place == 0 and numbers[1] == 2), "a number was skipped"
