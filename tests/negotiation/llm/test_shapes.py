"""Calls for each item, for all pages, with a second source, with a join, and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from negotiation.document.renderer import render_document
from negotiation.llm.mind import LlmMind
from negotiation.mind import Accept, Demand, Offer, Reject
from negotiation.need import Capability, Need
from negotiation.rules.rules import RulesMind
from tests.negotiation.formats import strict
from tests.negotiation.llm.scripted import (
    Contact,
    ScriptedModel,
    Tool,
    call,
    failing,
    link,
    meet,
    offer_answer,
)

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
WHOLE: dict[str, Any] = {"type": "integer"}


def many(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def reads(name: str, takes: dict[str, Any], gives: dict[str, Any]) -> Capability:
    return Capability(name, "", takes, gives, read_only=True)


async def agreed(need: Need, offer: Offer, answer: Any, at_hand: Any) -> Contact:
    """Return the agreement of a caller with rules and a provider with a model."""

    def again(question: Any) -> Any:
        pytest.fail(question.user[-2_000:])

    model = ScriptedModel({"offer": [answer, again]})
    contact = await meet(RulesMind(), LlmMind(model), Demand(need, at_hand), offer)
    assert model.calls == {"offer": 1}
    return contact


# One call for each item.

PRICE = Offer((reads("shop.price", strict(sku=TEXT), strict(cost=NUMBER)),))
PRICES = Need(
    "Prices of several articles",
    strict(articles=many(strict(sku=TEXT, pieces=WHOLE))),
    strict(rows=many(strict(sku=TEXT, pieces=WHOLE, price=NUMBER))),
)
PRICES_ANSWER = offer_answer(
    call("shop.price", link("shop.price:/sku", of=["request:/articles/*/sku"])),
    each=[{"list": "request:/articles/*", "call": "shop.price"}],
    result=[
        link("result:/rows/*/sku", of=["request:/articles/*/sku"]),
        link("result:/rows/*/price", of=["shop.price:/cost"]),
    ],
)


def articles(count: int) -> dict[str, Any]:
    return {"articles": [{"sku": f"s{n}", "pieces": n} for n in range(count)]}


async def test_a_capability_is_called_once_for_each_item() -> None:
    contact = await agreed(PRICES, PRICE, PRICES_ANSWER, articles(2))
    tools: dict[str, Tool] = {"shop.price": lambda given: {"cost": len(given["sku"])}}
    rows = [
        {"sku": "s0", "pieces": 0, "price": 2},
        {"sku": "s1", "pieces": 1, "price": 2},
        {"sku": "s2", "pieces": 2, "price": 2},
    ]
    assert await contact.call(articles(3), tools, PRICE) == {"rows": rows}
    assert [given["sku"] for _, given in contact.called] == ["s0", "s1", "s2"]
    assert await contact.call(articles(0), tools, PRICE) == {"rows": []}


async def test_too_many_items_are_an_error_before_the_first_call() -> None:
    contact = await agreed(PRICES, PRICE, PRICES_ANSWER, articles(2))
    tools: dict[str, Tool] = {"shop.price": lambda given: {"cost": 1}}
    got = await contact.call(articles(60), tools, PRICE)
    assert len(got["rows"]) == len(contact.called) == 60
    contact.called.clear()
    got = await contact.call(articles(61), tools, PRICE)
    assert got == {"code": 413, "message": "it would take more than 60 calls"}
    assert contact.called == []


async def test_an_item_that_fails_is_told_by_its_number() -> None:
    contact = await agreed(PRICES, PRICE, PRICES_ANSWER, articles(2))

    def price(given: dict[str, Any]) -> Any:
        if given["sku"] == "s1":
            return failing("404", "no such article")(given)
        return {"cost": 1}

    got = await contact.call(articles(3), {"shop.price": price}, PRICE)
    assert got == {"code": 404, "message": "item 2: no such article"}
