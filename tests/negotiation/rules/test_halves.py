from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.document.shape import Document
from negotiation.errors import CapabilityFailed, HalfError
from negotiation.mind import Demand, Offer
from negotiation.need import Capability, Need
from negotiation.rules.fit import Fit, fit_provider
from negotiation.rules.halves import write_half
from negotiation.rules.literals import literal
from negotiation.schema.mapping import compare
from negotiation.schema.plan import Mismatch
from negotiation.schema.terms import Drop
from tests.clauses import clause
from tests.negotiation.inprocess import InProcessHalf, findings
from tests.negotiation.schema.schema_strategies import (
    HOSTILE_NAMES,
    NAMES,
    object_values,
    objects,
    renamed,
    scalars,
    schemas,
    values_of,
)

VECTORS = Path(__file__).parent.parent.parent / "vectors" / "negotiation"
SEED = read_document((VECTORS / "seed_product_full.md").read_text(encoding="utf-8"))
PRODUCT = Capability(
    "catalogue.product_info",
    "Looks up a product",
    {
        "type": "object",
        "properties": {"product_id": {"type": "string"}},
        "required": ["product_id"],
    },
    {
        "type": "object",
        "properties": {
            "product_id": {"type": "string"},
            "product_name": {"type": "string"},
            "product_description": {"type": "string"},
            "price": {"type": "number"},
            "currency": {"type": "string"},
            "stock": {"type": "integer"},
        },
        "required": [
            "product_id",
            "product_name",
            "product_description",
            "price",
            "currency",
        ],
    },
    read_only=True,
)
LAPTOP = {
    "product_id": "P12345",
    "product_name": "高性能笔记本电脑",
    "product_description": "配备最新处理器",
    "price": 1299.99,
    "currency": "USD",
    "stock": 3,
}
SLOW = settings(
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    deadline=None,
    max_examples=60,
)


def provider(document: Any, *capabilities: Capability) -> InProcessHalf:
    return InProcessHalf(write_half(document, Offer(capabilities)).text)


def requester(document: Any, demand: Demand) -> InProcessHalf:
    return InProcessHalf(write_half(document, demand).text)


async def answer(half: InProcessHalf, data: bytes, output: Any) -> tuple[Any, Any]:
    calls = []

    async def on_call(name: str, arguments: Any) -> Any:
        calls.append((name, arguments))
        if isinstance(output, Exception):
            raise output
        return output

    response = json.loads(await half.handle_request(data, on_call))
    return calls, response


@clause("ANP-35")
async def test_both_halves_speak_the_seeds_protocol() -> None:
    need = Need("product_info", None, {"properties": {"price": {}}})
    caller = requester(SEED, Demand(need, {"product-id": "P12345"}))
    request = await caller.encode_request("m1", {"product-id": "P12345"})
    assert json.loads(request) == {
        "messageId": "m1",
        "type": "REQUEST",
        "action": "product_info",
        "productId": "P12345",
    }
    half = provider(SEED, PRODUCT)
    calls, response = await answer(half, request, LAPTOP)
    assert calls == [("catalogue.product_info", {"product_id": "P12345"})]
    assert findings(SEED.response_schema, response) == []
    assert response["status"] == {"code": 200, "message": "OK"}
    assert response["productInfo"]["productName"] == "高性能笔记本电脑"
    assert "stock" not in response["productInfo"]
    decoded = await caller.decode_response(json.dumps(response).encode())
    assert decoded == {"message_id": "m1", "result": {"price": 1299.99}}


async def test_a_failed_capability_is_answered_in_the_documents_way() -> None:
    half = provider(SEED, PRODUCT)
    request = b'{"messageId": "m2", "type": "x", "action": "y", "productId": "P9"}'
    for code, expected in (
        ("404", 404),
        ("500", 500),
        ("200", 500),
        ("600", 500),
        ("timeout", 500),
        ("", 500),
    ):
        failure = CapabilityFailed(code, "no such product")
        _, response = await answer(half, request, failure)
        assert response == {
            "messageId": "m2",
            "type": "RESPONSE",
            "status": {"code": expected, "message": "no such product"},
        }
    caller = requester(SEED, Demand(Need("product_info"), {"productId": "P9"}))
    assert await caller.decode_response(json.dumps(response).encode()) == {
        "message_id": "m2",
        "error": {"code": 500, "message": "no such product"},
    }


async def test_the_seeds_own_test_case_with_null_decodes_to_an_error() -> None:
    caller = requester(SEED, Demand(Need("product_info"), {"productId": "P99999"}))
    data = json.dumps(
        {
            "messageId": "msg002",
            "type": "RESPONSE",
            "status": {"code": 404, "message": "产品未找到"},
            "productInfo": None,
        }
    )
    assert await caller.decode_response(data.encode()) == {
        "message_id": "msg002",
        "error": {"code": 404, "message": "产品未找到"},
    }


async def test_our_own_shape_passes_the_values_through() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    document = read_document(render_document("echo", schema, {}))
    demand = Demand(Need("echo", schema), {"a": "x"})
    caller = requester(document, demand)
    assert json.loads(await caller.encode_request("m", {"a": "x"})) == {
        "messageId": "m",
        "input": {"a": "x"},
    }
    tool = Capability("t.echo", "", schema, {"properties": {"text": {}}})
    half = provider(document, tool)
    request = await caller.encode_request("m", {"a": "x"})
    calls, response = await answer(half, request, {"text": "hi"})
    assert calls == [("t.echo", {"a": "x"})]
    assert response == {
        "messageId": "m",
        "status": {"code": 200, "message": "OK"},
        "output": {"text": "hi"},
    }


@pytest.mark.parametrize(
    "message",
    [
        {"messageId": "m", "status": {"code": 200, "message": ""}},
        {"status": {"code": 200, "message": ""}, "output": {}},
        {"messageId": 5, "status": {"code": 200, "message": ""}, "output": {}},
        {"messageId": "m", "status": 200, "output": {}},
        {"messageId": "m", "status": {"code": 200, "message": ""}, "output": []},
        {},
        [],
        None,
        "ok",
    ],
)
async def test_a_response_that_is_not_one_ends_in_an_error(message: Any) -> None:
    document = read_document(render_document("x", {}, {"type": "object"}))
    caller = requester(document, Demand(Need("x", {}), {}))
    with pytest.raises(HalfError):
        await caller.decode_response(json.dumps(message).encode())


async def test_only_200_is_good_in_our_own_shape() -> None:
    document = read_document(render_document("x", {}, {}))
    caller = requester(document, Demand(Need("x", {}), {}))
    codes: list[Any] = [0, 201, "200", None, [], {"a": 1}]
    for code in codes:
        message = {"messageId": "m", "status": {"code": code, "message": "w"}}
        decoded = await caller.decode_response(json.dumps(message).encode())
        assert decoded["error"]["message"] == "w"


@pytest.mark.parametrize("data", [b"", b"\xff", b"{", b"[" * 100_000, b"nul", b"5"])
async def test_bytes_that_are_no_message_end_in_an_error(data: bytes) -> None:
    caller = requester(SEED, Demand(Need("product_info"), {"productId": "P"}))
    with pytest.raises(HalfError):
        await caller.decode_response(data)
    with pytest.raises(HalfError):
        await answer(provider(SEED, PRODUCT), data, LAPTOP)


async def test_an_argument_the_protocol_has_no_place_for_is_never_lost() -> None:
    demand = Demand(Need("product_info"), {"product_id": "P"})
    caller = requester(SEED, demand)
    with pytest.raises(HalfError, match="product_id"):
        await caller.encode_request("m", {})
    with pytest.raises(HalfError, match="no place for limit"):
        await caller.encode_request("m", {"product_id": "P", "limit": 5})


async def test_a_value_cannot_take_the_place_of_a_protocol_field() -> None:
    request = {"messageId": {"type": "string"}}
    text = (
        f'# Request\n{{"type": "object", "properties": {json.dumps(request)}}}\n'
        '# Response\n{"type": "object", "properties": {"messageId": '
        '{"type": "string"}, "code": {"type": "integer"}, "data": {}}}'
    )
    document = read_document(text)
    caller = requester(document, Demand(Need("x", {"type": "object"}), {}))
    assert json.loads(await caller.encode_request("m", {"a": 1})) == {
        "a": 1,
        "messageId": "m",
    }
    with pytest.raises(HalfError, match="uses the name messageId"):
        await caller.encode_request("m", {"messageId": "other"})


FOREIGN: dict[str, tuple[Any, Any, Any, Any]] = {
    "code and data": (
        {"id": {"type": "string"}, "params": "INPUT"},
        {"id": {"type": "string"}, "code": {"type": "integer"}, "data": "OUTPUT"},
        {"id": "m", "code": 200, "data": {"sum": 3}},
        {"id": "m", "code": 404},
    ),
    "words and a message": (
        {"request_id": {"type": "string"}, "op": {"const": "add"}, "args": "INPUT"},
        {
            "request_id": {"type": "string"},
            "status": {"enum": ["success", "error"]},
            "message": {"type": "string"},
            "result": "OUTPUT",
        },
        {
            "request_id": "m",
            "status": "success",
            "message": "OK",
            "result": {"sum": 3},
        },
        {"request_id": "m", "status": "error", "message": "gone"},
    ),
    "codes of their own": (
        {"requestId": {"type": "string"}, "a": {"type": "integer"}},
        {
            "requestId": {"type": "string"},
            "code": {"type": "integer", "enum": [0, 17]},
            "value": "OUTPUT",
        },
        {"requestId": "m", "code": 0, "value": {"sum": 3}},
        {"requestId": "m", "code": 17},
    ),
    "an error that may be null, no message id": (
        {"a": {"type": "integer"}},
        {
            "error": {
                "anyOf": [
                    {"type": "null"},
                    {
                        "type": "object",
                        "properties": {
                            "code": {"type": "string"},
                            "message": {"type": "string"},
                        },
                        "required": ["code", "message"],
                    },
                ]
            },
            "sum": {"type": "integer"},
        },
        {"error": None, "sum": 3},
        {"error": {"code": "404", "message": "gone"}},
    ),
    "type by name and a success flag": (
        {"messageId": {"type": "string"}, "type": {"type": "string"}, "in": "INPUT"},
        {
            "messageId": {"type": "string"},
            "type": {"enum": ["request", "response"]},
            "success": {"type": "boolean"},
            "error": {"type": ["string", "null"]},
            "out": "OUTPUT",
        },
        {
            "messageId": "m",
            "type": "response",
            "success": True,
            "error": None,
            "out": {"sum": 3},
        },
        {"messageId": "m", "type": "response", "success": False, "error": "gone"},
    ),
}
ADD = Capability(
    "math.add",
    "",
    {
        "type": "object",
        "properties": {"A": {"type": "integer"}},
        "required": ["A"],
    },
    {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
    },
)


def foreign_document(request_fields: Any, response_fields: Any) -> Document:
    """Return a document whose messages have these properties, all required."""

    def schema(fields: Any) -> str:
        named = {"INPUT": ADD.input_schema, "OUTPUT": ADD.output_schema}
        properties = {
            name: named[one] if isinstance(one, str) else one
            for name, one in fields.items()
        }
        return json.dumps(
            {"type": "object", "properties": properties, "required": list(properties)}
        )

    return read_document(
        f"# Need\nadd\n# Request\n{schema(request_fields)}\n"
        f"# Response\n{schema(response_fields)}"
    )


@pytest.mark.parametrize(
    ("request_fields", "response_fields", "good", "bad"),
    FOREIGN.values(),
    ids=FOREIGN.keys(),
)
async def test_documents_of_others_are_spoken_in_their_own_way(
    request_fields: Any, response_fields: Any, good: Any, bad: Any
) -> None:
    document = foreign_document(request_fields, response_fields)
    half = provider(document, ADD)
    caller = requester(document, Demand(Need("add"), {"a": 1}))
    request = await caller.encode_request("m", {"a": 1})
    assert findings(document.request_schema, json.loads(request)) == []
    calls, response = await answer(half, request, {"sum": 3})
    assert calls == [("math.add", {"A": 1})]
    assert response == good
    assert findings(document.response_schema, response) == []
    decoded = await caller.decode_response(json.dumps(response).encode())
    assert decoded["result"] == {"sum": 3}
    assert decoded["message_id"] == ("m" if "m" in good.values() else None)
    _, response = await answer(half, request, CapabilityFailed("404", "gone"))
    assert response == bad
    decoded = await caller.decode_response(json.dumps(response).encode())
    assert set(decoded["error"]) == {"code", "message"}
    if "gone" in json.dumps(bad):
        assert decoded["error"]["message"] == "gone"


@pytest.mark.parametrize("name", HOSTILE_NAMES)
async def test_hostile_names_and_constants_are_only_long_strings(name: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            name: {"type": "string"},
            "constant": {"const": {name: [name, 1.5, None, True]}},
        },
        "required": [name, "constant"],
    }
    takes = {
        "type": "object",
        "properties": {
            name: {"type": "string"},
            "n": {"type": "integer", "default": 3},
        },
        "required": [name, "n"],
    }
    document = read_document(render_document(f"call {name}", schema, {}))
    demand = Demand(Need(f"call {name}", {**schema, "title": name}), {})
    caller = requester(document, demand)
    value = {name: "x", "constant": {name: [name, 1.5, None, True]}}
    data = await caller.encode_request("m", value)
    assert json.loads(data)["input"] == value
    request = read_document(
        render_document("t.run", {**takes, "required": [name]}, {"const": name})
    )
    tool = Capability("t.run", "", takes, {"const": name})
    half = provider(request, tool)
    data = json.dumps({"messageId": "m", "input": {name: "x"}}).encode()
    calls, response = await answer(half, data, name)
    assert calls == [("t.run", {name: "x", "n": 3})]
    assert response["output"] == name
    assert not (
        half.space.keys()
        - {"call", "CapabilityError", "ValueAbsent", "json", "__builtins__"}
        - {"expect", "status_of", "handle_request", "convert_1", "__doc__"}
    )


def test_only_plain_values_become_literals() -> None:
    class Text(str):
        def __repr__(self) -> str:
            return "__import__('os')"

    class Number(int):
        pass

    for value in (Text("x"), Number(1), float("nan"), float("inf"), {1: 2}, object()):
        with pytest.raises(HalfError):
            literal(value)  # type: ignore[arg-type] # that is the point
        with pytest.raises(HalfError):
            literal([{"a": value}])


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON_VALUES)
def test_a_literal_reads_back_as_its_value_on_one_line(value: Any) -> None:
    text = literal(value)
    assert "\n" not in text
    assert "\r" not in text
    assert eval(text, {}) == value


@SLOW
@given(st.data())
def test_generated_halves_convert_as_their_plans_say(data: st.DataObject) -> None:
    names = [*NAMES, *HOSTILE_NAMES]
    source: Any = data.draw(objects(schemas(names), names))
    target = renamed(source)
    tool = Capability("t.run", "", target, renamed(source))
    document = read_document(render_document("t.run", source, source))
    plan = compare(source, target, drop=Drop.OPTIONAL)
    assume(not isinstance(plan, Mismatch))
    assert not isinstance(plan, Mismatch)
    fit = fit_provider(document, tool)
    assume(isinstance(fit, Fit))
    assert isinstance(fit, Fit)
    half = provider(document, tool)
    value: Any = data.draw(object_values(source))
    output: Any = data.draw(object_values(renamed(source)))
    request = json.dumps({"messageId": "m", "input": value}).encode()
    calls, response = asyncio.run(answer(half, request, output))
    if not calls:
        # A value that has no place is refused before anything runs.
        assert response["status"]["code"] == 400
        assert value.keys() - source["properties"].keys()
        return
    assert calls == [("t.run", plan.apply(value))]
    assert findings(target, calls[0][1]) == []
    if fit.response.judged is not None and response["status"]["code"] == 502:
        # The capability promises too little, and here it gave less than was agreed.
        assert "output" not in response
        assert "output" in response["status"]["message"]
        return
    assert findings(document.response_schema, response) == []
    assert findings(source, response["output"]) == []


@SLOW
@given(st.data())
def test_what_the_caller_sends_and_gets_fits_the_document(data: st.DataObject) -> None:
    names = ["unit_price", "name", "item-count", "Zip Code", "city"]
    source: Any = data.draw(objects(scalars() | schemas(names), names))
    document = read_document(render_document("x", renamed(source), source))
    demand = Demand(Need("x", source, source), {})
    try:
        half = InProcessHalf(write_half(document, demand).text)
    except HalfError as exc:
        assume("does not fit" not in str(exc))
        raise
    value: Any = data.draw(object_values({**source, "additionalProperties": False}))
    try:
        request = json.loads(asyncio.run(half.encode_request("m", value)))
        assert findings(document.request_schema, request) == []
    except HalfError as exc:
        # An object further in may be open; what has no place is never dropped quietly.
        if "has no place for" not in str(exc):
            raise
    result: Any = data.draw(values_of(source))
    response = {
        "messageId": "m",
        "status": {"code": 200, "message": ""},
        "output": result,
    }
    decoded = asyncio.run(half.decode_response(json.dumps(response).encode()))
    assert findings(source, decoded["result"]) == []


def test_a_half_that_would_be_too_large_is_not_written() -> None:
    names = [f"{'n' * 300}{number}" for number in range(120)]
    given_schema: Any = {
        "type": "object",
        "properties": {name: {"type": "null"} for name in names},
    }
    takes: Any = {
        "type": "object",
        "properties": {name.upper(): {"type": "null"} for name in names},
    }
    document = read_document(render_document("t.x", given_schema, {}))
    with pytest.raises(HalfError, match="at most 65536"):
        write_half(document, Offer((Capability("t.x", "", takes, {}),)))


OPEN_TOOL = Capability("shop.find", "", {"type": "object"}, {"type": "object"})
WANTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "price": {"type": "number", "minimum": 0},
        "tags": {"type": "array", "items": {"enum": ["new", "old"]}},
        "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["name", "price"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ({}, "output.name: the capability gave no value"),
        ({"name": "chair"}, "output.price: the capability gave no value"),
        ({"name": 5, "price": 1}, "output.name is of type integer, not string"),
        ({"name": "chair", "price": True}, "output.price is of type boolean"),
        ({"name": "chair", "price": -1}, "output.price is out of its range"),
        ({"name": "chair", "price": 1, "tags": ["x"]}, "output.tags.0 is none of"),
        ({"name": "chair", "price": 1, "size": "big"}, "output.size has none of"),
    ],
)
async def test_an_output_that_promises_nothing_is_judged_at_run_time(
    output: dict[str, Any], told: str
) -> None:
    document = read_document(render_document("shop.find", {"type": "object"}, WANTED))
    half = provider(document, OPEN_TOOL)
    request = json.dumps({"messageId": "m", "input": {}}).encode()
    _, response = await answer(half, request, output)
    assert response["status"]["code"] == 502
    assert told in response["status"]["message"]
    assert "output" not in response
    good = {"name": "chair", "price": 2.5, "tags": ["new"], "size": None}
    _, response = await answer(half, request, {**good, "colour": "red"})
    assert response["status"]["code"] == 200
    assert response["output"] == good
    assert findings(document.response_schema, response) == []


def test_what_a_capability_leaves_out_sometimes_is_no_reason_to_refuse() -> None:
    gives = {**WANTED, "required": ["name"]}
    document = read_document(render_document("shop.find", {"type": "object"}, WANTED))
    fit = fit_provider(document, Capability("shop.find", "", {"type": "object"}, gives))
    assert isinstance(fit, Fit)
    assert fit.response.judged is not None
    # What it never gives is one: nobody would get an answer.
    gives = {**WANTED, "properties": {"name": {"type": "string"}}, "required": []}
    fit = fit_provider(document, Capability("shop.find", "", {"type": "object"}, gives))
    assert isinstance(fit, Mismatch)
