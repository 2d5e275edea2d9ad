"""Calls for each item, for all pages, with a second source, with a join, and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from negotiation.llm.mind import LlmMind
from negotiation.mind import Demand, Offer
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
    # The requester knows by the first words that it may ask again.
    pending = {"shop.price": failing("approval-pending", "not run: ask again later")}
    got = await contact.call(articles(3), pending, PRICE)
    assert got == {"code": 500, "message": "not run: ask again later"}


async def test_the_items_may_come_from_an_earlier_answer() -> None:
    offer = Offer(
        (
            reads("club.members", strict(club=TEXT), strict(ids=many(TEXT))),
            reads("club.member", strict(id=TEXT), strict(name=TEXT, age=WHOLE)),
        )
    )
    need = Need(
        "The members of a club with their ages",
        strict(club=TEXT),
        strict(members=many(strict(name=TEXT, years=WHOLE))),
    )
    answer = offer_answer(
        call("club.members"),
        call("club.member", link("club.member:/id", of=["club.members:/ids/*"])),
        each=[{"list": "club.members:/ids/*", "call": "club.member"}],
        result=[link("result:/members/*/years", of=["club.member:/age"])],
    )
    contact = await agreed(need, offer, answer, {"club": "go"})
    tools: dict[str, Tool] = {
        "club.members": lambda given: {"ids": ["a", "bb"]},
        "club.member": lambda given: {"name": given["id"], "age": len(given["id"])},
    }
    assert await contact.call({"club": "go"}, tools, offer) == {
        "members": [{"name": "a", "years": 1}, {"name": "bb", "years": 2}]
    }


# All pages until there are no more.

BOOK = strict(title=TEXT)
BOOKS = Need("All books of an author", strict(author=TEXT), strict(books=many(BOOK)))


def library(
    *, argument: dict[str, Any], gives: dict[str, Any], required: bool = True
) -> Offer:
    takes = strict(author=TEXT, **argument)
    if not required:
        takes["required"] = ["author"]
    return Offer((reads("library.search", takes, gives),))


def pages(argument: str, *, of: str = "", first: str = "", offset: bool = False) -> Any:
    return offer_answer(
        call("library.search"),
        pages=[
            {
                "call": "library.search",
                "list": "library.search:/found",
                "argument": f"library.search:/{argument}",
                "next": of and f"library.search:/{of}",
                "first": first,
                "offset": offset,
            }
        ],
        result=[link("result:/books", of=["library.search:/found"])],
    )


def shelf(count: int) -> list[dict[str, Any]]:
    return [{"title": f"t{number}"} for number in range(count)]


FOUND = strict(found=many(BOOK))
COUNTED = library(argument={"page": WHOLE}, gives=FOUND)


def by_page(books: int, first: int = 1) -> Tool:
    def search(given: dict[str, Any]) -> Any:
        at = 3 * (given["page"] - first)
        return {"found": shelf(books)[at : at + 3]}

    return search


@pytest.mark.parametrize("books", [0, 1, 3, 7])
async def test_pages_are_counted_until_one_is_empty(books: int) -> None:
    contact = await agreed(BOOKS, COUNTED, pages("page", first="1"), {"author": "x"})
    tools = {"library.search": by_page(books)}
    got = await contact.call({"author": "x"}, tools, COUNTED)
    assert got == {"books": shelf(books)}
    asked = [given["page"] for _, given in contact.called]
    assert asked == list(range(1, 2 + -(-books // 3)))


async def test_an_offset_counts_items() -> None:
    offer = library(argument={"offset": WHOLE}, gives=FOUND)
    answer = pages("offset", first="0", offset=True)
    contact = await agreed(BOOKS, offer, answer, {"author": "x"})

    def search(given: dict[str, Any]) -> Any:
        return {"found": shelf(5)[given["offset"] : given["offset"] + 2]}

    got = await contact.call({"author": "x"}, {"library.search": search}, offer)
    assert got == {"books": shelf(5)}
    assert [given["offset"] for _, given in contact.called] == [0, 2, 4, 5]


def cursor_library() -> Offer:
    gives = strict(found=many(BOOK), next=TEXT)
    gives["required"] = ["found"]
    return library(argument={"cursor": TEXT}, gives=gives, required=False)


def by_cursor(given: dict[str, Any]) -> Any:
    at = int(given.get("cursor", "0"))
    found = {"found": shelf(5)[at : at + 2]}
    return {**found, "next": str(at + 2)} if at + 2 < 5 else found


async def test_a_cursor_leads_from_page_to_page() -> None:
    offer = cursor_library()
    contact = await agreed(BOOKS, offer, pages("cursor", of="next"), {"author": "x"})
    got = await contact.call({"author": "x"}, {"library.search": by_cursor}, offer)
    assert got == {"books": shelf(5)}
    asked = [given.get("cursor") for _, given in contact.called]
    assert asked == [None, "2", "4"]


async def test_pages_without_end_are_an_error_and_no_part_of_the_list() -> None:
    contact = await agreed(BOOKS, COUNTED, pages("page", first="1"), {"author": "x"})
    same = {"library.search": lambda given: {"found": shelf(1)}}
    got = await contact.call({"author": "x"}, same, COUNTED)
    assert got == {"code": 413, "message": "it would take more than 60 calls"}
    assert len(contact.called) == 60
    full = {"library.search": lambda given: {"found": shelf(2_501)}}
    got = await contact.call({"author": "x"}, full, COUNTED)
    assert got == {"code": 413, "message": "the pages have more than 5000 items"}
    offer = cursor_library()
    contact = await agreed(BOOKS, offer, pages("cursor", of="next"), {"author": "x"})
    stuck: dict[str, Tool] = {
        "library.search": lambda given: {"found": shelf(1), "next": "7"}
    }
    got = await contact.call({"author": "x"}, stuck, offer)
    assert got == {"code": 502, "message": "the same page came again"}


# A second capability where the first has none.

SHOPS = Offer(
    (
        reads("near.stock", strict(sku=TEXT), strict(pieces=WHOLE, state=TEXT)),
        reads("far.stock", strict(article=TEXT), strict(amount=WHOLE)),
    )
)
STOCK = Need(
    "Pieces of an article; if the near store has none, those of the far one",
    strict(sku=TEXT),
    strict(pieces=WHOLE),
)


def stock(place: str = "", value: str = "") -> Any:
    fallback = {
        "first": "near.stock",
        "second": "far.stock",
        "place": place and f"near.stock:/{place}",
        "value": value,
    }
    return offer_answer(
        call("near.stock"),
        call("far.stock", link("far.stock:/article", of=["request:/sku"])),
        fallbacks=[fallback],
        result=[
            link("result:/pieces", of=["near.stock:/pieces"]),
            link("result:/pieces", of=["far.stock:/amount"]),
        ],
    )


async def test_a_second_capability_is_asked_where_the_first_has_none() -> None:
    contact = await agreed(STOCK, SHOPS, stock(), {"sku": "x"})
    near: Tool = lambda given: {"pieces": 3, "state": "there"}  # noqa: E731 - a tool
    far: Tool = lambda given: {"amount": 7}  # noqa: E731 - a tool
    tools = {"near.stock": near, "far.stock": far}
    assert await contact.call({"sku": "x"}, tools, SHOPS) == {"pieces": 3}
    assert [name for name, _ in contact.called] == ["near.stock"]
    tools["near.stock"] = failing("404", "unknown")
    assert await contact.call({"sku": "x"}, tools, SHOPS) == {"pieces": 7}
    assert contact.called[-1] == ("far.stock", {"article": "x"})
    tools["far.stock"] = failing("404", "unknown too")
    got = await contact.call({"sku": "x"}, tools, SHOPS)
    assert got == {"code": 404, "message": "unknown too"}
    # Broken is not absent.
    contact.called.clear()
    tools["near.stock"] = failing("500", "broken")
    got = await contact.call({"sku": "x"}, tools, SHOPS)
    assert got == {"code": 500, "message": "broken"}
    assert [name for name, _ in contact.called] == ["near.stock"]


@pytest.mark.parametrize(("place", "value"), [("state", "none"), ("pieces", "0")])
async def test_a_value_may_say_that_there_is_none(place: str, value: str) -> None:
    contact = await agreed(STOCK, SHOPS, stock(place, value), {"sku": "x"})
    tools: dict[str, Tool] = {
        "near.stock": lambda given: {"pieces": 0, "state": "none"},
        "far.stock": lambda given: {"amount": 7},
    }
    assert await contact.call({"sku": "x"}, tools, SHOPS) == {"pieces": 7}


async def test_an_absent_value_says_that_there_is_none() -> None:
    near = strict(pieces=WHOLE)
    near["required"] = []
    offer = Offer((reads("near.stock", strict(sku=TEXT), near), SHOPS.capabilities[1]))
    contact = await agreed(STOCK, offer, stock(), {"sku": "x"})
    tools: dict[str, Tool] = {
        "near.stock": lambda given: {},
        "far.stock": lambda given: {"amount": 7},
    }
    assert await contact.call({"sku": "x"}, tools, offer) == {"pieces": 7}


# Two lists joined by a key.

ORDER = strict(id=TEXT, customer=WHOLE, total=NUMBER)
CUSTOMER = strict(number=WHOLE, name=TEXT)
DESK = Offer(
    (
        reads("desk.orders", strict(day=TEXT), strict(orders=many(ORDER))),
        reads("desk.customers", strict(), strict(customers=many(CUSTOMER))),
    )
)
ROW = strict(order=TEXT, name=TEXT, total=NUMBER)
ORDERS = Need(
    "Orders of a day with the names of the customers",
    strict(day=TEXT),
    strict(rows=many(ROW)),
)


def joined(left: str = "customer", right: str = "number") -> Any:
    return offer_answer(
        call("desk.orders"),
        call("desk.customers"),
        joins=[
            {
                "left": f"desk.orders:/orders/*/{left}",
                "right": f"desk.customers:/customers/*/{right}",
            }
        ],
        result=[
            link("result:/rows/*/order", of=["desk.orders:/orders/*/id"]),
            link("result:/rows/*/name", of=["desk.customers:/customers/*/name"]),
            link("result:/rows/*/total", of=["desk.orders:/orders/*/total"]),
        ],
    )


def desk(*orders: Any, customers: Any) -> Mapping[str, Tool]:
    fields = ("id", "customer", "total")
    listed = [dict(zip(fields, one, strict=True)) for one in orders]
    names = [{"number": key, "name": name} for key, name in customers]
    return {
        "desk.orders": lambda given: {"orders": listed},
        "desk.customers": lambda given: {"customers": names},
    }


async def test_two_lists_are_joined_by_a_key() -> None:
    contact = await agreed(ORDERS, DESK, joined(), {"day": "x"})
    orders = ("o1", 2, 5.0), ("o2", 1, 6.0), ("o3", 2, 7.0)
    tools = desk(*orders, customers=[(1, "Ada"), (2, "Bo")])
    assert await contact.call({"day": "x"}, tools, DESK) == {
        "rows": [
            {"order": "o1", "name": "Bo", "total": 5.0},
            {"order": "o2", "name": "Ada", "total": 6.0},
            {"order": "o3", "name": "Bo", "total": 7.0},
        ]
    }


async def test_an_item_without_a_partner_or_with_two_is_an_error() -> None:
    contact = await agreed(ORDERS, DESK, joined(), {"day": "x"})
    tools = desk(("o1", 3, 5.0), customers=[(1, "Ada")])
    got = await contact.call({"day": "x"}, tools, DESK)
    assert got["code"] == 502
    assert got["message"].endswith("rows.0.name: the capability gave no value")
    tools = desk(("o1", 1, 5.0), customers=[(1, "Ada"), (1, "Eve")])
    got = await contact.call({"day": "x"}, tools, DESK)
    assert got == {"code": 502, "message": "two items have the key 1"}


# Once more after a passing failure.

FLAKY = Need(
    "Pieces of an article; retry once if the store does not answer",
    strict(sku=TEXT),
    strict(pieces=WHOLE),
)
STORE = Offer((reads("store.stock", strict(article=TEXT), strict(pieces=WHOLE)),))
AGAIN = offer_answer(
    call("store.stock", link("store.stock:/article", of=["request:/sku"])),
    again=["store.stock"],
    result=[],
)


async def test_a_call_is_repeated_once_after_a_passing_failure() -> None:
    contact = await agreed(FLAKY, STORE, AGAIN, {"sku": "x"})
    codes = ["503"]

    def stock_of(given: dict[str, Any]) -> Any:
        if codes:
            return failing(codes.pop(0), "not now")(given)
        return {"pieces": 4}

    tools: dict[str, Tool] = {"store.stock": stock_of}
    assert await contact.call({"sku": "x"}, tools, STORE) == {"pieces": 4}
    codes += ["503", "503", "503"]
    got = await contact.call({"sku": "x"}, tools, STORE)
    assert (got["code"], len(codes)) == (503, 1)
    codes[:] = ["404"]
    got = await contact.call({"sku": "x"}, tools, STORE)
    assert (got["code"], codes) == (404, [])


async def test_only_what_changes_nothing_may_be_called_again() -> None:
    [stock_tool] = STORE.capabilities
    writing = Offer((Capability(stock_tool.name, "", *_schemas(stock_tool)),))
    plain = {name: one for name, one in AGAIN.items() if name != "again"}
    await agreed(FLAKY, writing, plain, {"sku": "x"})


def _schemas(capability: Capability) -> tuple[Any, Any]:
    return capability.input_schema, capability.output_schema
