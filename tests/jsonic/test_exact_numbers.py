"""Numbers of JSON keep their digits."""

from __future__ import annotations

import copy
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jsonic.exact_numbers
from jsonic.exact_numbers import ExactFloat, read_number, write_json
from negotiation.strict_json import canonical_json, parse_json

LONG = "12345678901234567.89"

NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)


@given(NUMBERS)
def test_a_number_keeps_its_value(text: str) -> None:
    found = parse_json(text, max_size=100)
    written = canonical_json(found).decode()
    assert Decimal(written) == Decimal(text)
    assert canonical_json(parse_json(written, max_size=1000)).decode() == written


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_an_ordinary_number_stays_a_plain_float(value: float) -> None:
    found = read_number(repr(value))
    assert type(found) is float
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    ("text", "kind", "written"),
    [
        ("0.1", float, "0.1"),
        ("-0.0", float, "-0.0"),
        ("1e30", float, "1e+30"),
        (LONG, ExactFloat, LONG),
        ("12345678901234567890.0", int, "12345678901234567890"),
        ("1e-400", ExactFloat, "1e-400"),
        ("0.1000000000000000000000", float, "0.1"),
    ],
)
def test_only_what_a_float_would_round_is_more_than_a_float(
    text: str, kind: type, written: str
) -> None:
    found = read_number(text)
    assert type(found) is kind
    assert write_json({"a": [found, "b"]}) == f'{{"a": [{written}, "b"]}}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1e400", "too large"),
        ("-1.5e309", "too large"),
        ("1e-9999999999999999999999", "out of range"),
    ],
)
def test_a_number_out_of_range_is_an_error_that_says_so(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_number(text)


def test_an_exact_number_is_a_float_that_is_compared_exactly() -> None:
    found = read_number(LONG)
    assert isinstance(found, float)
    assert found * 2 == float(LONG) * 2
    assert found != float(LONG)
    assert 12345678901234567 < found < 12345678901234568
    assert not found.is_integer()
    assert not found < float("nan")
    assert {found: 1}[jsonic.exact_numbers.read_number(LONG)] == 1
    assert f"{found}" == str(found) == LONG
    assert str(copy.deepcopy([found])[0]) == LONG


def test_every_way_of_writing_keeps_the_digits() -> None:
    values = {"b": [read_number(LONG)], "a": "\u00e4", "c": {"d": 1.5, "e": None}}
    plain = json.dumps({**values, "b": ["@"]}, indent=1, sort_keys=True)
    assert write_json(values, indent=1, sort_keys=True) == plain.replace('"@"', LONG)
    with pytest.raises(ValueError, match="not"):
        write_json([read_number(LONG), float("nan")], allow_nan=False)
    around: list[object] = [read_number(LONG)]
    around.append(around)
    with pytest.raises((ValueError, RecursionError)):
        write_json(around)


def test_a_number_made_of_other_text_is_refused() -> None:
    for text in ("1, 2", "", "NaN", "1_0", "\u0661", " 1", "1\n"):
        with pytest.raises(ValueError):
            ExactFloat(text)
