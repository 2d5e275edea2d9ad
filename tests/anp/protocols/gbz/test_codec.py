"""Frames of GB/Z 185.6: tables 2 to 5, the words, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anp.interaction.elements import (
    Chunk,
    Message,
    MessagePurpose,
    Part,
    PartKind,
    Party,
    PartyMode,
    SenderRole,
    Session,
    Task,
    TaskChange,
    TaskProgress,
)
from anp.interaction.errors import InteractionError
from anp.interaction.operations import (
    Acknowledgement,
    MessageSend,
    NotifyRegister,
    NotifyUnregister,
    Operation,
    RefusedOperation,
    SessionClose,
    SessionOpen,
    SessionUpdate,
    TaskCancel,
    TaskCreate,
    TaskGet,
    TaskUpdate,
)
from anp.protocols.gbz.reader import read_data, read_frame
from anp.protocols.gbz.words import STATES
from anp.protocols.gbz.writer import write_data, write_frame
from anp.protocols.line import InvalidFrame
from negotiation.errors import JsonError
from tests.anp.interaction.talk import ALICE, BOB, NOW, message, session, task
from tests.clauses import clause

MAX = 786_432


def read(value: Any) -> Operation:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_frame(data, max_size=MAX).operation


def bare(**fields: Any) -> Task:
    """Return a task as a frame has it, without its two sides."""
    return task(requester="", executor="", **fields)


def wire(operation: Operation, ref: int = 1) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(write_frame(operation, ref, max_size=MAX))
    return value


def refused(value: Any) -> InvalidFrame:
    with pytest.raises(InvalidFrame) as caught:
        read(value)
    return caught.value


DATA: dict[str, Any] = {"type": "text/plain", "metadata": {}, "payload": "hi"}
MESSAGE: dict[str, Any] = {
    "senderRole": "requester",
    "senderId": ALICE,
    "sessionId": "s",
    "id": "m",
    "dataItems": [DATA],
}
TASK: dict[str, Any] = {"id": "t", "sessionId": "s", "state": "x-requested"}
RECEIVER = {"id": BOB, "address": "wss://bob.example", "mode": "p2p", "params": {}}
SESSION: dict[str, Any] = {
    "id": "s",
    "sender": {"id": ALICE, "address": "wss://alice.example"},
    "receivers": [RECEIVER],
}
SEND = {"op": "message.send", "ref": 1}
CREATE = {"op": "task.create", "ref": 1}
OPEN = {"op": "session.open", "ref": 1}


def read_message(**fields: Any) -> Message:
    operation = read({**SEND, **MESSAGE, **fields})
    assert isinstance(operation, MessageSend)
    return operation.message


def read_task(**fields: Any) -> Task:
    operation = read({**CREATE, **TASK, **fields})
    assert isinstance(operation, TaskCreate)
    return operation.task


def read_session(**fields: Any) -> Session:
    operation = read({**OPEN, **SESSION, **fields})
    assert isinstance(operation, SessionOpen)
    return operation.session


def test_the_objects_of_the_tables_have_the_fields_of_the_tables() -> None:
    made = replace(message("m", task="t"), chunk=Chunk(index=0, last=True))
    found = wire(MessageSend(message=replace(made, purpose=MessagePurpose.RESULT)))
    assert set(found) == {
        *("op", "ref", "senderRole", "senderId", "sessionId", "taskId", "id"),
        *("artifact", "chunkIndex", "lastChunk", "dataItems"),
    }
    assert found["dataItems"] == [{**DATA, "payload": "m"}]
    whole = task(changed_at=NOW, messages=(message("m", task="t"),), inputs=(task(),))
    assert set(wire(TaskCreate(task=whole))) == {
        *("op", "ref", "id", "sessionId", "state", "stateChangedAt", "messages"),
        "artifacts",
    }
    assert set(wire(SessionOpen(session=session(context=(message(),))))) == {
        *("op", "ref", "id", "sender", "receivers", "context"),
    }


# Table 2


@clause("GBZ-20", "GBZ-31", "GBZ-32", "GBZ-33")
@pytest.mark.parametrize(
    "wrong",
    [
        {"type": 1},
        {"type": ""},
        {"type": "text"},
        {"type": "text/plain\n"},
        {"type": None},
        {"metadata": None},
        {"metadata": []},
        {"payload": None},
        {"metadata": {"encoding": "base64"}, "payload": "?"},
        {"metadata": {"encoding": "base64"}, "payload": 1},
        {"metadata": {"encoding": "json"}, "payload": "1"},
        {"metadata": {"size": -1}},
        {"metadata": {"size": True}},
        {"metadata": {"sha256": "A" * 64}},
        {"metadata": {"name": "x" * 513}},
    ],
)
def test_data_has_a_mime_type_metadata_and_a_payload(wrong: dict[str, Any]) -> None:
    with pytest.raises(InteractionError):
        read_data({**DATA, **wrong})
    for name in DATA:
        with pytest.raises(InteractionError):
            read_data({key: one for key, one in DATA.items() if key != name})


@clause("GBZ-20", "GBZ-33", "GBZ-Q19")
@pytest.mark.parametrize(
    "part",
    [
        Part.text("今天"),
        Part.text("{}", media_type="application/json"),
        Part.text("x", media_type="text/html; charset=utf-8", name="a.html"),
        Part.data(bytes(range(256)), media_type="image/png"),
        Part.value({"a": [1, 2.5, 2**80, None, True]}),
        Part.value("text"),
        Part.value(None),
        Part.value(False),
        Part.value(0, media_type="application/geo+json"),
        Part.link("https://a.example/f", size=2**40, sha256="ab" * 32),
        Part.text("x", continued=True, metadata={"k": {"l": 1}}, extra={"y": [0.1]}),
    ],
)
def test_every_kind_of_content_comes_back_as_it_was(part: Part) -> None:
    found = read_data(json.loads(json.dumps(write_data(part))))
    assert found == part
    assert type(found.content) is type(part.content)


def test_a_json_text_under_another_type_gets_a_json_type() -> None:
    part = Part.value("x", media_type="text/plain")
    assert read_data(write_data(part)) == Part.value("x")


# Table 3


@clause("GBZ-21", "GBZ-28", "GBZ-34", "GBZ-35", "GBZ-36", "GBZ-38", "GBZ-43")
@pytest.mark.parametrize(
    "name", ["senderRole", "senderId", "sessionId", "id", "dataItems"]
)
def test_a_message_needs_its_fields(name: str) -> None:
    value = {**SEND, **MESSAGE}
    wrongs: list[Any] = [None, "", 1, [], {}]
    for wrong in wrongs:
        assert refused({**value, name: wrong}).error.code == "invalid"
    del value[name]
    assert refused(value).error.code == "invalid"


@clause("GBZ-34", "GBZ-39", "GBZ-Q3", "GBZ-Q4")
def test_words_of_the_standard_are_read_in_both_languages() -> None:
    for word, role in (("请求智能体", "requester"), ("服务智能体", "service")):
        assert read_message(senderRole=word).role == role
    for word, purpose in (("工作沟通", "communication"), ("工作成果", "result")):
        found = read_message(artifact=word, senderRole="service")
        assert found.purpose == purpose
    assert read_message().purpose is None
    for wrong in ("Requester", "agent", 1):
        refused({**SEND, **MESSAGE, "senderRole": wrong})
        refused({**SEND, **MESSAGE, "artifact": wrong})


@clause("GBZ-37", "GBZ-Q6")
def test_a_message_without_task_may_say_so_in_three_ways() -> None:
    assert read_message().task == ""
    assert read_message(taskId=None).task == ""
    assert read_message(taskId="").task == ""
    assert read_message(taskId="t").task == "t"
    assert "taskId" not in wire(MessageSend(message=message()))


@clause("GBZ-40", "GBZ-Q7", "GBZ-Q8")
def test_final_is_a_services_word_about_a_result() -> None:
    assert read_message(senderRole="service", final=True).final is True
    assert read_message(final=False).final is False
    refused({**SEND, **MESSAGE, "final": True})
    refused({**SEND, **MESSAGE, "senderRole": "service", "final": 1})
    refused(
        {
            **SEND,
            **MESSAGE,
            "senderRole": "service",
            "final": True,
            "artifact": "communication",
        }
    )
    chunk = {"chunkIndex": 0, "lastChunk": False}
    assert read_message(senderRole="service", final=True, **chunk).final is None


@clause("GBZ-41", "GBZ-42", "GBZ-Q7")
def test_the_fields_of_a_chunk_come_together() -> None:
    assert read_message(chunkIndex=0, lastChunk=True).chunk == Chunk(index=0, last=True)
    wrongs: list[dict[str, Any]] = [
        {"chunkIndex": 0},
        {"lastChunk": True},
        {"chunkIndex": -1, "lastChunk": True},
        {"chunkIndex": 1.0, "lastChunk": True},
        {"chunkIndex": True, "lastChunk": True},
        {"chunkIndex": 0, "lastChunk": 1},
    ]
    for wrong in wrongs:
        refused({**SEND, **MESSAGE, **wrong})


@clause("GBZ-43", "GBZ-Q5")
def test_a_single_data_object_is_an_array_of_one() -> None:
    assert read_message(dataItems=DATA).parts == (Part.text("hi"),)
    assert len(read_message(dataItems=[DATA] * 1024).parts) == 1024
    refused({**SEND, **MESSAGE, "dataItems": [DATA] * 1025})


@clause("GBZ-35", "GBZ-Q18")
def test_ids_have_1_to_512_characters() -> None:
    for name in ("id", "senderId", "sessionId", "taskId"):
        read_message(**{name: "x" * 512})
        refused({**SEND, **MESSAGE, name: "x" * 513})


@clause("GBZ-19", "GBZ-33", "GBZ-Q19")
@pytest.mark.parametrize("media_type", ["text/plain", "application/json"])
@pytest.mark.parametrize("payload", ["hi", {"a": 1}])
@pytest.mark.parametrize("encoding", ["gzip", "utf-8", 7, ["base64"]])
def test_an_encoding_that_is_not_decoded_is_left_to_the_agent(
    media_type: str, payload: Any, encoding: Any
) -> None:
    item = {"type": media_type, "metadata": {"encoding": encoding}, "payload": payload}
    found = read_data(item)
    assert (found.content, found.metadata) == (payload, {"encoding": encoding})
    assert read_data(write_data(found)) == found


@clause("GBZ-Q19")
@pytest.mark.parametrize("encoding", ["base64", "uri", "text", "json", "gzip"])
@pytest.mark.parametrize(
    "part", [Part.text("hi"), Part.value({"a": 1}), Part.value("hi"), Part.value(None)]
)
def test_what_an_agent_says_of_encodings_does_not_change_its_content(
    part: Part, encoding: str
) -> None:
    said = replace(part, metadata={"encoding": encoding, "page": 3})
    found = read_data(write_data(said))
    assert (found.kind, found.content) == (part.kind, part.content)
    assert found.metadata["page"] == 3


# Table 4


@clause("GBZ-29", "GBZ-44", "GBZ-45", "GBZ-46")
@pytest.mark.parametrize("name", ["id", "sessionId", "state"])
def test_a_task_needs_its_fields(name: str) -> None:
    value = {**CREATE, **TASK}
    wrongs: list[Any] = [None, "", 1, []]
    for wrong in wrongs:
        assert refused({**value, name: wrong}).error.code == "invalid"
    del value[name]
    assert refused(value).error.code == "invalid"


@clause("GBZ-46", "GBZ-Q1")
def test_states_are_read_in_both_languages_and_others_begin_with_x() -> None:
    for word, state in STATES.items():
        update = {**TASK, "op": "task.update", "ref": 1, "state": word}
        operation = read(update)
        assert isinstance(operation, TaskUpdate)
        if state == "progress":
            assert operation.content == TaskProgress(task="t")
        else:
            assert operation.content == TaskChange(task="t", state=state)
    assert read_task(state="x-own").state == "x-own"
    for wrong in ("done", "Completed", "x-", "x-" + "a" * 63, "任务"):
        refused({**CREATE, **TASK, "state": wrong})


@clause("GBZ-46", "GBZ-Q1", "GBZ-Q4", "GBZ-Q9")
def test_words_of_other_implementations_are_read_and_ours_are_written() -> None:
    for word, state in {
        "cancelled": "canceled",
        "in_progress": "working",
        "awaiting-input": "x-input-required",
        "awaiting-completion": "x-input-required",
    }.items():
        update = read({**TASK, "op": "task.update", "ref": 1, "state": word})
        assert wire(update)["state"] == state
    for word, purpose in {
        "work_communication": "communication",
        "work_result": "result",
    }.items():
        said = {**SEND, **MESSAGE, "senderRole": "service", "artifact": word}
        assert wire(read(said))["artifact"] == purpose
    for word, params, mode in (
        ("point_to_point", {}, "p2p"),
        ("hybrid", {}, "p2p"),
        ("hybrid", {"groupId": "g"}, "group"),
    ):
        receiver = {**RECEIVER, "mode": word, "params": params}
        written = wire(read({**OPEN, **SESSION, "receivers": [receiver]}))
        assert written["receivers"] == [{**receiver, "mode": mode}]


@clause("GBZ-49", "GBZ-53")
def test_a_task_does_not_depend_on_itself_nor_a_session_on_another_one() -> None:
    assert read_task(dependsOn=["u"]).depends_on == ("u",)
    assert "the task itself" in str(refused({**CREATE, **TASK, "dependsOn": ["t"]}))
    for other in (MESSAGE, TASK):
        context = [{**other, "sessionId": "another"}]
        caught = refused({**OPEN, **SESSION, "context": context})
        assert "another session" in str(caught)


@clause("GBZ-47", "GBZ-Q17")
def test_times_are_in_utc_and_one_without_a_zone_is_flagged() -> None:
    at = datetime(2026, 11, 22, 4, tzinfo=UTC)
    assert read_task(stateChangedAt="2026-11-22T12:00:00+08:00").changed_at == at
    data = json.dumps({**CREATE, **TASK, "stateChangedAt": "2026-11-22T04:00:00"})
    frame = read_frame(data.encode(), max_size=MAX)
    assert isinstance(frame.operation, TaskCreate)
    assert frame.operation.task.changed_at == at
    assert frame.flags == ("stateChangedAt has no zone and is taken as UTC",)
    for wrong in ("2026-11-22", 1.5, "", "2026-02-30T00:00:00Z"):
        refused({**CREATE, **TASK, "stateChangedAt": wrong})
    written = wire(TaskCreate(task=task(changed_at=at)))
    assert written["stateChangedAt"] == "2026-11-22T04:00:00.000Z"


@clause("GBZ-27", "GBZ-48", "GBZ-49", "GBZ-53", "GBZ-Q13")
def test_inputs_and_context_have_messages_only_or_tasks_only() -> None:
    assert len(read_task(messages=[MESSAGE]).messages) == 1
    for array in ([MESSAGE, MESSAGE], [TASK]):
        assert len(read_task(artifacts=array).inputs) == len(array)
        assert len(read_session(context=array).context) == len(array)
    assert read_task(artifacts=[]).inputs == ()
    wrongs: list[Any] = [[MESSAGE, TASK], [{**MESSAGE, **TASK}], [{}], [1], {}]
    for wrong in wrongs:
        refused({**CREATE, **TASK, "artifacts": wrong})
        refused({**OPEN, **SESSION, "context": wrong})


def test_a_capability_is_named_by_the_intent_of_the_first_data_item() -> None:
    made = bare(capability="shop.find", messages=(message("m", task="t"),))
    written = wire(TaskCreate(task=made))
    assert written["messages"][0]["dataItems"][0]["metadata"] == {"intent": "shop.find"}
    assert "capability" not in written
    assert read(written) == TaskCreate(task=made)
    alone = bare(capability="shop.find")
    assert read(wire(TaskCreate(task=alone))) == TaskCreate(task=alone)


# Table 5


@clause("GBZ-24", "GBZ-50", "GBZ-51", "GBZ-52")
@pytest.mark.parametrize(
    "wrong",
    [
        {"id": ""},
        {"id": None},
        {"sender": None},
        {"sender": {"id": ALICE}},
        {"sender": {"address": ""}},
        {"receivers": None},
        {"receivers": []},
        {"receivers": [{**RECEIVER, "mode": "P2P"}]},
        {"receivers": [{**RECEIVER, "mode": None}]},
        {"receivers": [{**RECEIVER, "id": ""}]},
        {"receivers": [{**RECEIVER, "address": 1}]},
        {"receivers": [{**RECEIVER, "params": []}]},
        {"receivers": [{**RECEIVER, "mode": "group"}]},
        {"receivers": [RECEIVER] * 257},
    ],
)
def test_a_session_needs_its_fields(wrong: dict[str, Any]) -> None:
    assert refused({**OPEN, **SESSION, **wrong}).session in ("s", "")


@clause("GBZ-52", "GBZ-Q9", "GBZ-Q11")
def test_modes_and_their_parameters_are_kept_with_what_nobody_knows() -> None:
    grouped = {
        **RECEIVER,
        "mode": "群组模式",
        "params": {"groupId": "g", "n": 1},
        "x": 2,
    }
    found = read_session(
        receivers=[RECEIVER, grouped], sender={**SESSION["sender"], "y": 3}
    )
    assert [one.mode for one in found.participants] == [PartyMode.P2P, PartyMode.GROUP]
    assert found.participants[1].params == {"groupId": "g", "n": 1}
    assert found.participants[1].extra == {"x": 2}
    assert found.requester.extra == {"y": 3}


@clause("GBZ-19")
def test_further_fields_are_kept_and_written_again() -> None:
    unknown = {"urgency": {"n": 2**70, "f": 0.1}}
    for value in (
        {**OPEN, **SESSION, **unknown},
        {**CREATE, **TASK, **unknown},
        {**SEND, **MESSAGE, **unknown},
        {**SEND, **MESSAGE, "dataItems": [{**DATA, **unknown}]},
        {**CREATE, **TASK, "messages": [{**MESSAGE, **unknown}]},
    ):
        assert wire(read(value)) == value


# Frames


OPERATIONS: list[Operation] = [
    SessionOpen(session=session(expires=NOW, context=(message(),), extra={"a": 1})),
    SessionUpdate(
        session=session(participants=(Party(id=BOB, params={"style": "x"}),))
    ),
    SessionClose(session="s"),
    TaskCreate(
        task=bare(
            changed_at=NOW,
            messages=(message("m", task="t"),),
            depends_on=("a", "b"),
            inputs=(message("r", BOB, task="a"),),
            parent="p",
            trigger={"at": 1},
        )
    ),
    TaskUpdate(
        session="s",
        at=NOW,
        content=TaskChange(
            task="t",
            state="failed",
            code="c",
            reason="r",
            may_have_run=True,
            at=NOW,
        ),
        messages=(message("m", BOB, task="t"),),
    ),
    TaskUpdate(
        session="s", content=TaskProgress(task="t", progress=1, total=2.5, text="x")
    ),
    TaskUpdate(session="s", content=TaskProgress(task="t", progress=0)),
    TaskCancel(session="s", task="t"),
    TaskGet(session="s", task="t"),
    MessageSend(
        message=replace(
            message("m", BOB, task="t"),
            purpose=MessagePurpose.RESULT,
            final=True,
            chunk=Chunk(index=3, last=True),
            metadata={"k": "v"},
            extra={"z": None},
        )
    ),
    NotifyRegister(session="s", task="t", address="wss://a.example", expires=NOW),
    NotifyRegister(session="s", address="wss://a.example"),
    NotifyUnregister(session="s"),
    Acknowledgement(session="s", ref=1),
    Acknowledgement(session="s", ref=1, task=bare()),
    RefusedOperation(session="s", ref=1, code="state", text="no"),
    RefusedOperation(session="", ref=0, code="invalid", text=""),
    RefusedOperation(session="s", ref=1, code="too_many", text="no", retry_after=2.5),
]


@clause("GBZ-Q10")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_comes_back_as_it_was(operation: Operation) -> None:
    data = write_frame(operation, 1, max_size=MAX)
    frame = read_frame(data, max_size=MAX)
    assert frame.operation == operation
    assert json.loads(data)["op"] in (
        *("session.open", "session.update", "session.close", "task.create"),
        *("task.update", "task.cancel", "task.get", "message.send"),
        *("notify.register", "notify.unregister", "ack", "error"),
    )


@pytest.mark.parametrize("ref", [None, 0, -1, 1.0, "1", True, 2**53])
def test_an_operation_needs_its_number(ref: Any) -> None:
    found = refused({"op": "session.close", "ref": ref, "id": "s"})
    assert (found.ref, found.session, found.answerable) == (0, "s", True)


def test_what_is_wrong_names_what_it_answers_and_answers_get_none() -> None:
    found = refused({"op": "task.get", "ref": 4, "sessionId": "s"})
    assert (found.ref, found.session, found.answerable) == (4, "s", True)
    found = refused({"op": "subscribe.create", "ref": 4, "sessionId": "s"})
    assert (found.error.code, found.ref) == ("unknown_operation", 4)
    assert not refused({"op": "error", "ref": 1, "sessionId": "s"}).answerable
    assert not refused({"op": "ack", "ref": 1, "sessionId": 1}).answerable
    for value in (b"", b"[]", b"{", b'{"op": "ack", "op": "ack", "ref": 1}', b"\xff"):
        assert refused(value).ref == 0


def test_frames_have_a_limit_at_both_ends() -> None:
    made = MessageSend(message=replace(message(), parts=(Part.text("x" * 1000),)))
    size = len(write_frame(made, 1, max_size=MAX))
    assert len(write_frame(made, 1, max_size=size)) == size
    with pytest.raises(JsonError):
        write_frame(made, 1, max_size=size - 1)
    data = write_frame(made, 1, max_size=MAX)
    read_frame(data, max_size=size)
    with pytest.raises(InvalidFrame):
        read_frame(data, max_size=size - 1)


def test_what_is_no_json_is_not_written() -> None:
    for content in (float("nan"), {1: 2, "1": 3}, object(), "\ud800"):
        made = replace(message(), parts=(Part(kind=PartKind.JSON, content=content),))  # type: ignore[arg-type]  # no JSON
        with pytest.raises(JsonError):
            write_frame(MessageSend(message=made), 1, max_size=MAX)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**60) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        *(*MESSAGE, *TASK, *SESSION, "taskId", "artifact", "final", "chunkIndex"),
        *("lastChunk", "messages", "artifacts", "context", "progress", "address"),
        *("stateChangedAt", "trigger", "dependsOn", "capability"),
    ]
)
OPS = st.sampled_from([*(wire(one)["op"] for one in OPERATIONS), "x", 1, None])


@settings(max_examples=300, deadline=None)
@given(
    data=st.binary(max_size=100)
    | st.builds(
        lambda op, ref, base, fields: json.dumps(
            {"op": op, "ref": ref, **base, **fields}
        ).encode(),
        OPS,
        st.integers(0, 5) | JSON,
        st.sampled_from([MESSAGE, TASK, SESSION]),
        st.dictionaries(NAMES, JSON | st.just([MESSAGE]) | st.just([TASK]), max_size=4),
    )
)
def test_any_bytes_are_a_frame_or_an_error(data: bytes) -> None:
    try:
        frame = read_frame(data, max_size=MAX)
    except InvalidFrame:
        return
    # What is read can be written, and is then read as the same.
    again = write_frame(frame.operation, frame.ref, max_size=MAX)
    assert read_frame(again, max_size=MAX).operation == (frame.operation)


def test_a_role_of_the_model_is_the_word_on_the_wire() -> None:
    assert [str(role) for role in SenderRole] == ["requester", "service"]
