from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.mind import Demand, HalfSource, Offer, Side
from negotiation.need import Capability, Need, Schema
from negotiation.rules.rules import own_terms, propose, write_from_text
from negotiation.trial.acceptance import check_half
from negotiation.trial.trial import Findings, SamplesMade
from tests.negotiation.inprocess import InProcessHalf, JsonschemaValidator

VECTORS = Path(__file__).parent.parent.parent / "vectors" / "negotiation"
SEED = (VECTORS / "seed_product_full.md").read_text(encoding="utf-8")
INPUT: Schema = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["sku"],
}
OUTPUT: Schema = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "price": {"type": "number"}},
    "required": ["title"],
}
TOOL = Capability("shop.price", "", INPUT, OUTPUT)
OFFER = Offer((TOOL,))
TASK = Need("shop.price", INPUT, OUTPUT)
NEED = Demand(TASK, {"sku": "P1"})
DOCUMENT = propose(NEED)
PRODUCT = Capability(
    "product_info",
    "",
    {"type": "object", "properties": {"product_id": {"type": "string"}}},
    {
        "type": "object",
        "properties": {
            "product_id": {"type": "string"},
            "product_name": {"type": "string"},
            "product_description": {"type": "string"},
            "price": {"type": "number"},
            "currency": {"type": "string"},
        },
        "required": [
            "product_id",
            "product_name",
            "product_description",
            "price",
            "currency",
        ],
    },
)


async def check(text: str, side: Side, source: str | None = None) -> Findings:
    written = write_from_text(text, side)
    half = (
        written if source is None else HalfSource(source, "model", written.capabilities)
    )
    return await check_half(
        half,
        read_document(text),
        side,
        runner=InProcessHalf(half.text),
        validator=JsonschemaValidator(),
    )


@pytest.mark.parametrize(
    ("text", "side"),
    [
        (DOCUMENT, OFFER),
        (DOCUMENT, NEED),
        (own_terms(TOOL), NEED),
        (own_terms(TOOL), Demand(Need("x"), {"sku": "P1"})),
        (propose(Demand(Need("shop.price"), {"SKU": "P"})), OFFER),
        (
            propose(Demand(Need("shop.price"), {"SKU": "P"})),
            Demand(Need("x"), {"SKU": "P"}),
        ),
        (SEED.replace("获取商品信息", "product_info"), Offer((PRODUCT,))),
        (SEED, Demand(Need("product_info"), {"product_id": "P1"})),
        (
            render_document("shop.text", {"type": "object"}, {}),
            Offer((Capability("shop.text", "", {"type": "object"}, {}),)),
        ),
    ],
)
async def test_halves_written_by_rules_pass(text: str, side: Side) -> None:
    found = await check(text, side)
    assert found.problems == ()
    assert found.passed
    assert found.samples == SamplesMade.FULL
    assert found.checks > 10


def broken(text: str, side: Side, old: str, new: str) -> str:
    source = write_from_text(text, side).text
    assert old in source
    return source.replace(old, new)


PROVIDER_FAULTS = {
    "wrong id": ("'messageId': message_id", "'messageId': 'x'", "carry the message id"),
    "another capability": (
        "call('shop.price'",
        "call('shop.steal'",
        "calls 'shop.steal', which it did not name",
    ),
    "wrong arguments": (
        "arguments = values",
        "arguments = {'sku': 5}",
        "calls shop.price with arguments that do not fit",
    ),
    "constant": ("result = output", "result = {'title': 'x'}", "gives the same for"),
    "wrong result": ("result = output", "result = 5", "a message that does not fit"),
    "no result": ("'output': result,", "", "leaves the result out"),
    "says error": ("'code': 200", "'code': 500", "says error although"),
    "hides failures": (
        "'code': status_of(error)",
        "'code': 200",
        "says good although the capability failed",
    ),
    "raises": (
        "except CapabilityError as error",
        "except ValueError as error",
        "handle_request fails after CapabilityError",
    ),
    "no bytes": ('.encode("utf-8")', "", "gives str, not bytes"),
    "no JSON": ("return json.dumps(message)", 'return "x"', "does not fit"),
    "takes anything": (
        'request = expect(json.loads(data.decode("utf-8")), dict)',
        "request = {'messageId': 'sample0000000001', 'input': {'sku': 'x'}}",
        "takes no bytes for a good request",
    ),
}


@pytest.mark.parametrize(
    ("old", "new", "finding"), PROVIDER_FAULTS.values(), ids=PROVIDER_FAULTS.keys()
)
async def test_a_provider_half_with_a_fault_is_found_out(
    old: str, new: str, finding: str
) -> None:
    found = await check(DOCUMENT, OFFER, broken(DOCUMENT, OFFER, old, new))
    assert not found.passed
    assert any(finding in problem for problem in found.problems), found.problems


async def test_a_half_that_never_calls_its_capability_is_found_out() -> None:
    source = (
        "import json\n\n\n"
        "def handle_request(data):\n"
        "    request = json.loads(data)\n"
        "    message_id = request['messageId']\n"
        "    if False:\n"
        "        yield\n"
        "    return json.dumps({'messageId': message_id, 'status': {'code': 200,"
        " 'message': ''}, 'output': {'title': request['input']['sku']}}).encode()\n"
    )
    found = await check(DOCUMENT, OFFER, source)
    assert "handle_request answers without calling its capability" in found.problems


async def test_a_half_that_calls_without_end_is_stopped() -> None:
    source = (
        "def handle_request(data):\n"
        "    while True:\n"
        "        try:\n"
        "            yield call('shop.price', {'sku': 'x'})\n"
        "        except CapabilityError as error:\n"
        "            return b''\n"
    )
    found = await check(DOCUMENT, OFFER, source)
    assert any("more than 16 calls" in problem for problem in found.problems)


REQUESTER_FAULTS = {
    "wrong id out": (
        "'messageId': message_id",
        "'messageId': 'x'",
        "carry the message id",
    ),
    "wrong id back": (
        '"message_id": message_id, "result"',
        '"message_id": "x", "result"',
        "does not give back the message id",
    ),
    "constant request": (
        "values = expect(arguments, dict)",
        "values = {'sku': 'x'}",
        "encode_request gives the same for",
    ),
    "wrong request": (
        "values = expect(arguments, dict)",
        "values = 5",
        "encode_request gives a message that does not fit",
    ),
    "constant result": (
        "result = values",
        "result = {'title': 'x'}",
        "decode_response gives the same for",
    ),
    "wrong result": ("result = values", "result = 5", "does not fit the task"),
    "no result": (', "result": result', "", "gives no result"),
    "takes errors": ("if not good:", "if False:", "decode_response fails for an error"),
    "refuses errors": (
        "if not good:",
        "if not good:\n        raise ValueError('x')",
        "decode_response fails for an error response",
    ),
    "no message": ('"code": code, "message": text', '"code": code', "without code and"),
    "takes anything": (
        'response = expect(json.loads(data.decode("utf-8")), dict)',
        "response = {'messageId': 'sample0000000001', 'status': {'code': 200,"
        " 'message': ''}, 'output': {'title': 'x'}}",
        "decode_response takes no bytes for a good response",
    ),
    "fails": (
        "result = values",
        "result = values['nope']",
        "fails for a good response",
    ),
}


@pytest.mark.parametrize(
    ("old", "new", "finding"), REQUESTER_FAULTS.values(), ids=REQUESTER_FAULTS.keys()
)
async def test_a_requester_half_with_a_fault_is_found_out(
    old: str, new: str, finding: str
) -> None:
    found = await check(DOCUMENT, NEED, broken(DOCUMENT, NEED, old, new))
    assert not found.passed
    assert any(finding in problem for problem in found.problems), found.problems


async def test_a_half_that_wants_more_than_is_offered_is_not_run() -> None:
    half = HalfSource("", "model", ("shop.price", "shop.admin"))
    found = await check_half(
        half,
        read_document(DOCUMENT),
        OFFER,
        runner=InProcessHalf(""),
        validator=JsonschemaValidator(),
    )
    assert found.problems == (
        "the half wants capabilities that are not offered: ['shop.admin']",
    )
    assert found.samples == SamplesMade.NONE


async def test_a_schema_without_samples_makes_the_check_partial() -> None:
    schema: Schema = {
        "type": "object",
        "properties": {"sku": {"type": "string", "pattern": "^(P|Q)[0-9]+$"}},
        "required": ["sku"],
    }
    tool = Capability("shop.price", "", schema, OUTPUT)
    text = propose(Demand(Need("shop.price", schema), {"sku": "P1"}))
    found = await check(text, Offer((tool,)))
    assert found.passed
    assert found.samples == SamplesMade.NONE
    found = await check(text, Demand(Need("shop.price", schema), {"sku": "P1"}))
    assert found.passed
    assert found.samples == SamplesMade.FULL


async def test_samples_that_the_validator_refuses_are_not_used() -> None:
    schema: Schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "not": {"properties": {"n": {"minimum": 100}}},
    }
    tool = Capability("shop.price", "", schema, OUTPUT)
    text = own_terms(tool)
    found = await check(text, Offer((tool,)))
    assert found.passed
    assert found.samples == SamplesMade.PARTIAL


async def test_an_invalid_schema_is_a_finding() -> None:
    class Strict(JsonschemaValidator):
        async def check_schema(self, schema: Schema) -> list[str]:
            return ["took too long"]

    found = await check_half(
        write_from_text(DOCUMENT, OFFER),
        read_document(DOCUMENT),
        OFFER,
        runner=InProcessHalf(write_from_text(DOCUMENT, OFFER).text),
        validator=Strict(),
    )
    assert found.problems == (
        "the request schema is no valid schema: took too long",
        "the response schema is no valid schema: took too long",
    )


async def test_findings_are_limited_and_short() -> None:
    source = (
        "def encode_request(message_id, arguments):\n    return b'x'\n\n\n"
        "def decode_response(data):\n    return {'result': data.decode()}\n"
    )
    long: Any = {"sku": "x" * 50_000}
    found = await check(DOCUMENT, Demand(TASK, long), source)
    assert 0 < len(found.problems) <= 20
    assert all(len(problem) < 2_000 for problem in found.problems)
    assert json.dumps(found.problems)
