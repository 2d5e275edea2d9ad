"""Whatever comes, in whatever order: no exception, and every call ends once."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anp.protocols.envelope import EnvelopeCode
from negotiation.consensus.written import (
    Ask,
    Broken,
    CallAnswered,
    CallCapability,
    CallRefused,
    WrittenLimits,
)
from negotiation.need import Role
from tests.anp.protocols.envelope.talk import ALICE, BOB, SHARED, Agent, message
from tests.clauses import clause

LIMITS = WrittenLimits(
    answer_timeout=10.0,
    total_timeout=30.0,
    progress_after=5.0,
    max_asked=4,
    max_served=3,
    max_faults=50,
)
ENDS = (CallAnswered, CallRefused)

# Messages that are nearly right, so that the machines are reached behind the reader.
WORDS = st.sampled_from(
    ["success", "failure", "in_progress", "成功", "失败", "进行中", "x", 1, None]
)
OBJECTS: st.SearchStrategy[Any] = st.sampled_from(
    [{}, {"value": 1}, {"code": "x"}, None, [], "x"]
)
PAYLOADS = st.one_of(
    st.fixed_dictionaries(
        {"action": st.sampled_from(["shop.lookup", "discover", "register", "x", 1])},
        optional={"parameters": OBJECTS},
    ),
    st.fixed_dictionaries(
        {"status": WORDS}, optional={"result": OBJECTS, "error": OBJECTS}
    ),
    st.fixed_dictionaries({"event_name": st.just("e"), "event_data": OBJECTS}),
    st.fixed_dictionaries({"code": WORDS, "message": st.just("m"), "details": OBJECTS}),
)
# The ids that `counting` gives: answers meet calls.
IDS = st.integers(0, 6).map(lambda number: f"00000000-0000-4000-8000-{number:012x}")
FORGED = st.builds(
    message,
    st.sampled_from(["request", "response", "event", "error", "beat"]),
    PAYLOADS,
    message_id=IDS | st.sampled_from(["a", "b", 1]),
    sender_id=st.sampled_from([ALICE, BOB, "mallory", "broadcast"]),
    receiver_id=st.sampled_from([ALICE, BOB, "broadcast", "x"]),
    protocol_version=st.sampled_from(["1.0", "1.0", "1.0", "1.3", "2.0", "x"]),
    metadata=st.fixed_dictionaries({}, optional={"correlation_id": IDS | st.just(1)})
    | st.none(),
).map(lambda value: json.dumps(value).encode())
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("bytes"), FORGED | st.binary(max_size=60)),
        st.tuples(st.just("ask"), st.booleans()),
        st.tuples(st.just("wait"), st.sampled_from([0.1, 4.0, 9.0, 40.0])),
        st.tuples(st.just("abandon"), st.integers(0, 9)),
        st.tuples(st.just("output"), st.sampled_from([{}, 7, float("nan"), None])),
        st.tuples(st.just("fail"), st.booleans()),
        st.tuples(st.just("tell"), st.none()),
        st.tuples(st.just("offer"), st.booleans()),
    ),
    max_size=40,
)


@pytest.mark.parametrize("role", list(Role))
@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_any_input_in_any_order_is_taken(
    role: Role, steps: list[tuple[str, Any]]
) -> None:
    agent = Agent(role, limits=LIMITS, offered=SHARED, code=EnvelopeCode(announce=True))
    requester = role is Role.REQUESTER
    asked: set[str] = set()
    abandoned: set[str] = set()
    ends: Counter[str] = Counter()
    calls: list[str] = []
    broken = 0
    for step, value in steps:
        match step:
            case "bytes":
                agent.receive(value)
            case "ask" if requester and not broken:
                call_id = str(len(asked))
                asked.add(call_id)
                agent.ask(call_id, to_all=value)
            case "abandon" if requester:
                if not ends[str(value)]:
                    abandoned.add(str(value))
                agent.machine.abandon(str(value))
            case "output" if calls:
                agent.answered(calls.pop(), value)
            case "fail" if calls:
                agent.failed(calls.pop(), "400", "no", ran=value)
            case "wait":
                agent.wait(value)
            case "tell":
                agent.tell("e", {})
            case "offer":
                agent.machine.offer(
                    SHARED if value else (), now=agent.now, wall_now=agent.wall
                )
        for event in agent.told():
            if isinstance(event, ENDS):
                ends[event.call_id] += 1
            elif isinstance(event, CallCapability):
                calls.append(event.call_id)
            elif isinstance(event, Broken):
                broken += 1
        for one in agent.said():
            assert one["sender_id"] == (ALICE if requester else BOB)
    assert broken <= 1
    agent.wait(100)
    for event in agent.told():
        if isinstance(event, ENDS):
            ends[event.call_id] += 1
    assert all(count == 1 for count in ends.values())
    if not broken:
        assert ends.keys() >= asked - abandoned
        assert agent.machine.waiting == 0


class Link:
    """Two agents, and a link that loses, repeats and reorders what they say."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data
        self.alice = Agent(Role.REQUESTER, limits=LIMITS)
        self.bob = Agent(Role.PROVIDER, limits=LIMITS, offered=SHARED, seed=5000)
        self.under_way: list[tuple[Agent, bytes]] = []
        self.lost = 0
        self.processed: Counter[str] = Counter()
        self.open: list[CallCapability] = []
        self.ends: dict[str, list[Any]] = {}

    def pump(self) -> None:
        """Take what both sides say and tell."""
        for sender, receiver in ((self.alice, self.bob), (self.bob, self.alice)):
            self.under_way += [(receiver, data) for data in sender.raw()]
        for event in self.alice.told():
            if isinstance(event, ENDS):
                self.ends.setdefault(event.call_id, []).append(event)
        for event in self.bob.told():
            assert isinstance(event, CallCapability)
            self.processed[event.arguments["n"]] += 1
            self.open.append(event)

    def step(self, worst: bool) -> None:
        """Let one thing happen."""
        draw = self._data.draw
        choices = (["deliver"] if self.under_way else []) + (
            ["work"] if self.open else []
        )
        match draw(st.sampled_from(choices)):
            case "deliver":
                index = draw(st.integers(0, len(self.under_way) - 1))
                receiver, data = self.under_way[index]
                fate = draw(st.sampled_from("dlr" if worst else "d"))
                if fate != "r":
                    del self.under_way[index]
                if fate == "l":
                    self.lost += 1
                else:
                    receiver.receive(data)
            case _:
                call = self.open.pop(draw(st.integers(0, len(self.open) - 1)))
                self.bob.answered(call.call_id, {"n": call.arguments["n"]})
        self.pump()


@clause("ENV-1", "ENV-18", "ENV-Q5", "ENV-Q11")
@settings(max_examples=100, deadline=None)
@given(data=st.data(), worst=st.booleans(), count=st.integers(1, 4))
def test_calls_over_a_bad_link_end_once_and_run_at_most_once(
    data: st.DataObject, worst: bool, count: int
) -> None:
    link = Link(data)
    for number in range(count):
        link.alice.machine.ask(
            _ask(str(number)), now=link.alice.now, wall_now=link.alice.wall
        )
    link.pump()
    for _ in range(40 if worst else 1000):
        if not link.under_way and not link.open:
            break
        link.step(worst)
    link.alice.wait(100)
    link.pump()
    assert link.ends.keys() == {str(number) for number in range(count)}
    for call_id, ends in link.ends.items():
        assert len(ends) == 1
        if isinstance(ends[0], CallAnswered):
            assert ends[0].result == {"n": call_id}
        else:
            assert worst
            assert ends[0].code == "timeout"
    assert all(times == 1 for times in link.processed.values())


@clause("ENV-Q11")
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_a_sender_that_repeats_its_request_gets_the_answer_in_the_end(
    data: st.DataObject,
) -> None:
    link = Link(data)
    link.alice.machine.ask(_ask("0"), now=link.alice.now, wall_now=link.alice.wall)
    (request,) = link.alice.raw()
    for _ in range(20):
        link.bob.receive(request)
        link.pump()
        while link.under_way or link.open:
            link.step(worst=bool(data.draw(st.booleans())) and link.lost < 10)
        if link.ends:
            break
    assert [type(end) for end in link.ends["0"]] == [CallAnswered]
    assert link.processed == {"0": 1}


def _ask(call_id: str) -> Ask:
    return Ask(call_id=call_id, action="shop.lookup", arguments={"n": call_id})
