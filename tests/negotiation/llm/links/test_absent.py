"""Plans of a model: what may be absent is copied, and its absence is an error."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.llm.links.halves import provider_half, requester_half
from negotiation.llm.links.plans import ProviderPlan, RequesterPlan
from negotiation.llm.steps.offer import Unmapped, offer_form, read_offer
from negotiation.llm.steps.reply import read_reply, reply_form
from negotiation.mind import Demand, Offer
from negotiation.need import Capability, Need
from negotiation.trial.acceptance import check_half
from tests.negotiation.cases.table import obj
from tests.negotiation.inprocess import InProcessHalf, JsonschemaValidator

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
ITEM = obj({"label": TEXT, "cost": NUMBER}, "label")
TOOL = Capability(
    "stock.look",
    "",
    obj({"code": TEXT, "unit": TEXT, "limit": {"type": "integer"}}, "code", "unit"),
    obj(
        {
            "title": TEXT,
            "cost": {"type": ["number", "null"]},
            "parts": {"type": "array", "items": ITEM},
            "maker": obj({"name": TEXT, "town": TEXT}),
        },
        "parts",
    ),
)
ASKED = obj(
    {"sku": TEXT, "unit": {**TEXT, "default": "kg"}, "note": TEXT, "code": TEXT},
    "sku",
)
WANTED = obj(
    {
        "name": TEXT,
        "cost": NUMBER,
        "parts": {
            "type": "array",
            "items": obj({"label": TEXT, "cost": NUMBER}, "label", "cost"),
        },
        "maker": obj({"name": TEXT, "town": TEXT}, "name"),
    },
    "name",
    "cost",
    "parts",
)
DOCUMENT = read_document(render_document("look into the stock", ASKED, WANTED))
OFFER = Offer((TOOL,))


def link(to: str, source: str = "", how: str = "copy", *args: str) -> dict[str, Any]:
    return {
        "to": to,
        "how": how,
        "from": [source] if source else [],
        "args": list(args),
    }


def plan(*result: dict[str, Any]) -> ProviderPlan | Unmapped:
    arguments = [link("stock.look:/code", "request:/sku")]
    found = read_offer(
        offer_form(DOCUMENT, OFFER),
        {
            "serves": True,
            "missing": "",
            "calls": [{"capability": "stock.look", "arguments": arguments}],
            "result": list(result),
        },
    )
    assert isinstance(found, ProviderPlan | Unmapped)
    return found


NAME = link("result:/name", "stock.look:/title")


async def served(request: dict[str, Any], output: Any) -> tuple[list[Any], Any]:
    found = plan(NAME)
    assert isinstance(found, ProviderPlan), found
    half = InProcessHalf(provider_half(found, "0" * 64).text)
    calls = []

    async def on_call(name: str, arguments: Any) -> Any:
        calls.append(arguments)
        return output

    data = json.dumps({"messageId": "m", "input": request}).encode()
    return calls, json.loads(await half.handle_request(data, on_call))


GOOD = {"title": "nut", "cost": 2.5, "parts": [{"label": "a", "cost": 1}]}


async def test_an_optional_value_is_copied_and_its_absence_names_the_place() -> None:
    _, response = await served({"sku": "P1"}, GOOD)
    assert response["output"] == {
        "name": "nut",
        "cost": 2.5,
        "parts": [{"label": "a", "cost": 1}],
    }
    for output, told in (
        ({**GOOD, "cost": None}, "output.cost"),
        ({"title": "nut", "parts": []}, "output.cost"),
        ({"cost": 1, "parts": []}, "output.name"),
        ({**GOOD, "parts": [{"label": "a"}]}, "output.parts.0.cost"),
    ):
        _, response = await served({"sku": "P1"}, output)
        assert response["status"] == {
            "code": 502,
            "message": f"{told}: the capability gave no value",
        }
        assert "output" not in response


async def test_a_default_of_the_request_is_used_and_a_field_without_use_refused() -> (
    None
):
    for given, unit in (({}, "kg"), ({"unit": "lb"}, "lb")):
        calls, _ = await served({"sku": "P1", **given}, GOOD)
        assert calls == [{"code": "P1", "unit": unit}]
    calls, response = await served({"sku": "P1", "note": "soon"}, GOOD)
    assert calls == []
    assert response["status"] == {
        "code": 400,
        "message": "note: the capability takes no such value",
    }


@pytest.mark.parametrize(
    ("how", "args"),
    [
        ("first", []),
        ("python", ["a[0]"]),
        ("python", ["max(a)"]),
    ],
)
async def test_a_part_that_is_not_there_is_an_absent_value_and_no_crash(
    how: str, args: list[str]
) -> None:
    tool = replace(
        TOOL,
        input_schema=obj({"code": TEXT}, "code"),
        output_schema=obj({"parts": {"type": "array", "items": TEXT}}),
    )
    asked, wanted = obj({"code": TEXT}, "code"), obj({"name": TEXT}, "name")
    document = read_document(render_document("look", asked, wanted))
    offer = Offer((tool,))
    answer = {
        "serves": True,
        "missing": "",
        "calls": [{"capability": "stock.look", "arguments": []}],
        "result": [link("result:/name", "stock.look:/parts", how, *args)],
    }
    found = read_offer(offer_form(document, offer), answer)
    assert isinstance(found, ProviderPlan), found
    written = provider_half(found, "0" * 64)
    half = InProcessHalf(written.text)

    async def nothing(name: str, arguments: Any) -> Any:
        return {"parts": []}

    data = json.dumps({"messageId": "m", "input": {"code": "P1"}}).encode()
    response = json.loads(await half.handle_request(data, nothing))
    assert response["status"] == {
        "code": 502,
        "message": "parts: the capability gave no value",
    }
    tried = await check_half(
        written, document, offer, runner=half, validator=JsonschemaValidator()
    )
    assert tried.problems == ()


@pytest.mark.parametrize(
    ("sources", "expression", "output", "told"),
    [
        (["request:/code"], "a[b]", {"rates": {"P1": 3}}, 3),
        (["request:/code"], "a[b]", {"rates": {"P2": 3}}, None),
        ([], "a['free']", {"rates": {"free": 4}}, 4),
        ([], "a['free']", {"rates": {}}, None),
    ],
)
async def test_a_name_is_looked_up_in_a_map_whose_names_no_schema_lists(
    sources: list[str], expression: str, output: Any, told: int | None
) -> None:
    rates = {"type": "object", "additionalProperties": NUMBER}
    asked = obj({"code": TEXT}, "code")
    tool = replace(TOOL, input_schema=asked, output_schema=obj({"rates": rates}))
    document = read_document(
        render_document("look", asked, obj({"rate": NUMBER}, "rate"))
    )
    offer = Offer((tool,))
    made = link("result:/rate", "stock.look:/rates", "python", expression)
    made["from"] += sources
    answer = {
        "serves": True,
        "missing": "",
        "calls": [{"capability": "stock.look", "arguments": []}],
        "result": [made],
    }
    found = read_offer(offer_form(document, offer), answer)
    assert isinstance(found, ProviderPlan), found
    written = provider_half(found, "0" * 64)
    half = InProcessHalf(written.text)

    async def gives(name: str, arguments: Any) -> Any:
        return output

    data = json.dumps({"messageId": "m", "input": {"code": "P1"}}).encode()
    response = json.loads(await half.handle_request(data, gives))
    if told is None:
        assert response["status"]["message"] == "rates: the capability gave no value"
    else:
        assert response["output"] == {"rate": told}
    tried = await check_half(
        written, document, offer, runner=half, validator=JsonschemaValidator()
    )
    assert tried.problems == ()


async def test_such_a_half_passes_its_trial() -> None:
    found = plan(NAME)
    assert isinstance(found, ProviderPlan)
    half = provider_half(found, "0" * 64)
    tried = await check_half(
        half,
        DOCUMENT,
        OFFER,
        runner=InProcessHalf(half.text),
        validator=JsonschemaValidator(),
    )
    assert tried.problems == ()


def test_a_constant_is_not_invented_where_the_value_may_be_absent() -> None:
    found = plan(NAME, link("result:/cost", "", "constant", "0"))
    assert isinstance(found, Unmapped)
    assert found.reasons == (
        "/cost: a constant would be invented here: copy stock.look:/cost; where that "
        "is absent, the answer is an error that names the place",
    )


async def test_the_caller_is_told_what_an_answer_leaves_out() -> None:
    document = read_document(
        render_document("stock.look", TOOL.input_schema, TOOL.output_schema)
    )
    need = Need("look", TOOL.input_schema, obj({"price": NUMBER}, "price"))
    demand = Demand(need, {"code": "P1", "unit": "kg"})
    found = read_reply(
        reply_form(document, demand),
        {
            "usable": True,
            "missing": "",
            "request": [],
            "result": [link("result:/price", "response:/cost")],
        },
    )
    assert isinstance(found, RequesterPlan)
    half = InProcessHalf(requester_half(found, "0" * 64).text)
    message = {"messageId": "m", "status": {"code": 200, "message": "OK"}}
    for output, answer in (
        ({"cost": 3, "parts": []}, {"result": {"price": 3}}),
        (
            {"parts": []},
            {
                "error": {
                    "code": 502,
                    "message": "result.price: the answer gave no value",
                }
            },
        ),
    ):
        data = json.dumps({**message, "output": output}).encode()
        assert await half.decode_response(data) == {"message_id": "m", **answer}


async def test_a_plan_can_copy_the_request_as_a_whole() -> None:
    takes = obj({"filter": obj({"sku": TEXT, "unit": TEXT}, "sku")}, "filter")
    tool = Capability("stock.query", "", takes, obj({"count": NUMBER}, "count"))
    asked = obj({"sku": TEXT, "unit": TEXT}, "sku")
    document = read_document(render_document("count", asked, tool.output_schema))
    found = read_offer(
        offer_form(document, Offer((tool,))),
        {
            "serves": True,
            "missing": "",
            "calls": [
                {
                    "capability": tool.name,
                    "arguments": [link("stock.query:/filter", "request:")],
                }
            ],
            "result": [],
        },
    )
    assert isinstance(found, ProviderPlan), found
    half = provider_half(found, "0" * 64)
    tried = await check_half(
        half,
        document,
        Offer((tool,)),
        runner=InProcessHalf(half.text),
        validator=JsonschemaValidator(),
    )
    assert tried.problems == ()
