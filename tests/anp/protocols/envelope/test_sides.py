"""Both sides of a channel: calls and their ends, duplicates, errors, events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anp.protocols.envelope import EnvelopeCode
from anp.protocols.envelope.memory import MAX_ANSWER_BYTES
from anp.protocols.envelope.requester import MAX_COLLECTED
from negotiation.consensus.written import (
    Ask,
    Broken,
    CallAnswered,
    CallCapability,
    CallRefused,
    Declined,
    Deliver,
    Parties,
    PeerAnnouncement,
    PeerEvent,
    PeerMessage,
    PeerNotice,
    PeerWithdrawal,
    Progress,
    WrittenLimits,
)
from negotiation.errors import MisuseError
from negotiation.need import Role
from tests.anp.protocols.envelope.talk import (
    ALICE,
    BOB,
    LOOKUP,
    NOW,
    SHARED,
    Agent,
    calls_in,
    counting,
    message,
)
from tests.clauses import clause

REQUEST = message()


def alice(**more: Any) -> Agent:
    return Agent(Role.REQUESTER, **more)


def bob(**more: Any) -> Agent:
    return Agent(Role.PROVIDER, **{"offered": SHARED, **more})


def carry(sender: Agent, receiver: Agent) -> None:
    for data in sender.raw():
        receiver.receive(data)


def asked(agent: Agent, call_id: str = "c", **more: Any) -> str:
    """Let an agent ask, and return the id of its request."""
    agent.ask(call_id, **more)
    (request,) = agent.said()
    return str(request["message_id"])


def answer(request_id: str, payload: Any = None, **fields: Any) -> dict[str, Any]:
    """Return Bob's answer to a request of Alice."""
    kind = "error" if payload and "code" in payload else "response"
    return message(
        kind,
        payload,
        **{
            "message_id": f"a-{request_id}-{json.dumps([payload, fields])}"[:128],
            "sender_id": BOB,
            "receiver_id": ALICE,
            "metadata": {"correlation_id": request_id},
            **fields,
        },
    )


DONE = {"status": "成功", "result": {"price": 7}}
FAILED: dict[str, Any] = {
    "status": "失败",
    "error": {"code": 404, "message": "no such sku"},
}
AT_WORK = {"status": "进行中", "result": {"done": 0.5}}


# One call.


def test_a_call_costs_the_same_however_many_others_wait() -> None:
    one, two = alice(), bob(limits=WrittenLimits(max_served=1_000))

    def call(call_id: str) -> None:
        one.ask(call_id)
        (request,) = one.raw()
        two.receive(request)
        (started,) = two.told()
        assert isinstance(started, CallCapability)
        two.answered(started.call_id, {})
        (answered,) = two.raw()
        one.receive(answered)
        assert len(one.told()) == 1
        for side in (one, two):
            side.machine.get_timer()

    call("warm")
    alone = calls_in(lambda: call("alone"))
    for number in range(200):
        one.ask(str(number))
        carry(one, two)
    two.told()
    assert calls_in(lambda: call("among others")) <= alone + 5


@clause("ENV-1", "ENV-16", "ENV-17", "ENV-18")
def test_a_call_goes_there_and_back() -> None:
    one, two = alice(), bob()
    one.ask("c", metadata={"trace": "t"})
    (request,) = one.said()
    assert request["payload"] == {"action": "shop.lookup", "parameters": {"sku": "A-1"}}
    assert (request["sender_id"], request["receiver_id"]) == (ALICE, BOB)
    assert request["metadata"] == {"trace": "t"}
    two.receive(request)
    assert two.told() == [CallCapability("1", "shop.lookup", {"sku": "A-1"})]
    two.answered("1", {"price": 7})
    (response,) = two.said()
    assert response["metadata"] == {"correlation_id": request["message_id"]}
    assert response["payload"] == {"status": "success", "result": {"price": 7}}
    one.receive(response)
    assert one.told() == [CallAnswered("c", {"price": 7})]
    assert one.machine.waiting == 0
    assert one.machine.get_timer() is None


@clause("ENV-1")
def test_many_calls_are_open_and_answered_in_any_order() -> None:
    one, two = alice(), bob()
    for number in range(10):
        one.ask(str(number))
    carry(one, two)
    calls = [event for event in two.told() if isinstance(event, CallCapability)]
    for call in reversed(calls):
        two.answered(call.call_id, {"n": call.call_id})
    carry(two, one)
    assert one.told() == [
        CallAnswered(str(number), {"n": str(number + 1)})
        for number in reversed(range(10))
    ]


@clause("ENV-17", "ENV-Q3", "ENV-Q4")
def test_what_ran_and_failed_is_a_response() -> None:
    one, two = alice(), bob()
    one.ask()
    carry(one, two)
    two.told()
    two.failed("1", "404", "no such sku\ud800", ran=True)
    (response,) = two.said()
    error = {"code": "404", "message": "no such sku?"}
    assert response["payload"] == {"status": "failure", "result": {}, "error": error}
    one.receive(response)
    assert one.told() == [CallAnswered("c", None, ("404", "no such sku?"), error)]


@clause("ENV-21", "ENV-23", "ENV-Q2", "ENV-Q3")
@pytest.mark.parametrize(
    ("code", "word"), [("400", "invalid_payload"), ("503", "agent_unavailable")]
)
def test_what_was_not_processed_is_an_error(code: str, word: str) -> None:
    one, two = alice(), bob()
    request_id = asked(one)
    two.receive(message(message_id=request_id))
    two.told()
    two.failed("1", code, "not now", ran=False)
    (error,) = two.said()
    assert error["message_type"] == "error"
    assert error["payload"] == {"code": word, "message": "not now"}
    assert error["metadata"] == {"correlation_id": request_id}
    one.receive(error)
    assert one.told() == [CallRefused("c", word, "not now", {})]


@clause("ENV-27")
def test_an_action_that_is_not_offered_to_this_peer_is_unknown() -> None:
    two = bob(offered=(LOOKUP,))
    two.receive(message(payload={"action": "shop.order", "parameters": {}}))
    # The owner is told of it, as of every call.
    (told,) = two.told()
    assert isinstance(told, Declined)
    assert told.name == "shop.order"
    (error,) = two.said()
    assert error["payload"]["code"] == "unknown_action"
    assert error["payload"]["details"] == {"actions": ["shop.lookup"]}
    one = alice()
    one.receive(answer(asked(one), error["payload"]))
    (refusal,) = one.told()
    assert isinstance(refusal, CallRefused)
    assert (refusal.code, refusal.may_have_run) == ("unknown_action", False)


@clause("ENV-27")
def test_what_is_no_longer_offered_is_unknown_from_then_on() -> None:
    two = bob()
    two.machine.offer((), now=two.now, wall_now=two.wall)
    two.receive(REQUEST)
    assert two.said()[0]["payload"]["details"] == {"actions": []}


@pytest.mark.parametrize("output", [7, None, "x", [1], True, {"value": 1}])
def test_any_json_value_of_a_capability_arrives_as_it_was(output: Any) -> None:
    one, two = alice(), bob()
    one.ask()
    carry(one, two)
    two.told()
    two.answered("1", output)
    (response,) = two.said()
    assert isinstance(response["payload"]["result"], dict)
    one.receive(response)
    assert one.told() == [CallAnswered("c", output)]


@pytest.mark.parametrize("output", [{"x": float("nan")}, {"x": "y" * 800_000}])
def test_an_output_that_cannot_be_sent_is_a_failure(output: Any) -> None:
    two = bob()
    two.receive(REQUEST)
    two.told()
    two.answered("1", output)
    (response,) = two.said()
    assert response["payload"]["status"] == "failure"
    assert response["payload"]["error"]["code"] == "processing_failed"


def test_outcomes_of_calls_that_nobody_made_change_nothing() -> None:
    two = bob()
    two.answered("9", {})
    two.failed("9", "500", "x", ran=True)
    assert two.said() == []


# Signs of work, and time.


@clause("ENV-17", "ENV-Q5")
def test_what_takes_long_says_so_any_number_of_times_and_then_ends_once() -> None:
    one, two = alice(), bob()
    one.ask()
    carry(one, two)
    two.told()
    two.wait(3.5 * WrittenLimits().progress_after)
    reports = two.said()
    assert [one["payload"]["status"] for one in reports] == ["in_progress"] * 3
    two.answered("1", {})
    two.wait(100)
    final = two.said()
    assert [one["payload"]["status"] for one in final] == ["success"]
    for each in reports + final:
        one.receive(each)
    assert one.told() == [Progress("c", "in_progress", {})] * 3 + [
        CallAnswered("c", {})
    ]


@clause("ENV-Q5")
def test_what_comes_after_the_final_answer_is_dropped_and_noted() -> None:
    one = alice()
    request_id = asked(one)
    one.receive(answer(request_id, DONE))
    for late in (DONE, FAILED, AT_WORK, {"code": "x", "message": "y"}):
        one.receive(answer(request_id, late, timestamp="2026-11-21T12:00:01Z"))
    assert one.told() == [CallAnswered("c", {"price": 7})]
    assert len(one.flags()) == 4


@clause("ENV-Q2", "ENV-Q5")
def test_an_unknown_status_is_passed_on_and_ends_nothing() -> None:
    one = alice()
    request_id = asked(one)
    one.receive(answer(request_id, {"status": "排队", "result": {"place": 3}}))
    assert one.told() == [Progress("c", "排队", {"place": 3})]
    one.receive(answer(request_id, DONE))
    assert one.told() == [CallAnswered("c", {"price": 7})]


def test_a_call_ends_when_nothing_is_heard() -> None:
    limits = WrittenLimits(answer_timeout=10.0, total_timeout=35.0)
    one = alice(limits=limits)
    asked(one)
    one.wait(9.9)
    assert one.told() == []
    one.wait(0.1)
    (refusal,) = one.told()
    assert isinstance(refusal, CallRefused)
    assert (refusal.code, refusal.may_have_run, refusal.by_peer) == (
        "timeout",
        True,
        False,
    )


def test_signs_of_work_prolong_a_call_but_not_for_ever() -> None:
    limits = WrittenLimits(answer_timeout=10.0, total_timeout=35.0)
    one = alice(limits=limits)
    request_id = asked(one)
    for number in range(4):
        one.wait(9.0)
        if number < 3:
            one.receive(answer(request_id, AT_WORK, message_id=f"p{number}"))
            assert [type(each) for each in one.told()] == [Progress]
    (refusal,) = one.told()
    assert isinstance(refusal, CallRefused)


def test_an_answer_behind_the_deadline_is_late_even_if_no_timer_rang() -> None:
    one = alice()
    request_id = asked(one)
    one.now += WrittenLimits().answer_timeout
    one.receive(answer(request_id, DONE))
    assert [type(event) for event in one.told()] == [CallRefused]


def test_a_call_that_was_asked_on_an_earlier_channel_only_waits() -> None:
    first = alice()
    request_id = asked(first)
    assert first.machine.reference("c") == request_id
    assert first.machine.reference("d") is None
    one = alice()
    one.ask("d", reference=request_id)
    assert one.said() == []
    assert one.machine.reference("d") == request_id
    one.receive(answer(request_id, DONE))
    assert [type(event) for event in one.told()] == [CallAnswered]


def test_a_call_has_the_time_that_it_is_given() -> None:
    limits = WrittenLimits()
    one = alice()
    asked(one, timeout=limits.total_timeout + 100)
    one.wait(limits.total_timeout + 99)
    assert one.told() == []
    one.wait(2)
    assert [type(event) for event in one.told()] == [CallRefused]


def test_an_abandoned_call_says_nothing_more() -> None:
    one = alice()
    request_id = asked(one)
    one.machine.abandon("c")
    one.machine.abandon("c")
    one.receive(answer(request_id, DONE))
    one.wait(1000)
    assert one.told() == []


# What a peer may say about a call.


@clause("ENV-17", "ENV-21")
def test_failures_and_errors_are_told_apart() -> None:
    one = alice()
    one.receive(answer(asked(one, "f"), FAILED))
    one.receive(answer(asked(one, "e"), {"code": "处理失败", "message": "坏"}))
    assert one.told() == [
        CallAnswered("f", None, ("404", "no such sku"), FAILED["error"]),
        CallRefused("e", "processing_failed", "坏", {}, may_have_run=True),
    ]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"reason": "x"}, ("processing_failed", "{'reason': 'x'}")),
        ({"code": True, "message": 1}, ("processing_failed", "1")),
        ({"code": "y" * 1000, "message": "z" * 1000}, ("y" * 256, "z" * 500)),
    ],
)
def test_error_objects_of_any_form_are_told(error: Any, told: Any) -> None:
    one = alice()
    one.receive(answer(asked(one), {"status": "failure", "error": error}))
    (event,) = one.told()
    assert isinstance(event, CallAnswered)
    assert event.error == told
    assert event.details == error


@pytest.mark.parametrize(
    "payload",
    [
        {"code": "timeout", "message": ""},
        {"code": "x", "message": "", "details": {"may_have_run": True}},
    ],
)
def test_a_peer_may_say_that_a_call_may_have_run(payload: Any) -> None:
    one = alice()
    one.receive(answer(asked(one), payload))
    (event,) = one.told()
    assert isinstance(event, CallRefused)
    assert event.may_have_run


def test_an_answer_that_is_not_valid_ends_its_call_at_once() -> None:
    one = alice()
    request_id = asked(one)
    one.receive(answer(request_id, {"status": "success", "result": 7}))
    (event,) = one.told()
    assert isinstance(event, CallRefused)
    assert (event.code, event.may_have_run) == ("broken_answer", True)
    assert one.said() == []


# Our own mistakes.


def test_what_cannot_be_sent_is_refused_before_anything_goes_out() -> None:
    one = alice(limits=WrittenLimits(max_message=16 * 1024, max_asked=2))
    for arguments, action in (
        ({"x": "y" * 20_000}, "a"),
        ({"x": float("inf")}, "a"),
        ({}, ""),
        ({}, "a" * 257),
    ):
        call = Ask(call_id="c", action=action, arguments=arguments)
        one.machine.ask(call, now=one.now, wall_now=one.wall)
    one.ask("1")
    one.ask("2")
    one.ask("3")
    refusals = [event for event in one.told() if isinstance(event, CallRefused)]
    assert [one.code for one in refusals] == [
        "too_large",
        "not_json",
        "too_large",
        "too_large",
        "too_many",
    ]
    assert not any(one.may_have_run or one.by_peer for one in refusals)
    assert len(one.said()) == 2


def test_misuse_is_our_bug() -> None:
    one, two = alice(), bob()
    one.ask("c")
    with pytest.raises(MisuseError, match="in use"):
        one.ask("c")
    with pytest.raises(MisuseError):
        two.ask("c")
    with pytest.raises(MisuseError):
        one.answered("c", {})
    with pytest.raises(MisuseError):
        one.failed("c", "1", "x", ran=True)
    with pytest.raises(MisuseError):
        two.machine.abandon("c")
    with pytest.raises(MisuseError, match="once"):
        one.machine.start(now=0.0, wall_now=NOW)
    with pytest.raises(MisuseError):
        one.tell("", {})
    with pytest.raises(MisuseError):
        one.tell("e", {"x": float("nan")})
    one.machine.end()
    with pytest.raises(MisuseError):
        one.ask("d")


@clause("ENV-Q14")
@pytest.mark.parametrize(
    "parties",
    [
        Parties(own_id="broadcast", peer_id=BOB),
        Parties(own_id=ALICE, peer_id="broadcast"),
        Parties(own_id=ALICE, peer_id=BOB, peer_aliases=frozenset({"broadcast"})),
    ],
)
def test_no_agent_may_be_named_broadcast(parties: Parties) -> None:
    with pytest.raises(MisuseError):
        EnvelopeCode()(
            Role.PROVIDER, parties, limits=WrittenLimits(), random_bytes=counting()
        )


# Who speaks, and to whom.


@clause("ENV-26", "ENV-Q13")
@pytest.mark.parametrize("kind", ["request", "response", "event", "error", "beat"])
def test_nobody_speaks_in_the_name_of_another(kind: str) -> None:
    two = bob()
    two.receive(message(kind, sender_id="did:example:mallory"))
    assert two.told() == []
    assert "sender_id" in two.flags()[0]
    answers = [one["payload"]["code"] for one in two.said()]
    assert answers == (["invalid_payload"] if kind in ("request", "beat") else [])


@clause("ENV-26", "ENV-Q13")
def test_an_alias_that_is_the_peers_own_is_good() -> None:
    two = bob(aliases=frozenset({"did:key:zAlice"}))
    two.receive(message(sender_id="did:key:zAlice"))
    assert [type(event) for event in two.told()] == [CallCapability]


def test_a_message_for_somebody_else_is_not_taken() -> None:
    two = bob()
    two.receive(message(receiver_id="did:example:carol"))
    assert two.told() == []
    assert two.said()[0]["payload"]["code"] == "agent_unavailable"


def test_calls_go_one_way() -> None:
    one = alice()
    one.receive(message(sender_id=BOB, receiver_id=ALICE))
    one.receive(message(sender_id=BOB, receiver_id="broadcast", message_id="m-2"))
    assert [each["payload"]["code"] for each in one.said()] == ["agent_unavailable"]
    two = bob()
    two.receive(message("response"))
    two.receive(message("error", metadata={"correlation_id": "q"}, message_id="m-2"))
    assert (two.told(), two.said()) == ([], [])
    assert len(two.flags()) == 2


# Duplicates.


@clause("ENV-Q11")
def test_a_repeated_request_is_answered_again_and_not_processed_again() -> None:
    two = bob()
    two.receive(REQUEST)
    assert len(two.told()) == 1
    two.receive(REQUEST)
    assert (two.told(), two.raw()) == ([], [])
    two.answered("1", {"price": 7})
    (first,) = two.raw()
    for _ in range(3):
        two.receive({**REQUEST, "timestamp": "2026-11-21T12:00:09Z"})
        assert two.raw() == [first]
    assert two.told() == []


@clause("ENV-Q11")
def test_a_repeated_request_under_way_hears_the_last_sign_of_work_again() -> None:
    two = bob()
    two.receive(REQUEST)
    two.told()
    two.wait(WrittenLimits().progress_after)
    (sign,) = two.raw()
    two.receive(REQUEST)
    assert two.raw() == [sign]


@clause("ENV-Q11")
@pytest.mark.parametrize("action", ["discover", "nothing.here"])
def test_other_answers_are_repeated_too(action: str) -> None:
    two = bob()
    request = message(payload={"action": action, "parameters": {}})
    two.receive(request)
    first = two.raw()
    two.receive(request)
    assert two.raw() == first
    assert len(first) == 1


@clause("ENV-Q11")
def test_a_repeated_event_is_told_once() -> None:
    two = bob()
    for _ in range(2):
        two.receive(message("event"))
    assert len(two.told()) == 1


@clause("ENV-Q11")
def test_an_id_counts_over_all_channels_of_a_peer() -> None:
    code = EnvelopeCode()
    first, second = bob(code=code), bob(code=code, seed=500)
    first.receive(REQUEST)
    first.told()
    second.receive(REQUEST)
    assert (second.told(), second.said()) == ([], [])
    first.answered("1", {"price": 7})
    (answered,) = first.raw()
    second.receive(REQUEST)
    assert second.raw() == [answered]
    # Another peer's ids are its own.
    other = bob(code=code, peer="did:example:carol", seed=900)
    other.receive({**REQUEST, "sender_id": "did:example:carol"})
    assert len(other.told()) == 1


@clause("ENV-Q11")
def test_what_was_cut_off_is_not_tried_again() -> None:
    code = EnvelopeCode()
    first = bob(code=code)
    first.receive(REQUEST)
    first.told()
    first.machine.end()
    first.answered("1", {"price": 7})
    assert first.raw() == []
    second = bob(code=code, seed=500)
    second.receive(REQUEST)
    assert second.told() == []
    (error,) = second.said()
    assert error["payload"]["code"] == "processing_failed"
    assert error["payload"]["details"] == {"may_have_run": True}


@clause("ENV-Q11")
def test_an_answer_too_large_to_be_kept_is_not_made_again() -> None:
    two = bob()
    for number in range(4):
        two.receive(message(message_id=f"m-{number}"))
        two.told()
        two.answered(str(number + 1), {"x": "y" * (MAX_ANSWER_BYTES // 3)})
    two.raw()
    two.receive(message(message_id="m-0"))
    assert two.said()[0]["payload"]["details"] == {"may_have_run": True}
    two.receive(message(message_id="m-3"))
    assert two.said()[0]["payload"]["status"] == "success"
    assert two.told() == []


# Broadcast.


@clause("ENV-12", "ENV-Q6")
def test_a_request_to_all_is_answered_to_its_sender_alone() -> None:
    two = bob()
    two.receive(message(receiver_id="broadcast"))
    two.told()
    two.answered("1", {})
    assert two.said()[0]["receiver_id"] == ALICE


@clause("ENV-Q6", "ENV-Q9")
@pytest.mark.parametrize(
    "value",
    [
        message(payload={"action": "x", "parameters": {}}, receiver_id="broadcast"),
        message("beat", receiver_id="broadcast"),
        message(payload={}, receiver_id="broadcast"),
        message(protocol_version="2.0", receiver_id="broadcast"),
    ],
)
def test_what_cannot_be_served_is_not_answered_when_it_went_to_all(value: Any) -> None:
    two = bob()
    for _ in range(2):
        two.receive(value)
    assert (two.told(), two.said()) == ([], [])


@clause("ENV-Q6")
def test_answers_to_a_request_to_all_are_collected_until_its_time_is_over() -> None:
    one = alice(aliases=frozenset({"bob-2"}))
    request_id = asked(one, to_all=True)
    one.receive(answer(request_id, AT_WORK))
    assert one.told() == [Progress("c", "in_progress", {"done": 0.5})]
    one.receive(answer(request_id, DONE))
    one.receive(answer(request_id, FAILED))
    one.receive(answer(request_id, {"code": "x", "message": "y"}, sender_id="bob-2"))
    one.receive(answer(request_id, {"status": "success"}, message_id="broken"))
    assert one.told() == []
    one.wait(WrittenLimits().answer_timeout)
    expected = [
        {"sender_id": BOB, "status": "success", "result": {"price": 7}},
        {
            "sender_id": "bob-2",
            "status": "error",
            "error": {"code": "x", "message": "y"},
        },
    ]
    assert one.told() == [CallAnswered("c", {"answers": expected})]


@clause("ENV-Q6")
def test_a_request_to_all_says_so() -> None:
    one = alice()
    one.ask(to_all=True)
    assert one.said()[0]["receiver_id"] == "broadcast"


def test_a_request_to_all_keeps_a_limited_number_of_answers() -> None:
    names = frozenset(f"n{number}" for number in range(MAX_COLLECTED + 5))
    one = alice(aliases=names)
    request_id = asked(one, to_all=True)
    for name in sorted(names):
        one.receive(answer(request_id, DONE, sender_id=name))
    one.wait(1000)
    (event,) = one.told()
    assert isinstance(event, CallAnswered)
    assert isinstance(event.result, dict)
    assert len(event.result["answers"]) == MAX_COLLECTED


# Errors and faults.


@clause("ENV-23", "ENV-Q12")
@pytest.mark.parametrize(
    "value",
    [
        message("error"),
        message("error", metadata={"correlation_id": "q"}),
        message("error", payload={}),
        message("error", protocol_version="2.0"),
        message("error", sender_id="x"),
        message("response", payload={}),
        message("response", protocol_version="2.0"),
        message("event", payload={}),
        {"message_type": "error"},
        {},
        [],
    ],
)
@pytest.mark.parametrize("make", [alice, bob])
def test_an_error_is_never_answered(value: Any, make: Any) -> None:
    agent = make(own=BOB, peer=ALICE)
    agent.receive(value)
    assert agent.said() == []


@clause("ENV-21", "ENV-23")
def test_an_error_about_nothing_is_a_notice() -> None:
    two = bob()
    two.receive(message("error", {"code": "智能体不可用", "message": "bye"}))
    assert two.told() == [Deliver(PeerNotice("agent_unavailable", "bye", {}))]


@clause("ENV-7", "ENV-Q8")
def test_another_version_is_answered_with_what_is_spoken() -> None:
    two = bob()
    two.receive(message(protocol_version="2.0"))
    (error,) = two.said()
    assert error["payload"]["code"] == "unsupported_version"
    assert error["payload"]["details"] == {"supported": ["1.0"]}
    assert error["metadata"] == {"correlation_id": "m-1"}
    assert error["protocol_version"] == "1.0"


@clause("ENV-4", "ENV-13", "ENV-Q9")
def test_an_unknown_type_is_answered_and_a_declared_one_delivered() -> None:
    two = bob()
    two.receive(message("beat"))
    assert two.said()[0]["payload"]["code"] == "unknown_message_type"
    taking = bob(code=EnvelopeCode(further_types=frozenset({"beat"})))
    taking.receive(message("beat", {"n": 1}, metadata={"t": 1}))
    assert taking.told() == [Deliver(PeerMessage("beat", {"n": 1}, {"t": 1}))]
    assert taking.said() == []


def test_a_request_that_is_not_valid_is_told_why() -> None:
    two = bob()
    two.receive(message(payload={"action": "shop.lookup"}))
    (error,) = two.said()
    assert error["payload"]["code"] == "invalid_payload"
    assert "parameters" in error["payload"]["message"]


@pytest.mark.parametrize("value", [message(payload={}), []])
def test_a_peer_that_keeps_breaking_the_protocol_is_given_up(value: Any) -> None:
    two = bob(limits=WrittenLimits(max_faults=3))
    for _ in range(3):
        two.receive(value)
    assert two.told() == []
    two.receive(value)
    assert [type(event) for event in two.told()] == [Broken]
    two.raw()
    two.receive(REQUEST)
    assert (two.told(), two.raw()) == ([], [])


def test_there_is_a_limit_to_our_errors_about_good_messages_of_others() -> None:
    two = bob(limits=WrittenLimits(max_errors=3))
    for number in range(5):
        two.receive(message("beat", message_id=str(number)))
    assert len(two.said()) == 3
    assert [type(event) for event in two.told()] == [Broken]


def test_a_provider_with_its_hands_full_says_so() -> None:
    two = bob(limits=WrittenLimits(max_served=2))
    for number in range(2):
        assert not two.machine.full
        two.receive(message(message_id=str(number)))
    assert two.machine.full
    two.answered("1", {})
    assert not two.machine.full


# Events, discovery and registration.


@clause("ENV-19", "ENV-20")
def test_an_event_is_broadcast_and_delivered() -> None:
    one, two = alice(), bob()
    two.tell("restocked", {"sku": "A-1"})
    (event,) = two.said()
    assert event["receiver_id"] == "broadcast"
    assert event["payload"] == {
        "event_name": "restocked",
        "event_data": {"sku": "A-1"},
    }
    one.receive({**event, "metadata": {"t": 1}})
    said = PeerEvent("restocked", {"sku": "A-1"}, True, {"t": 1})
    assert one.told() == [Deliver(said)]


@clause("ENV-25", "ENV-Q15")
def test_an_agent_that_is_there_says_so_if_it_is_to() -> None:
    quiet, loud = bob(), bob(code=EnvelopeCode(announce=True))
    assert quiet.said() == []
    (event,) = loud.said()
    assert event["payload"] == {
        "event_name": "agent_online",
        "event_data": {"capabilities": ["shop.lookup", "shop.order"]},
    }
    loud.machine.offer(SHARED, now=loud.now, wall_now=loud.wall)
    assert loud.said() == []
    loud.machine.offer((LOOKUP,), now=loud.now, wall_now=loud.wall)
    assert len(loud.said()) == 1


@clause("ENV-25", "ENV-27", "ENV-Q15")
def test_discover_lists_what_this_peer_may_use() -> None:
    two = bob(offered=(LOOKUP,))
    two.receive(message(payload={"action": "discover", "parameters": {}}))
    assert two.said()[0]["payload"]["result"] == {
        "capabilities": [
            {
                "name": "shop.lookup",
                "description": "Looks up a price.",
                "input_schema": LOOKUP.input_schema,
                "output_schema": LOOKUP.output_schema,
                "read_only": True,
                "idempotent": False,
            }
        ]
    }


@clause("ENV-25", "ENV-Q15")
def test_a_peer_registers_and_unregisters() -> None:
    two = bob()
    entries: list[dict[str, Any]] = [{"name": "calc.add", "more": 1}]
    for number, (action, parameters) in enumerate(
        [("register", {"capabilities": entries}), ("unregister", {})]
    ):
        payload = {"action": action, "parameters": parameters}
        two.receive(message(payload=payload, message_id=str(number)))
    assert two.told() == [
        Deliver(PeerAnnouncement((entries[0],))),
        Deliver(PeerWithdrawal()),
    ]
    results = [one["payload"]["result"] for one in two.said()]
    assert results == [{"registered": 1}, {"registered": 0}]


@pytest.mark.parametrize(
    "payload",
    [
        {"action": "register", "parameters": {}},
        {"action": "register", "parameters": {"capabilities": [{"name": ""}]}},
        {"action": "register", "parameters": {"capabilities": [{"name": "x"}] * 257}},
        {"action": "discover", "parameters": {"offset": -1}},
        {"action": "discover", "parameters": {"offset": True}},
        {"action": "discover", "parameters": {"names": "x"}},
        {"action": "discover", "parameters": {"names": [1]}},
        {"action": "discover", "parameters": {"names": ["x"] * 257}},
    ],
)
def test_reserved_actions_with_bad_parameters_are_refused(payload: Any) -> None:
    two = bob()
    two.receive(message(payload=payload))
    assert two.told() == []
    assert two.said()[0]["payload"]["code"] == "invalid_payload"


@clause("ENV-24")
def test_the_protocol_is_bytes_in_and_bytes_out() -> None:
    one, two = alice(), bob()
    one.ask()
    queue = list(one.raw())
    assert all(type(data) is bytes for data in queue)
    two.receive(queue.pop())
    assert [type(event) for event in two.told()] == [CallCapability]
