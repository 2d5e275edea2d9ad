"""JSON is found in what models write, and forms are asked for as servers take them."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negotiation.errors import JsonError
from negotiation.llm.asking.answers import (
    MAX_REMEMBERED,
    Form,
    Forms,
    find_json,
    is_strict,
)
from negotiation.llm.asking.requests import (
    ModelServerError,
    Reply,
    read_error,
    read_reply,
)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '\n {"a": 1}\n',
        '```json\n{"a": 1}\n```',
        'Sure!\n\n```\n{"a": 1}\n```\nAnything else?',
        '~~~~\n{"a": 1}\n~~~~',
        'The answer is {"a": 1}.',
        '{"b"} no, {"a": 1}',
        '<think>{"a": 2, "b": 3}</think>{"a": 1}',
        '<think>\nhm\n</think>\n```json\n{"a": 1}\n```',
        'For instance {} or {"a":1}',
        '```json\n{"a": 1}',
        '{"a": 1}{"b": NaN}',
    ],
)
def test_an_object_is_found_whatever_stands_around_it(text: str) -> None:
    assert find_json(text) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    ["", "no", "{", "{'a': 1}", '{"a": 1, "a": 2}', '{"a": Infinity}', "{" * 5000],
)
def test_what_is_no_json_is_refused_in_words_for_the_model(text: str) -> None:
    with pytest.raises(JsonError):
        find_json(text)


def test_an_answer_is_measured_before_it_is_read() -> None:
    assert find_json('"' + "x" * 8 + '"', max_size=10) == "x" * 8
    with pytest.raises(JsonError, match="at most 10"):
        find_json('"' + "x" * 9 + '"', max_size=10)


@given(st.text(alphabet='{}[]"`~\n:,a1<think>/ ', max_size=300) | st.text())
def test_any_text_gives_json_or_an_error(text: str) -> None:
    try:
        json.dumps(find_json(text))
    except JsonError as exc:
        message = str(exc)
        assert "\n" not in message


@given(st.dictionaries(st.text(max_size=5), st.integers()), st.text(max_size=30))
def test_an_object_in_a_fence_is_always_found(value: Any, around: str) -> None:
    clean = "".join(c for c in around if c not in "{}[]`~<\"'")
    text = f"{clean}\n```json\n{json.dumps(value)}\n```\n{clean}"
    assert find_json(text) == value


def test_forms_only_go_down() -> None:
    forms = Forms()
    assert forms.refuse(Form.JSON_SCHEMA, {}, words="response_format") == "json_object"
    assert forms.refuse(Form.JSON_OBJECT, {}, words="response_format") == "text"
    assert forms.refuse(Form.TEXT, {}, words="response_format") is None
    assert forms.refuse(Form.JSON_SCHEMA, {}, words="late news") == "json_object"
    assert forms.strongest is Form.TEXT


def test_refused_schemas_are_remembered_up_to_a_limit() -> None:
    forms = Forms()
    schemas = [{"const": n} for n in range(MAX_REMEMBERED + 1)]
    for schema in schemas:
        forms.refuse(Form.JSON_SCHEMA, schema, words="Invalid schema")
    assert forms.strongest is Form.JSON_SCHEMA
    assert forms.form_for(schemas[0]) is Form.JSON_SCHEMA, "the oldest is forgotten"
    assert forms.form_for(schemas[1]) is Form.JSON_OBJECT


CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({**CLOSED, "properties": {"a": CLOSED}}, True),
        ({**CLOSED, "properties": {"a": {"type": "array", "items": CLOSED}}}, True),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "additionalProperties": True}, False),
        ({**CLOSED, "properties": {"a": {"type": ["object", "null"]}}}, False),
        ({**CLOSED, "properties": {"a": {"items": {"type": "object"}}}}, False),
        ({**CLOSED, "properties": {"a": {"anyOf": [{"type": "object"}]}}}, False),
        ({**CLOSED, "$defs": {"b": {"type": "object"}}}, False),
        ({"type": "array", "items": CLOSED}, False),
        (True, False),
        ({}, False),
    ],
)
def test_strict_is_said_only_of_schemas_that_are(schema: Any, strict: bool) -> None:
    assert is_strict(schema) is strict


def plain(text: str) -> str:
    return text


@given(st.binary(max_size=300) | st.builds(lambda v: json.dumps(v).encode(), st.none()))
def test_any_bytes_are_a_reply_an_error_or_refused(data: bytes) -> None:
    with contextlib.suppress(JsonError):
        assert isinstance(read_reply(data, clean=plain), Reply | ModelServerError)
    assert len(read_error(data, clean=plain)) <= 401


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("choices", "message", "content", "error", "usage", "detail"),
                    *("prompt_tokens", "completion_tokens", "code", "msg", "text"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_reply_an_error_or_refused(value: Any) -> None:
    data = json.dumps(value).encode()
    try:
        found = read_reply(data, clean=plain)
    except JsonError:
        return
    finally:
        read_error(data, clean=plain)
    assert isinstance(found, Reply | ModelServerError)
