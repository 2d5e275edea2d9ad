"""The endpoint against a scripted server: every failure ends, and none costs more."""

from __future__ import annotations

import contextlib
import json
import logging
import traceback
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negotiation.errors import MindError, MisuseError
from negotiation.llm.asking.answers import Form
from negotiation.llm.asking.attempts import AskingLimits
from negotiation.llm.asking.endpoint import OPENAI_URL, EndpointSettings
from negotiation.llm.asking.questions import Question
from tests.negotiation.llm.script import (
    GREEN,
    KEY,
    QUESTION,
    SCHEMA,
    Script,
    endpoint,
    refused,
    said,
)

ANSWER = {"colour": "green"}
NAMES_FORM = "'response_format' of type json_schema is not supported"


async def failure(script: Script, **options: Any) -> str:
    """Ask once, and return the words of the failure."""
    with pytest.raises(MindError) as caught:
        await endpoint(script, **options).ask(QUESTION)
    return str(caught.value)


async def test_an_answer_is_asked_for_with_its_schema_and_returned() -> None:
    script = Script(said())
    assert await endpoint(script).ask(QUESTION) == ANSWER
    body = script.body()
    assert script.requests[0].url == "http://model.test/v1/chat/completions"
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": QUESTION.system},
            {"role": "user", "content": QUESTION.user},
        ],
        "max_tokens": 100,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "colour", "schema": SCHEMA, "strict": True},
        },
    }


async def test_equal_questions_give_equal_bytes() -> None:
    script = Script(said())
    for _ in range(2):
        await endpoint(script).ask(QUESTION)
    assert script.requests[0].content == script.requests[1].content


async def test_only_what_the_owner_set_leaves_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ORG_ID", "PROJECT_ID", "API_KEY", "BASE_URL", "ADMIN_KEY"):
        monkeypatch.setenv(f"OPENAI_{name}", "http://from.environment/")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Environment: yes")
    script = Script(said())
    asked = endpoint(script, headers={"X-Team": "agents"}, seed=7, temperature=0.5)
    await asked.ask(QUESTION)
    request = script.requests[0]
    assert set(request.headers) <= {
        *("host", "accept", "accept-encoding", "connection", "user-agent"),
        *("content-length", "content-type", "authorization", "x-team"),
    }
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert b"from.environment" not in b"".join(v for _, v in request.headers.raw)
    assert (script.body()["seed"], script.body()["temperature"]) == (7, 0.5)


async def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    script = Script(said())
    await endpoint(script, api_key=None).ask(QUESTION)
    assert "authorization" not in script.requests[0].headers


@pytest.mark.parametrize("status", [400, 422, 500])
async def test_a_refused_form_is_stepped_down_and_remembered(status: int) -> None:
    script = Script(refused(status, NAMES_FORM), refused(status, NAMES_FORM), said())
    asked = endpoint(script)
    assert await asked.ask(QUESTION) == ANSWER
    formats = [script.body(n).get("response_format", {}).get("type") for n in range(3)]
    assert formats == ["json_schema", "json_object", None]
    assert json.dumps(SCHEMA, separators=(",", ":")) in str(script.body()["messages"])
    assert await asked.ask(QUESTION) == ANSWER
    assert len(script.requests) == 4, "the second question is in the right form at once"


async def test_a_schema_that_is_refused_lowers_no_other_question() -> None:
    script = Script(refused(400, "Invalid schema for response_format 'x'"), said())
    asked = endpoint(script)
    await asked.ask(QUESTION)
    other = Question(
        step="propose",
        system="s",
        user="u",
        schema={**SCHEMA, "description": "another"},
        schema_name="other",
        max_tokens=10,
    )
    await asked.ask(other)
    assert script.body()["response_format"]["type"] == "json_schema"
    await asked.ask(QUESTION)
    assert script.body()["response_format"]["type"] == "json_object"
    assert len(script.requests) == 4


async def test_the_form_may_be_set() -> None:
    script = Script(said(f"Here you are:\n```json\n{GREEN}\n```\nGood luck!"))
    assert await endpoint(script, form=Form.TEXT).ask(QUESTION) == ANSWER
    assert "response_format" not in script.body()


@pytest.mark.parametrize(
    ("url", "first", "second"),
    [
        ("http://model.test/v1", "max_tokens", "max_completion_tokens"),
        (OPENAI_URL, "max_completion_tokens", "max_tokens"),
    ],
)
async def test_the_name_of_the_most_tokens_is_found_out(
    url: str, first: str, second: str
) -> None:
    script = Script(refused(400, f"Unsupported parameter: '{first}'."), said())
    asked = endpoint(script, base_url=url)
    assert await asked.ask(QUESTION) == ANSWER
    assert (first in script.body(0), second in script.body(1)) == (True, True)
    await asked.ask(QUESTION)
    assert second in script.body()
    assert len(script.requests) == 3


async def test_a_name_that_was_set_is_kept() -> None:
    script = Script(refused(400, "Unsupported parameter: 'max_tokens'."))
    await failure(script, tokens_name="max_tokens")
    assert len(script.requests) == 1


async def test_a_bad_answer_is_asked_for_again_with_the_findings() -> None:
    script = Script(said('{"colour": "blue"}'), said())
    assert await endpoint(script).ask(QUESTION) == ANSWER
    *_, answer, correction = script.body()["messages"]
    assert answer == {"role": "assistant", "content": '{"colour":"blue"}'}
    assert "'blue' is not one of" in correction["content"]
    assert '"enum":["red","green"]' in correction["content"], (
        "a server that ignores response_format never showed the schema"
    )


async def test_bad_answers_end_after_the_allowed_number() -> None:
    script = Script(*(said(f'{{"colour": "blue{n}"}}') for n in range(9)))
    assert "3 answers were tried" in await failure(script)
    assert len(script.requests) == 3


@pytest.mark.parametrize("answer", ['{"colour": "blue"}', "no idea", ""])
async def test_a_repeated_bad_answer_ends_at_once(answer: str) -> None:
    script = Script(said(answer))
    assert "repeats itself" in await failure(script)
    assert len(script.requests) == 2


async def test_a_cut_answer_gets_more_room_once() -> None:
    script = Script(said('{"colour": "gr', finish_reason="length"), said())
    limits = AskingLimits(thinking_tokens=50)
    assert await endpoint(script, limits=limits).ask(QUESTION) == ANSWER
    assert [script.body(n)["max_tokens"] for n in range(2)] == [150, 250]
    script = Script(said("", finish_reason="length"))
    assert "cut twice" in await failure(script)
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    "reply",
    [
        said(None, message={"refusal": "I must not."}),
        said("", finish_reason="content_filter"),
    ],
)
async def test_a_refusal_is_not_asked_for_again(reply: httpx2.Response) -> None:
    script = Script(reply)
    assert "declined" in await failure(script)
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    "content",
    [None, "", "   ", [], {}, 7, True, [{"type": "text"}], [["x"]]],
)
async def test_an_empty_answer_is_asked_for_again(content: Any) -> None:
    script = Script(said(content), said())
    assert await endpoint(script).ask(QUESTION) == ANSWER
    assert len(script.requests) == 2


async def test_an_answer_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": '{"colour"'}, {"type": "text", "text": ':"red"}'}]
    assert await endpoint(Script(said(parts))).ask(QUESTION) == {"colour": "red"}


HTML = httpx2.Response(200, html="<html><body>Welcome!</body></html>")
ODD = [
    HTML,
    httpx2.Response(200, content=b""),
    httpx2.Response(200, content=b"\xff\xfe"),
    httpx2.Response(200, json=[]),
    httpx2.Response(200, json={"choices": []}),
    httpx2.Response(200, json={"choices": {}}),
    httpx2.Response(200, content=b"[" * 100_000),
    httpx2.Response(200, content=b'{"choices": [NaN]}'),
    httpx2.Response(200, content=b'{"choices": [{"message": {"content": "\\ud83d"}}]}'),
]


@pytest.mark.parametrize("odd", ODD)
async def test_a_200_without_a_chat_completion_is_tried_again_and_then_told(
    odd: httpx2.Response,
) -> None:
    script = Script(odd, said())
    assert await endpoint(script).ask(QUESTION) == ANSWER
    script = Script(odd)
    assert "is llm.base_url right?" in await failure(script)
    assert len(script.requests) == 3


@pytest.mark.parametrize("choice", [None, 7, {}, {"message": None}, {"message": []}])
async def test_a_choice_of_a_wrong_type_is_an_empty_answer(choice: Any) -> None:
    odd = httpx2.Response(200, json={"choices": [choice], "usage": "much"})
    assert await endpoint(Script(odd, said())).ask(QUESTION) == ANSWER


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
async def test_a_status_that_passes_is_tried_again(status: int) -> None:
    script = Script(refused(status, "busy"), said())
    assert await endpoint(script).ask(QUESTION) == ANSWER
    script = Script(refused(status, "busy"))
    assert f"HTTP {status}: 'busy'; tried 3 times" in await failure(script)
    assert len(script.requests) == 3


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (refused(401, "no"), "llm.api_key_env"),
        (refused(403), "llm.api_key_file"),
        (refused(404, "no such model"), "llm.base_url"),
        (refused(400, "the prompt is too long"), "too long"),
        (refused(413), "HTTP 413"),
        (refused(307, "", location="http://other.test/"), "HTTP 307"),
        (refused(429, "You exceeded your quota: insufficient_quota"), "account"),
        (httpx2.Response(503, headers={"x-should-retry": "false"}), "HTTP 503"),
        (httpx2.Response(400, json={"detail": [{"msg": "bad field"}]}), "bad field"),
        (httpx2.Response(400, content=b"plain words"), "plain words"),
        (httpx2.Response(400, json=["first", "second"]), "first"),
        (httpx2.Response(400, json=7), "HTTP 400"),
        (httpx2.Response(400, html="<p>no</p>"), "HTTP 400"),
    ],
)
async def test_a_final_status_is_told_after_one_request(
    reply: httpx2.Response, words: str
) -> None:
    script = Script(reply)
    assert words in await failure(script)
    assert len(script.requests) == 1


async def test_an_error_with_status_200_is_an_error() -> None:
    def error(code: Any) -> httpx2.Response:
        return httpx2.Response(200, json={"error": {"message": "m", "code": code}})

    assert "HTTP 401" in await failure(Script(error(401)))
    assert "HTTP 500" in await failure(Script(error("odd")))


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "3600"},
        {"retry-after-ms": "3600000"},
        {"retry-after": "Fri, 31 Dec 2999 23:59:59 GMT"},
    ],
)
async def test_a_wait_past_the_deadline_ends_the_question_at_once(
    headers: dict[str, str],
) -> None:
    script = Script(refused(429, "slow down", **headers))
    words = await failure(script)
    assert "HTTP 429: 'slow down'" in words
    assert "llm.timeout" in words
    assert len(script.requests) == 1


@pytest.mark.parametrize("value", ["0", "-5", "nan", "soon", "inf-ish", "", "0.01"])
async def test_a_retry_after_that_makes_no_sense_is_passed_over(value: str) -> None:
    script = Script(refused(429, "x", **{"retry-after": value}), said())
    assert await endpoint(script).ask(QUESTION) == ANSWER


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (httpx2.ConnectError("no"), "cannot be reached"),
        (httpx2.ConnectTimeout("no"), "cannot be reached"),
        (httpx2.ReadTimeout("no"), "fell silent"),
        (httpx2.RemoteProtocolError("no"), "broke"),
        (httpx2.ReadError("no"), "broke"),
        (RuntimeError("Bearer " + KEY), "the request failed (RuntimeError)"),
    ],
)
async def test_trouble_with_the_connection_is_told(
    trouble: Exception, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert words in await failure(Script(trouble))
    assert KEY not in caplog.text
    if not isinstance(trouble, RuntimeError):
        assert await endpoint(Script(trouble, said())).ask(QUESTION) == ANSWER


@pytest.mark.parametrize(
    "usage",
    [
        None,
        7,
        [],
        {},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": "11", "completion_tokens": 7},
        {"prompt_tokens": -1, "completion_tokens": 7},
        {"prompt_tokens": True, "completion_tokens": 7},
        {"prompt_tokens": 10**18, "completion_tokens": 7},
    ],
)
async def test_usage_of_a_wrong_type_is_no_usage(usage: Any) -> None:
    assert await endpoint(Script(said(usage=usage))).ask(QUESTION) == ANSWER


async def test_another_model_than_asked_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = endpoint(Script(said(model="m-2026-01-01"), said(model="other")))
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            await asked.ask(QUESTION)
    lines = [r.getMessage() for r in caplog.records if "answers as" in r.getMessage()]
    assert lines == ["model answers as asked='m' got='other'"]


async def test_a_body_over_the_limit_is_not_read_as_an_answer() -> None:
    large = said(" " * (3 * 1024 * 1024) + GREEN)
    script = Script(large)
    assert "more than 2097152 bytes" in await failure(script)
    assert len(script.requests) == 3
    assert await endpoint(Script(large, said())).ask(QUESTION) == ANSWER


async def test_an_answer_over_the_limit_is_asked_for_again() -> None:
    script = Script(said('{"colour": "' + "x" * 600_000 + '"}'), said())
    assert await endpoint(script).ask(QUESTION) == ANSWER
    assert len(script.requests[-1].content) < 20_000


async def test_a_closed_endpoint_asks_nobody() -> None:
    script = Script(said())
    asked = endpoint(script)
    await asked.ask(QUESTION)
    await asked.close()
    await asked.close()
    with pytest.raises(MindError, match="shutting down"):
        await asked.ask(QUESTION)
    assert len(script.requests) == 1


HEADER = "another-secret-value"


@pytest.mark.parametrize("secret", [KEY, HEADER])
@pytest.mark.parametrize(
    "make",
    [
        lambda s: refused(401, f"Incorrect API key provided: {s}"),
        lambda s: refused(400, "x" * 195 + s + "y" * 500),
        lambda s: refused(503, s),
        lambda s: httpx2.Response(400, content=b"z" * 390 + s.encode()),
        lambda s: httpx2.Response(200, json={"error": {"message": s}}),
        lambda s: httpx2.Response(200, html=s),
        lambda s: httpx2.Response(200, headers={"content-type": s}, content=b"<"),
        lambda s: said(json.dumps({"colour": s})),
        lambda s: said(s),
        lambda s: said("", message={"refusal": s}),
        lambda s: said("no", model=s),
        lambda s: said("no", finish_reason=s),
    ],
)
async def test_a_secret_is_in_no_error_no_log_and_no_repr(
    make: Any, secret: str, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script(make(secret))
    asked = endpoint(script, headers={"X-Key": HEADER})
    with caplog.at_level(logging.DEBUG), pytest.raises(MindError) as caught:
        await asked.ask(QUESTION)
    shown = "".join(traceback.format_exception(caught.value))
    for text in (str(caught.value), shown, caplog.text, repr(asked)):
        assert KEY not in text
        assert HEADER not in text
        assert KEY[:12] not in text
    assert KEY not in repr(EndpointSettings(model="m", api_key=KEY))
    assert HEADER not in repr(EndpointSettings(model="m", headers={"X": HEADER}))


async def test_an_answer_with_the_key_is_not_used() -> None:
    schema = {"type": "object"}
    question = Question(
        step="s", system="", user="", schema=schema, schema_name="s", max_tokens=9
    )
    with pytest.raises(MindError, match="holds the key"):
        await endpoint(Script(said(json.dumps({"x": KEY})))).ask(question)


@pytest.mark.parametrize(
    "change", [{"step": "A step"}, {"schema_name": "a b"}, {"max_tokens": 0}]
)
def test_a_question_that_no_server_or_ledger_takes_is_our_bug(
    change: dict[str, Any],
) -> None:
    with pytest.raises(MisuseError):
        replace(QUESTION, **change)


def test_prompts_and_schemas_are_not_in_the_repr_of_a_question() -> None:
    assert "grass" not in repr(QUESTION)


def test_a_key_that_no_header_takes_is_refused_without_showing_it() -> None:
    with pytest.raises(MisuseError) as caught:
        EndpointSettings(model="m", api_key="sk\r\nX-Evil: 1")
    assert "Evil" not in str(caught.value)


REACTIONS = st.sampled_from(
    [
        *ODD,
        said('{"colour": "blue"}'),
        said("words"),
        said("", finish_reason="length"),
        refused(400, NAMES_FORM),
        refused(400, "unsupported: max_tokens"),
        refused(429, "slow"),
        refused(500, "oops"),
        httpx2.ReadError("x"),
        httpx2.ConnectError("x"),
        said(None, message={"refusal": "no"}),
        said(usage=None),
    ]
)


@settings(deadline=None, max_examples=60)
@given(reactions=st.lists(REACTIONS, min_size=1, max_size=8))
async def test_whatever_a_server_does_one_question_costs_a_bounded_number_of_requests(
    reactions: list[Any],
) -> None:
    script = Script(*reactions)
    with contextlib.suppress(MindError):
        assert await endpoint(script).ask(QUESTION) == ANSWER
    assert len(script.requests) <= AskingLimits().max_requests
