"""The owner's words for our mind alone reach no peer, whatever a model does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from negotiation.errors import HalfError, MindError
from negotiation.llm.discretion import Discretion
from negotiation.llm.mind import LlmMind
from negotiation.mind import Accept, Counter, Demand, Offer, Reject
from negotiation.need import Capability, Need
from negotiation.rules.rules import propose as plain
from tests.clauses import clause
from tests.negotiation.formats import strict
from tests.negotiation.llm.scripted import (
    ScriptedModel,
    call,
    link,
    offer_answer,
    prepared,
    proposal,
    reply_answer,
)

TEXT: dict[str, Any] = {"type": "string"}
HINT = "They are slow payers, never grant more than 17 days; code KX-40117"
SHOP = Capability(
    "shop.price",
    "Price of an article",
    strict(article=TEXT),
    strict(price={"type": "number"}),
    read_only=True,
)
OFFER = Offer((SHOP,), (HINT,))
NEED = Demand(
    Need(
        "Cost of a ware", strict(ware=TEXT), strict(cost={"type": "number"}, note=TEXT)
    ),
    {"ware": "A1"},
)


@pytest.mark.parametrize(
    "text",
    [
        HINT,
        "they are SLOW-PAYERS!",
        "Never  grant\nmore",
        "ｎｅｖｅｒ grant more",
        "see 40117",
    ],
)
def test_a_phrase_of_a_hint_is_found_however_it_is_written(text: str) -> None:
    assert Discretion(OFFER).tells(text)


@pytest.mark.parametrize("text", ["", "days", "they pay", "more", "a code", "17"])
def test_words_that_anybody_uses_are_no_hint(text: str) -> None:
    assert not Discretion(OFFER).tells(text)


def test_a_chinese_hint_is_found_without_blanks() -> None:
    found = Discretion(Offer((SHOP,), ("对方付款很慢,不要给折扣",)))
    assert found.tells("备注:付款很慢,不要给")
    assert not found.tells("价格以元计")


def test_a_short_hint_counts_as_a_whole() -> None:
    found = Discretion(Offer((SHOP,), ("VIP client",)))
    assert found.tells("for a vip client only")
    assert not found.tells("for a client")


def test_what_the_peer_knows_anyway_is_no_secret() -> None:
    hinted = Offer((SHOP,), ("take shop.price: Price of an article",))
    assert not Discretion(hinted).tells("The price of an article: `shop.price`")
    asked = "give me the latest closing price"
    hinted = Offer((SHOP,), ("they want the latest closing price",))
    assert not Discretion(hinted, asked).tells("the latest closing price")
    assert Discretion(hinted).tells("the latest closing price")


def note(how: str, *args: str) -> Any:
    result = [
        link("result:/cost", of=["shop.price:/price"]),
        link("result:/note", how, *args, of=[] if how == "constant" else OF[how]),
    ]
    arguments = link("shop.price:/article", of=["request:/ware"])
    return offer_answer(call("shop.price", arguments), result=result)


OF = {"python": ["request:/ware"], "join": ["request:/ware", "request:/ware"]}
LEAKS = {
    "a constant": note("constant", json.dumps("slow payers, never")),
    "a number": note("constant", json.dumps("KX-40117")),
    "an expression": note("python", "a + ' slow ' + 'payers, ne' + 'ver'"),
    "a separator": note("join", " never grant more "),
}


@clause("ANP-34")
@pytest.mark.parametrize("name", LEAKS)
async def test_a_hint_is_no_value_of_an_answer(name: str) -> None:
    good = note("constant", '"in stock"')
    model = ScriptedModel({"offer": [LEAKS[name], good]})
    mind = LlmMind(model)
    verdict = await mind.judge(plain(NEED), OFFER, ())
    assert verdict == Accept()
    assert "words of the owner's" in model.asked[1].user
    half = await prepared(mind, plain(NEED), OFFER)
    assert not Discretion(OFFER).tells(half.text)


@clause("ANP-34")
@pytest.mark.parametrize("name", LEAKS)
async def test_a_model_that_insists_on_a_hint_gets_no_half(name: str) -> None:
    model = ScriptedModel({"offer": [LEAKS[name]] * 4})
    mind = LlmMind(model)
    verdict = await mind.judge(plain(NEED), OFFER, ())
    said = verdict.reason if isinstance(verdict, Reject) else repr(verdict)
    assert not isinstance(verdict, Accept)
    assert not Discretion(OFFER).tells(said)
    with pytest.raises((HalfError, MindError)):
        await mind.write_half(plain(NEED), OFFER)


@clause("ANP-34")
async def test_a_hint_may_well_be_what_our_own_capability_is_called_with() -> None:
    inside = Capability(
        "shop.price", "Price", strict(article=TEXT, account=TEXT), SHOP.output_schema
    )
    offer = Offer((inside,), ("their account is blue-4711",))
    demand = Demand(
        Need("Cost", strict(ware=TEXT), strict(cost={"type": "number"})), {"ware": "A"}
    )
    answer = offer_answer(
        call(
            "shop.price",
            link("shop.price:/article", of=["request:/ware"]),
            link("shop.price:/account", "constant", '"blue-4711"'),
        ),
        result=[link("result:/cost", of=["shop.price:/price"])],
    )
    mind = LlmMind(ScriptedModel({"offer": [answer]}))
    assert await mind.judge(plain(demand), offer, ()) == Accept()
    assert "blue-4711" in (await prepared(mind, plain(demand), offer)).text


@clause("ANP-34")
async def test_a_hint_is_in_no_request_of_ours() -> None:
    demand = Demand(
        Need("price", strict(ware=TEXT), strict(price={"type": "number"})),
        {"ware": "A1"},
        (HINT,),
    )
    document = plain(
        Demand(
            Need(
                "price",
                strict(article=TEXT, why=TEXT),
                strict(price={"type": "number"}),
            ),
            {},
        )
    )

    def answer(why: str) -> Any:
        return reply_answer(
            [
                link("request:/article", of=["arguments:/ware"]),
                link("request:/why", "constant", json.dumps(why)),
            ]
        )

    model = ScriptedModel({"reply": [answer("they are slow payers"), answer("asked")]})
    mind = LlmMind(model)
    assert await mind.judge(document, demand, ()) == Accept()
    half = await prepared(mind, document, demand)
    assert "slow payers" not in half.text


@clause("ANP-34")
@pytest.mark.parametrize(
    "more",
    [
        {"requirement": f"Remember: {HINT}"},
        {
            "response": [
                {
                    "path": "terms",
                    "type": "string",
                    "description": "they are slow payers",
                    "required": True,
                    "values": ["never grant more than"],
                }
            ]
        },
        {"format": "xml", "encoding": f"XML. {HINT}", "codec": f"# {HINT}"},
    ],
)
async def test_a_hint_is_not_in_a_proposal(more: Any) -> None:
    demand = Demand(Need("Order some wares for me"), {"ware": "A1"}, (HINT,))
    mind = LlmMind(ScriptedModel({"propose": [proposal(**more)]}))
    text = await mind.propose(demand)
    assert not Discretion(demand).tells(text)
    assert "Order some wares" in text


@clause("ANP-34", "ANP-64")
async def test_an_answer_that_holds_a_hint_is_not_given() -> None:
    said = {"answer": "We were told that they are slow payers."}
    with pytest.raises(MindError):
        await LlmMind(ScriptedModel({"answer": [said, said]})).answer("?", OFFER)


@clause("ANP-34")
async def test_a_counter_keeps_its_document_without_a_telling_reason() -> None:
    bad = note("constant", "no JSON: slow payers, never grant")
    verdict = await LlmMind(ScriptedModel({"offer": [bad, bad]})).judge(
        plain(NEED), OFFER, ()
    )
    assert isinstance(verdict, Counter)
    assert not Discretion(OFFER).tells(verdict.summary)
