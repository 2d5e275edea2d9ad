"""The stored form of events, heads and tasks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anp.interaction.elements import (
    CancelRequest,
    Chunk,
    EventContent,
    MessagePurpose,
    Part,
    Party,
    PartyMode,
    SessionEvent,
    SessionHead,
    SessionState,
    TaskChange,
    TaskProgress,
)
from anp.interaction.stored import (
    StoredFormError,
    event_bytes,
    fingerprint,
    head_bytes,
    read_event,
    read_head,
    read_task,
    task_bytes,
)
from tests.anp.interaction.talk import ALICE, BOB, NOW, message, session, task

FULL = message(
    "m",
    BOB,
    task="t",
    purpose=MessagePurpose.RESULT,
    final=False,
    chunk=Chunk(index=0, last=True),
    metadata={"k": [1, 1.0, 2**90, None]},
    extra={"x": "汉"},
    parts=(
        Part.text("a", name="n", continued=True),
        Part.data(bytes(range(256)), sha256="ab" * 32, size=256),
        Part.value({"a": {"kind": "bytes"}}),
        Part.value(None),
        Part.link("https://a.example"),
    ),
)
CONTENTS: list[EventContent] = [
    FULL,
    session(
        participants=(Party(id=BOB, mode=PartyMode.GROUP, params={"groupId": "g"}),),
        state=SessionState.CLOSED,
        created=NOW,
        expires=NOW,
        context=(FULL,),
    ),
    task(messages=(FULL,), inputs=(task("u"),), depends_on=("u",), changed_at=NOW),
    task(inputs=(FULL,), trigger={"n": 1}, may_have_run=True, cancel_requested=True),
    TaskChange(task="t", state="failed", code="c", reason="r", at=NOW),
    TaskProgress(task="t", progress=0, total=1.5, text="x"),
    CancelRequest(task="t"),
]


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("ref", [0, 7])
def test_an_event_comes_back_as_it_was(content: EventContent, ref: int) -> None:
    event = SessionEvent(number=3, at=NOW, by=ALICE, content=content, ref=ref)
    found = read_event(event_bytes(event))
    assert found == event
    assert fingerprint(found.content) == fingerprint(content)


def test_a_head_and_a_task_come_back_as_they_were() -> None:
    head = SessionHead(
        own=ALICE,
        session=session(),
        last=9,
        opened={BOB: 1},
        unacknowledged={BOB: (3, 5, 9, 9)},
    )
    assert read_head(head_bytes(head)) == head
    assert read_task(task_bytes(task(state="x-own"))) == task(state="x-own")


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"{", b"\xff", b'{"v":2}', b'{"v":1}'),
        b'{"v":1,"number":1,"at":"x","by":"a","cancel":{"task":"t"}}',
        b'{"v":1,"number":1,"at":"2026-01-01","by":"a","cancel":{}}',
        b'{"v":1,"number":1,"at":"2026-01-01","by":"a","cancel":1}',
    ],
)
def test_damage_is_told_and_never_read(data: bytes) -> None:
    for read in (read_event, read_head, read_task):
        with pytest.raises(StoredFormError):
            read(data)


def test_a_fingerprint_tells_numbers_apart_and_not_the_order_of_keys() -> None:
    def marked(value: Any) -> bytes:
        return fingerprint(message(metadata=value))

    assert len({marked({"n": one}) for one in (1, 1.0, True, "1")}) == 4
    one, other = json.loads('{"a":1,"b":2}'), json.loads('{"b":2,"a":1}')
    assert marked(one) == marked(other)
