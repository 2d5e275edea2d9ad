"""The machine and a peer like the official SDK."""

from __future__ import annotations

from negotiation.errors import FailureKind
from negotiation.exchange.events import (
    Event,
    NeedModule,
    NeedProposal,
    NeedVerdict,
    NegotiationAgreed,
    NegotiationFailed,
)
from negotiation.exchange.machine import Machine
from negotiation.mind import Accept, Counter, Verdict
from negotiation.need import Role
from tests.clauses import clause
from tests.negotiation.exchange.machines import (
    OTHER,
    TEXT,
    events,
    failure,
    provider,
    requester,
    turn,
)
from tests.negotiation.sdk_like import SdkLike


def play(machine: Machine, peer: SdkLike, verdicts: list[Verdict]) -> list[Event]:
    """Let both talk until nothing more happens; return every event of ours."""
    seen: list[Event] = []
    pending = list(verdicts)
    moved = True
    while moved:
        moved = False
        for data in machine.messages_to_send():
            peer.receive(data)
            moved = True
        while peer.outgoing:
            machine.receive_message(peer.outgoing.pop(0), now=0.0)
            moved = True
        for event in events(machine):
            seen.append(event)
            moved = True
            match event:
                case NeedProposal():
                    machine.proposal_ready(TEXT, now=0.0)
                case NeedVerdict():
                    machine.verdict_ready(pending.pop(0), now=0.0)
                case NeedModule():
                    machine.module_ready(now=0.0)
                    peer.notify_code_generation()
    return seen


def accepting(text: str) -> tuple[str, str]:
    return "accepted", ""


@clause("ANP-10", "WIRE row 37", "WIRE row 38", "WIRE row 41")
def test_an_sdk_requester_agrees_with_us() -> None:
    machine = provider(judging=False)
    peer = SdkLike(Role.REQUESTER, accepting, proposal=TEXT)
    seen = play(machine, peer, [Accept()])
    assert isinstance(seen[-1], NegotiationAgreed)
    assert (peer.agreed, peer.code_received) == (TEXT, 1)
    numbers = [turn.sequence_id for turn in machine.transcript]
    assert numbers == [1, 2, 1]


@clause("WIRE row 37", "WIRE row 38", "WIRE row 41")
def test_an_sdk_requester_takes_our_counter() -> None:
    machine = provider(judging=False)
    peer = SdkLike(Role.REQUESTER, accepting, proposal=TEXT)
    seen = play(machine, peer, [Counter(OTHER, "our terms")])
    assert isinstance(seen[-1], NegotiationAgreed)
    assert seen[-1].document == peer.agreed == OTHER
    assert [turn.sequence_id for turn in machine.transcript] == [1, 2, 3]


@clause("ANP-10", "WIRE row 37", "WIRE row 38")
def test_an_sdk_provider_agrees_with_us() -> None:
    machine = requester(proposed=False)
    peer = SdkLike(Role.PROVIDER, accepting)
    seen = play(machine, peer, [])
    assert isinstance(seen[-1], NegotiationAgreed)
    assert peer.agreed == TEXT
    assert [turn.sequence_id for turn in machine.transcript] == [0, 2]


@clause("WIRE row 37", "WIRE row 38")
def test_an_sdk_provider_counters_and_takes_our_acceptance() -> None:
    machine = requester(proposed=False)
    peer = SdkLike(Role.PROVIDER, lambda text: ("negotiating", OTHER))
    seen = play(machine, peer, [Accept()])
    assert isinstance(seen[-1], NegotiationAgreed)
    assert seen[-1].document == peer.agreed == OTHER
    assert [turn.sequence_id for turn in machine.transcript] == [0, 2, 3, 2]


@clause("WIRE row 40")
def test_an_sdk_provider_whose_model_fails_ends_it() -> None:
    machine = requester(proposed=False)
    peer = SdkLike(Role.PROVIDER, lambda text: ("failed", ""))
    end = play(machine, peer, [])[-1]
    assert isinstance(end, NegotiationFailed)
    assert end.kind is FailureKind.REJECTED
    assert end.reason == "Error during evaluation: no model"
    assert machine.transcript[-1].sequence_id == 0


@clause("WIRE row 39")
def test_an_sdk_requester_without_a_proposal_is_rejected() -> None:
    machine = provider(judging=False)
    peer = SdkLike(Role.REQUESTER, accepting)
    end = play(machine, peer, [])[-1]
    assert isinstance(end, NegotiationFailed)
    assert end.by_peer
    assert peer.agreed is None


@clause("WIRE row 39")
def test_an_sdk_requester_whose_model_fails_ends_it() -> None:
    machine = provider(judging=False)
    machine.receive_message(turn(1, "rejected", ""), now=0.0)
    assert failure(machine).kind is FailureKind.REJECTED


@clause("WIRE row 48")
def test_an_sdk_peer_does_not_learn_of_an_error_but_we_are_not_ready() -> None:
    machine = provider(judging=False)
    peer = SdkLike(Role.REQUESTER, accepting, proposal=TEXT)
    machine.receive_message(peer.outgoing.pop(), now=0.0)
    machine.verdict_ready(Accept(), now=0.0)
    machine.module_failed("no", now=0.0)
    for data in machine.messages_to_send():
        peer.receive(data)
    peer.notify_code_generation()
    for data in peer.outgoing:
        machine.receive_message(data, now=0.0)
    assert peer.code_received == 1
    assert not machine.ready
