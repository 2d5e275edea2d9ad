"""Proposals from prose, several options, and protocols that build on another."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from negotiation.document.reader import read_document
from negotiation.document.shape import document_hash
from negotiation.llm.auto import AutoMind
from negotiation.llm.mind import LlmMind
from negotiation.mind import Accept, Counter, Demand, Offer, Reject
from negotiation.need import Capability, Need
from negotiation.rules.rules import RulesMind
from negotiation.rules.rules import propose as plain
from tests.clauses import clause
from tests.negotiation.formats import strict
from tests.negotiation.llm.scripted import (
    ScriptedModel,
    call,
    failing,
    link,
    meet,
    offer_answer,
    proposal,
)

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
PRICE = Capability(
    "shop.price",
    "Price of an article in euros",
    strict(article=TEXT),
    strict(euros=NUMBER),
    read_only=True,
)
OFFER = Offer((PRICE,))


def part(path: str, kind: str = "string", *, required: bool = True, **more: Any) -> Any:
    return {
        "path": path,
        "type": kind,
        "description": f"the {path}",
        "required": required,
        "values": [],
        **more,
    }


PROSE = Demand(Need("Was kostet ein Artikel? Preis in Euro"), {"artikel": "A1"})
PROPOSED = proposal(
    response=[
        part("preis", "number"),
        part("stand", "date"),
        part("rabatte[].name"),
        part("rabatte[].wert", "number", required=False),
        part("farben[]"),
        part("art", values=["neu", "alt"]),
    ],
)


@clause("ANP-4")
async def test_a_model_names_fields_and_code_writes_the_document() -> None:
    model = ScriptedModel({"propose": [PROPOSED]})
    mind = LlmMind(model)
    document = read_document(await mind.propose(PROSE))
    assert document.requirement == PROSE.need.requirement
    assert document.input_schema == {
        "type": "object",
        "properties": {"artikel": {"type": "string"}},
        "required": ["artikel"],
        "additionalProperties": False,
    }
    output: Any = document.output_schema
    assert output["required"] == ["preis", "stand", "rabatte", "farben", "art"]
    assert output["properties"]["stand"]["format"] == "date"
    assert output["properties"]["art"]["enum"] == ["neu", "alt"]
    items = output["properties"]["rabatte"]["items"]
    assert items["required"] == ["name"]
    assert output["properties"]["farben"]["items"]["type"] == "string"


async def test_the_same_need_is_proposed_in_the_same_bytes_without_asking() -> None:
    model = ScriptedModel({"propose": [PROPOSED]})
    mind = LlmMind(model)
    first = await mind.propose(PROSE)
    assert await mind.propose(replace(PROSE, arguments={"artikel": "B2"})) == first
    assert model.calls == {"propose": 1}


async def test_schemas_of_the_caller_are_never_changed() -> None:
    demand = Demand(
        Need("Was kostet ein Artikel?", strict(artikel=TEXT)), {"artikel": "x"}
    )
    answer = proposal(response=[part("preis", "number")])
    document = read_document(
        await LlmMind(ScriptedModel({"propose": [answer]})).propose(demand)
    )
    assert document.input_schema == strict(artikel=TEXT)


async def test_a_task_with_both_schemas_needs_no_model_to_be_proposed() -> None:
    demand = Demand(Need("Price please", strict(a=TEXT), strict(b=TEXT)), {"a": "1"})
    model = ScriptedModel()
    assert await LlmMind(model).propose(demand) == plain(demand)
    named = Demand(Need("shop.price"), {"article": "A1"})
    assert await AutoMind(RulesMind(), LlmMind(model)).propose(named) == plain(named)
    assert model.calls == {}


async def test_fields_that_make_no_schema_are_left_out() -> None:
    answer = proposal(
        response=[part("a b"), part("x"), part("x.y"), part(".".join("abcdefgh"))]
    )
    document = read_document(
        await LlmMind(ScriptedModel({"propose": [answer]})).propose(PROSE)
    )
    output: Any = document.output_schema
    assert list(output["properties"]) == ["x"]


async def test_prose_on_both_sides_costs_two_calls() -> None:
    answer = proposal(response=[part("preis", "number")])
    caller = ScriptedModel({"propose": [answer]})
    other = ScriptedModel(
        {
            "offer": [
                offer_answer(
                    call(
                        "shop.price",
                        link("shop.price:/article", of=["request:/artikel"]),
                    ),
                    result=[link("result:/preis", of=["shop.price:/euros"])],
                )
            ]
        }
    )
    contact = await meet(LlmMind(caller), LlmMind(other), PROSE, OFFER)
    tools = {"shop.price": lambda given: {"euros": 3}}
    assert await contact.call({"artikel": "A1"}, tools, OFFER) == {"preis": 3}
    assert caller.calls.total() + other.calls.total() == 2


CODED = Demand(
    Need("shop.price, with error code UNKNOWN for an article nobody knows"),
    {"article": "A1"},
)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [(("4404", "4410"), 4404), (("UNKNOWN", "SOLD_OUT"), "UNKNOWN")],
    ids=["numbers", "words"],
)
async def test_error_codes_of_a_task_travel_from_its_words_to_the_caller(
    codes: tuple[str, str], expected: int | str
) -> None:
    errors = [
        {"code": codes[0], "meaning": "nobody knows the article"},
        {"code": codes[1], "meaning": "no more of it"},
        # What says that all went well is no error.
        {"code": "ok", "meaning": "good"},
        {"code": "two words", "meaning": "?"},
    ]
    answer = proposal(response=[part("euros", "number")], errors=errors)
    caller = ScriptedModel({"propose": [answer]})
    text = await LlmMind(caller).propose(CODED)
    assert f"`{codes[0]}`: nobody knows the article" in text
    assert "two words" not in text
    other = ScriptedModel(
        {
            "offer": [
                offer_answer(
                    call("shop.price"),
                    failures=[
                        {"failure": "404", "code": codes[0]},
                        {"failure": "409", "code": codes[1]},
                    ],
                )
            ]
        }
    )
    contact = await meet(
        AutoMind(RulesMind(), LlmMind(ScriptedModel())),
        LlmMind(other),
        CODED,
        OFFER,
        first=text,
    )
    for status, code in (("404", expected), ("418", _other(codes))):
        tools = {"shop.price": failing(status, "no")}
        said = await contact.call({"article": "A1"}, tools, OFFER)
        assert said["code"] == code
    good = {"shop.price": lambda given: {"euros": 3}}
    assert await contact.call({"article": "A1"}, good, OFFER) == {"euros": 3}


def _other(codes: tuple[str, str]) -> int | str:
    return 500 if codes[0].isdecimal() else "error"


async def test_prose_without_data_is_served_from_its_words() -> None:
    log = Capability(
        "git.log",
        "Shows the newest commits",
        {
            **strict(repo=TEXT),
            "properties": {"repo": TEXT, "max_count": {"type": "integer"}},
        },
        strict(text=TEXT),
    )
    demand = Demand(Need("Show the last three commits of /srv/repo"), {})
    other = ScriptedModel(
        {
            "offer": [
                offer_answer(
                    call(
                        "git.log",
                        link("git.log:/repo", "constant", "/srv/repo"),
                        link("git.log:/max_count", "constant", "3"),
                    )
                )
            ]
        }
    )
    caller = ScriptedModel()
    offer = Offer((log,))
    contact = await meet(LlmMind(caller), LlmMind(other), demand, offer)
    tools = {"git.log": lambda given: {"text": "c1 c2 c3"}}
    assert await contact.call({}, tools, offer) == {"text": "c1 c2 c3"}
    assert contact.called == [("git.log", {"repo": "/srv/repo", "max_count": 3})]
    assert caller.calls.total() + other.calls.total() == 1


def messages(request: Any, response: Any) -> str:
    return (
        f"### Request message\n\n```json\n{json.dumps(request)}\n```\n\n"
        f"### Response message\n\n```json\n{json.dumps(response)}\n```\n"
    )


def option(values: Any, result: Any) -> str:
    return messages(
        strict(messageId=TEXT, **values),
        {
            "type": "object",
            "properties": {
                "messageId": TEXT,
                "code": {"type": "integer"},
                "data": strict(**result),
            },
            "required": ["messageId", "code"],
        },
    )


OPTIONS = (
    "# Requirement\n\n> Price of an article.\n\n"
    "## Option A\n\n" + option({"barcode": NUMBER}, {"cents": NUMBER}) + "\n"
    "## Option B\n\n" + option({"article": TEXT}, {"euros": NUMBER}) + "\n"
    "# Time-out\n\nTen seconds.\n"
)


@clause("ANP-4")
async def test_of_several_options_one_is_answered_in_full() -> None:
    model = ScriptedModel()
    verdict = await LlmMind(model).judge(OPTIONS, OFFER, ())
    assert isinstance(verdict, Counter)
    document = read_document(verdict.document)
    assert "article" in document.request_schema["properties"]  # type: ignore[index]
    assert document.requirement == "Price of an article."
    assert "barcode" not in verdict.document
    assert "Ten seconds." in verdict.document
    # Schemas alone decided it.
    assert model.calls == {}


async def test_a_model_chooses_the_option_where_names_differ() -> None:
    text = OPTIONS.replace('"article"', '"ware"')
    model = ScriptedModel(
        {
            "option": [{"option": "2", "missing": ""}],
            "offer": [
                offer_answer(
                    call(
                        "shop.price", link("shop.price:/article", of=["request:/ware"])
                    ),
                    result=[link("result:/euros", of=["shop.price:/euros"])],
                )
            ],
        }
    )
    mind = LlmMind(model)
    verdict = await mind.judge(text, OFFER, ())
    assert isinstance(verdict, Counter)
    assert "ware" in verdict.document
    await mind.write_half(verdict.document, OFFER)
    assert model.calls == {"option": 1, "offer": 1}


async def test_no_option_is_a_rejection_that_says_what_is_missing() -> None:
    answer = {"option": "0", "missing": "no capability knows barcodes"}
    text = OPTIONS.replace('"article"', '"ware"')
    verdict = await LlmMind(ScriptedModel({"option": [answer]})).judge(text, OFFER, ())
    assert isinstance(verdict, Reject)
    assert "no capability knows barcodes" in verdict.reason


URI = "https://protocols.example/price/1"
BASE = "# Requirement\n\n> Price of an article.\n\n" + option(
    {"article": TEXT, "shop": TEXT}, {"euros": NUMBER}
)


def based(digest: str) -> str:
    return (
        f"# Requirement\n\n> Price of an article.\n\n# Base\n\nURI: {URI}\n"
        f"SHA-256: {digest}\n\n# Changes\n\nThe field `shop` is left out; the request "
        "may say a `day`.\n"
    )


EDITS = {
    "edits": [
        {
            "action": "remove",
            "at": "request:/shop",
            "name": "",
            "type": "string",
            "description": "",
            "required": False,
        },
        {
            "action": "add",
            "at": "request:",
            "name": "day",
            "type": "string",
            "description": "ISO date",
            "required": False,
        },
    ]
}


@clause("ANP-26")
async def test_a_base_and_its_changes_are_written_out_in_full() -> None:
    model = ScriptedModel(
        {"changes": [EDITS], "offer": [offer_answer(call("shop.price"))]}
    )
    mind = LlmMind(model, held={URI: BASE})
    verdict = await mind.judge(based(document_hash(BASE)), OFFER, ())
    assert isinstance(verdict, Counter)
    document = read_document(verdict.document)
    assert isinstance(document.request_schema, dict)
    assert set(document.request_schema["properties"]) == {"messageId", "article", "day"}
    assert document.request_schema["required"] == ["messageId", "article"]
    assert document.base_uri == URI
    assert document_hash(BASE) in verdict.document
    await mind.write_half(verdict.document, OFFER)
    assert model.calls == {"changes": 1, "offer": 1}
    again = LlmMind(ScriptedModel())
    demand = Demand(
        Need("Price", strict(article=TEXT), strict(euros=NUMBER)), {"article": "1"}
    )
    assert await again.judge(verdict.document, demand, ()) == Accept()


@clause("ANP-26")
async def test_another_text_under_the_same_uri_is_no_base() -> None:
    mind = LlmMind(ScriptedModel(), held={URI: BASE})
    for digest in (document_hash("other"), "unknown"):
        verdict = await mind.judge(based(digest), OFFER, ())
        assert isinstance(verdict, Reject)
        assert document_hash(BASE) in verdict.reason


@clause("ANP-26")
async def test_a_task_that_names_a_held_protocol_says_so_in_its_proposal() -> None:
    demand = Demand(Need(f"Price of an article, as in {URI}"), {"article": "A1"})
    mind = LlmMind(ScriptedModel({"propose": [proposal()]}), held={URI: BASE})
    document = read_document(await mind.propose(demand))
    assert document.base_uri == URI
    assert document_hash(BASE) in document.text


async def test_a_text_that_is_no_document_is_answered_with_the_terms_it_means() -> None:
    text = "# Requirement\n\n> 请告诉我商品的价格\n"
    model = ScriptedModel({"choose": [{"capabilities": ["shop.price"], "missing": ""}]})
    offer = Offer((PRICE, replace(PRICE, name="shop.stock", read_only=False)), ())
    two = replace(
        offer, capabilities=(replace(PRICE, read_only=False), offer.capabilities[1])
    )
    verdict = await LlmMind(model).judge(text, two, ())
    assert isinstance(verdict, Counter)
    assert "shop.price" in verdict.document
    assert model.calls == {"choose": 1}


def edit(action: str, at: str, name: str) -> Any:
    return {
        "action": action,
        "at": at,
        "name": name,
        "type": "string",
        "description": "",
        "required": True,
    }


@clause("ANP-26")
@pytest.mark.parametrize(
    "bad",
    [
        edit("rename", "request:/article", ""),
        edit("rename", "request:/article", "no name"),
        edit("rename", "request:/article", "shop"),
        edit("add", "request:", ""),
        edit("add", "request:", "article"),
    ],
)
async def test_a_change_that_gives_a_field_no_name_of_its_own_is_refused(
    bad: Any,
) -> None:
    model = ScriptedModel({"changes": [{"edits": [bad]}]})
    mind = LlmMind(model, held={URI: BASE})
    verdict = await mind.judge(based(document_hash(BASE)), OFFER, ())
    # Our own terms, not a protocol with a field that nobody can mean.
    assert isinstance(verdict, Counter)
    assert '""' not in verdict.document
    assert read_document(verdict.document).base_uri is None
    assert "the name" in verdict.summary
