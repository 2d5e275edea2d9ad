"""Long texts in JSON go past the parser and the writer, and nothing else changes."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsonic.exact_numbers import ExactEncoder, ExactFloat
from negotiation import long_texts, strict_json
from negotiation.errors import JsonError
from negotiation.long_texts import LONG, STAND_IN, take_out, write_bytes
from negotiation.strict_json import Json, canonical_json, parse_json

MAX = 4 * 1024 * 1024
LONG_TEXT = "x" * (LONG + 1)

SHORT = st.text('ab\\"\nNaé😀\x7f', max_size=12)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SHORT | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SHORT, inner),
    max_leaves=8,
)
PIECES = [*'"\\{}[]:,-1\n\x00', "NaN", "aaaaaaa", '"aaaaaaa"', '"a":', "Infinity", "é"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@contextmanager
def long_from(size: int) -> Iterator[None]:
    """Call texts long from so many characters on."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (long_texts, strict_json):
            patch.setattr(module, "LONG", size)
        patch.setattr(long_texts, "PIECE", 3)
        yield


def parsed(data: bytes) -> tuple[str, object]:
    try:
        return "value", parse_json(data, max_size=MAX)
    except JsonError as exc:
        return "refused", str(exc)


@given(VALUES.map(lambda value: json.dumps(value, ensure_ascii=False)) | TEXTS)
def test_what_is_parsed_and_what_is_refused_stays_the_same(text: str) -> None:
    data = text.encode()
    expected = parsed(data)
    with long_from(4):
        assert parsed(data) == expected


@given(st.binary(max_size=40).map(lambda data: b'{"a": "aaaaaa", "b": "' + data))
def test_any_bytes_are_refused_in_the_same_words(data: bytes) -> None:
    for one in (data, data + b'"}'):
        expected = parsed(one)
        with long_from(4):
            assert parsed(one) == expected


@given(VALUES, st.booleans(), st.booleans())
def test_the_same_bytes_are_written(
    value: Json, ensure_ascii: bool, sort_keys: bool
) -> None:
    encoder = ExactEncoder(ensure_ascii=ensure_ascii, sort_keys=sort_keys)
    expected = encoder.encode(value).encode()
    with long_from(4):
        assert write_bytes(encoder, value) == expected


@pytest.mark.parametrize(
    "value",
    [
        {"a": ExactFloat("12345678901234567.89"), "b": "aaaaaaa"},
        {1: "aaaaaaa", None: 2},
        {"a": ("aaaaaaa",)},
        [[[[[[[[[["aaaaaaaa"]]]]]]]]]],
    ],
)
def test_what_is_unusual_is_written_as_always(value: object) -> None:
    encoder = ExactEncoder()
    with long_from(4):
        assert write_bytes(encoder, value) == encoder.encode(value).encode()


def test_a_lone_surrogate_is_refused_in_a_long_text() -> None:
    with pytest.raises(JsonError, match="cannot be written as JSON"):
        canonical_json({"a": LONG_TEXT + "\ud800"})


def test_another_stand_in_is_never_taken_for_a_text() -> None:
    long = json.dumps(LONG_TEXT).encode()
    assert take_out(b"[" + long + b"]") == (b"[NaN]", [LONG_TEXT])
    for other in (b'"NaN"', STAND_IN, b"Infinity"):
        data = b"[" + long + b"," + other + b"]"
        expected = parsed(data.replace(long, b'""'))
        found = parsed(data)
        assert found[0] == expected[0]
        if found[0] == "refused":
            assert found == expected


def test_far_off_quotation_marks_cost_little() -> None:
    # Each is looked at alone, so only the first few are.
    assert take_out(b'"' + b'\\"' * LONG + b'"') is None
    assert take_out(b'["", ' * 70 + json.dumps(LONG_TEXT).encode()) is None


def test_reading_and_writing_needs_room_for_the_text_once() -> None:
    size = 1024 * 1024
    value = {"id": 1, "input": {"text": "x" * size}}
    data = canonical_json(value)

    def peak() -> float:
        return tracemalloc.get_traced_memory()[1] / size

    tracemalloc.start()
    try:
        canonical_json(value)
        assert peak() < 1.5
        tracemalloc.reset_peak()
        parse_json(data, max_size=MAX)
        assert peak() < 1.5
    finally:
        tracemalloc.stop()
