"""Every failure of a server and of a model, on every kind of question (LLM.md)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import httpx2
import pytest

from anp.sidecar.minds.accounts import Spender, Spending
from cache.store import Store
from negotiation.document.reader import read_document
from negotiation.document.shape import document_hash
from negotiation.errors import HalfError, MindError
from negotiation.llm.asking.attempts import AskingLimits
from negotiation.llm.asking.budget import OWNER, BudgetExhausted, BudgetLimits, utc_day
from negotiation.llm.asking.endpoint import EndpointSettings, ModelEndpoint
from negotiation.llm.asking.questions import load_prompt
from negotiation.llm.assess import ShownMessages
from negotiation.llm.mind import LlmMind
from negotiation.mind import Counter, Demand, HalfSource, Offer, Reject
from negotiation.need import Capability, Need
from negotiation.rules.rules import own_terms
from negotiation.rules.rules import propose as plain
from tests.loops.long import crossed
from tests.negotiation.formats import BINARY, strict
from tests.negotiation.llm.fenced import settle
from tests.negotiation.llm.script import KEY, URL, completion, validate
from tests.negotiation.llm.scripted import (
    call,
    link,
    offer_answer,
    proposal,
    reply_answer,
)
from tests.negotiation.llm.test_bad_answers import CLOCK, GOOD, HOUR
from tests.negotiation.llm.test_encodings import CODECS, OFFERS, TOOLS
from tests.negotiation.llm.test_proposals import (
    BASE,
    EDITS,
    OFFER,
    OPTIONS,
    PROPOSED,
    PROSE,
    URI,
    based,
)
from tests.negotiation.llm.test_words_and_cases import (
    DOCUMENT,
    LIGHT,
    MESSAGES,
    served,
)
from tests.negotiation.llm.test_words_and_cases import said as argument

TEXT: dict[str, Any] = {"type": "string"}
MOST_CALLS = 7
"Room for the questions that come before, and for all that one question may cost."


# The steps.

Run = Callable[[LlmMind], Awaitable[Any]]


@dataclass(frozen=True)
class Step:
    """One kind of question, and how a negotiation comes to ask it."""

    run: Run
    "Gives what came of it, comparable."

    good: Any
    "A good reader's answer."

    lazy: Any
    "The answer of a model that changes nothing or says nothing."

    before: dict[str, Any] = field(default_factory=dict)
    "Answers to the other questions of the way, by their step."


def judging(document: str, side: Demand | Offer) -> Run:
    async def run(mind: LlmMind) -> Any:
        result = await settle(mind, document, side)
        if isinstance(result, Counter):
            # Terms that are sent back are readable and new.
            read_document(result.document)
            assert result.document != document
            assert result.summary.strip()
        if isinstance(result, Reject):
            assert result.reason.strip()
        return result

    return run


async def proposing(mind: LlmMind) -> str:
    text = await mind.propose(PROSE)
    document = read_document(text)
    assert document.requirement.startswith(PROSE.need.requirement)
    assert isinstance(document.input_schema, dict)
    assert list(document.input_schema["properties"]) == ["artikel"]
    return text


def serving(text: str, offer: Offer) -> Run:
    async def run(mind: LlmMind) -> Any:
        spoken = await mind.serve_text(text, offer)
        assert bool(spoken.capability) != bool(spoken.reply)
        if spoken.capability:
            [tool] = offer.capabilities
            assert spoken.capability == tool.name
            assert await validate(tool.input_schema, spoken.arguments) == []
        return spoken

    return run


LIGHT_NEED = Demand(Need("Light", LIGHT.input_schema), {"room": "a", "on": True})
WIDE = strict(**{f"field{number}": TEXT for number in range(90)})
MANY = Offer(
    (
        *(Capability(f"big.tool{n}", "Something else", WIDE, WIDE) for n in range(6)),
        CLOCK,
    )
)
HOUR_REPLY = reply_answer(
    [link("request:/zone", of=["arguments:/tz"])],
    [link("result:/h", of=["response:/hour"])],
)
CHOSEN = {"capabilities": ["clock.now"], "missing": ""}
WARE = OPTIONS.replace('"article"', '"ware"')
WARE_OFFER = offer_answer(
    call("shop.price", link("shop.price:/article", of=["request:/ware"])),
    result=[link("result:/euros", of=["shop.price:/euros"])],
)
WRONG_CODEC = CODECS["binary"].replace('">dBi"', '"<dBi"')
FINE = {"follows": True, "rule": ""}
PAYING = {"follows": False, "rule": "The price is in cents"}
SERVED = served(argument("room", "a"), argument("on", "true"))
OFFER_PROBES = Offer((TOOLS["binary"],))

STEPS: dict[str, Step] = {
    "propose": Step(proposing, PROPOSED, proposal()),
    "offer": Step(
        judging(plain(HOUR), Offer((CLOCK,))), GOOD, offer_answer(call("clock.now"))
    ),
    "reply": Step(judging(own_terms(CLOCK), HOUR), HOUR_REPLY, reply_answer()),
    "choose": Step(
        judging(plain(HOUR), MANY),
        CHOSEN,
        {"capabilities": [], "missing": ""},
        {"offer": GOOD},
    ),
    "select": Step(
        judging(plain(HOUR), Offer((CLOCK,), ("only to friends",))),
        {"capabilities": ["clock.now"]},
        {"capabilities": []},
        {"offer": GOOD},
    ),
    "allow": Step(
        judging(own_terms(CLOCK), replace(HOUR, hints=("not on Sundays",))),
        {"accept": True},
        {"accept": False},
        {"reply": HOUR_REPLY},
    ),
    "option": Step(
        judging(WARE, OFFER),
        {"option": "2", "missing": ""},
        {"option": "0", "missing": ""},
        {"offer": WARE_OFFER},
    ),
    "changes": Step(
        judging(based(document_hash(BASE)), OFFER),
        EDITS,
        {"edits": []},
        {"offer": offer_answer(call("shop.price"))},
    ),
    "codec": Step(
        judging(BINARY.file("document.md"), OFFER_PROBES),
        {"codec": CODECS["binary"]},
        {"codec": WRONG_CODEC},
        {"offer": {**OFFERS["binary"], "codec": WRONG_CODEC}},
    ),
    "answer": Step(
        lambda mind: mind.answer("What do you do?", Offer((LIGHT,))),
        {"answer": "We switch lights."},
        {"answer": ""},
    ),
    "serve": Step(
        serving("light a on", Offer((LIGHT,))),
        SERVED,
        served(capability="none"),
    ),
    "messages": Step(
        lambda mind: mind.judge_messages(DOCUMENT, MESSAGES),
        {"verdicts": {"1": FINE, "2": PAYING}},
        {"verdicts": {"1": FINE, "2": FINE}},
    ),
    "judge_cases": Step(
        lambda mind: mind.judge_cases(DOCUMENT, MESSAGES),
        {"verdicts": {"1": FINE, "2": PAYING}},
        {"verdicts": {"1": FINE, "2": FINE}},
    ),
    "cases": Step(
        lambda mind: mind.write_cases(DOCUMENT, LIGHT_NEED),
        {"cases": [{"title": "usual", "arguments": '{"room": "a", "on": true}'}]},
        {"cases": []},
    ),
    "fault": Step(
        lambda mind: mind.judge_fault(
            DOCUMENT, ShownMessages("response 2", "{}"), "unit"
        ),
        {"breaks": True, "rule": "The price is in cents", "reason": "it is in euros"},
        {"breaks": True, "rule": "", "reason": ""},
    ),
}


# The failures.

React = Callable[[int, dict[str, Any], Step], httpx2.Response | None]
"Gets the number of the request, from 0, and its body; None is silence."


@dataclass(frozen=True)
class Failure:
    """One thing that goes wrong."""

    react: React
    "What the server does."

    mends: bool | None = None
    "Whether the step ends as with a healthy server; None where it depends."

    timeout: float = 30.0
    "Seconds for a question."


def good(step: Step, **fields: Any) -> httpx2.Response:
    return httpx2.Response(200, json=completion(json.dumps(step.good), **fields))


def always(made: httpx2.Response) -> Failure:
    # A response is used up when it is read.
    return Failure(lambda number, body, step: again(made), mends=False)


def once(made: httpx2.Response) -> Failure:
    return Failure(
        lambda number, body, step: good(step) if number else again(made), mends=True
    )


def again(made: httpx2.Response) -> httpx2.Response:
    return httpx2.Response(made.status_code, headers=made.headers, content=made.content)


def words(content: Any, **fields: Any) -> httpx2.Response:
    return httpx2.Response(200, json=completion(content, **fields))


def error(status: int, message: str, **headers: str) -> httpx2.Response:
    return httpx2.Response(
        status, json={"error": {"message": message}}, headers=headers
    )


def cut_short(number: int, body: dict[str, Any], step: Step) -> httpx2.Response:
    whole = json.dumps(step.good)
    return words(whole[: len(whole) // 2], finish_reason="length")


def cut_once(number: int, body: dict[str, Any], step: Step) -> httpx2.Response:
    return good(step) if number else cut_short(number, body, step)


def no_form(status: int, *refused: str) -> Failure:
    def react(number: int, body: dict[str, Any], step: Step) -> httpx2.Response:
        kind = body.get("response_format", {}).get("type")
        if kind in refused:
            return error(status, f"'response_format' of type {kind} is not supported")
        return good(step)

    return Failure(react, mends=True)


def with_usage(usage: Any) -> Failure:
    return Failure(lambda number, body, step: good(step, usage=usage), mends=True)


def breaking(times: int) -> Failure:
    def react(number: int, body: dict[str, Any], step: Step) -> httpx2.Response:
        if number < times:
            raise httpx2.ReadError("connection reset by peer")
        return good(step)

    return Failure(react, mends=times < 3)


def lazily(number: int, body: dict[str, Any], step: Step) -> httpx2.Response:
    return words(json.dumps(step.lazy))


def pointing_nowhere(seed: int, *, busy: int) -> Failure:
    """Give answers that fit their schema and mean nothing."""

    def react(number: int, body: dict[str, Any], step: Step) -> httpx2.Response:
        schema = body["response_format"]["json_schema"]["schema"]
        return words(json.dumps(nonsense(schema, [seed + number], busy)))

    return Failure(react)


def nonsense(schema: Any, state: list[int], busy: int) -> Any:
    state[0] = (state[0] * 1_103_515_245 + 12_345) % 2**31
    draw = state[0] >> 8
    if "enum" in schema:
        return schema["enum"][draw % len(schema["enum"])]
    match schema["type"]:
        case "boolean":
            return draw % 5 != 0
        case "string":
            return ["nowhere", "0", "a", "../../etc/passwd", "a.b", "月"][draw % 6]
        case "array":
            most = min(schema["maxItems"], busy)
            count = most if busy > 9 else draw % (most + 1)
            return [nonsense(schema["items"], state, busy) for _ in range(count)]
    return {
        name: nonsense(one, state, busy) for name, one in schema["properties"].items()
    }


HTML = httpx2.Response(200, html="<!doctype html><title>Login</title>")
LARGE = httpx2.Response(200, json=completion("x" * 10 * 1024 * 1024))
SAME = '{"nothing": "like it"}'
NOTHING = Failure(lambda number, body, step: good(step), mends=True)
FAILURES: dict[str, Failure] = {
    "bad JSON once": once(words('{"serves": tru')),
    "bad JSON for ever": Failure(
        lambda number, body, step: words('{"serves": tru' + "e" * number), mends=False
    ),
    "no JSON but chat": once(words("Sure! I would rather talk about the weather.")),
    "another form once": once(words(SAME)),
    "a repeated answer": always(words(SAME)),
    "no object": always(words("[1, 2]")),
    "cut once": Failure(cut_once, mends=True),
    "cut for ever": Failure(cut_short, mends=False),
    "unchanged": Failure(lazily),
    "a refusal": always(words(None, message={"refusal": "I cannot help with that."})),
    "filtered": always(words("", finish_reason="content_filter")),
    "empty once": once(words("")),
    "empty for ever": always(words("")),
    "null content": always(words(None)),
    "no choices": always(httpx2.Response(200, json={"choices": []})),
    "choices of no form": always(httpx2.Response(200, json={"choices": [None]})),
    "429 once": once(error(429, "slow down", **{"retry-after": "0"})),
    "429 for ever": always(error(429, "slow down", **{"retry-after": "0"})),
    "429 for a day": always(error(429, "slow down", **{"retry-after": "86400"})),
    "no money": always(error(429, "You exceeded your quota: insufficient_quota")),
    "500 once": once(error(500, "out of memory")),
    "500 for ever": always(error(500, "out of memory")),
    "503 twice": Failure(
        lambda number, body, step: (
            good(step) if number > 1 else error(503, "loading the model")
        ),
        mends=True,
    ),
    "401": always(error(401, f"Incorrect API key provided: {KEY}")),
    "404": always(error(404, "no such model")),
    "HTML once": once(HTML),
    "HTML for ever": always(HTML),
    "broken once": breaking(1),
    "broken for ever": breaking(99),
    "silence": Failure(lambda number, body, step: None, mends=False, timeout=1.0),
    "10 MB once": once(LARGE),
    "10 MB for ever": always(LARGE),
    "usage in words": with_usage({"prompt_tokens": "many", "completion_tokens": []}),
    "usage below zero": with_usage({"prompt_tokens": -9, "completion_tokens": -1}),
    "usage beyond belief": with_usage(
        {"prompt_tokens": 10**30, "completion_tokens": 1}
    ),
    "usage of no form": with_usage([7]),
    "usage of truth": with_usage({"prompt_tokens": True, "completion_tokens": 1.5}),
    "no usage": with_usage(None),
    "400 for json_schema": no_form(400, "json_schema"),
    "500 for json_schema": no_form(500, "json_schema"),
    "400 for any form": no_form(400, "json_schema", "json_object"),
    "500 for any form": no_form(500, "json_schema", "json_object"),
    "a form refused for ever": always(error(400, "response_format is unknown here")),
    "our key in an answer": always(words(json.dumps({"answer": KEY}))),
    **{f"nonsense {n}": pointing_nowhere(n, busy=3) for n in range(4)},
    "much nonsense": pointing_nowhere(9, busy=12),
}


class Server:
    """Fails on one kind of question, and is healthy on the others."""

    def __init__(self, name: str, failure: Failure) -> None:
        self._name = name
        self._failure = failure
        self.requests = 0
        self.failed = 0

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        body = json.loads(request.content)
        step = STEPS[self._name]
        system = body["messages"][0]["content"]
        asked = next(
            name
            for name in (self._name, *step.before)
            if system.startswith(load_prompt(name).system)
        )
        if asked != self._name:
            return words(json.dumps(step.before[asked]))
        number, self.failed = self.failed, self.failed + 1
        made = self._failure.react(number, body, step)
        if made is None:
            await asyncio.Event().wait()
            raise AssertionError("never")
        return made


@dataclass(frozen=True)
class Ending:
    """What one step came to."""

    result: Any
    server: Server


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("store")) as store:
        yield store


# The clock of the tests: each has a day of its own, and so accounts of its own.
DAYS = count(20_000)


async def play(name: str, failure: Failure, store: Store, *, calls: int) -> Ending:
    """Run one step against a server, paid from a small budget."""
    noon = (next(DAYS) + 0.5) * 86_400
    today = utc_day(noon)
    server = Server(name, failure)
    settings = EndpointSettings(
        model="m",
        base_url=URL,
        api_key=KEY,
        timeout=failure.timeout,
        limits=AskingLimits(first_wait=0.0),
    )
    endpoint = ModelEndpoint(settings, validate, transport=httpx2.MockTransport(server))
    spending = Spending(
        store,
        replace(BudgetLimits(), negotiation_calls=calls),
        model="m",
        clock=lambda: noon,
    )
    spender = Spender(endpoint, spending, account=OWNER)
    result: Any
    async with asyncio.timeout(20):
        try:
            mind = LlmMind(spender, held={URI: BASE})
            result = await STEPS[name].run(mind)
        except (MindError, HalfError) as exc:
            result = exc
    await endpoint.close()
    # Every request was allowed and is in the ledger, whatever it came to.
    assert server.requests == spender.calls <= calls
    assert len(store.model_calls(since=today)) == server.requests
    spent = store.spends(since=today)
    # On a busy machine silence may be over before anything is sent.
    assert sum(one.calls for one in spent) == server.requests
    assert sum(one.held_tokens for one in spent) == 0
    assert spender.tokens == sum(one.input_tokens + one.output_tokens for one in spent)
    assert spender.tokens <= BudgetLimits().negotiation_tokens
    assert KEY not in f"{result!s}{result!r}"
    return Ending(result, server)


HEALTHY: dict[str, Any] = {}


async def healthy(name: str, store: Store) -> Any:
    """Return what a step comes to when nothing fails."""
    if name not in HEALTHY:
        ending = await play(name, NOTHING, store, calls=MOST_CALLS)
        assert not isinstance(ending.result, Exception)
        assert ending.server.failed == 1
        if name in {"offer", "reply", "choose", "select", "allow", "codec"}:
            assert isinstance(ending.result, HalfSource)
        HEALTHY[name] = ending.result
    return HEALTHY[name]


@pytest.mark.parametrize(("name", "failure"), crossed(STEPS, FAILURES, one_of=3))
async def test_every_failure_on_every_step_ends_well_or_in_words(
    name: str, failure: str, store: Store
) -> None:
    tried = FAILURES[failure]
    ending = await play(name, tried, store, calls=MOST_CALLS)
    # The one that waits for an answer has a deadline, which a busy machine may miss.
    assert ending.server.failed >= 1 or failure == "silence"
    match tried.mends:
        case True:
            assert ending.result == await healthy(name, store)
        case False:
            assert isinstance(ending.result, MindError)
            assert str(ending.result).startswith(f"model, {name}: ")
            assert len(str(ending.result)) < 1_000
        case None:
            # Whatever was said: no half without a good check, which `settle` makes.
            assert ending.server.failed <= 3


COSTLY = (
    *("bad JSON for ever", "cut for ever", "500 for ever", "HTML for ever"),
    *("500 for any form", "10 MB for ever", "much nonsense"),
)


@pytest.mark.parametrize("failure", COSTLY)
@pytest.mark.parametrize("name", STEPS)
async def test_a_small_budget_ends_every_failure_earlier(
    name: str, failure: str, store: Store
) -> None:
    tried = FAILURES[failure]
    calls = 1 + (name == "codec")
    ending = await play(name, tried, store, calls=calls)
    if failure != "much nonsense":
        assert isinstance(ending.result, BudgetExhausted)
        assert f"budget.negotiation_calls = {calls}" in str(ending.result)
