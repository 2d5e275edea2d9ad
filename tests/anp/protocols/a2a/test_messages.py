"""Messages, parts and tasks in the JSON of both versions."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from a2a.compat.v0_3 import types as old
from a2a.types import a2a_pb2
from google.protobuf.json_format import ParseDict

from anp.interaction.elements import Part
from anp.interaction.states import TaskState
from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aTask,
    Artifact,
    ArtifactUpdate,
    StatusUpdate,
)
from anp.protocols.a2a.reader import read_message, read_send
from anp.protocols.a2a.words import (
    A2aError,
    A2aFault,
    A2aVersion,
    read_state,
    state_word,
)
from anp.protocols.a2a.writer import write_message, write_stream, write_task
from tests.clauses import clause

V03, V10 = A2aVersion.V03, A2aVersion.V10

_NAMES = {one.name for one in a2a_pb2.TaskState.DESCRIPTOR.values}

PARTS = (
    Part.text("hello"),
    Part.data(b"\x00\xff", name="a.bin", media_type="application/x-thing"),
    Part.link("https://files.example/a.png", name="a.png", media_type="image/png"),
    Part.value({"n": 9007199254740993, "f": 0.1}),
)

MESSAGE = A2aMessage(
    id="m1",
    parts=PARTS,
    is_agent=True,
    task="t1",
    context="c1",
    metadata={"k": [1]},
    extensions=("https://x.example/e",),
    references=("t0",),
)

TASK = A2aTask(
    id="t1",
    context="c1",
    state=TaskState.INPUT_REQUIRED,
    changed_at=datetime(2026, 1, 31, 12, tzinfo=UTC),
    message=MESSAGE,
    history=(MESSAGE, MESSAGE),
    artifacts=(Artifact(id="a", name="a", parts=PARTS),),
    metadata={"k": 1},
)


@clause("A2A-5", "A2A-11", "A2A-12", "A2A-13")
@pytest.mark.parametrize("version", A2aVersion)
def test_messages_come_back(version: A2aVersion) -> None:
    written = write_message(MESSAGE, version)
    assert read_message(written, version, path="message") == MESSAGE


@clause("A2A-11", "A2A-13", "A2A-15", "A2A-17", "A2A-18")
def test_the_sdk_reads_what_is_written() -> None:
    """Its models forbid what they do not know."""
    ParseDict(write_task(TASK, V10), a2a_pb2.Task())
    found = old.Task.model_validate(write_task(TASK, V03))
    assert found.status.state is old.TaskState.input_required
    assert found.status.timestamp == "2026-01-31T12:00:00.000Z"
    assert found.artifacts is not None


@clause("A2A-14", "A2A-25")
def test_the_sdk_reads_updates() -> None:
    status = StatusUpdate(task="t", context="c", state=TaskState.WORKING, is_last=False)
    more = ArtifactUpdate(
        task="t", context="c", artifact=TASK.artifacts[0], append=True
    )
    for update in (TASK, MESSAGE, status, more):
        ParseDict(write_stream(update, V10), a2a_pb2.StreamResponse())
    old.TaskStatusUpdateEvent.model_validate(write_stream(status, V03))
    old.TaskArtifactUpdateEvent.model_validate(write_stream(more, V03))


@clause("A2A-16")
def test_every_state_has_a_word() -> None:
    for word in old.TaskState:
        assert read_state(word.value) is not None
    for name in _NAMES:
        assert read_state(name) is not None
    for state in TaskState:
        assert state_word(state, V03) in {one.value for one in old.TaskState}
        assert state_word(state, V10) in _NAMES
    assert read_state("x") is None


BASE: dict[str, Any] = {"messageId": "m", "parts": [{"kind": "text", "text": "x"}]}


@clause("A2A-11", "A2A-13", "A2A-Q3")
@pytest.mark.parametrize(
    ("version", "changed", "where"),
    [
        (V03, {"role": "ROLE_USER"}, "message.role"),
        (V10, {"role": "user"}, "message.role"),
        (V03, {"role": "agent"}, "message.role"),
        (V03, {"messageId": ""}, "message.messageId"),
        (V03, {"messageId": 1}, "message.messageId"),
        (V03, {"messageId": "x" * 257}, "message.messageId"),
        (V03, {"parts": []}, "message.parts"),
        (V03, {"parts": "text"}, "message.parts"),
        (V03, {"parts": [1]}, "message.parts[0]"),
        (V03, {"parts": [{"kind": "voice"}]}, "message.parts[0].kind"),
        (V03, {"parts": [{"kind": "text"}]}, "message.parts[0].text"),
        (V03, {"parts": [{"kind": "data", "data": 1}]}, "message.parts[0].data"),
        (
            V03,
            {"parts": [{"kind": "file", "file": {"bytes": "???"}}]},
            "message.parts[0].file.bytes",
        ),
        (
            V03,
            {"parts": [{"kind": "file", "file": {"bytes": "", "uri": "x"}}]},
            "message.parts[0].file",
        ),
        (V10, {"parts": [{}]}, "message.parts[0]"),
        (V10, {"parts": [{"text": "a", "url": "b"}]}, "message.parts[0]"),
        (V10, {"parts": [{"raw": "base64编码内容..."}]}, "message.parts[0].raw"),
        (
            V10,
            {"parts": [{"text": "x", "mediaType": "a b"}]},
            "message.parts[0].mediaT",
        ),
        (V10, {"metadata": []}, "message.metadata"),
        (V10, {"extensions": [1]}, "message.extensions"),
        (V10, {"taskId": 7}, "message.taskId"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    version: A2aVersion, changed: dict[str, Any], where: str
) -> None:
    role = "user" if version is V03 else "ROLE_USER"
    parts = BASE["parts"] if version is V03 else [{"text": "x"}]
    message = {**BASE, "role": role, "parts": parts, **changed}
    with pytest.raises(A2aError) as caught:
        read_send({"message": message}, version)
    assert caught.value.fault is A2aFault.PARAMS
    assert caught.value.text.startswith(where)


def test_names_of_files_are_no_paths() -> None:
    raw = base64.b64encode(b"x").decode()
    part = {"raw": raw, "filename": "../../etc/passwd"}
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [part]}
    assert read_message(message, V10, path="").parts[0].name == "passwd"


def test_a_value_of_null_is_data() -> None:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": None}]}
    assert read_message(message, V10, path="").parts == (Part.value(None),)


@clause("A2A-22")
def test_history_is_cut_to_the_newest() -> None:
    assert "history" not in write_task(TASK, V10, history=0)
    assert len(write_task(TASK, V10, history=1)["history"]) == 1
    assert len(write_task(TASK, V10)["history"]) == 2
