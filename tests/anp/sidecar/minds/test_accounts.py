"""A spender reserves before every request and settles after it, on disk too."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from anp.sidecar.minds.accounts import Exchanged, Spender, Spending
from cache.errors import StoreUnavailable
from cache.store import Store
from negotiation.errors import MindError
from negotiation.llm.asking.budget import OWNER, UNLISTED, BudgetExhausted, BudgetLimits
from negotiation.llm.asking.endpoint import ModelEndpoint
from negotiation.llm.asking.questions import Model
from tests.negotiation.llm.asking.test_endpoint_server import at
from tests.negotiation.llm.script import (
    KEY,
    QUESTION,
    Script,
    endpoint,
    refused,
    said,
    server,
)

DAY = 86_400.0
NOON = 20_000.5 * DAY
PEER = "did:key:zPeer"


class Clock:
    """A wall clock that a test moves, and that shows no time twice."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as store:
        yield store


def accounts(store: Store, clock: Clock, **limits: Any) -> Spending:
    return Spending(
        store,
        replace(BudgetLimits(), **limits),
        model="m",
        prices=(1_000_000.0, 2_000_000.0),
        clock=clock,
    )


def spender(asked: ModelEndpoint, spending: Spending, account: str = OWNER) -> Spender:
    return Spender(
        asked, spending, account=account, peer=PEER, negotiation_id="negotiation1"
    )


async def test_a_call_is_counted_in_its_account_and_the_ledger(store: Store) -> None:
    spending = accounts(store, Clock())
    one: Model = spender(endpoint(Script(said())), spending)
    assert await one.ask(QUESTION) == {"colour": "green"}
    [spent] = store.spends(since="")
    assert (spent.account, spent.calls, spent.held_tokens) == (OWNER, 1, 0)
    assert (spent.input_tokens, spent.output_tokens, spent.cost) == (11, 7, 25.0)
    [call] = store.model_calls(since="")
    assert (call.account, call.peer, call.negotiation_id) == (
        OWNER,
        PEER,
        "negotiation1",
    )
    assert (call.step, call.model, call.outcome) == ("judge", "m", "ok")
    assert (call.input_tokens, call.output_tokens, call.cost) == (11, 7, 25.0)
    assert call.day == spent.day
    assert not call.estimated


async def test_every_request_of_a_question_is_counted(store: Store) -> None:
    script = Script(
        refused(400, "response_format"), refused(503), said("not json"), said()
    )
    one = spender(endpoint(script), accounts(store, Clock()))
    await one.ask(QUESTION)
    assert one.calls == len(script.requests) == 4
    [spent] = store.spends(since="")
    assert spent.calls == 4
    outcomes = [call.outcome for call in store.model_calls(since="")]
    assert outcomes[::-1] == ["http_400", "http_503", "no_json", "ok"]
    assert [c.input_tokens for c in store.model_calls(since="")] == [11, 11, 0, 0]


async def test_calls_are_counted_by_negotiation(store: Store) -> None:
    spending = accounts(store, Clock())
    asked = endpoint(Script(said()))
    one, other = spender(asked, spending), spender(asked, spending)
    for _ in range(3):
        await one.ask(QUESTION)
    await other.ask(QUESTION)
    assert (one.calls, other.calls) == (3, 1)
    assert (one.tokens, other.tokens) == (54, 18)


@pytest.mark.parametrize("account", [OWNER, UNLISTED, PEER])
async def test_without_budget_nothing_is_sent(store: Store, account: str) -> None:
    script = Script(said())
    limits = {"negotiation_calls": 2}
    one = spender(endpoint(script), accounts(store, Clock(), **limits), account)
    for _ in range(2):
        await one.ask(QUESTION)
    with pytest.raises(BudgetExhausted, match=r"budget\.negotiation_calls = 2"):
        await one.ask(QUESTION)
    assert len(script.requests) == one.calls == 2


async def test_a_question_stops_in_its_middle_when_the_budget_ends(
    store: Store,
) -> None:
    script = Script(said("bad"), said("worse"), said())
    spending = accounts(store, Clock(), negotiation_calls=2)
    with pytest.raises(BudgetExhausted):
        await spender(endpoint(script), spending).ask(QUESTION)
    assert len(script.requests) == 2


async def test_ever_longer_documents_are_refused_before_they_are_sent(
    store: Store,
) -> None:
    script = Script(said())
    one = spender(endpoint(script), accounts(store, Clock()), UNLISTED)
    sent = 0
    for power in range(10, 22):
        question = replace(QUESTION, user="文" * 2**power)
        with contextlib.suppress(BudgetExhausted):
            await one.ask(question)
            sent += 1
    with pytest.raises(BudgetExhausted, match=r"budget\.\w+_tokens = "):
        await one.ask(replace(QUESTION, user="文" * 2**20))
    assert 0 < sent == len(script.requests)
    assert all(len(r.content) < 200_000 for r in script.requests)


async def test_simultaneous_calls_never_pass_a_limit(store: Store) -> None:
    script = Script(said())
    spending = accounts(store, Clock(), unlisted_calls=5)
    asked = endpoint(script)
    spenders = [spender(asked, spending, UNLISTED) for _ in range(20)]
    done = await asyncio.gather(
        *(one.ask(QUESTION) for one in spenders), return_exceptions=True
    )
    assert sum(isinstance(result, BudgetExhausted) for result in done) == 15
    assert len(script.requests) == 5
    [spent] = store.spends(since="")
    assert (spent.calls, spent.held_tokens) == (5, 0)


async def test_a_call_that_reached_nobody_is_free(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    one = spender(endpoint(Script(httpx2.ConnectError("x"))), accounts(store, Clock()))
    with pytest.raises(MindError, match="cannot be reached"):
        await one.ask(QUESTION)
    [spent] = store.spends(since="")
    assert (one.calls, spent.calls, spent.held_tokens) == (0, 0, 0)
    assert store.model_calls(since="") == []
    assert "model not reached step=judge outcome=unreachable" in caplog.text


async def test_a_call_without_usage_counts_with_all_it_could_cost(
    store: Store,
) -> None:
    one = spender(endpoint(Script(said(usage=None))), accounts(store, Clock()))
    await one.ask(QUESTION)
    [call] = store.model_calls(since="")
    assert call.estimated
    assert call.input_tokens >= 100 + len(QUESTION.user) + len(QUESTION.system)
    assert one.tokens == call.input_tokens


async def test_a_call_that_is_cancelled_is_settled_and_costs_all_it_could(
    store: Store,
) -> None:
    arrived = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        arrived.set()
        await reader.read()

    async with asyncio.timeout(20), server(serve) as url:
        asked = at(url)
        one = spender(asked, accounts(store, Clock()))
        asking = asyncio.create_task(one.ask(QUESTION))
        await arrived.wait()
        [during] = store.spends(since="")
        assert (during.calls, during.input_tokens) == (1, 0)
        assert during.held_tokens > 100, "it is on disk before it is sent"
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asked.close()
    [spent] = store.spends(since="")
    assert (spent.calls, spent.held_tokens) == (1, 0)
    assert spent.input_tokens == during.held_tokens
    assert [c.outcome for c in store.model_calls(since="")] == ["no_answer"]


async def test_a_restart_grants_nothing_twice(store: Store) -> None:
    script, clock = Script(said()), Clock()
    for _ in range(3):
        spending = accounts(store, clock, unlisted_calls=4)
        for _ in range(2):
            asked = spender(endpoint(script), spending, UNLISTED)
            if len(script.requests) < 4:
                await asked.ask(QUESTION)
            else:
                with pytest.raises(BudgetExhausted, match=r"unlisted_calls = 4"):
                    await asked.ask(QUESTION)
    assert len(script.requests) == 4


async def test_at_midnight_of_utc_a_new_day_begins(store: Store) -> None:
    script, clock = Script(said()), Clock()
    spending = accounts(store, clock, unlisted_calls=1)
    for _ in range(3):
        await spender(endpoint(script), spending, UNLISTED).ask(QUESTION)
        with pytest.raises(BudgetExhausted):
            await spender(endpoint(script), spending, UNLISTED).ask(QUESTION)
        clock.now += DAY
    assert [spent.calls for spent in store.spends(since="")] == [1, 1, 1]
    clock.now -= 2 * DAY
    with pytest.raises(BudgetExhausted):
        await spender(endpoint(script), spending, UNLISTED).ask(QUESTION)


async def test_what_cannot_be_recorded_is_not_spent(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise StoreUnavailable("cache: no space left; free some and try again")

    script = Script(said())
    one = spender(endpoint(script), accounts(store, Clock()))
    monkeypatch.setattr(store, "save_spend", fail)
    with pytest.raises(MindError, match="cannot be recorded: cache: no space left"):
        await one.ask(QUESTION)
    assert (script.requests, one.calls) == ([], 0)
    monkeypatch.setattr(store, "spends", lambda since: fail())
    late = spender(endpoint(script), accounts(store, Clock()))
    with pytest.raises(MindError, match="cannot be read"):
        await late.ask(QUESTION)


async def test_an_answer_is_used_although_its_cost_could_not_be_recorded(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    save, calls = store.save_spend, 0

    def once(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise StoreUnavailable("cache: gone")
        save(*args)

    monkeypatch.setattr(store, "save_spend", once)
    one = spender(endpoint(Script(said())), accounts(store, Clock()))
    assert await one.ask(QUESTION) == {"colour": "green"}
    [spent] = store.spends(since="")
    assert spent.held_tokens > 0, "what is on disk is more than was used, never less"
    assert "spending not recorded" in caplog.text


async def test_exchanges_can_be_watched(store: Store) -> None:
    seen: list[Exchanged] = []
    one = Spender(
        endpoint(Script(said("hm"), said())),
        accounts(store, Clock()),
        account=OWNER,
        watch=seen.append,
    )
    await one.ask(QUESTION)
    assert [(e.answer, e.outcome) for e in seen] == [
        ("hm", "no_json"),
        ('{"colour": "green"}', "ok"),
    ]
    assert seen[0].request.messages[1].content == QUESTION.user
    assert "grass" not in repr(seen)


async def test_neither_key_nor_prompt_is_in_what_is_kept_or_logged(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script(refused(503, KEY), said(KEY), said())
    with caplog.at_level(logging.DEBUG), pytest.raises(MindError):
        await spender(endpoint(script), accounts(store, Clock())).ask(QUESTION)
    kept = [*store.spends(since=""), *store.model_calls(since="")]
    for text in (caplog.text, *(str(asdict(record)) for record in kept)):
        assert KEY not in text
        assert "grass" not in text
    assert [c.outcome for c in store.model_calls(since="")] == ["secret", "http_503"]
