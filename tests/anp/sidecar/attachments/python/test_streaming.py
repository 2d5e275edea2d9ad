"""Python functions that stream, report progress, ask back and are cancelled."""

from __future__ import annotations

import asyncio
import base64
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.elements import Message, Part
from anp.sidecar.attachments import ToolError
from anp.sidecar.attachments.attachment import Progress, report_progress
from anp.sidecar.attachments.part_json import FILE
from anp.sidecar.attachments.requester import (
    LAST_CHUNK,
    GivenFile,
    Question,
    Reply,
    ReplyAction,
    as_last,
    current_requester,
    joins_updates,
)
from tests.anp.sidecar.attachments.python.test_child import attached, call, write
from tests.clauses import clause
from tests.waiting import until

AGENT = '''
import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Protocol


class Context(Protocol):
    caller: str
    key: str


def count(to: int) -> Iterator[int]:
    """Count."""
    for number in range(to):
        yield number


async def speak(words: list[str]) -> AsyncIterator[str]:
    """Speak."""
    for word in words:
        yield word


def book(seat: str, context: Context) -> str:
    """Book."""
    context.progress(1, 2, "looked")
    answer = context.ask(f"Is {seat} right?")
    return f"{seat}: {answer} for {context.caller} by {context.key}"


@dataclass
class Picture:
    data: bytes
    media_type: str
    name: str = ""


PNG = b"\\x89PNG\\r\\n\\x1a\\n" + bytes(range(256))


def paint() -> Iterator[bytes | str | Picture]:
    """Paint."""
    yield "here it comes"
    yield PNG
    yield Picture(b"\\x00\\xff", "audio/x-noise", "../noise.raw")


async def plain() -> bytes:
    """Give bytes."""
    return b"\\x00\\x01"


def signed(picture: Picture, seal: bytes) -> Picture:
    """Put a seal on a picture."""
    return Picture(picture.data + seal, picture.media_type, picture.name)


async def choose(context: Context) -> dict[str, int]:
    """Choose."""
    number = await context.ask("Which?", {"type": "integer"})
    return {"chosen": -1 if number is None else number}


def breaks() -> Iterator[int]:
    """Break off."""
    yield 1
    raise RuntimeError("no more")


def endless(file: str, context: Context) -> Iterator[int]:
    """Go on."""
    try:
        while True:
            time.sleep(0.01)
            yield 1
    finally:
        open(file, "w").write("ended")
'''


@dataclass
class Taker:
    """Takes updates, and answers questions with what a test gives it."""

    replies: list[Reply] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    told: list[Progress] = field(default_factory=list)
    gate: asyncio.Event | None = None
    key: str = "k1"

    said: Sequence[Part] = ()
    folder: str = ""
    files: list[GivenFile] = field(default_factory=list)

    async def send_file(self, file: GivenFile) -> None:
        self.files.append(file)

    @property
    def was_told(self) -> bool:
        return bool(self.parts)

    async def begin(self) -> bool:
        return False

    async def say(self, parts: Sequence[Part]) -> None:
        self.parts += parts

    async def update(self, parts: Sequence[Part]) -> None:
        if self.gate is not None:
            await self.gate.wait()
        self.parts += parts

    async def listen(self, hear: Callable[[Message], None]) -> None:
        pass

    async def lay(self, files: Sequence[Part]) -> list[str]:
        raise AssertionError("no answer here has files")

    async def ask(self, question: Question) -> Reply:
        self.asked.append(question)
        return self.replies.pop(0)

    @property
    def contents(self) -> list[Any]:
        return [part.content for part in self.parts]


@contextmanager
def taking(taker: Taker) -> Iterator[Taker]:
    requester = current_requester.set(taker)
    progress = report_progress.set(taker.told.append)
    try:
        yield taker
    finally:
        current_requester.reset(requester)
        report_progress.reset(progress)


async def test_a_call_of_one_turn_gets_everything_joined(tmp_path: Path) -> None:
    write(tmp_path, AGENT)
    async with attached(tmp_path, "shop") as my:
        schemas = {one.name: one.output_schema for one in my.capabilities()}
        result = {"type": "array", "items": {"type": "integer"}}
        assert schemas["my.count"] == {
            "type": "object",
            "properties": {"result": result},
            "required": ["result"],
        }
        speak = schemas["my.speak"]
        assert isinstance(speak, dict)
        assert speak["properties"] == {"result": {"type": "string"}}
        assert await call(my, "count", to=3) == {"result": [0, 1, 2]}
        assert await call(my, "speak", words=["a", "b"]) == {"result": "ab"}
        with pytest.raises(ToolError, match="nobody answers questions"):
            await call(my, "book", seat="4A")


async def test_the_context_is_no_argument(tmp_path: Path) -> None:
    write(tmp_path, AGENT)
    async with attached(tmp_path, "shop") as my:
        schemas = {one.name: one.input_schema for one in my.capabilities()}
        book, choose = schemas["my.book"], schemas["my.choose"]
        assert isinstance(book, dict)
        assert isinstance(choose, dict)
        assert list(book["properties"]) == ["seat"]
        assert choose["properties"] == {}


async def test_what_is_yielded_comes_in_order_and_before_the_end(
    tmp_path: Path,
) -> None:
    write(tmp_path, AGENT)
    async with attached(tmp_path, "shop") as my:
        with taking(Taker()) as taker:
            assert await call(my, "count", to=500) == {}
            assert taker.contents == list(range(500))
            await call(my, "speak", words=["a", "b"])
            assert taker.contents[500:] == ["a", "b"]


async def test_a_generator_says_what_it_yields_and_may_be_joined_all_the_same(
    tmp_path: Path,
) -> None:
    write(tmp_path, AGENT)
    async with attached(tmp_path, "shop") as my:
        given = {one.name.partition(".")[2]: one.updates for one in my.capabilities()}
        assert given["count"] == {"type": "integer"}
        assert given["speak"] == {"type": "string"}
        assert given["book"] is None
        token = joins_updates.set(True)
        try:
            with taking(Taker()) as taker:
                assert await call(my, "count", to=3) == {"result": [0, 1, 2]}
                assert taker.contents == [0, 1, 2]
                found = await call(my, "speak", words=["a", "b"])
                assert found == {"result": "ab"}
        finally:
            joins_updates.reset(token)


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
NOISE = {"mediaType": "audio/x-noise", "data": "AP8=", "name": "../noise.raw"}


async def test_bytes_are_parts_with_their_media_type(tmp_path: Path) -> None:
    write(tmp_path, AGENT)
    async with attached(tmp_path, "shop") as my:
        with taking(Taker()) as taker:
            assert await call(my, "paint") == {}
            assert await call(my, "plain") == {}
            assert await call(my, "signed", picture=NOISE, seal={"data": "QQ=="}) == {}
    assert taker.parts == [
        Part.text("here it comes"),
        Part.data(PNG, media_type="image/png"),
        # A name is data, and never a path.
        as_last(Part.data(b"\x00\xff", media_type="audio/x-noise", name="noise.raw")),
        as_last(Part.data(b"\x00\x01")),
        as_last(Part.data(b"\x00\xffA", media_type="audio/x-noise", name="noise.raw")),
    ]


@clause("A2A-5")
async def test_the_last_piece_of_a_generator_says_that_it_is(tmp_path: Path) -> None:
    write(tmp_path, AGENT)
    async with attached(tmp_path, "shop") as my:
        with taking(Taker()) as taker:
            await call(my, "count", to=3)
            marks = [part.metadata.get(LAST_CHUNK) for part in taker.parts]
            assert marks == [None, None, True]
            taker.parts.clear()
            with pytest.raises(ToolError):
                await call(my, "breaks")
            # What breaks off is not complete.
            assert taker.parts == [Part.value(1)]


async def test_bytes_of_a_call_of_one_turn_are_files(tmp_path: Path) -> None:
    write(tmp_path, AGENT)
    async with attached(tmp_path, "shop") as my:
        found = {one.name: one for one in my.capabilities()}
        plain = found["my.plain"].output_schema
        assert plain == FILE
        signed = found["my.signed"].input_schema
        assert isinstance(signed, dict)
        assert signed["properties"] == {"picture": FILE, "seal": FILE}
        assert await call(my, "plain") == {
            "mediaType": "application/octet-stream",
            "data": "AAE=",
        }
        words, picture, noise = (await call(my, "paint"))["result"]
        assert words == "here it comes"
        assert base64.b64decode(picture["data"]) == PNG
        assert (picture["mediaType"], noise) == ("image/png", NOISE)
        with pytest.raises(ToolError, match="seal: data is not base64"):
            await call(my, "signed", picture=NOISE, seal={"data": "?"})


async def test_a_slow_taker_holds_up_the_function(tmp_path: Path) -> None:
    write(tmp_path, AGENT)
    async with attached(tmp_path, "shop") as my:
        with taking(Taker(gate=asyncio.Event())) as taker:
            work = asyncio.create_task(call(my, "count", to=1000))
            await asyncio.sleep(0.3)
            # Another call goes on meanwhile.
            current_requester.set(None)
            assert await call(my, "count", to=2) == {"result": [0, 1]}
            assert taker.gate is not None
            taker.gate.set()
            await work
            assert taker.contents == list(range(1000))


async def test_a_function_asks_and_tells_how_far_it_is(tmp_path: Path) -> None:
    write(tmp_path, AGENT)
    async with attached(tmp_path, "shop") as my:
        with taking(Taker([Reply(parts=[Part.text("yes")])])) as taker:
            found = await call(my, "book", seat="4A")
            assert found == {"result": "4A: yes for did:key:z by k1"}
            assert taker.told == [Progress(1, 2, "looked")]
            assert taker.asked == [Question(text="Is 4A right?")]
            taker.replies = [Reply(value=7), Reply(action=ReplyAction.DECLINE)]
            assert await call(my, "choose") == {"chosen": 7}
            assert await call(my, "choose") == {"chosen": -1}
            assert taker.asked[1].schema == {"type": "integer"}


async def test_a_cancelled_generator_ends(tmp_path: Path) -> None:
    write(tmp_path, AGENT)
    mark = tmp_path / "mark"
    async with attached(tmp_path, "shop") as my:
        with taking(Taker()) as taker:
            work = asyncio.create_task(call(my, "endless", file=str(mark)))
            await until(lambda: len(taker.parts) > 5)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            await until(mark.exists)


async def test_a_refused_update_ends_the_function_and_keeps_no_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Refuser(Taker):
        async def update(self, parts: Sequence[Part]) -> None:
            raise RuntimeError("nobody takes it any more")

    write(tmp_path, AGENT)
    mark = tmp_path / "mark"
    async with attached(tmp_path, "shop") as my:
        with taking(Refuser()), pytest.raises(RuntimeError, match="any more"):
            await call(my, "endless", file=str(mark))
        await until(mark.exists)
        with taking(Refuser()), pytest.raises(RuntimeError, match="any more"):
            await call(my, "speak", words=["last"])
    gc.collect()
    assert "never retrieved" not in caplog.text
