"""Frames: what crosses comes out equal, and nothing else crosses."""

from __future__ import annotations

import contextlib
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsonic.exact_numbers import ExactFloat
from sandbox.errors import FrameError
from sandbox.frames import (
    EXACT_WEIGHT,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_NODES,
    MAX_SLOW,
    frame_length,
    pack,
    unpack,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.binary(max_size=50),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_a_plain_value_comes_out_as_it_went_in(value: Any) -> None:
    frame = pack(value)
    assert frame_length(frame[:4]) == len(frame) - 4
    assert repr(unpack(frame[4:])) == repr(value)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_frame_error(body: bytes) -> None:
    with contextlib.suppress(FrameError):
        unpack(body)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | TEXT,
        lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    )
)
def test_any_header_is_a_value_or_a_frame_error(header: Any) -> None:
    for whole in (
        header,
        {"value": header, "bytes": []},
        {"value": 1, "bytes": header},
    ):
        with contextlib.suppress(FrameError):
            unpack(_body(whole))


@pytest.mark.parametrize("value", [(1, 2), [(1,)]])
def test_a_tuple_crosses_as_a_list(value: Any) -> None:
    assert unpack(pack(value)[4:]) == json.loads(json.dumps(value))


class _Text(str):
    """Not exactly a str."""


@pytest.mark.parametrize(
    "value",
    [
        {1},
        {1: 2},
        {b"a": 1},
        object(),
        1j,
        bytearray(b"x"),
        _Text("x"),
        {_Text("x"): 1},
    ],
)
def test_other_types_may_not_cross(value: Any) -> None:
    with pytest.raises(FrameError):
        pack(value)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999", '"\\ud800"'])
def test_numbers_out_of_range_and_half_characters_may_not_come_in(text: str) -> None:
    header = f'{{"value": {text}, "bytes": []}}'.encode()
    with pytest.raises(FrameError):
        unpack(struct.pack(">I", len(header)) + header)


@pytest.mark.parametrize(
    "table",
    [
        [[["a"], 4]],
        [[["a"], -1]],
        [[["a"], True]],
        [[["b"], 3]],
        [[["c", "d"], 3]],
        [[["a"], 2]],
        [[["a"], 1], [["a"], 2]],
        [[[], 0], [["a"], 3]],
        {"a": 3},
        None,
    ],
)
def test_a_bytes_table_that_does_not_fit_is_refused(table: Any) -> None:
    header = {"value": {"a": None, "b": 1, "c": "text"}, "bytes": table}
    with pytest.raises(FrameError):
        unpack(_body(header, b"xyz"))


def test_no_text_of_a_module_passes_for_bytes() -> None:
    value = {"bytes": [[["value"], 3]], "value": None}
    assert unpack(pack(value)[4:]) == value


def test_a_value_is_as_deep_as_allowed_and_not_one_deeper() -> None:
    assert unpack(pack(_nested(MAX_DEPTH))[4:]) == _nested(MAX_DEPTH)
    with pytest.raises(FrameError):
        pack(_nested(MAX_DEPTH + 1))
    with pytest.raises(FrameError):
        unpack(_body({"value": _nested(MAX_DEPTH + 1), "bytes": []}))
    with pytest.raises(FrameError):
        unpack(_body_of(b'{"value": ' + b"[" * 100_000))


def test_a_frame_is_as_long_as_allowed_and_not_one_longer() -> None:
    length = len(pack(b"x" * 100)) - 4
    assert pack(b"x" * 100, max_frame=length)
    assert frame_length(struct.pack(">I", length), max_frame=length) == length
    with pytest.raises(FrameError):
        pack(b"x" * 100, max_frame=length - 1)
    with pytest.raises(FrameError):
        frame_length(struct.pack(">I", length), max_frame=length - 1)


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def _body(header: Any, sections: bytes = b"") -> bytes:
    return _body_of(json.dumps(header).encode()) + sections


def _body_of(header: bytes) -> bytes:
    return struct.pack(">I", len(header)) + header


def test_a_frame_of_too_many_values_is_refused_before_it_is_parsed() -> None:
    empty = json.dumps({"value": [[]] * (MAX_NODES // 2 + 1), "bytes": []}).encode()
    with pytest.raises(FrameError, match="values"):
        unpack(struct.pack(">I", len(empty)) + empty)


def test_commas_and_brackets_in_a_text_are_no_values() -> None:
    text = ',[{"\\' * (MAX_NODES // 2)
    assert unpack(pack([text])[4:]) == [text]


def _value_in(text: str) -> Any:
    """Return what a frame with this JSON text as its value holds."""
    header = b'{"value":' + text.encode() + b',"bytes":[]}'
    return unpack(struct.pack(">I", len(header)) + header)


@pytest.mark.parametrize("form", ["0.%s", "%s.5", "1e%s", "[%s, 1]", '{"a": -%s}'])
def test_a_number_has_at_most_so_many_digits_in_a_row(form: str) -> None:
    fitting = "0" * (MAX_DIGITS - 1) + "1"
    if form in {"0.%s", "1e%s"}:
        assert _value_in(form % fitting) is not None
    with pytest.raises(FrameError, match="digits in a row"):
        _value_in(form % ("1" * (MAX_DIGITS + 1)))


@pytest.mark.parametrize("end", ["", "\\\\", '\\"', '\\\\\\"', "\\u0031"])
def test_a_text_may_have_as_many_digits_as_it_likes(end: str) -> None:
    digits = "1" * (MAX_DIGITS + 1)
    text = f'["{digits}{end}", {{"{end}{digits}": "{end}"}}, 5]'
    assert _value_in(text) == json.loads(text)
    with pytest.raises(FrameError, match="digits in a row"):
        _value_in(text.replace("5", digits))


@pytest.mark.parametrize(
    ("number", "weight"), [("1e5", 1), ("0.1234567890123456789", EXACT_WEIGHT)]
)
def test_a_frame_has_at_most_so_many_numbers_that_take_long(
    number: str, weight: int
) -> None:
    most = MAX_SLOW // weight
    numbers = [number] * most
    values = _value_in(f"[{','.join(numbers)}]")
    assert len(values) == most
    with pytest.raises(FrameError, match="too many numbers"):
        _value_in(f"[{','.join([*numbers, number])}]")


def test_what_is_packed_keeps_the_limits_of_what_is_unpacked() -> None:
    exact = ExactFloat("0.1234567890123456789")
    most = MAX_SLOW // EXACT_WEIGHT
    assert unpack(pack([exact] * most)[4:]) == [exact] * most
    with pytest.raises(FrameError, match="too many numbers"):
        pack([exact] * (most + 1))
    with pytest.raises(FrameError, match="digits in a row"):
        pack(ExactFloat("0." + "1" * (MAX_DIGITS + 1)))
