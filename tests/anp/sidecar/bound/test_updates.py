"""Limits on updates before an answer, on both sides; values and parts."""

from __future__ import annotations

from typing import Any

import pytest

from anp.interaction.elements import Part
from anp.sidecar.attachments.attachment import ToolError
from anp.sidecar.attachments.requester import Question
from anp.sidecar.bound import updates
from anp.sidecar.bound.updates import (
    UpdateSink,
    UpdatesWrong,
    UpdateTaker,
    UpdateTeller,
    part_of,
    value_of,
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "MAX_UPDATES", 3)
    monkeypatch.setattr(updates, "MAX_BYTES", 40)


async def _nothing(value: Any) -> None:
    pass


@pytest.mark.usefixtures("small")
async def test_the_requester_takes_so_many_and_no_more() -> None:
    taker = UpdateTaker(UpdateSink(_nothing))
    for _ in range(6):
        await taker.take("x", 1)
    with pytest.raises(UpdatesWrong, match="more than 3 updates"):
        await taker.take("x", 1)
    taker = UpdateTaker(UpdateSink(_nothing))
    await taker.take("x", 80)
    with pytest.raises(UpdatesWrong, match="more than 40 bytes"):
        await taker.take("x", 1)
    # Nobody wants them: nothing is counted, and nothing happens.
    for _ in range(10):
        await UpdateTaker(None).take("x", 100)


async def test_the_requester_takes_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "BURST", 10)
    monkeypatch.setattr(updates, "PER_SECOND", 0.001)
    taker = UpdateTaker(UpdateSink(_nothing))
    taker._count._room = 20.0
    for _ in range(20):
        await taker.take("x", 1)
    with pytest.raises(UpdatesWrong, match="a second"):
        await taker.take("x", 1)


@pytest.mark.usefixtures("small")
async def test_the_provider_sends_so_many_and_no_more() -> None:
    sent: list[bytes] = []

    async def write(value: Any) -> bytes:
        return str(value).encode()

    async def send(data: bytes) -> None:
        sent.append(data)

    teller = UpdateTeller("key", write, send)
    await teller.update([Part.text("a"), Part.value({"b": 1})])
    await teller.update([Part.text("c")])
    with pytest.raises(ToolError, match="more than 3"):
        await teller.update([Part.text("d")])
    assert sent == [b"a", b"{'b': 1}", b"c"]
    assert (teller.was_told, teller.key) == (False, "key")
    with pytest.raises(ToolError, match="one turn"):
        await teller.ask(Question(text="?"))


@pytest.mark.parametrize(
    "part",
    [
        Part.text("a"),
        Part.value([1, {"a": None}]),
        Part.data(b"\x00\xff", media_type="image/png", name="a.png"),
    ],
)
def test_a_part_comes_back_as_it_was(part: Part) -> None:
    assert part_of(value_of(part)) == part


def test_a_value_that_only_looks_like_bytes_stays_one() -> None:
    for value in ({"mediaType": "image/png", "data": "?"}, {"data": "aa"}, {"a": 1}):
        assert part_of(value) == Part.value(value)


async def test_a_call_that_is_sent_again_passes_nothing_on() -> None:
    sink = UpdateSink(_nothing)
    await UpdateTaker(sink).take("x", 1)
    assert sink.whole
    await UpdateTaker(sink).take("x", 1)
    assert (sink.taken, sink.whole) == (1, False)
    lost = UpdateSink(_nothing, lost=True)
    await UpdateTaker(lost).take("x", 1)
    assert (lost.taken, lost.whole) == (0, False)
