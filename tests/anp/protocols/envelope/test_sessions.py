"""Sessions and tasks in messages of the envelope 1.1: the text, the codec, refusals."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.interaction.elements import (
    Chunk,
    Message,
    MessagePurpose,
    Part,
    Party,
    PartyMode,
    Task,
    TaskChange,
    TaskProgress,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    Acknowledgement,
    MessageSend,
    NotifyRegister,
    NotifyUnregister,
    Operation,
    RefusedOperation,
    Send,
    SessionClose,
    SessionOpen,
    SessionUpdate,
    TaskCancel,
    TaskCreate,
    TaskGet,
    TaskUpdate,
)
from anp.interaction.states import TaskState
from anp.protocols.envelope import (
    ENVELOPE_TASKS_URI,
    ENVELOPE_TASKS_VERSION,
    ENVELOPE_URI,
    EnvelopeCode,
    envelope_document,
)
from anp.protocols.envelope.session_line import EnvelopeLine
from anp.protocols.envelope.session_reader import is_of_session
from anp.protocols.envelope.session_words import (
    NEEDS,
    SessionAction,
    SessionEntry,
    SessionEventName,
)
from negotiation.consensus.written import Parties, WrittenLimits
from negotiation.errors import JsonError
from negotiation.need import Role
from tests.anp.interaction.talk import ALICE, BOB, NOW, message, session, task
from tests.anp.protocols.envelope.talk import SHARED, Agent
from tests.anp.protocols.envelope.talk import message as one_turn
from tests.clauses import clause

MAX = 786_432


def line(own: str, peer: str, **limits: Any) -> EnvelopeLine:
    """Return one end of a channel."""
    parties = Parties(own_id=own, peer_id=peer)
    return EnvelopeLine(WrittenLimits(**limits), parties, lambda: NOW)


def is_requesters(operation: Operation) -> bool:
    match operation:
        case MessageSend(message=said):
            return said.sender == ALICE
        case TaskUpdate() | Acknowledgement() | RefusedOperation():
            return False
    return True


def bare(**fields: Any) -> Task:
    """Return a task as a message has it, without its two sides."""
    return task(requester="", executor="", **fields)


def sent(operation: Operation, ref: int = 7) -> dict[str, Any]:
    """Return the message that tells of an operation, as JSON."""
    ends = (ALICE, BOB) if is_requesters(operation) else (BOB, ALICE)
    writer = line(*ends)
    writer.write(Send(to=ends[1], ref=ref, operation=operation))
    value: dict[str, Any] = json.loads(writer.outgoing[0])
    return value


def came(value: Any, own: str = BOB) -> tuple[Operation | None, EnvelopeLine]:
    """Return what a side reads from its peer, and its line after that."""
    reader = line(own, ALICE if own == BOB else BOB)
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    frame = reader.read(data)
    return None if frame is None else frame.operation, reader


PARTS = (
    Part.text("今天"),
    Part.data(bytes(range(256)), media_type="image/png", name="a.png"),
    Part.value({"a": [1, 2.5, 2**80, None, True]}),
    Part.value(None),
    Part.value("text"),
    Part.link("https://a.example/f", size=2**40, sha256="ab" * 32),
    Part.text("x", continued=True, metadata={"k": {"l": 1}}, extra={"y": [0.1]}),
)
STATES = [
    TaskChange(task="t", state=TaskState.ACCEPTED),
    TaskChange(task="t", state=TaskState.WORKING),
    TaskChange(task="t", state=TaskState.INPUT_REQUIRED),
    TaskChange(task="t", state=TaskState.AUTH_REQUIRED, reason="log in"),
    TaskChange(task="t", state="x-parked"),
    TaskChange(task="t", state=TaskState.COMPLETED),
    TaskChange(task="t", state=TaskState.FAILED),
    TaskChange(task="t", state=TaskState.FAILED, code="500", reason="no"),
    TaskChange(task="t", state=TaskState.FAILED, code="canceled", may_have_run=True),
    TaskChange(task="t", state=TaskState.CANCELED),
    TaskChange(task="t", state=TaskState.CANCELED, code="no_answer", reason="late"),
    TaskChange(task="t", state=TaskState.REJECTED, code="unknown_action", reason="?"),
    TaskChange(task="t", state=TaskState.REJECTED),
]
SAID = message("m", BOB, task="t", purpose=MessagePurpose.RESULT, parts=PARTS)
OPERATIONS: list[Operation] = [
    SessionOpen(session=session()),
    SessionOpen(
        session=session(
            expires=NOW,
            context=(message("c"), message("d", BOB)),
            participants=(Party(id=BOB, params={"style": "call"}, extra={"z": 1}),),
            extra={"mood": "good"},
        )
    ),
    SessionUpdate(session=session(context=(bare(state="completed", code="1"),))),
    SessionClose(session="s"),
    TaskCreate(task=bare(capability="agent.poem", messages=(message(task="t"),))),
    TaskCreate(
        task=bare(
            messages=(message(task="t", metadata={"a": 1}),),
            depends_on=("u", "v"),
            inputs=(message("i", BOB, task="u", chunk=Chunk(index=0, last=True)),),
            parent="p",
            trigger={"at": 1},
            extra={"own": [1]},
        )
    ),
    *(TaskUpdate(session="s", content=one, at=NOW) for one in STATES),
    TaskUpdate(
        session="s",
        content=TaskProgress(task="t", progress=1, total=2.5, text="on"),
    ),
    TaskUpdate(session="s", content=TaskProgress(task="t")),
    TaskUpdate(session="s", content=STATES[5], messages=(SAID,)),
    TaskCancel(session="s", task="t"),
    TaskGet(session="s", task="t"),
    MessageSend(message=SAID),
    MessageSend(
        message=message(
            "m", BOB, task="t", chunk=Chunk(index=3, last=True), final=False
        )
    ),
    MessageSend(message=message("m", BOB, metadata={"a": {}}, extra={"b": 2})),
    MessageSend(message=message("m", task="t", chunk=Chunk(index=0))),
    MessageSend(message=message("m", purpose=MessagePurpose.COMMUNICATION)),
    NotifyRegister(session="s", task="t", address="wss://a.example", expires=NOW),
    NotifyUnregister(session="s"),
    Acknowledgement(session="s", ref=7),
    Acknowledgement(
        session="s",
        ref=7,
        task=bare(state="failed", reason="r", may_have_run=True, changed_at=NOW),
    ),
    RefusedOperation(session="s", ref=7, code="state", text="it has ended"),
    RefusedOperation(session="s", ref=7, code="too_many", text="no", retry_after=2.5),
]


@clause("ENV-4", "ENV-7", "ENV-Q8")
def test_the_texts_are_those_that_their_uris_stand_for() -> None:
    # Another text needs another URI: peers that know one rely on every byte.
    digests = {
        ENVELOPE_URI: (
            "1.0",
            "846828568aff4aa61c76e9e6c7f706f3d8bd40d1d358fc35d0e12614cdba578d",
        ),
        ENVELOPE_TASKS_URI: (
            "1.1",
            "81137419ad0726c621d32d89992bc584c56c2aaccb65b65afe8482034db5789e",
        ),
    }
    assert ENVELOPE_TASKS_URI == "urn:anpd:message-envelope:1.1"
    for uri, (version, digest) in digests.items():
        text = envelope_document(version)
        assert hashlib.sha256(text.encode("utf-8")).hexdigest() == digest
        assert uri in text
    for word in (*SessionAction, *SessionEntry, *SessionEventName, *NEEDS.values()):
        assert f"`{word}`" in text
    # Files, groups and subscriptions go over GB/Z alone.
    elsewhere = {
        InteractionFault.UNKNOWN_FILE,
        InteractionFault.UNKNOWN_GROUP,
        InteractionFault.UNKNOWN_SUBSCRIPTION,
        InteractionFault.TAKEN,
    }
    for fault in set(InteractionFault) - elsewhere:
        assert f"`{fault}`" in text


@clause("ENV-2", "ENV-6", "ENV-16", "ENV-17", "ENV-19", "ENV-21")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_comes_back_as_it_was(operation: Operation) -> None:
    value = sent(operation)
    assert value["protocol_version"] == ENVELOPE_TASKS_VERSION
    assert value["metadata"]["session_id"] == "s"
    found, reader = came(value, BOB if is_requesters(operation) else ALICE)
    assert found == operation
    assert (reader.outgoing, reader.broken) == ([], "")
    # Also a repeat has the same id, so that it is one and no other message.
    assert sent(operation)["message_id"] == value["message_id"]
    assert is_of_session(json.dumps(value).encode(), max_size=MAX, wall_now=NOW)


@clause("ENV-17", "ENV-18", "ENV-Q3", "ENV-Q5")
def test_states_are_the_statuses_of_the_table() -> None:
    found = {}
    for one in STATES:
        value = sent(TaskUpdate(session="s", content=one))
        assert value["metadata"]["correlation_id"] == "t"
        payload = value["payload"]
        found[one.state] = payload.get("status", payload.get("code"))
    assert found == {
        "accepted": "in_progress",
        "working": "in_progress",
        "x-input-required": "in_progress",
        "x-auth-required": "in_progress",
        "x-parked": "in_progress",
        "completed": "success",
        "failed": "failure",
        "canceled": "failure",
        "rejected": "rejected",
    }
    asks = sent(TaskUpdate(session="s", content=STATES[2]))["payload"]
    assert asks["result"] == {"needs": "input"}
    ended = sent(TaskUpdate(session="s", content=STATES[9]))["payload"]
    assert ended["error"]["code"] == "canceled"
    told = TaskProgress(task="t", progress=1, total=2)
    far = sent(TaskUpdate(session="s", content=told))["payload"]
    assert far["result"] == {"progress": {"progress": 1, "total": 2}}
    chunk = message("m", BOB, task="t", chunk=Chunk(index=3))
    assert sent(MessageSend(message=chunk))["metadata"]["chunk_index"] == 3
    request = sent(TaskCreate(task=bare(capability="agent.poem", depends_on=("u",))))
    assert request["message_id"] == "t"
    assert request["payload"] == {
        "action": "agent.poem",
        "parameters": {"depends_on": ["u"]},
    }


@clause("ENV-18", "ENV-23", "ENV-Q12")
def test_a_request_is_refused_by_an_error_and_anything_else_by_an_event() -> None:
    error = InteractionError(InteractionFault.CLOSED, "it is closed")
    reader = line(BOB, ALICE)
    asked = sent(TaskCancel(session="s", task="t"))
    frame = reader.read(json.dumps(asked).encode())
    assert frame is not None
    reader.refuse(error, ref=frame.ref, session="s", request=frame.request)
    answer = json.loads(reader.outgoing[0])
    assert answer["message_type"] == "error"
    assert answer["metadata"]["correlation_id"] == asked["message_id"]
    assert answer["metadata"]["answers"] == 7
    refused = RefusedOperation(session="s", ref=7, code="closed", text="it is closed")
    assert came(answer, ALICE)[0] == refused

    reader = line(ALICE, BOB)
    told = sent(MessageSend(message=SAID))
    frame = reader.read(json.dumps(told).encode())
    assert frame is not None
    assert frame.request == ""
    reader.refuse(error, ref=frame.ref, session="s")
    answer = json.loads(reader.outgoing[0])
    assert answer["payload"]["event_name"] == "refused"
    assert came(answer)[0] == refused


@clause("ENV-11", "ENV-12", "ENV-Q13")
@pytest.mark.parametrize(
    "wrong",
    [
        {"sender_id": "did:key:zMallory"},
        {"receiver_id": "broadcast"},
        {"payload": {"action": "cancel", "parameters": {}}},
        {"metadata": {"session_id": "s"}},
        {"metadata": {"session_id": "s", "ref": 0}},
        {"metadata": {"session_id": "s", "ref": True}},
        {"metadata": {"session_id": 1, "ref": 1}},
        {"metadata": {}},
        {"timestamp": "yesterday"},
        {"protocol_version": "2.0"},
    ],
)
def test_a_wrong_request_is_answered_and_no_operation(wrong: dict[str, Any]) -> None:
    asked = {**sent(TaskCancel(session="s", task="t")), **wrong}
    found, reader = came(asked)
    assert found is None
    [data] = reader.outgoing
    answer = json.loads(data)
    assert answer["message_type"] == "error"
    assert answer["metadata"]["correlation_id"] == asked["message_id"]


@pytest.mark.parametrize(
    ("operation", "field", "value"),
    [
        (TaskUpdate(session="s", content=STATES[0]), "state", "completed"),
        (TaskUpdate(session="s", content=STATES[0]), "messages", [{"state": "x"}]),
        (MessageSend(message=SAID), "message", {"id": "m", "parts": []}),
        (MessageSend(message=SAID), "message", {"id": "m", "parts": [{"text": "x"}]}),
    ],
)
def test_a_wrong_answer_changes_nothing(
    operation: Operation, field: str, value: Any
) -> None:
    told = sent(operation)
    told["payload"]["result"][field] = value
    found, reader = came(told, ALICE)
    assert found is None
    assert json.loads(reader.outgoing[0])["payload"]["event_name"] == "refused"


def test_a_result_in_the_success_itself_counts_as_a_message() -> None:
    told = sent(TaskUpdate(session="s", content=STATES[5]))
    told["payload"]["result"] = {"title": "Lamp"}
    found, _ = came(told, ALICE)
    assert isinstance(found, TaskUpdate)
    [result] = found.messages
    assert isinstance(result, Message)
    assert result.parts == (Part.value({"title": "Lamp"}),)
    assert (result.purpose, result.final) == (MessagePurpose.RESULT, True)


def test_what_no_message_can_carry_is_not_written() -> None:
    writer = line(ALICE, BOB, max_message=16 * 1024)
    for made in (
        bare(messages=(message("m" * 20_000, task="t"),)),
        bare(id="t" * 129),
    ):
        with pytest.raises(JsonError):
            writer.write(Send(to=BOB, ref=1, operation=TaskCreate(task=made)))
    assert writer.outgoing == []


def test_a_channel_is_closed_after_too_many_faults() -> None:
    reader = line(BOB, ALICE, max_faults=3)
    for _ in range(4):
        assert reader.read(b"{}") is None
    assert reader.broken
    assert reader.outgoing == []


@given(st.binary(max_size=200) | st.sampled_from(OPERATIONS), st.data())
def test_no_bytes_raise(given: bytes | Operation, data: st.DataObject) -> None:
    if not isinstance(given, bytes):
        text = json.dumps(sent(given))
        at = data.draw(st.integers(0, len(text)))
        put = data.draw(st.sampled_from(['"', "null", "{", "]", "1", "", ",", "x"]))
        given = (text[:at] + put + text[at + len(put) :]).encode()
    for own in (ALICE, BOB):
        came(given, own)


@clause("ENV-Q8")
def test_calls_of_one_turn_are_those_of_version_1_0() -> None:
    code = EnvelopeCode(version=ENVELOPE_TASKS_VERSION)
    alice = Agent(Role.REQUESTER, code=code)
    bob = Agent(Role.PROVIDER, code=EnvelopeCode(version="1.1"), offered=SHARED)
    alice.ask()
    [request] = alice.machine.messages_to_send()
    assert json.loads(request)["protocol_version"] == "1.1"
    assert not is_of_session(request, max_size=MAX, wall_now=NOW)
    bob.receive(request)
    bob.answered("1", {"title": "Lamp"})
    [response] = bob.machine.messages_to_send()
    assert json.loads(response)["protocol_version"] == "1.1"
    # What 1.0 says is read as well, and another major version is told of this one.
    bob.receive(one_turn("request", protocol_version="2.0"))
    [refused] = bob.machine.messages_to_send()
    assert json.loads(refused)["payload"]["details"] == {"supported": ["1.1"]}


def test_a_group_is_read_as_one() -> None:
    party = Party(id=BOB, mode=PartyMode.GROUP, params={"groupId": "g"})
    opened = SessionOpen(session=session(participants=(party,)))
    assert came(sent(opened))[0] == opened
