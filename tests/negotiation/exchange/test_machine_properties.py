"""Properties that hold for a machine under any inputs, in any order."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negotiation.errors import MisuseError
from negotiation.exchange.events import (
    Event,
    NeedModule,
    NeedProposal,
    NeedVerdict,
    NegotiationAgreed,
    NegotiationFailed,
)
from negotiation.exchange.limits import NegotiationLimits
from negotiation.exchange.machine import Machine
from negotiation.exchange.reactions import END_STATES
from negotiation.messages import Status
from negotiation.mind import Accept, Counter, Reject, Verdict
from negotiation.need import Role
from tests.clauses import clause
from tests.negotiation.exchange.machines import (
    ERROR,
    GENERATED,
    OTHER,
    TEXT,
    events,
    sent,
    turn,
)

VERDICTS = st.lists(
    st.sampled_from([Accept(), Counter(TEXT, "x"), Counter(OTHER, "y"), Reject("no")]),
    max_size=12,
)


@clause("ANP-6", "ANP-21", "ANP-33", "ANP-Q24")
@given(st.lists(VERDICTS, min_size=2, max_size=2), st.booleans(), st.booleans())
def test_two_machines_always_come_to_one_end(
    scripts: list[list[Verdict]], requester_codes: bool, provider_codes: bool
) -> None:
    limits = NegotiationLimits()
    pair = [Machine(role, limits, now=0.0) for role in Role]
    codes = [requester_codes, provider_codes]
    ends: list[list[Event]] = [[], []]
    for _ in range(50):
        for index, machine in enumerate(pair):
            for event in events(machine):
                match event:
                    case NeedProposal():
                        machine.proposal_ready(TEXT, now=0.0)
                    case NeedVerdict():
                        script = scripts[index]
                        verdict = script.pop(0) if script else Accept()
                        machine.verdict_ready(verdict, now=0.0)
                    case NeedModule() if codes[index]:
                        machine.module_ready(now=0.0)
                    case NeedModule():
                        machine.module_failed("no", now=0.0)
                    case _:
                        ends[index].append(event)
            for data in machine.messages_to_send():
                pair[1 - index].receive_message(data, now=0.0)
    ((one,), (two,)) = ends
    assert isinstance(one, NegotiationAgreed) == isinstance(two, NegotiationAgreed)
    if isinstance(one, NegotiationAgreed):
        assert one == two
    turns = pair[0].transcript
    assert [turn.sequence_id for turn in turns] == list(range(len(turns)))
    proposals = [turn for turn in turns if turn.status is Status.NEGOTIATING]
    assert len(proposals) <= 10


PEER_BYTES = (
    st.binary(max_size=60)
    | st.sampled_from([GENERATED, ERROR, b"", b"{}", b'{"action": "channelClose"}'])
    | st.builds(
        turn,
        st.integers(-1, 12),
        st.sampled_from([*Status, "timeout"]),
        st.sampled_from([None, "", TEXT, OTHER]),
    )
)
OWN_INPUTS = st.sampled_from(
    [
        "proposal",
        "accept",
        "counter",
        "reject",
        "module",
        "no module",
        "no mind",
        "time",
    ]
)


@given(st.sampled_from(Role), st.lists(PEER_BYTES | OWN_INPUTS, max_size=40))
def test_no_input_in_any_order_raises_or_ends_it_twice(
    role: Role, inputs: list[bytes | str]
) -> None:
    machine = Machine(role, NegotiationLimits(), now=0.0)
    now = 0.0
    seen: list[Event] = []
    answers: dict[str, Callable[[], None]] = {
        "proposal": lambda: machine.proposal_ready(TEXT, now=now),
        "accept": lambda: machine.verdict_ready(Accept(), now=now),
        "counter": lambda: machine.verdict_ready(Counter(OTHER, ""), now=now),
        "reject": lambda: machine.verdict_ready(Reject(""), now=now),
        "module": lambda: machine.module_ready(now=now),
        "no module": lambda: machine.module_failed("no", now=now),
        "no mind": lambda: machine.mind_failed("no", now=now),
        "time": lambda: machine.handle_timer(now=now),
    }
    for data in inputs:
        if isinstance(data, bytes):
            machine.receive_message(data, now=now)
        else:
            now += 7.0 if data == "time" else 0.0
            # Only answers to what was asked: other ones are bugs of ours.
            try:
                answers[data]()
            except MisuseError:
                assert machine.state not in END_STATES
        seen.extend(events(machine))
        for written in machine.messages_to_send():
            json.loads(written.decode())
    ended = [
        event
        for event in seen
        if isinstance(event, NegotiationAgreed | NegotiationFailed)
    ]
    assert len(ended) <= 1
    assert bool(ended) == (machine.state in END_STATES)
    assert ended == seen[len(seen) - len(ended) :]
    machine.handle_timer(now=now + 1_000.0)
    assert machine.state in END_STATES


@given(st.sampled_from(Role), st.lists(PEER_BYTES, max_size=40))
def test_application_data_waits_for_both_sides(role: Role, inputs: list[bytes]) -> None:
    machine = Machine(role, NegotiationLimits(), now=0.0)
    if role is Role.REQUESTER:
        machine.proposal_ready(TEXT, now=0.0)
    for data in inputs:
        machine.receive_message(data, now=0.0)
    # No module of ours was ever announced, whatever the peer said (ANP-42).
    assert not machine.ready


@clause("ANP-65")
@pytest.mark.parametrize(
    "verdict", [Accept(), Reject("no"), Counter(OTHER, "our terms")], ids=repr
)
def test_a_negotiation_uses_predefined_messages_alone(verdict: Verdict) -> None:
    common = frozenset({"naturalLanguageNegotiation"})
    machine = Machine(Role.PROVIDER, NegotiationLimits(), now=0.0, common=common)
    machine.receive_message(turn(0, "negotiating", TEXT), now=0.0)
    machine.verdict_ready(verdict, now=0.0)
    machine.cancel("over", now=0.0)
    assert {message["action"] for message in sent(machine)} <= {
        "protocolNegotiation",
        "codeGeneration",
    }
