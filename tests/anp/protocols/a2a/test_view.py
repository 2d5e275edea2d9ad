"""A task of a session as A2A shows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from anp.interaction.chunks import MAX_CONTENT
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    PartKind,
    SenderRole,
    SessionEvent,
    Task,
    TaskChange,
)
from anp.interaction.states import TaskState
from anp.interaction.stored import event_bytes, read_event
from anp.protocols.a2a.modes import fit_task
from anp.protocols.a2a.objects import A2aTask, Artifact, ArtifactUpdate, StatusUpdate
from anp.protocols.a2a.view import A2aView
from anp.sidecar.a2a.desk import named
from anp.sidecar.offer.task_arguments import part_of
from anp.sidecar.tasks.choice import Choice
from tests.clauses import clause


def said(*parts: Part, is_result: bool = False, **metadata: Any) -> Message:
    return Message(
        id="m",
        session="s",
        task="t",
        sender="local:ann",
        role=SenderRole.SERVICE if is_result else SenderRole.REQUESTER,
        purpose=MessagePurpose.RESULT if is_result else MessagePurpose.COMMUNICATION,
        parts=parts,
        metadata=metadata,
    )


def shown(asked: Message, *more: Message) -> tuple[Part, ...]:
    """Return the parts of the artifact of a task, given what was said in it."""
    task = Task(
        id="t", session="s", requester="local:ann", executor="did:x", messages=(asked,)
    )
    view = A2aView("a", "c", name="t")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    contents: list[Task | Message] = [task, *more]
    for number, content in enumerate(contents, 1):
        list(view.take(SessionEvent(number=number, at=now, by="x", content=content)))
    return view.task.artifacts[0].parts


RESULT = said(Part.value({"result": "You said: hi"}), is_result=True)
COUNTED = said(Part.value({"bees": 3}), is_result=True)


@clause("A2A-5", "A2A-18")
def test_who_asks_in_words_gets_words() -> None:
    words = said(Part.text("hi"))
    assert shown(words, RESULT) == (Part.text("You said: hi"),)
    assert shown(words, COUNTED) == (Part.value({"bees": 3}), Part.text('{"bees": 3}'))


def test_words_with_a_picture_get_words() -> None:
    asked = said(Part.text("hi"), Part.data(b"1", media_type="image/png"))
    assert shown(asked, RESULT) == (Part.text("You said: hi"),)


def test_a_long_text_is_a_text_part() -> None:
    text = "x" * (MAX_CONTENT + 1)
    result = said(part_of({"result": text}), is_result=True)
    assert result.parts[0].kind is PartKind.TEXT
    assert shown(said(Part.text("hi")), result) == (Part.text(text),)
    assert shown(said(Part.value({"skill": "echo"})), result) == result.parts


def test_a_client_that_takes_text_only_gets_the_text_of_a_result() -> None:
    artifact = Artifact(id="a", parts=RESULT.parts)
    task = A2aTask(id="a", context="c", state="completed", artifacts=(artifact,))
    (found,) = fit_task(task, ["text/plain"]).artifacts
    assert found.parts == (Part.text("You said: hi"),)


def test_the_history_has_what_was_said_not_the_arguments_made_of_it() -> None:
    words, file = Part.text("add 1 and 2"), Part.data(b"1", media_type="image/png")
    first = said(words, file, intentInfos=[{"intent": "add"}])
    task = Task(
        id="t", session="s", requester="local:ann", executor="did:x", messages=(first,)
    )
    made = named(task, Choice("my.add", (Part.value({"a": 1, "b": 2}), file)))
    assert made.messages[0].parts == (Part.value({"a": 1, "b": 2}), file)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    event = SessionEvent(number=1, at=now, by="x", content=made)
    view = A2aView("a", "c", name="t")
    list(view.take(read_event(event_bytes(event))))
    assert view.task.history[0].parts == (words, file)


@pytest.mark.parametrize(
    "asked",
    [
        said(Part.value({"skill": "bees.count"})),
        said(Part.text("hi"), intentInfos=[{"intent": "bees.count"}]),
    ],
)
def test_who_names_a_skill_gets_its_value(asked: Message) -> None:
    for answer in (RESULT, COUNTED):
        assert shown(asked, answer) == answer.parts
        assert shown(said(Part.text("hi")), asked, answer) == answer.parts


def updates(*contents: TaskChange | Message) -> list[StatusUpdate | ArtifactUpdate]:
    """Return what a stream shows of a task after it was made."""
    asked = said(Part.text("hi"))
    task = Task(
        id="t", session="s", requester="local:ann", executor="did:x", messages=(asked,)
    )
    view = A2aView("a", "c", name="t")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    events = [
        SessionEvent(number=number, at=now, by="x", content=content)
        for number, content in enumerate((task, *contents), 1)
    ]
    return [update for event in events for update in view.take(event)]


@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
def test_a_question_is_one_update_with_its_words(state: TaskState) -> None:
    question = replace(
        said(Part.text("Which?"), is_result=True), purpose=MessagePurpose.COMMUNICATION
    )
    (update,) = updates(TaskChange(task="t", state=state), question)
    assert isinstance(update, StatusUpdate)
    assert (update.state, update.is_last) == (state, True)
    assert update.message is not None
    assert update.message.parts == (Part.text("Which?"),)


def test_the_end_of_an_artifact_is_told() -> None:
    first = Part.text("a", metadata={"artifact": "one"})
    end = Part.text("b", metadata={"artifact": "one", "lastChunk": True})
    found = updates(said(first, is_result=True), said(end, is_result=True))
    ends = [(one.append, one.last) for one in found if isinstance(one, ArtifactUpdate)]
    assert ends == [(False, False), (True, True)]
