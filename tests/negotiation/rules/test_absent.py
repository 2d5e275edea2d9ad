"""What may be absent at its source is copied where it is needed, never invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.mind import Accept, Demand, HalfSource, Offer
from negotiation.need import Capability, Need
from negotiation.rules.rules import (
    judge_offer,
    own_terms,
    propose,
    write_from_text,
)
from negotiation.trial.acceptance import check_half
from tests.negotiation.cases.table import agree, by_rules
from tests.negotiation.inprocess import InProcessHalf, JsonschemaValidator

VECTORS = Path(__file__).parent.parent.parent / "vectors" / "negotiation"
SEED = (VECTORS / "seed_product_full.md").read_text(encoding="utf-8")
TEXT = {"type": "string"}
TAKES = {"type": "object", "properties": {"sku": TEXT}, "required": ["sku"]}
GIVES = {
    "type": "object",
    "properties": {"name": TEXT, "price": {"type": ["number", "null"]}},
}
WANTED = {
    "type": "object",
    "properties": {"name": TEXT, "price": {"type": "number"}},
    "required": ["name", "price"],
}
FIND = Capability("shop.find", "", TAKES, GIVES)


async def served(
    text: str, capability: Capability, request: dict[str, Any], output: Any
) -> tuple[list[Any], Any]:
    """Return the arguments of the calls, and the response."""
    half = InProcessHalf(write_from_text(text, Offer((capability,))).text)
    calls = []

    async def on_call(name: str, arguments: Any) -> Any:
        calls.append(arguments)
        return output

    data = json.dumps(request).encode()
    return calls, json.loads(await half.handle_request(data, on_call))


@pytest.mark.parametrize("snake", [False, True])
async def test_the_seeds_product_is_served_without_a_model(snake: bool) -> None:
    names = ["productId", "productName", "productDescription", "currency", "price"]
    if snake:
        names = ["product_id", "product_name", "product_description", *names[3:]]
    of = dict.fromkeys(names[:4], TEXT) | {"price": {"type": "number"}}
    takes = {
        "type": "object",
        "properties": {names[0]: TEXT, names[1]: TEXT},
        "required": names[:1],
    }
    gives = {"type": "object", "properties": of}
    tool = Capability("getProductInfo", "获取商品信息", takes, gives, read_only=True)
    offer = Offer((tool,))
    assert judge_offer(SEED, offer, ()) == Accept()
    half = write_from_text(SEED, offer)
    found = await check_half(
        half,
        read_document(SEED),
        offer,
        runner=InProcessHalf(half.text),
        validator=JsonschemaValidator(),
    )
    assert found.problems == ()
    request = {
        "messageId": "msg001",
        "type": "REQUEST",
        "action": "getProductInfo",
        "productId": "P12345",
    }
    output = dict.fromkeys(names, "x") | {"price": 1299.99}
    _, response = await served(SEED, tool, request, output)
    assert response["status"]["code"] == 200
    assert response["productInfo"]["price"] == 1299.99
    del output["price"]
    _, response = await served(SEED, tool, request, output)
    assert response["status"] == {
        "code": 502,
        "message": "productInfo.price: the capability gave no value",
    }


@pytest.mark.parametrize("output", [{"name": "x"}, {"name": "x", "price": None}])
async def test_an_absent_result_is_the_documents_error(output: Any) -> None:
    text = render_document("shop.find", TAKES, WANTED)
    request = {"messageId": "m", "input": {"sku": "P1"}}
    _, response = await served(text, FIND, request, output)
    assert response["status"]["message"] == "output.price: the capability gave no value"
    assert "output" not in response
    _, response = await served(text, FIND, request, {**output, "price": 2.5})
    assert response["output"] == {"name": "x", "price": 2.5}


async def test_the_caller_gets_an_error_for_what_an_answer_leaves_out() -> None:
    text = render_document("shop.find", TAKES, GIVES)
    demand = Demand(Need("shop.find", TAKES, WANTED), {"sku": "P1"})
    half = InProcessHalf(write_from_text(text, demand).text)
    good = {"messageId": "m", "status": {"code": 200, "message": "OK"}}
    answer = await half.decode_response(
        json.dumps({**good, "output": {"name": "x"}}).encode()
    )
    assert answer["error"] == {
        "code": 502,
        "message": "result.price: the answer gave no value",
    }
    answer = await half.decode_response(
        json.dumps({**good, "output": {"name": "x", "price": 2}}).encode()
    )
    assert answer["result"] == {"name": "x", "price": 2}


async def test_what_the_capability_does_not_take_is_refused_and_not_ignored() -> None:
    takes = {**TAKES, "properties": {"sku": TEXT, "limit": {"type": "integer"}}}
    text = render_document("shop.find", takes, GIVES)
    request = {"messageId": "m", "input": {"sku": "P1", "limit": 3}}
    calls, response = await served(text, FIND, request, {})
    assert calls == []
    assert response["status"] == {
        "code": 400,
        "message": "limit: the capability takes no such value",
    }


async def test_an_absent_field_means_what_the_document_says() -> None:
    asked = {**TAKES, "properties": {"sku": TEXT, "unit": {**TEXT, "default": "km"}}}
    takes = {**TAKES, "properties": {"sku": TEXT, "unit": {**TEXT, "default": "mi"}}}
    text = render_document("shop.find", asked, GIVES)
    tool = Capability("shop.find", "", takes, GIVES)
    for given, wanted in (({}, "km"), ({"unit": "mi"}, "mi")):
        request = {"messageId": "m", "input": {"sku": "P1", **given}}
        calls, _ = await served(text, tool, request, {})
        assert calls == [{"sku": "P1", "unit": wanted}]


INVENTING = """\
import json


def handle_request(data):
    request = json.loads(data.decode("utf-8"))
    message = {"messageId": str(request["messageId"])}
    if not isinstance(request["messageId"], str):
        raise ValueError("no id")
    try:
        output = yield call("shop.find", {"sku": request["input"]["sku"]})
    except CapabilityError as error:
        text = str(error.code)
        code = int(text) if text.isdecimal() else 500
        message["status"] = {"code": code, "message": str(error.message)}
        return json.dumps(message).encode("utf-8")
    message["status"] = {"code": 200, "message": "OK"}
    price = output.get("price", 0)
    message["output"] = {"name": output.get("name", ""), "price": price or 0}
    return json.dumps(message).encode("utf-8")
"""
IGNORING = INVENTING.replace('"sku": request["input"]["sku"]', '"sku": "P1"')


async def problems(source: str, wanted: Any) -> tuple[str, ...]:
    text = render_document("shop.find", TAKES, wanted)
    found = await check_half(
        HalfSource(source, "model", ("shop.find",)),
        read_document(text),
        Offer((FIND,)),
        runner=InProcessHalf(source),
        validator=JsonschemaValidator(),
    )
    return found.problems


async def test_a_half_that_invents_a_value_fails_its_trial() -> None:
    assert await problems(INVENTING, WANTED) == (
        "handle_request invents '' for 'name', which shop.find did not give",
        "handle_request invents 0 for 'price', which shop.find did not give",
    )


async def test_a_half_that_ignores_a_field_fails_its_trial() -> None:
    found = await problems(IGNORING, WANTED)
    assert "handle_request ignores /sku: other values of it change nothing" in found


KIND = """\
import json


def handle_request(data):
    request = json.loads(data.decode("utf-8"))
    if not isinstance(request["messageId"], str):
        raise ValueError("no id")
    message = {"messageId": request["messageId"]}
    try:
        output = yield call("shop.kind", {"sku": request["input"]["sku"]})
    except CapabilityError as error:
        text = str(error.code)
        code = int(text) if text.isdecimal() else 500
        message["status"] = {"code": code, "message": str(error.message)}
        return json.dumps(message).encode("utf-8")
    message["status"] = {"code": 200, "message": "OK"}
    message["output"] = {"kind": output["code"].split("-")[0]}
    return json.dumps(message).encode("utf-8")
"""


async def test_what_the_trial_cannot_vary_is_not_held_against_a_half() -> None:
    # The trial knows one text of this pattern alone, so its kind is always A.
    code = {"type": "string", "pattern": "^(A|B)-[0-9]+$", "examples": ["A-1"]}
    gives = {
        "type": "object",
        "properties": {"code": code, "count": {"type": "integer"}},
        "required": ["code"],
    }
    wanted = {"type": "object", "properties": {"kind": TEXT}, "required": ["kind"]}
    found = await check_half(
        HalfSource(KIND, "model", ("shop.kind",)),
        read_document(render_document("shop.kind", TAKES, wanted)),
        Offer((Capability("shop.kind", "", TAKES, gives),)),
        runner=InProcessHalf(KIND),
        validator=JsonschemaValidator(),
    )
    assert found.problems == ()


@pytest.mark.parametrize("text", [own_terms(FIND), None])
async def test_both_sides_agree_on_cases_for_what_may_be_absent(
    text: str | None,
) -> None:
    demand = Demand(Need("shop.find", TAKES, WANTED), {"sku": "P1"})
    table = await agree(by_rules(text or propose(demand), demand, FIND))
    assert [case.good for case in table.cases].count(True) > 0
    for report in (
        await table.provider_report(table.pair.provider),
        await table.requester_report(table.pair.requester),
    ):
        assert report.passed


async def test_beside_a_refused_field_the_others_still_have_to_have_an_effect() -> None:
    asked = {**TAKES, "properties": {"sku": TEXT, "limit": {"type": "integer"}}}
    document = read_document(render_document("shop.find", asked, WANTED))
    offer = Offer((FIND,))
    right = write_from_text(document.text, offer).text
    wrong = right.replace("'sku': value['sku'],", "'sku': 'P1',")
    assert wrong != right
    for source, problems in (
        (right, ()),
        (wrong, ("/sku",)),
    ):
        found = await check_half(
            HalfSource(source, "rules", ("shop.find",)),
            document,
            offer,
            runner=InProcessHalf(source),
            validator=JsonschemaValidator(),
        )
        assert len(found.problems) >= len(problems)
        assert all(word in found.problems[0] for word in problems)
        assert bool(found.problems) == bool(problems)
