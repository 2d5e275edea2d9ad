"""Chunks: put together in any order, within limits, and cut again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anp.interaction.chunks import ChunkAssembler, ChunkLimits, split_message
from anp.interaction.elements import Chunk, Message, Part
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.stored import element_size
from tests.anp.interaction.talk import BOB, message
from tests.clauses import clause


def chunk(index: int, *, last: bool = False, text: str = "x", **more: Any) -> Message:
    fields = {"chunk": Chunk(index=index, last=last), "parts": (Part.text(text),)}
    return message("m", BOB, **{**fields, **more})


def code(assembler: ChunkAssembler, one: Message, now: float = 0.0) -> str:
    with pytest.raises(InteractionError) as caught:
        assembler.add(one, now=now)
    return caught.value.code


PARTS = st.lists(
    st.one_of(
        st.text(max_size=200).map(Part.text),
        st.binary(max_size=200).map(Part.data),
        st.integers().map(Part.value),
    ),
    min_size=1,
    max_size=5,
)


@clause("GBZ-41", "GBZ-42", "GBZ-Q7")
@settings(max_examples=200, deadline=None)
@given(parts=PARTS, most=st.integers(120, 900), order=st.randoms())
def test_what_is_cut_comes_back_in_any_order(
    parts: list[Part], most: int, order: Any
) -> None:
    whole = message("m", BOB, parts=tuple(parts), final=True)
    chunks = list(split_message(whole, max_content=most))
    if len(chunks) == 1:
        assert chunks == [whole]
        return
    assert [one.chunk.index for one in chunks if one.chunk] == [*range(len(chunks))]
    assert [one.final for one in chunks] == [None] * (len(chunks) - 1) + [True]
    shuffled = [*chunks, *chunks[:2]]
    order.shuffle(shuffled)
    assembler = ChunkAssembler()
    found = [assembler.add(one, now=0.0) for one in shuffled]
    assert next(one for one in found if one is not None) == whole


def test_pieces_keep_to_the_limit_of_a_frame() -> None:
    parts = (Part.text("\x00汉" * 5000), Part.data(bytes(5000)))
    whole = message("m", BOB, parts=parts)
    for one in split_message(whole, max_content=1000):
        assert sum(element_size(part) for part in one.parts) < 1200
    with pytest.raises(InteractionError) as caught:
        list(split_message(message(parts=(Part.value("x" * 1000),)), max_content=1000))
    assert caught.value.code == InteractionFault.TOO_LARGE


def test_parts_that_were_not_cut_stay_apart() -> None:
    assembler = ChunkAssembler()
    assert assembler.add(chunk(0, text="a"), now=0.0) is None
    whole = assembler.add(chunk(1, text="b", last=True), now=0.0)
    assert whole is not None
    assert [part.content for part in whole.parts] == ["a", "b"]


@clause("GBZ-Q7")
def test_equal_repeats_are_dropped_and_others_refused() -> None:
    assembler = ChunkAssembler()
    assembler.add(chunk(1), now=0.0)
    held = assembler.size
    assert assembler.add(chunk(1), now=0.0) is None
    assert assembler.size == held
    assert code(assembler, chunk(1, text="y")) == InteractionFault.CONFLICT
    assert code(assembler, chunk(0, task="t")) == InteractionFault.CONFLICT


@clause("GBZ-Q7")
def test_only_the_highest_chunk_is_the_last() -> None:
    assembler = ChunkAssembler()
    assembler.add(chunk(3), now=0.0)
    assert code(assembler, chunk(2, last=True)) == InteractionFault.CONFLICT
    assembler.add(chunk(4, last=True), now=0.0)
    assert code(assembler, chunk(5)) == InteractionFault.CONFLICT
    assert code(assembler, chunk(2, last=True)) == InteractionFault.CONFLICT


@clause("GBZ-Q7")
def test_chunks_have_a_limit_in_number() -> None:
    assembler = ChunkAssembler(ChunkLimits(max_chunks=4))
    assembler.add(chunk(3), now=0.0)
    assert code(assembler, chunk(4)) == InteractionFault.TOO_MANY
    assert ChunkLimits().max_chunks == 4096


@clause("GBZ-Q7")
def test_chunks_have_a_limit_in_bytes_which_is_given_back() -> None:
    size = element_size(chunk(0))
    assembler = ChunkAssembler(ChunkLimits(max_bytes=size * 2))
    assembler.add(chunk(0), now=0.0)
    assembler.add(replace(chunk(0), id="n"), now=0.0)
    assert code(assembler, chunk(1)) == InteractionFault.TOO_LARGE
    assembler.expire(now=301.0)
    assert assembler.size == 0
    assert ChunkLimits().max_bytes == 64 * 1024 * 1024


@clause("GBZ-Q7")
def test_chunks_have_a_limit_in_time() -> None:
    assembler = ChunkAssembler()
    assembler.add(chunk(0), now=0.0)
    assert assembler.next_expiry() == 300.0
    assert assembler.expire(now=300.0) == []
    assert assembler.expire(now=300.1) == ["m"]
    assert assembler.next_expiry() is None
    assert code(assembler, chunk(1, last=True), 301.0) == InteractionFault.EXPIRED


def test_incomplete_messages_have_a_limit_in_number() -> None:
    assembler = ChunkAssembler(ChunkLimits(max_messages=1))
    assembler.add(chunk(0), now=0.0)
    assert code(assembler, replace(chunk(0), id="n")) == InteractionFault.TOO_MANY
    assert assembler.add(chunk(1, last=True), now=0.0) is not None
    assert assembler.add(replace(chunk(0), id="n"), now=0.0) is None


def test_a_whole_message_is_no_chunk() -> None:
    assert code(ChunkAssembler(), message()) == InteractionFault.INVALID
