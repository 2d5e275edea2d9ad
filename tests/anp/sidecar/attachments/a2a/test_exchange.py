"""A2A agents with somebody who takes updates and answers questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from anp.interaction.elements import Message, Part, PartKind
from anp.interaction.errors import InteractionError, InteractionFault
from anp.sidecar.attachments import ToolError
from anp.sidecar.attachments.a2a import exchange
from anp.sidecar.attachments.a2a.tasks import News, TaskRecord
from anp.sidecar.attachments.attachment import Progress, report_progress
from anp.sidecar.attachments.requester import (
    GivenFile,
    Question,
    Reply,
    ReplyAction,
    current_requester,
)
from tests.anp.sidecar.attachments.web import (
    LIMITS,
    Asked,
    Web,
    answer,
    attached,
    call,
    serving,
)
from tests.e2e.agents.running import running

from .test_agent import agent_of


@dataclass
class Caller:
    """Somebody for whom a call is made."""

    replies: list[Reply] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    refuses: bool = False
    key: str = "key"
    said: Sequence[Part] = ()
    besides: list[Part] = field(default_factory=list)

    folder = ""

    async def send_file(self, file: GivenFile) -> None:
        raise AssertionError("nothing here gives files")

    @property
    def was_told(self) -> bool:
        return bool(self.parts)

    @property
    def texts(self) -> list[Any]:
        return [part.content for part in self.parts]

    async def begin(self) -> bool:
        return False

    async def say(self, parts: Sequence[Part]) -> None:
        self.besides += parts

    async def update(self, parts: Sequence[Part]) -> None:
        if self.refuses:
            raise InteractionError(InteractionFault.TOO_LARGE, "too much")
        self.parts += parts

    async def listen(self, hear: Callable[[Message], None]) -> None:
        pass

    async def lay(self, files: Sequence[Part]) -> list[str]:
        raise AssertionError("no answer here has files")

    async def ask(self, question: Question) -> Reply:
        self.asked.append(question)
        return self.replies.pop(0)


@contextmanager
def for_caller(*replies: Reply, refuses: bool = False) -> Iterator[Caller]:
    """Make calls for somebody."""
    caller = Caller([*replies], refuses=refuses)

    def report(progress: Progress) -> None:
        caller.words.append(progress.message)

    token, noted = current_requester.set(caller), report_progress.set(report)
    try:
        yield caller
    finally:
        current_requester.reset(token)
        report_progress.reset(noted)


async def test_a_stream_may_be_larger_than_an_answer() -> None:
    limits = replace(LIMITS, max_result=100_000, max_document=100_000)
    with running("a2a_agent.py") as agent, for_caller() as caller:
        async with attached("a2a", agent.url, limits) as my:
            await call(my, "shout", text="flood 30")
            assert caller.texts == ["x" * 10_000] * 30
            with pytest.raises(ToolError, match="over 100000 bytes"):
                await call(my, "shout", text="huge 200000")


async def test_an_answer_has_files_or_is_declined() -> None:
    picture = Part.data(bytes(range(256)), media_type="image/png", name="a.png")
    replies = (
        Reply(parts=(Part.text("this"), picture)),
        Reply(action=ReplyAction.DECLINE),
        Reply(action=ReplyAction.CANCEL, parts=(Part.text("no"),)),
    )
    with running("a2a_agent.py") as agent, for_caller(*replies) as caller:
        async with attached("a2a", agent.url) as my:
            for _ in replies:
                await call(my, "shout", text="ask")
    text, file, declined, cancelled = caller.parts
    assert text.content == "this/accept"
    assert (file.content, file.media_type, file.name) == (
        picture.content,
        "image/png",
        "a.png",
    )
    assert declined.content == "The question is not answered./decline"
    assert cancelled.content == "no/cancel"
    assert [one.text for one in caller.asked] == ["which city?"] * 3


async def test_an_agent_whose_update_is_refused_is_cancelled() -> None:
    with running("a2a_agent.py") as agent, for_caller(refuses=True):
        async with attached("a2a", agent.url) as my:
            with pytest.raises(ToolError, match="cannot be passed on: too much"):
                await call(my, "shout", text="poem 500")
    with running("a2a_agent.py") as agent:
        async with attached("a2a", agent.url) as my:
            with pytest.raises(ToolError, match="asks back"):
                await call(my, "shout", text="ask")


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have agents asked for news at once."""
    monkeypatch.setattr(exchange, "FIRST_POLL", 0.01)


def polled(states: list[dict[str, Any]], web: list[Web]) -> Callable[[Asked], bytes]:
    """Return a handler whose task has these states, the last for ever."""

    def reply(asked: Asked) -> bytes:
        said = asked.json()
        task = {"id": "t", "contextId": "c", **states[0]}
        if len(states) > 1:
            states.pop(0)
        result = {"task": task} if said["method"] == "SendMessage" else task
        return answer({"jsonrpc": "2.0", "id": said["id"], "result": result})

    made: Callable[[Asked], bytes] = agent_of(web, reply)
    return made


def state(
    name: str, text: str = "", *others: dict[str, Any], **more: Any
) -> dict[str, Any]:
    status: dict[str, Any] = {"state": f"TASK_STATE_{name}"}
    if text:
        parts = [{"text": text}, *others]
        status["message"] = {"messageId": "m", "role": "ROLE_AGENT", "parts": parts}
    return {"status": status, **more}


async def test_an_answered_question_that_is_still_shown_is_not_asked_again() -> None:
    webs: list[Web] = []
    asks = state("INPUT_REQUIRED", "where?")
    states = [asks, asks, asks, state("WORKING", "going"), state("COMPLETED")]
    async with serving(polled(states, webs)) as web:
        webs.append(web)
        with for_caller(Reply(parts=(Part.text("here"),))) as caller:
            async with attached("a2a", web.url) as my:
                await call(my, "do", text="x")
    assert [one.text for one in caller.asked] == ["where?"]
    assert caller.words == ["going"]
    second = next(one.json() for one in web.asked if b"taskId" in one.body)
    sent = second["params"]["message"]
    assert (sent["taskId"], sent["contextId"]) == ("t", "c")
    assert sent["metadata"]["anpd/key"] == "key"


async def test_the_same_question_twice_is_asked_twice() -> None:
    webs: list[Web] = []
    asks = state("INPUT_REQUIRED", "where?")
    async with serving(polled([*[asks] * 8, state("COMPLETED")], webs)) as web:
        webs.append(web)
        replies = [Reply(parts=(Part.text("here"),))] * 2
        with for_caller(*replies) as caller:
            async with attached("a2a", web.url) as my:
                await call(my, "do", 20.0, text="x")
    assert len(caller.asked) == 2


async def test_what_a_polled_artifact_gained_is_told_once() -> None:
    def artifact(*texts: str) -> dict[str, Any]:
        parts = [{"text": text} for text in texts]
        return {"artifacts": [{"artifactId": "a", "parts": parts}]}

    webs: list[Web] = []
    states = [
        state("WORKING", **artifact("one")),
        state("WORKING", **artifact("one", "two")),
        state("WORKING", **artifact("one", "two")),
        state("WORKING", **artifact("other")),
        state("COMPLETED", "bye", **artifact("other")),
    ]
    async with serving(polled(states, webs)) as web:
        webs.append(web)
        with for_caller() as caller:
            async with attached("a2a", web.url) as my:
                await call(my, "do", text="x")
    assert [(part.content, dict(part.metadata)) for part in caller.parts] == [
        ("one", {"artifact": "a"}),
        ("two", {"artifact": "a", "append": True}),
        ("other", {"artifact": "a"}),
        ("bye", {"status": "completed"}),
    ]


def told(record: TaskRecord, *events: dict[str, Any]) -> list[News]:
    from a2a.types.a2a_pb2 import StreamResponse
    from google.protobuf.json_format import ParseDict

    return [record.add(ParseDict(event, StreamResponse())) for event in events]


def update(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"artifactUpdate": {"taskId": "t", "artifact": {"parts": [*parts]}}}


PICTURE = {"raw": "AA==", "mediaType": "image/png"}
SHOWN = {"mediaType": "image/png", "data": "AA=="}


@pytest.mark.parametrize(
    ("artifacts", "output"),
    [
        ([], {"text": ""}),
        ([update({"text": "sunny"})], {"text": "sunny"}),
        (
            [update({"text": "sunny"}, PICTURE)],
            {"text": "sunny", "parts": [SHOWN]},
        ),
    ],
)
def test_what_an_agent_says_while_it_works_is_no_result(
    artifacts: list[dict[str, Any]], output: dict[str, Any]
) -> None:
    record = TaskRecord(max_size=1000)
    asks = {"statusUpdate": {"taskId": "t", **state("INPUT_REQUIRED", "where?")}}
    works = {"statusUpdate": {"taskId": "t", **state("WORKING", "looking", PICTURE)}}
    told(record, asks, works, *artifacts)
    told(record, {"statusUpdate": {"taskId": "t", **state("COMPLETED")}})
    assert record.output() == output
    told(record, {"statusUpdate": {"taskId": "t", **state("COMPLETED", "bye")}})
    said = {"text": "bye"} if not artifacts else {**output, "status": "bye"}
    assert record.output() == said


async def test_a_picture_in_the_words_of_the_work_comes_once_in_the_result() -> None:
    webs: list[Web] = []
    artifact = {"artifactId": "a", "parts": [{"text": "sunny"}, PICTURE]}
    states = [
        state("WORKING", "looking", PICTURE),
        state("COMPLETED", artifacts=[artifact]),
    ]
    async with serving(polled(states, webs)) as web:
        webs.append(web)
        with for_caller() as caller:
            async with attached("a2a", web.url) as my:
                await call(my, "do", text="x")
    assert [part.content for part in caller.parts] == ["sunny", b"\0"]
    assert [part.content for part in caller.besides] == [b"\0"]
    assert caller.words == ["looking"]


def test_pictures_stand_among_the_words_that_belong_to_them() -> None:
    record = TaskRecord(max_size=1000)
    told(record, update({"text": "be"}, {"text": "fore"}, PICTURE, {"text": "after"}))
    assert record.output() == {
        "text": "beforeafter",
        "parts": [
            {"mediaType": "text/plain", "text": "before"},
            SHOWN,
            {"mediaType": "text/plain", "text": "after"},
        ],
    }


async def test_an_agent_gets_the_contents_in_the_order_they_were_said() -> None:
    webs: list[Web] = []
    picture = Part.data(b"\0", media_type="image/png")
    said = (Part.text("first"), picture, Part.text("second"), picture)
    arguments = {"text": "first\nsecond", "files": [SHOWN, SHOWN]}
    done = state("COMPLETED")
    async with serving(polled([done, done], webs)) as web:
        webs.append(web)
        with for_caller() as caller:
            async with attached("a2a", web.url) as my:
                for contents in (said, said[1:]):
                    caller.said = contents
                    await call(my, "do", **arguments)
    kinds = [
        [next(iter(part.keys() - {"mediaType"})) for part in found]
        for one in web.asked
        if one.method == "POST"
        for found in [one.json()["params"]["message"]["parts"]]
    ]
    # Arguments that are not what was said go as they are.
    assert kinds == [["text", "raw", "text", "raw"], ["text", "raw", "raw"]]


def test_a_name_of_a_file_is_no_path() -> None:
    record = TaskRecord(max_size=1000)
    file = {"raw": "AA==", "filename": "c:\\x/../b.txt"}
    said = state("WORKING", "almost")["status"]
    events: list[dict[str, Any]] = [
        {"statusUpdate": {"taskId": "t", "status": said}},
        {"artifactUpdate": {"taskId": "t", "artifact": {"parts": [file, {}]}}},
        {"statusUpdate": {"taskId": "t", **state("COMPLETED")}},
    ]
    news = told(record, *events)
    assert news[0].words == "almost"
    (part,) = news[1].parts
    assert (part.kind, part.name, part.content) == (PartKind.BYTES, "b.txt", b"\0")
    assert record.output() == {
        "text": "",
        "parts": [
            {"mediaType": "application/octet-stream", "name": "b.txt", "data": "AA=="}
        ],
    }
