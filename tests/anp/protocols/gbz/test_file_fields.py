"""Pieces of files in frames: as base64 in the JSON, and as they are behind it."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anp.interaction.operations import Acknowledgement, FilePiece
from anp.protocols.fields import Fields
from anp.protocols.gbz.group_reader import read_group_frame
from anp.protocols.gbz.reader import read_frame, read_operation
from anp.protocols.gbz.writer import write_frame
from anp.protocols.line import InvalidFrame, OperationFrame
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

MOST: Final = 4096


def told(data: bytes, offset: int = 7) -> Acknowledgement:
    return Acknowledgement(
        session='a "strange" one,\\', ref=3, piece=FilePiece(offset=offset, data=data)
    )


def frame_of(data: bytes, *, raw: bool = False) -> bytes:
    return write_frame(told(data), 3, max_size=MOST, raw=raw)


@pytest.mark.parametrize("reader", [read_frame, read_group_frame])
@given(data=st.binary(max_size=300), offset=st.integers(0, 2**40))
@pytest.mark.parametrize("raw", [False, True])
def test_a_piece_comes_as_it_was_written(
    data: bytes, offset: int, reader: object, *, raw: bool
) -> None:
    assert callable(reader)
    frame = write_frame(told(data, offset), 3, max_size=MOST, raw=raw)
    assert reader(frame, max_size=MOST, raw=raw).operation == told(data, offset)


def parsed(data: bytes) -> OperationFrame | str:
    """Read a frame as a parser alone does."""
    try:
        return read_operation(Fields(parse_json(data, max_size=MOST), "a frame"))
    except InvalidFrame as exc:
        return exc.error.text
    except JsonError as exc:
        return str(exc)


def read(data: bytes, *, raw: bool = False) -> OperationFrame | str:
    try:
        return read_frame(data, max_size=MOST, raw=raw)
    except InvalidFrame as exc:
        return exc.error.text


PIECES: Final = [
    *(b'"', b"\\", b"}", b"{", b",", b":", b"=", b"A", b" ", b"\xff", b"0", b"-"),
    *(b',"file":{"offset":', b'"groupId":"g",', b'"}}', b'"file":null,', b"+", b"/"),
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    frame = frame_of(draw(st.binary(max_size=8)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(frame)))
        end = draw(st.integers(at, min(len(frame), at + 30)))
        frame = frame[:at] + draw(st.sampled_from(PIECES)) + frame[end:]
    return frame


@given(mutated())
@example(frame_of(b"x").replace(b'"file"', b'"file":1,"file"'))
@example(frame_of(b"x").replace(b'"offset":7', b'"offset":07'))
@example(frame_of(b"x").replace(b'"op":"ack"', b'"op":"task.get"'))
@example(b'{"op":"ack","ref":3,"sessionId":"a","file":{"offset":7,"data":"}}')
def test_both_readers_accept_the_same_and_say_the_same(data: bytes) -> None:
    assert read(data) == parsed(data)


def test_bytes_behind_the_frame_are_read_only_where_that_was_agreed_on() -> None:
    assert isinstance(read(frame_of(b"abc", raw=True)), str)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda one: one[:-1], "not as many as it says"),
        (lambda one: one + b"x", "not as many as it says"),
        (lambda one: one.replace(b'"length":3', b'"length":-3'), "not as many"),
        (lambda one: one.replace(b'"offset":7', b'"offset":-7'), "no offset and"),
        (lambda one: one.replace(b'"offset":7', b'"offset":"7"'), "no offset and"),
        (lambda one: one.replace(b'"length":3', b'"length":3,"x":1'), "no offset and"),
        (lambda one: one.replace(b'"file"', b'"elif"'), "has no place for them"),
        (lambda one: one.replace(b"}}\0", b"}\0"), "not JSON"),
    ],
)
def test_bytes_that_do_not_fit_their_frame_are_refused(
    change: object, text: str
) -> None:
    assert callable(change)
    found = read(change(frame_of(b"abc", raw=True)), raw=True)
    assert isinstance(found, str)
    assert text in found
