"""Several valid texts of a format, and values that differ in one place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from negotiation.schema.texts import FORMATS, text_of
from negotiation.schema.variants import leaves, variants
from tests.negotiation.inprocess import findings


@pytest.mark.parametrize("name", FORMATS)
def test_the_texts_of_a_format_are_valid_and_differ(name: str) -> None:
    texts = [text_of({"format": name}, number) for number in range(1, 60)]
    assert len(set(texts)) >= 50
    checker = Draft202012Validator(
        {"format": name}, format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    assert [text for text in texts if not checker.is_valid(text)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "^[A-Z]{3}-\\d{4}$",
        "^\\+?[0-9]{3,9}$",
        "[a-z]+",
        "^P\\d+$",
        "^[\\w.-]+@x\\.de$",
        "\\d{2}:\\d{2}",
    ],
)
def test_a_simple_pattern_has_several_texts(pattern: str) -> None:
    texts = [text_of({"pattern": pattern}, number) for number in range(1, 30)]
    assert len(set(texts)) >= 5
    assert [one for one in texts if findings({"pattern": pattern}, one)] == []


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "a|b", "(?=x)", "[^a]", "a{999}", "a" * 301, "[", "\\1"]
)
def test_a_pattern_that_is_not_understood_has_none(pattern: str) -> None:
    assert text_of({"pattern": pattern}, 1) is None


@given(st.text(max_size=40), st.integers(0, 1000))
def test_no_pattern_raises(pattern: str, number: int) -> None:
    made = text_of({"pattern": pattern}, number)
    assert made is None or len(made) < 4_000


def test_each_variant_differs_in_one_place_and_is_valid() -> None:
    schema = {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "maximum": 9},
            "day": {"type": "string", "format": "date"},
            "kind": {"enum": ["x", "y"]},
            "fixed": {"const": 1},
            "list": {"type": "array", "items": {"type": "number"}},
            "flag": {"type": "boolean"},
        },
    }
    base = {
        "count": 9,
        "day": "2024-02-29",
        "kind": "x",
        "fixed": 1,
        "list": [1.5],
        "flag": True,
    }
    made = variants(schema, base)
    assert {one.path[0] for one in made} == set(base) - {"fixed"}
    for one in made:
        changed = leaves(one.value)
        differing = [
            path for path, leaf in leaves(base).items() if changed[path] != leaf
        ]
        assert differing == [one.path]
        assert findings(schema, one.value) == []
