"""Spending by day, account, peer and step, over the local API."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from starlette.applications import Starlette

from anp.sidecar.api.dashboard import Dashboard
from anp.sidecar.api.guard import Door, Guard
from anp.sidecar.api.operations.daemon import DaemonOperations
from anp.sidecar.api.table import operations_in, routes_of
from anp.sidecar.config.settings import Config, LlmConfig
from anp.sidecar.minds.spend import NEWEST_CALLS, Spend, first_day, spend_of
from cache.store import Store
from negotiation.llm.asking.budget import BudgetLimits, utc_day
from tests.cache.samples import MODEL_CALL, PEER, SPEND

TODAY, BEFORE = "2026-03-01", "2026-02-28"


def view(**changes: Any) -> Spend:
    known: dict[str, Any] = {
        "spends": [
            replace(SPEND, calls=3, held_tokens=40),
            replace(SPEND, account="unlisted", calls=1, cost=0.5),
            replace(SPEND, account=PEER, calls=1),
            replace(SPEND, day=BEFORE, calls=7),
        ],
        "calls": [
            replace(MODEL_CALL, id="a"),
            replace(MODEL_CALL, id="b", step="judge", peer=None),
            replace(MODEL_CALL, id="c", step="judge", cost=0.125),
        ],
        "limits": BudgetLimits(),
        "today": TODAY,
        "since": BEFORE,
        "model": "m",
        "priced": True,
    }
    return spend_of(**{**known, **changes})


def test_days_accounts_peers_and_steps_are_added_up() -> None:
    shown = view()
    assert shown.total.calls == 12
    assert shown.total.cost == 1.25
    assert [(d.day, d.calls) for d in shown.days] == [(TODAY, 5), (BEFORE, 7)]
    assert [(p.peer, p.calls) for p in shown.peers] == [(PEER, 2), ("-", 1)]
    assert [(s.step, s.calls, s.cost) for s in shown.steps] == [
        ("judge", 2, 0.125),
        ("propose", 1, 0.0),
    ]
    assert shown.ledger_calls == 3


def test_todays_accounts_are_shown_with_their_limits() -> None:
    shown = {entry.account: entry for entry in view().accounts}
    assert list(shown) == ["owner", "unlisted", PEER]
    limits = [
        (entry.calls, entry.calls_limit, entry.tokens_limit) for entry in shown.values()
    ]
    assert limits == [(3, 100, 1_000_000), (1, 20, 200_000), (1, 40, 400_000)]
    assert shown["owner"].held_tokens == 40


def test_the_ledger_is_shown_up_to_a_limit_and_counted_whole() -> None:
    many = [replace(MODEL_CALL, id=f"c{n}") for n in range(NEWEST_CALLS + 1)]
    shown = view(calls=many)
    assert len(shown.calls) == NEWEST_CALLS
    assert shown.ledger_calls == shown.steps[0].calls == NEWEST_CALLS + 1
    assert shown.calls[0].outcome == "ok"


def test_nothing_spent_is_shown_as_nothing() -> None:
    shown = view(spends=[], calls=[])
    assert shown.total.calls == shown.total.cost == 0
    assert [*shown.days, *shown.accounts, *shown.steps] == []


def test_days_are_counted_back_from_today() -> None:
    assert first_day("2026-03-01", 1) == "2026-03-01"
    assert first_day("2026-03-01", 2) == "2026-02-28"
    assert first_day("2024-03-01", 2) == "2024-02-29"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as store:
        yield store


async def ask(store: Store, query: str, llm: LlmConfig | None = None) -> httpx.Response:
    config = Config(llm=llm or LlmConfig())
    daemon = cast(Any, SimpleNamespace(store=store, config=config))
    routes = routes_of(operations_in(DaemonOperations(daemon, Dashboard())))
    app = Guard(Starlette(routes=routes), Door(owner_token="owner"))
    transport = httpx.ASGITransport(app)
    headers = {"authorization": "Bearer owner"}
    async with httpx.AsyncClient(transport=transport, base_url="http://anpd") as http:
        return await http.get(f"/v1/spend{query}", headers=headers)


async def test_the_api_shows_the_last_days(store: Store) -> None:
    now = time.time()
    for days in (0, 3, 30):
        day = utc_day(now - days * 86_400)
        spend = replace(SPEND, day=day)
        store.save_spend(spend, replace(MODEL_CALL, id=f"d{days}", day=day))
    llm = LlmConfig(model="m", price_input=1.0)
    shown = (await ask(store, "", llm)).json()
    assert (shown["model"], shown["priced"]) == ("m", True)
    assert (shown["total"]["calls"], shown["ledger_calls"]) == (4, 2)
    shown = (await ask(store, "?days=1")).json()
    assert (shown["total"]["calls"], shown["priced"]) == (2, False)
    assert (await ask(store, "?days=366")).json()["total"]["calls"] == 6


@pytest.mark.parametrize("days", ["0", "367", "-1", "x", "", "9" * 400, "٣", "1.5"])
async def test_days_that_make_no_sense_are_refused(store: Store, days: str) -> None:
    answer = await ask(store, f"?days={days}")
    assert answer.status_code == 400
    assert answer.json()["detail"] == "days has to be a number from 1 to 366"
