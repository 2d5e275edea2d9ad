"""JSON from others: RFC 8259 and nothing more."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negotiation.errors import JsonError
from negotiation.strict_json import (
    MAX_DEPTH,
    MAX_DIGITS,
    Json,
    canonical_json,
    largest_json,
    parse_json,
    plain_json,
)
from tests.clauses import clause

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


def parse(data: bytes | str, **limits: int) -> Json:
    return parse_json(data, **{"max_size": 1_000_000, **limits})


@clause("ANP-18")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1,]", "not JSON"),
        ('{"a": 1,}', "not JSON"),
        ('{"a": 1 // one\n}', "not JSON"),
        ("/* one */ 1", "not JSON"),
        ("{'a': 1}", "not JSON"),
        ("01", "not JSON"),
        ("+1", "not JSON"),
        (".5", "not JSON"),
        ("1 2", "not JSON"),
        ("\u00a01", "not JSON"),
        ('"a\nb"', "not JSON"),
        ("NaN", "NaN is not JSON"),
        ("[Infinity]", "Infinity is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("1e999", "too large for a float"),
        ("-1e999", "too large for a float"),
        ('{"a": 1, "a": 1}', "twice"),
        ('{"a": {"b": 1, "c": 2, "b": 3}}', "twice"),
        ('"\\ud800"', "surrogate"),
        ('{"\\udc00": 1}', "surrogate"),
        ('"\\udc00\\ud800"', "surrogate"),
        ('"\ud800"', "surrogate"),
    ],
)
def test_what_rfc_8259_does_not_have_is_refused(text: str, reason: str) -> None:
    with pytest.raises(JsonError, match=reason):
        parse(text)


@clause("ANP-18")
@pytest.mark.parametrize(
    "data",
    [
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": 1}'.encode("utf-16"),
        '{"a": 1}'.encode("utf-32-le"),
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xc0\x80"',
    ],
)
def test_only_utf_8_without_a_byte_order_mark_is_read(data: bytes) -> None:
    with pytest.raises(JsonError):
        parse(data)


@clause("WIRE row 53")
def test_escaped_and_raw_text_read_alike() -> None:
    raw = {"text": "商品 😀 \u2028"}
    assert parse(json.dumps(raw)) == raw
    assert parse(json.dumps(raw, ensure_ascii=False).encode()) == raw
    assert parse('"\\ud83d\\ude00"') == "😀"


def test_the_size_counts_bytes_of_utf_8() -> None:
    assert parse('"é"', max_size=4) == "é"
    assert parse('"é"'.encode(), max_size=4) == "é"
    for data in ('"é"', '"é"'.encode()):
        with pytest.raises(JsonError, match="at most 3"):
            parse(data, max_size=3)


@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_the_depth_is_limited(pair: str) -> None:
    def nested(depth: int) -> str:
        before = "[" if pair == "[]" else '{"a":'
        return before * (depth - 1) + pair + pair[1] * (depth - 1)

    assert parse(nested(MAX_DEPTH))
    with pytest.raises(JsonError, match="deeper"):
        parse(nested(MAX_DEPTH + 1))
    assert parse(nested(3), max_depth=3)
    with pytest.raises(JsonError, match="deeper"):
        parse(nested(4), max_depth=3)


def test_the_depth_counts_containers_and_not_values() -> None:
    assert parse("[" * 3 + "1" + "]" * 3, max_depth=3)
    assert parse("[[],[],[],[],[]]", max_depth=2)


def test_a_scalar_has_no_depth() -> None:
    assert parse('"[[[["', max_depth=1) == "[[[["


def test_a_bottomless_text_is_refused_and_not_recursed_into() -> None:
    with pytest.raises(JsonError, match="deeper"):
        parse("[" * 500_000)
    with pytest.raises(JsonError, match="deeper"):
        parse('{"a":' * 100_000)


@pytest.mark.parametrize("sign", ["", "-"])
def test_long_numbers_are_refused(sign: str) -> None:
    assert parse(sign + "9" * MAX_DIGITS)
    with pytest.raises(JsonError, match="digits"):
        parse(sign + "9" * (MAX_DIGITS + 1))
    assert parse(sign + "0." + "1" * (MAX_DIGITS - 2))
    with pytest.raises(JsonError, match="characters"):
        parse(sign + "0." + "1" * (MAX_DIGITS - 1))


def test_a_reason_quotes_nothing_of_the_text() -> None:
    with pytest.raises(JsonError) as caught:
        parse('{"secret": 1, "secret": 2}')
    assert "secret" not in str(caught.value)


@given(VALUES)
def test_what_json_writes_is_read_back(value: Json) -> None:
    assert parse(json.dumps(value)) == value
    assert parse(canonical_json(value)) == value


@given(st.binary() | TEXTS.map(str.encode) | VALUES.map(canonical_json))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        value = parse(data)
    except JsonError:
        return
    assert parse(canonical_json(value)) == value


def test_canonical_json_is_one_text_per_value() -> None:
    one = canonical_json({"b": [1, 2.5, None], "a": "é\n"})
    assert one == '{"a":"é\\n","b":[1,2.5,null]}'.encode()
    assert one == canonical_json({"a": "é\n", "b": [1, 2.5, None]})


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", {"\udfff": 1}])
def test_canonical_json_refuses_what_is_no_json(value: Json) -> None:
    with pytest.raises(JsonError):
        canonical_json(value)


def test_canonical_json_refuses_a_bottomless_value() -> None:
    value: list[Json] = []
    value.append(value)
    with pytest.raises(JsonError):
        canonical_json(value)


@given(VALUES)
def test_no_value_has_more_json_than_its_bound(value: Json) -> None:
    assert len(json.dumps(value)) <= largest_json(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_has_no_size(value: float) -> None:
    with pytest.raises(JsonError, match="NaN and Infinity are not JSON"):
        largest_json({"a": [1.5, value]})


def test_the_bound_of_plain_text_is_close_and_deep_values_have_one() -> None:
    assert largest_json({"text": "x" * 1_000_000}) < 2_000_100
    deep: Json = []
    for _ in range(100_000):
        deep = [deep]
    assert largest_json(deep) >= 200_000


@given(VALUES)
def test_blanks_around_a_value_are_taken_and_nothing_else(value: Json) -> None:
    text = json.dumps(value)
    assert parse(f" \t{text}") == parse(f"{text}\r\n") == value
    with pytest.raises(JsonError, match=r"Extra data at line 2, column 3"):
        parse(f"[{{}}]\n  {text}")


@given(VALUES)
def test_what_is_surely_plain_is_written_as_by_every_writer(value: Json) -> None:
    data = plain_json(value, max_depth=MAX_DEPTH)
    assert data is not None
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert data.decode() == text
    assert parse(data) == value


@pytest.mark.parametrize(
    "value",
    [
        {1: "a", "1": "b"},
        {"x": (1, 2)},
        10**400,
        float("nan"),
        [float("inf")],
        "\ud800",
        "x" * 100_000,
        [0] * 20_000,
        [[[]]],
        object(),
    ],
)
def test_what_is_not_surely_plain_is_left_to_others(value: object) -> None:
    assert plain_json(value, max_depth=2) is None
