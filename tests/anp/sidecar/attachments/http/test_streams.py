"""Bodies that come event by event or line by line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from anp.interaction.elements import Part
from anp.sidecar.attachments import ToolError
from anp.sidecar.attachments.http.streams import EVENT, stream_of

EVENTS = "text/event-stream"
LINES = "application/x-ndjson"


def read(media_type: str, pieces: Iterable[bytes], most: int = 100) -> list[Part]:
    stream = stream_of(media_type, most)
    assert stream is not None
    parts = [part for piece in pieces for part in stream.feed(piece)]
    return parts + stream.end()


def contents(media_type: str, body: bytes) -> list[Any]:
    """Return what a body holds, which is the same however it is cut."""
    whole = read(media_type, [body])
    for size in (1, 2, 3, 7):
        cut = [body[at : at + size] for at in range(0, len(body), size)]
        assert read(media_type, cut) == whole
    return [part.content for part in whole]


def test_json_is_a_value_and_the_rest_is_text() -> None:
    body = b'data: {"a": 1}\n\ndata: hello\n\ndata: [1, 2]\n\ndata: {"a": 1\n\n'
    assert contents(EVENTS, body) == [{"a": 1}, "hello", [1, 2], '{"a": 1']
    parts = read(EVENTS, [body])
    assert [part.media_type for part in parts[:2]] == ["application/json", "text/plain"]
    assert contents(LINES, b'{"a": 1}\n\nhello\r\n 3 \n"last"') == [
        *({"a": 1}, "hello", 3, "last"),
    ]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_events_are_read_as_the_standard_has_it(end: bytes) -> None:
    lines = [
        b"\xef\xbb\xbf: a comment",
        b"",
        b"retry: 3",
        b"id: 1",
        b"data: one",
        b"data:  two",
        b"",
        b"event: only a name",
        b"",
        b"data",
        b"data",
        b"",
        b"",
        b"unknown: x",
        b"data:tight",
        b"",
    ]
    body = b"".join(line + end for line in lines)
    assert contents(EVENTS, body) == ["one\n two", "\n", "tight"]


def test_the_name_of_an_event_goes_with_its_part() -> None:
    found = read(EVENTS, [b"event: note\ndata: 1\n\ndata: 2\n\n"])
    assert [dict(part.metadata) for part in found] == [{EVENT: "note"}, {}]


@pytest.mark.parametrize(
    ("media_type", "pieces", "reason"),
    [
        (LINES, [b"x" * 40] * 3, "one line .* over 100 bytes"),
        (LINES, [b"x" * 101 + b"\n"], "one line .* over 100 bytes"),
        (EVENTS, [b": " + b"x" * 200], "one line .* over 100 bytes"),
        (EVENTS, [b"data: 12345678\n"] * 20, "one event .* over 100 bytes"),
        (EVENTS, [b"data\n"] * 200, "one event .* over 100 bytes"),
        (EVENTS, [b"data: half"], "ends within an event"),
        (EVENTS, [b"data: half\n"], "ends within an event"),
        (LINES, [b"\xff\n"], "no text in UTF-8"),
        (EVENTS, [b"data: \xff\n\n"], "no text in UTF-8"),
    ],
)
def test_what_has_no_end_or_is_no_text_is_cut_off(
    media_type: str, pieces: list[bytes], reason: str
) -> None:
    with pytest.raises(ToolError, match=reason) as caught:
        read(media_type, pieces)
    assert caught.value.code == 502


def test_a_comment_may_be_the_last_line() -> None:
    assert contents(EVENTS, b"data: 1\n\n: bye") == [1]


def test_other_bodies_do_not_stream() -> None:
    assert stream_of("application/json", 100) is None
