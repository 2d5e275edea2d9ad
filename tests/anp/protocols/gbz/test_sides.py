"""Calls of one turn over GB/Z 185.6: both sides of a channel, and hostile peers."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anp.protocols.gbz import (
    GBZ_GROUPS_URI,
    GBZ_GROUPS_VERSION,
    GBZ_URI,
    GBZ_VERSION,
    gbz_document,
)
from negotiation.consensus.written import (
    Ask,
    Broken,
    CallAnswered,
    CallCapability,
    CallRefused,
    Deliver,
    PeerEvent,
    PeerMessage,
    Progress,
    WrittenLimits,
)
from negotiation.errors import MisuseError
from negotiation.need import Role
from tests.anp.protocols.envelope.talk import ALICE, BOB, SHARED, Agent
from tests.anp.protocols.gbz.serving_side import PairCode
from tests.clauses import clause

LIMITS = WrittenLimits(
    answer_timeout=10.0,
    total_timeout=30.0,
    progress_after=5.0,
    max_message=16 * 1024,
    max_asked=4,
    max_served=3,
    max_faults=20,
    max_errors=60,
)
ENDS = (CallAnswered, CallRefused)


def test_the_text_is_the_one_that_its_uri_stands_for() -> None:
    # Another text needs another URI: peers that know this one rely on every byte.
    assert GBZ_URI == "urn:anpd:gbz-185.6:1"
    assert GBZ_VERSION == "1"
    digest = hashlib.sha256(gbz_document().encode("utf-8")).hexdigest()
    assert digest == "a74b7b82dfae2ceee23761fa375654379ae52df57ed3f95ac9b1a6901e119871"
    assert GBZ_URI in gbz_document()


def test_the_text_with_groups_is_the_one_that_its_uri_stands_for() -> None:
    assert GBZ_GROUPS_URI == "urn:anpd:gbz-185.6:2"
    text = gbz_document(GBZ_GROUPS_VERSION)
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    assert digest == "ca79f5d8301c00d9b0794d62c1915f137c540da28f8f4424f9de1264babcb562"
    assert GBZ_GROUPS_URI in text


def agents(**more: Any) -> tuple[Agent, Agent]:
    """Return a requester and a provider."""
    fields = {"limits": LIMITS, "code": PairCode(), **more}
    alice = Agent(Role.REQUESTER, **fields)
    bob = Agent(Role.PROVIDER, offered=SHARED, seed=5000, **fields)
    return alice, bob


def pump(alice: Agent, bob: Agent) -> None:
    """Let both sides talk until nothing is under way."""
    for _ in range(200):
        said = [(bob, alice.raw()), (alice, bob.raw())]
        if not any(data for _, data in said):
            return
        for receiver, frames in said:
            for data in frames:
                receiver.receive(data)
    raise AssertionError("they never end")


def called(bob: Agent) -> CallCapability:
    (call,) = [one for one in bob.told() if isinstance(one, CallCapability)]
    return call


@clause("GBZ-4", "GBZ-10", "GBZ-55", "GBZ-56")
@pytest.mark.parametrize(
    "output", [{"price": 2**80}, [1, 2.5], "text", None, True, 0, {"a": "汉" * 9000}]
)
def test_a_call_is_a_task_and_its_result_the_answer(output: Any) -> None:
    alice, bob = agents()
    alice.ask()
    pump(alice, bob)
    call = called(bob)
    assert (call.name, call.arguments) == ("shop.lookup", {"sku": "A-1"})
    bob.answered(call.call_id, output)
    pump(alice, bob)
    events = alice.told()
    assert events[-1] == CallAnswered("c", output)
    assert {one.status for one in events[:-1] if isinstance(one, Progress)} == {
        "working"
    }
    assert alice.machine.waiting == 0
    assert not bob.machine.full


def test_large_results_come_in_chunks_and_frames_keep_to_the_limit() -> None:
    alice, bob = agents()
    alice.ask()
    pump(alice, bob)
    bob.answered(called(bob).call_id, {"text": "x" * 100_000})
    frames = bob.raw()
    assert all(len(data) <= LIMITS.max_message for data in frames)
    found = [json.loads(data) for data in frames]
    chunks = [one for one in found if one["op"] == "message.send"]
    assert len(chunks) > 50
    assert [one["chunkIndex"] for one in chunks] == list(range(len(chunks)))
    assert [one["lastChunk"] for one in chunks].count(True) == 1
    for data in frames:
        alice.receive(data)
    assert alice.told()[-1] == CallAnswered("c", {"text": "x" * 100_000})


def test_what_cannot_be_sent_is_said_at_once_on_either_side() -> None:
    alice, bob = agents()
    for call_id, value, code in (
        ("a", "x" * 20_000, "too_large"),
        ("b", float("nan"), "not_json"),
    ):
        call = Ask(call_id=call_id, action="shop.lookup", arguments={"v": value})
        alice.machine.ask(call, now=alice.now, wall_now=alice.wall)
        (refused,) = alice.told()
        assert isinstance(refused, CallRefused)
        assert (refused.code, refused.by_peer) == (code, False)
    alice.ask()
    pump(alice, bob)
    bob.answered(called(bob).call_id, float("inf"))
    pump(alice, bob)
    (*_, end) = alice.told()
    assert isinstance(end, CallAnswered)
    assert end.error is not None
    assert end.error[0] == "processing_failed"


def test_an_action_that_is_not_offered_is_not_served() -> None:
    alice, bob = agents()
    alice.ask(action="shop.burn")
    pump(alice, bob)
    assert bob.told() == []
    (end,) = alice.told()
    assert isinstance(end, CallRefused)
    assert (end.code, end.by_peer, end.may_have_run) == ("unknown_action", True, False)
    assert "shop.lookup" in end.message


@pytest.mark.parametrize("ran", [True, False])
def test_what_failed_says_if_it_ran(ran: bool) -> None:
    alice, bob = agents()
    alice.ask()
    pump(alice, bob)
    bob.failed(called(bob).call_id, "sold_out", "no more", ran=ran)
    pump(alice, bob)
    (*_, end) = alice.told()
    if ran:
        assert end == CallAnswered(
            "c",
            None,
            ("sold_out", "no more"),
            {"code": "sold_out", "message": "no more"},
        )
    else:
        assert isinstance(end, CallRefused)
        assert (end.code, end.may_have_run) == ("sold_out", False)
        assert end.details == {"reason": "sold_out"}


@clause("GBZ-57")
def test_what_takes_long_is_reported_until_it_ends() -> None:
    alice, bob = agents()
    alice.ask()
    pump(alice, bob)
    call = called(bob)
    for _ in range(4):
        alice.wait(6)
        bob.wait(6)
        pump(alice, bob)
    bob.answered(call.call_id, {})
    pump(alice, bob)
    assert alice.told()[-1] == CallAnswered("c", {})


def test_a_call_that_nobody_answers_ends_and_is_asked_to_end() -> None:
    alice, bob = agents()
    alice.ask()
    pump(alice, bob)
    call = called(bob)
    alice.wait(10)
    (*_, end) = alice.told()
    assert isinstance(end, CallRefused)
    assert (end.code, end.may_have_run) == ("timeout", True)
    assert [one["op"] for one in alice.said()] == ["task.cancel"]
    # The result is late: its task has ended here.
    bob.answered(call.call_id, {})
    pump(alice, bob)
    assert alice.told() == []


def test_an_abandoned_call_is_told_of_no_more() -> None:
    alice, bob = agents()
    alice.ask()
    pump(alice, bob)
    alice.told()
    alice.machine.abandon("c")
    bob.answered(called(bob).call_id, {})
    pump(alice, bob)
    assert alice.told() == []


@clause("GBZ-30")
def test_events_go_both_ways_in_a_session() -> None:
    alice, bob = agents()
    alice.ask()
    pump(alice, bob)
    alice.told(), bob.told()
    bob.tell("restocked", {"sku": "A-1"})
    alice.tell("seen", {})
    pump(alice, bob)
    assert alice.told() == [Deliver(PeerEvent("restocked", {"sku": "A-1"}, False, {}))]
    assert bob.told() == [Deliver(PeerEvent("seen", {}, False, {}))]
    with pytest.raises(MisuseError):
        bob.tell("", {})
    with pytest.raises(MisuseError):
        bob.tell("x", {"v": float("nan")})


# A peer that is not ours


RECEIVER: dict[str, Any] = {"id": BOB, "address": "", "mode": "p2p", "params": {}}
SESSION: dict[str, Any] = {
    "op": "session.open",
    "ref": 1,
    "id": "s",
    "sender": {"id": ALICE, "address": ""},
    "receivers": [RECEIVER],
}
DATA: dict[str, Any] = {
    "type": "application/json",
    "metadata": {},
    "payload": {"sku": "A-1"},
}
SAID: dict[str, Any] = {
    "senderRole": "requester",
    "senderId": ALICE,
    "sessionId": "s",
    "id": "m",
    "dataItems": [DATA],
}
TASK: dict[str, Any] = {
    "op": "task.create",
    "ref": 2,
    "id": "t",
    "sessionId": "s",
    "state": "x-requested",
    "capability": "shop.lookup",
    "messages": [{**SAID, "taskId": "t"}],
}


def opened(**more: Any) -> Agent:
    bob = Agent(
        Role.PROVIDER, offered=SHARED, limits=LIMITS, code=PairCode(), seed=5000, **more
    )
    bob.receive(SESSION)
    assert bob.said() == [{"op": "ack", "ref": 1, "sessionId": "s"}]
    return bob


@clause("GBZ-24", "GBZ-26", "GBZ-Q10")
def test_frames_written_by_hand_are_served() -> None:
    bob = opened()
    bob.receive(TASK)
    assert [one["op"] for one in bob.said()] == ["ack", "task.update"]
    bob.answered(called(bob).call_id, {"price": 1})
    result, end = bob.said()
    assert (result["artifact"], result["final"], result["senderRole"]) == (
        *("result", True, "service"),
    )
    assert result["dataItems"][0]["payload"] == {"price": 1}
    assert (end["op"], end["state"], end["id"]) == ("task.update", "completed", "t")
    # A repeat is acknowledged and not run again.
    bob.receive(TASK)
    assert [one["op"] for one in bob.said()] == ["ack"]
    assert bob.told() == []


@clause("GBZ-3", "GBZ-35", "GBZ-Q18")
def test_nobody_speaks_in_anothers_name() -> None:
    bob = Agent(Role.PROVIDER, offered=SHARED, limits=LIMITS, code=PairCode())
    bob.receive({**SESSION, "sender": {"id": "mallory", "address": ""}})
    assert [one["code"] for one in bob.said()] == ["not_allowed"]
    receivers = [{"id": "mallory", "address": "", "mode": "p2p", "params": {}}]
    bob.receive({**SESSION, "receivers": receivers})
    assert [one["code"] for one in bob.said()] == ["not_allowed"]
    bob = opened()
    bob.receive({"op": "message.send", "ref": 3, **SAID, "senderId": "mallory"})
    assert [one["code"] for one in bob.said()] == ["not_allowed"]


def test_a_proved_alias_of_the_peer_may_be_used() -> None:
    bob = Agent(
        Role.PROVIDER,
        offered=SHARED,
        limits=LIMITS,
        code=PairCode(),
        peer="did:x:other",
        aliases=frozenset({ALICE}),
    )
    bob.receive(SESSION)
    bob.receive(TASK)
    assert [one["op"] for one in bob.said()] == ["ack", "ack", "task.update"]


@clause("GBZ-Q9", "GBZ-Q11")
def test_groups_are_left_to_the_next_version() -> None:
    bob = Agent(Role.PROVIDER, limits=LIMITS, code=PairCode())
    params = {"groupId": "g"}
    group = [{"id": BOB, "address": "", "mode": "group", "params": params}]
    bob.receive({**SESSION, "receivers": group})
    assert [one["code"] for one in bob.said()] == ["not_allowed"]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"op": "task.create", "ref": 2, "id": "t"}, "invalid"),
        ({"op": "subscribe.create", "ref": 2}, "unknown_operation"),
        ({"op": "task.get", "ref": 2, "id": "t", "sessionId": "x"}, "unknown_session"),
        ({"op": "task.get", "ref": 2, "id": "x", "sessionId": "s"}, "unknown_task"),
        ({**TASK, "state": "accepted"}, "state"),
        (
            {"op": "notify.register", "ref": 2, "sessionId": "s", "address": "wss://a"},
            "not_allowed",
        ),
        ({**SESSION, "receivers": [RECEIVER, {**RECEIVER, "id": "x"}]}, "conflict"),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(
    frame: dict[str, Any], code: str
) -> None:
    bob = opened()
    bob.receive(frame)
    (error,) = bob.said()
    assert (error["op"], error["ref"]) == ("error", frame["ref"])
    assert error["code"] == code
    assert bob.told() == []


def test_a_channel_for_calls_takes_no_session_of_the_side_that_is_called() -> None:
    alice = Agent(Role.REQUESTER, limits=LIMITS, code=PairCode())
    alice.receive(
        {
            **SESSION,
            "sender": {"id": BOB, "address": ""},
            "receivers": [{**RECEIVER, "id": ALICE}],
        }
    )
    assert [one["code"] for one in alice.said()] == ["unknown_session"]


def test_errors_are_never_answered_and_strange_answers_are_dropped() -> None:
    bob = opened()
    for frame in (
        {"op": "error", "ref": 9, "sessionId": "s", "code": "x", "text": "y"},
        {"op": "error", "ref": 0, "sessionId": "", "code": "x"},
        {"op": "error", "ref": 1},
        {"op": "ack", "ref": 9, "sessionId": "other"},
        {"op": "ack", "ref": 9, "sessionId": 1},
    ):
        bob.receive(frame)
    assert bob.raw() == []


def test_a_peer_that_goes_on_breaking_the_protocol_loses_the_channel() -> None:
    bob = opened()
    for _ in range(LIMITS.max_faults + 1):
        bob.receive(b"{}")
    assert [type(one) for one in bob.told()] == [Broken]
    bob.receive(TASK)
    assert bob.told() == []
    # Without any fault, only much is too much.
    bob = opened()
    for ref in range(2, LIMITS.max_errors + 3):
        bob.receive({"op": "task.get", "ref": ref, "id": "x", "sessionId": "s"})
    assert [type(one) for one in bob.told()] == [Broken]


def test_words_alone_are_no_arguments_and_a_message_is_delivered() -> None:
    bob = opened()
    text = {"type": "text/plain", "metadata": {}, "payload": "find it"}
    bob.receive({**TASK, "messages": [{**SAID, "taskId": "t", "dataItems": text}]})
    (_, rejected) = bob.said()
    assert (rejected["state"], rejected["code"]) == ("rejected", "invalid_payload")
    bob.receive({"op": "message.send", "ref": 5, **SAID, "id": "n"})
    (said,) = bob.told()
    assert said == Deliver(PeerMessage("message", {"dataItems": [DATA]}, {}))


IDS = st.sampled_from(["s", "t", "m", "x", *"ab"])
WORDS = st.sampled_from(
    [
        *("accepted", "working", "completed", "failed", "canceled", "rejected"),
        *("progress", "x-requested", "x-input-required", "x-held", "done"),
    ]
)
REFS = st.integers(0, 9)
OPS = st.sampled_from(
    ["task.get", "task.cancel", "session.close", "session.update", "ack", "error"]
)
FRAMES = st.one_of(
    st.just(SESSION),
    st.builds(
        lambda name, ref: {**TASK, "id": name, "ref": ref}, IDS, st.integers(1, 9)
    ),
    st.builds(
        lambda name, state, ref: {
            "op": "task.update",
            "ref": ref,
            "id": name,
            "sessionId": "s",
            "state": state,
        },
        IDS,
        WORDS,
        st.integers(0, 9),
    ),
    st.builds(
        lambda op, name, ref: {"op": op, "ref": ref, "id": name, "sessionId": "s"},
        st.sampled_from(
            [
                "task.get",
                "task.cancel",
                "session.close",
                "session.update",
                "ack",
                "error",
            ]
        ),
        IDS,
        st.integers(0, 9),
    ),
    st.builds(
        lambda name, task, who, index, last: {
            **SAID,
            "op": "message.send",
            "ref": 3,
            "id": name,
            "taskId": task,
            "senderId": who,
            "senderRole": "requester" if who == ALICE else "service",
            **({} if index is None else {"chunkIndex": index, "lastChunk": last}),
        },
        IDS,
        IDS | st.just(""),
        st.sampled_from([ALICE, BOB]),
        st.none() | st.integers(0, 3),
        st.booleans(),
    ),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("frame"), FRAMES),
        st.tuples(st.just("bytes"), st.binary(max_size=40)),
        st.tuples(st.just("own"), st.integers(0, 30)),
        st.tuples(st.just("ask"), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([0.1, 4.0, 9.0, 40.0])),
        st.tuples(st.just("output"), st.sampled_from([{}, 7, float("nan"), None])),
        st.tuples(st.just("fail"), st.booleans()),
        st.tuples(st.just("tell"), st.none()),
    ),
    max_size=40,
)


@pytest.mark.parametrize("role", list(Role))
@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_any_input_in_any_order_is_taken(
    role: Role, steps: list[tuple[str, Any]]
) -> None:
    is_requester = role is Role.REQUESTER
    agent = Agent(role, limits=LIMITS, offered=SHARED, code=PairCode())
    mirror: list[dict[str, Any]] = []
    ends: Counter[str] = Counter()
    asked: set[str] = set()
    calls: list[str] = []
    broken = 0
    for step, value in steps:
        match step:
            case "frame":
                agent.receive(value)
            case "bytes":
                agent.receive(value)
            case "own" if value < len(mirror):
                # Its own frames, or reports on its own tasks, come back.
                sent = mirror[value]
                agent.receive(sent)
                if sent["op"] == "task.create":
                    state = ["working", "completed", "failed", "rejected"][value % 4]
                    name, session = sent["id"], sent["sessionId"]
                    update = {"op": "task.update", "ref": value + 1, "state": state}
                    agent.receive({**update, "id": name, "sessionId": session})
            case "ask" if is_requester and not broken:
                asked.add(str(len(asked)))
                agent.ask(str(len(asked) - 1))
            case "output" if calls:
                agent.answered(calls.pop(), value)
            case "fail" if calls:
                agent.failed(calls.pop(), "400", "no", ran=value)
            case "wait":
                agent.wait(value)
            case "tell":
                agent.tell("e", {})
        for event in agent.told():
            if isinstance(event, ENDS):
                ends[event.call_id] += 1
            elif isinstance(event, CallCapability):
                calls.append(event.call_id)
            elif isinstance(event, Broken):
                broken += 1
        mirror += agent.said()
    assert broken <= 1
    agent.wait(100)
    for event in agent.told():
        if isinstance(event, ENDS):
            ends[event.call_id] += 1
    assert all(count == 1 for count in ends.values())
    if not broken:
        assert ends.keys() == asked
        assert agent.machine.waiting == 0
