"""Loops, choices and joins of capabilities, agreed and used by two daemons."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.calls.call import CallRequest
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from negotiation.need import Need
from tests.e2e.scripted_model import says, scripted_model
from tests.negotiation.llm import test_shapes as shapes
from tests.negotiation.llm.scripted import call, link, offer_answer

SOURCE = """
from typing import TypedDict

calls = []


class Price(TypedDict):
    cost: float


class Book(TypedDict):
    title: str


class Found(TypedDict):
    found: list[Book]


class Near(TypedDict):
    pieces: int
    state: str


class Far(TypedDict):
    amount: int


class Order(TypedDict):
    id: str
    customer: int
    total: float


class Orders(TypedDict):
    orders: list[Order]


class Customer(TypedDict):
    number: int
    name: str


class Customers(TypedDict):
    customers: list[Customer]


def price(sku: str) -> Price:
    return {"cost": float(sku[1:]) + 0.5}


def search(author: str, page: int) -> Found:
    count = 10_000 if author == "endless" else 7
    every = range(3 * page - 3, min(3 * page, count))
    return {"found": [{"title": f"t{number}"} for number in every]}


def near(sku: str) -> Near:
    if sku == "far":
        return {"pieces": 0, "state": "none"}
    return {"pieces": 3, "state": "there"}


def far(article: str) -> Far:
    return {"amount": 7}


def orders(day: str) -> Orders:
    listed = [("o1", 2, 5.0), ("o2", 1, 6.0), ("o3", 2, 7.0)]
    return {"orders": [{"id": a, "customer": b, "total": c} for a, b, c in listed]}


def customers() -> Customers:
    return {"customers": [{"number": 1, "name": "Ada"}, {"number": 2, "name": "Bo"}]}


def flaky(article: str) -> Far:
    calls.append(article)
    if article == "new" and len([one for one in calls if one == "new"]) == 1:
        raise RuntimeError("not now")
    return {"amount": len(article)}
"""


@asynccontextmanager
async def market(folder: Path, tools: Sequence[str], answer: Any) -> AsyncIterator[Any]:
    """Run a caller with rules and a provider with a model that gives one answer."""
    (folder / "market_tools.py").write_text(SOURCE)
    with scripted_model(says(answer)) as model:
        daemons = []
        for name in ("caller", "provider"):
            home = Home(folder / name)
            home.create()
            flags: dict[str, Any] = {"listen.port": 0}
            if name == "provider":
                flags |= {"llm.model": "scripted", "llm.base_url": model.url}
                spec = AttachmentSpec(
                    kind="python",
                    name="m",
                    target="market_tools",
                    cwd=folder,
                    expose=tuple(tools),
                    read_only=tuple(tools),
                )
                save_attachment(home.attachments, spec)
            config = load_config(
                home, home_given=True, flags=flags, environ={}, cwd=folder
            )
            daemons.append(Daemon(home, config))
        caller, provider = daemons
        async with caller.running(), provider.running():
            peer = f"{provider.url}#{provider.did}"

            async def ask(need: Need, arguments: dict[str, Any]) -> Any:
                result = await caller.caller.call(
                    CallRequest(peer=peer, need=need, arguments=arguments)
                )
                return result.output

            yield ask
            assert len(model.asked) == 1


async def test_one_call_for_each_item(tmp_path: Path) -> None:
    answer = offer_answer(
        call("m.price", link("m.price:/sku", of=["request:/articles/*/sku"])),
        each=[{"list": "request:/articles/*", "call": "m.price"}],
        result=[link("result:/rows/*/price", of=["m.price:/cost"])],
    )
    async with market(tmp_path, ["price"], answer) as ask:
        got = await ask(shapes.PRICES, shapes.articles(3))
        assert [row["price"] for row in got["rows"]] == [0.5, 1.5, 2.5]
        assert [row["pieces"] for row in got["rows"]] == [0, 1, 2]
        with pytest.raises(CallError, match="more than 60 calls"):
            await ask(shapes.PRICES, shapes.articles(61))


async def test_all_pages(tmp_path: Path) -> None:
    answer = offer_answer(
        call("m.search"),
        pages=[
            {
                "call": "m.search",
                "list": "m.search:/found",
                "argument": "m.search:/page",
                "next": "",
                "first": "1",
                "offset": False,
            }
        ],
        result=[link("result:/books", of=["m.search:/found"])],
    )
    async with market(tmp_path, ["search"], answer) as ask:
        got = await ask(shapes.BOOKS, {"author": "x"})
        assert got == {"books": shapes.shelf(7)}
        with pytest.raises(CallError, match="more than 60 calls"):
            await ask(shapes.BOOKS, {"author": "endless"})


async def test_a_second_source_where_the_first_has_none(tmp_path: Path) -> None:
    answer = offer_answer(
        call("m.near"),
        call("m.far", link("m.far:/article", of=["request:/sku"])),
        fallbacks=[
            {
                "first": "m.near",
                "second": "m.far",
                "place": "m.near:/state",
                "value": "none",
            }
        ],
        result=[
            link("result:/pieces", of=["m.near:/pieces"]),
            link("result:/pieces", of=["m.far:/amount"]),
        ],
    )
    async with market(tmp_path, ["near", "far"], answer) as ask:
        assert await ask(shapes.STOCK, {"sku": "near"}) == {"pieces": 3}
        assert await ask(shapes.STOCK, {"sku": "far"}) == {"pieces": 7}


async def test_two_lists_joined_by_a_key(tmp_path: Path) -> None:
    answer = offer_answer(
        call("m.orders"),
        call("m.customers"),
        joins=[
            {
                "left": "m.orders:/orders/*/customer",
                "right": "m.customers:/customers/*/number",
            }
        ],
        result=[
            link("result:/rows/*/order", of=["m.orders:/orders/*/id"]),
            link("result:/rows/*/name", of=["m.customers:/customers/*/name"]),
            link("result:/rows/*/total", of=["m.orders:/orders/*/total"]),
        ],
    )
    async with market(tmp_path, ["orders", "customers"], answer) as ask:
        assert await ask(shapes.ORDERS, {"day": "x"}) == {
            "rows": [
                {"order": "o1", "name": "Bo", "total": 5.0},
                {"order": "o2", "name": "Ada", "total": 6.0},
                {"order": "o3", "name": "Bo", "total": 7.0},
            ]
        }


async def test_a_failed_call_is_repeated_once(tmp_path: Path) -> None:
    answer = offer_answer(
        call("m.flaky", link("m.flaky:/article", of=["request:/sku"])),
        again=["m.flaky"],
        result=[link("result:/pieces", of=["m.flaky:/amount"])],
    )
    async with market(tmp_path, ["flaky"], answer) as ask:
        assert await ask(shapes.FLAKY, {"sku": "new"}) == {"pieces": 3}
