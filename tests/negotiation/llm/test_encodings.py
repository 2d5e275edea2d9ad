"""Documents whose bytes are not JSON: the model writes a codec, code all else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from negotiation.document.layout import read_layout
from negotiation.document.reader import read_document
from negotiation.document.shape import ExampleKind
from negotiation.errors import CapabilityFailed, HalfError, MindError
from negotiation.llm.auto import AutoMind
from negotiation.llm.mind import LlmMind
from negotiation.mind import Accept, Counter, Demand, Mind, Offer
from negotiation.need import Capability, Need
from negotiation.rules.rules import RulesMind
from negotiation.strict_json import Json
from tests.clauses import clause
from tests.negotiation.formats import BINARY, XML, Format, strict
from tests.negotiation.inprocess import InProcessHalf
from tests.negotiation.llm.scripted import (
    Contact,
    Rejected,
    ScriptedModel,
    Tool,
    call,
    failing,
    link,
    meet,
    offer_answer,
    prepared,
    proposal,
    reply_answer,
)

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}

BINARY_WRITE = '''

def write_message(kind, values):
    """Return the bytes of a message."""
    message_id = values["messageId"]
    if kind == "request":
        sensor, unit = values["sensor"], values["unit"]
        head = b"SR\\x01" + text_field(message_id, 1)
        return head + text_field(sensor, 1) + struct.pack(">B", ord(unit))
    if values["code"] != 200:
        return response(message_id, values["code"], text_field(values["message"], 2))
    reading = values["reading"]
    fields = reading["value"], ord(reading["unit"]), reading["raw"]
    return response(message_id, 200, struct.pack(">dBi", *fields))
'''
XML_WRITE = '''

def write_message(kind, values):
    """Return the bytes of a message."""
    if kind == "request":
        text = '<productRequest id="' + escaped(values["messageId"]) + '">'
        text += "<sku>" + escaped(values["sku"]) + "</sku></productRequest>"
        return text.encode("utf-8")
    content = product_element(values["product"]) if "product" in values else ""
    code = str(values["code"])
    return response(values["messageId"], code, values["message"], content)
'''


def codec(form: Format, write: str) -> str:
    """Return a codec made of the hand-written provider half of a format."""
    source, _, _ = form.file("provider.py").partition("def handle_request")
    lines = [line for line in source.splitlines() if not line.startswith("# ruff")]
    return "\n".join(lines) + write


CODECS = {"binary": codec(BINARY, BINARY_WRITE), "xml": codec(XML, XML_WRITE)}
FORMS = {"binary": BINARY, "xml": XML}
TOOLS = {
    "binary": Capability(
        "probes.sample",
        "Value of a probe; scale 1 is Celsius, 2 Fahrenheit, 3 kelvin",
        strict(probe=TEXT, scale={"enum": [1, 2, 3]}),
        strict(reading=NUMBER, counts={"type": "integer"}),
    ),
    "xml": Capability(
        "stock.item",
        "Item by its number, price in cents",
        strict(number=TEXT),
        strict(name=TEXT, cents={"type": "integer"}),
    ),
}
OFFERS: dict[str, Any] = {
    "binary": offer_answer(
        call(
            "probes.sample",
            link("probes.sample:/probe", of=["request:/sensor"]),
            link(
                *("probes.sample:/scale", "values", "C", "1", "F", "2", "K", "3"),
                of=["request:/unit"],
            ),
        ),
        result=[
            link("result:/value", of=["probes.sample:/reading"]),
            link("result:/unit", of=["request:/unit"]),
            link("result:/raw", of=["probes.sample:/counts"]),
        ],
        codec=CODECS["binary"],
    ),
    "xml": offer_answer(
        call("stock.item", link("stock.item:/number", of=["request:/sku"])),
        result=[
            link("result:/title", of=["stock.item:/name"]),
            link("result:/price", "scale", "1/100", "0", of=["stock.item:/cents"]),
            link("result:/currency", "constant", "EUR"),
        ],
        codec=f"```python\n{CODECS['xml']}\n```",
    ),
}
NEEDS = {
    "binary": Demand(
        Need(
            "Temperature of a sensor",
            strict(where=TEXT),
            strict(celsius=NUMBER),
        ),
        {"where": "roof"},
    ),
    "xml": Demand(
        Need("Price of a product", strict(id=TEXT), strict(price=NUMBER)), {"id": "P&1"}
    ),
}
REPLIES: dict[str, Any] = {
    "binary": reply_answer(
        [
            link("request:/sensor", of=["arguments:/where"]),
            link("request:/unit", "constant", "C"),
        ],
        [link("result:/celsius", of=["response:/value"])],
        codec=CODECS["binary"],
    ),
    "xml": reply_answer(
        [link("request:/sku", of=["arguments:/id"])],
        [link("result:/price", of=["response:/price"])],
        codec=CODECS["xml"],
    ),
}
RESULTS: dict[str, Json] = {"binary": {"celsius": -3.0}, "xml": {"price": 249.5}}
OUTPUTS: dict[str, Json] = {
    "binary": {"reading": -3.0, "counts": -48},
    "xml": {"name": 'Écran 27" <mat>', "cents": 24950},
}
BOTH = pytest.mark.parametrize("name", ["binary", "xml"])


@clause("ANP-70")
@BOTH
async def test_a_provider_with_a_model_speaks_another_format(name: str) -> None:
    document, offer = FORMS[name].file("document.md"), Offer((TOOLS[name],))
    model = ScriptedModel({"offer": [OFFERS[name]]})
    mind = LlmMind(model)
    assert await mind.judge(document, offer, ()) == Accept()
    half = await prepared(mind, document, offer)
    assert model.calls == {"offer": 1}
    read = read_document(document)

    async def on_call(tool: str, given: Json) -> Json:
        return OUTPUTS[name]

    (request,) = read.examples_of(ExampleKind.REQUEST)
    (response,) = read.examples_of(ExampleKind.RESPONSE)
    (error,) = read.examples_of(ExampleKind.ERROR)
    loaded = InProcessHalf(half.text)
    made = await loaded.handle_request(request.data, on_call)
    assert made == response.data

    async def failing(tool: str, given: Json) -> Json:
        raise CapabilityFailed("404", str(error.values["message"]))

    assert await loaded.handle_request(request.data, failing) == error.data


@clause("ANP-70")
@BOTH
async def test_a_requester_with_a_model_speaks_another_format(name: str) -> None:
    document, demand = FORMS[name].file("document.md"), NEEDS[name]
    model = ScriptedModel({"reply": [REPLIES[name]]})
    mind = LlmMind(model)
    assert await mind.judge(document, demand, ()) == Accept()
    half = InProcessHalf((await prepared(mind, document, demand)).text)
    assert model.calls == {"reply": 1}
    read = read_document(document)
    (response,) = read.examples_of(ExampleKind.RESPONSE)
    decoded = await half.decode_response(response.data)
    assert decoded["result"] == RESULTS[name]
    (error,) = read.examples_of(ExampleKind.ERROR)
    assert (await half.decode_response(error.data))["error"]["code"] == 404


async def test_a_codec_is_repaired_with_the_findings_of_the_sandbox() -> None:
    document, offer = BINARY.file("document.md"), Offer((TOOLS["binary"],))
    wrong = CODECS["binary"].replace('">dBi"', '"<dBi"')
    model = ScriptedModel(
        {
            "offer": [{**OFFERS["binary"], "codec": wrong}],
            "codec": [{"codec": CODECS["binary"]}],
        }
    )
    mind = LlmMind(model)
    assert await mind.judge(document, offer, ()) == Accept()
    await prepared(mind, document, offer)
    assert model.calls == {"offer": 1, "codec": 1}
    assert "other values than the worked response" in model.asked[-1].user
    assert '"<dBi"' in model.asked[-1].user


async def test_a_repeated_codec_is_no_repair() -> None:
    document, offer = BINARY.file("document.md"), Offer((TOOLS["binary"],))
    wrong = CODECS["binary"].replace('">dBi"', '"<dBi"')
    model = ScriptedModel(
        {
            "offer": [{**OFFERS["binary"], "codec": wrong}],
            "codec": [{"codec": wrong}, {"codec": wrong}],
        }
    )
    mind = LlmMind(model)
    await mind.judge(document, offer, ())
    with pytest.raises(HalfError, match="the same code again"):
        await prepared(mind, document, offer)
    assert model.calls == {"offer": 1, "codec": 1}


XML_TASK = Demand(
    Need(
        "Price of a product; messages in XML please",
        strict(sku=TEXT),
        strict(price=NUMBER),
    ),
    {"sku": "P1"},
)
OWN_XML = """\
from xml.etree import ElementTree


def parsed(data):
    text = data.decode("utf-8")
    if not text.endswith(">"):
        raise ValueError("cut")
    return ElementTree.fromstring(text)


def read_message(kind, data):
    root = parsed(data)
    if root.tag != kind:
        raise ValueError("another message")
    found = {child.tag: child.text or "" for child in root}
    if kind == "request":
        return {"messageId": found["id"], "input": {"sku": found["sku"]}}
    status = {"code": int(found["code"]), "message": found["message"]}
    values = {"messageId": found["id"], "status": status}
    if "price" in found:
        values["output"] = {"price": float(found["price"])}
    return values


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def tagged(name, text):
    return "<" + name + ">" + escaped(str(text)) + "</" + name + ">"


def write_message(kind, values):
    text = tagged("id", values["messageId"])
    if kind == "request":
        text += tagged("sku", values["input"]["sku"])
    else:
        text += tagged("code", values["status"]["code"])
        text += tagged("message", values["status"]["message"])
        if "output" in values:
            text += tagged("price", values["output"]["price"])
    return ("<" + kind + ">" + text + "</" + kind + ">").encode("utf-8")
"""


def example(kind: str, values: Any, text: str) -> Any:
    return {"kind": kind, "values": json.dumps(values), "bytes": text, "hex": False}


XML_PROPOSAL = proposal(
    format="xml",
    encoding="XML in UTF-8, one element per message, a child for each value.",
    codec=OWN_XML,
    examples=[
        example(
            "request",
            {"messageId": "m1", "input": {"sku": "A1"}},
            "<request><id>m1</id><sku>A1</sku></request>",
        ),
        example(
            "response",
            {
                "messageId": "m1",
                "status": {"code": 200, "message": "OK"},
                "output": {"price": 9.5},
            },
            "<response><id>m1</id><code>200</code><message>OK</message>"
            "<price>9.5</price></response>",
        ),
        example(
            "error",
            {"messageId": "m1", "status": {"code": 404, "message": "not found"}},
            "<response><id>m1</id><code>404</code>"
            "<message>not found</message></response>",
        ),
    ],
)
SHOP = Capability(
    "shop.price", "Price of a product", strict(sku=TEXT), strict(price=NUMBER)
)


@clause("ANP-4")
async def test_both_sides_agree_on_xml_that_the_task_asked_for() -> None:
    caller = ScriptedModel({"propose": [XML_PROPOSAL]})
    other = ScriptedModel({"offer": [offer_answer(call("shop.price"), codec=OWN_XML)]})
    offer = Offer((SHOP,))
    contact = await meet(LlmMind(caller), LlmMind(other), XML_TASK, offer)
    assert not read_document(contact.document).is_json
    tools = {"shop.price": lambda given: {"price": 12.25}}
    assert await contact.call({"sku": "<&>"}, tools, offer) == {"price": 12.25}
    assert caller.calls == {"propose": 1}
    assert other.calls == {"offer": 1}


LOOKED_UP = Offer((replace(SHOP, read_only=True),))
BROKEN = {**XML_PROPOSAL, "examples": XML_PROPOSAL["examples"][:2]}


@pytest.mark.parametrize("rules", [True, False])
async def test_a_format_that_the_task_insists_on_is_not_agreed_as_json(
    rules: bool,
) -> None:
    caller = ScriptedModel({"propose": [XML_PROPOSAL]})
    mind: Mind = LlmMind(caller)
    if rules:
        mind = AutoMind(RulesMind(), LlmMind(caller))
    with pytest.raises(Rejected, match="insists on messages that are not JSON"):
        await meet(mind, RulesMind(), XML_TASK, LOOKED_UP)
    # One question for all; the refusal itself is no question.
    assert caller.calls == {"propose": 1}


async def test_a_dropped_encoding_is_asked_again_with_what_is_wrong() -> None:
    model = ScriptedModel({"propose": [BROKEN, XML_PROPOSAL]})
    text = await LlmMind(model).propose(XML_TASK)
    assert not read_document(text).is_json
    assert "each message needs a worked example" in model.asked[1].user
    assert "One element" not in model.asked[0].user
    assert "one element per message" in model.asked[1].user


@pytest.mark.parametrize("second", [BROKEN, proposal(format="json")])
async def test_what_insists_on_a_format_is_refused_after_the_second_answer(
    second: Any,
) -> None:
    model = ScriptedModel({"propose": [BROKEN, second]})
    with pytest.raises(MindError, match=r"not JSON \(xml\), and no document"):
        await LlmMind(model).propose(XML_TASK)
    assert model.calls == {"propose": 2}


STATION = Demand(
    Need(
        "Temperature at a station. Fixed layout: the request is two bytes, the number; "
        "the response is two bytes, the status, and two bytes, tenths of a degree.",
        strict(station={"type": "integer"}),
        strict(celsius=NUMBER),
    ),
    {"station": 7},
)
LAYOUT = """\
import struct


def read_message(kind, data):
    if kind == "request":
        (station,) = struct.unpack(">H", data)
        return {"input": {"station": station}}
    if len(data) == 2:
        return {"status": {"code": struct.unpack(">H", data)[0]}}
    code, tenths = struct.unpack(">Hh", data)
    if code != 200:
        raise ValueError("left over")
    return {"status": {"code": code}, "output": {"celsius": tenths / 10}}


def write_message(kind, values):
    if kind == "request":
        return struct.pack(">H", values["input"]["station"] & 0xFFFF)
    code = struct.pack(">H", values["status"]["code"])
    if "output" not in values:
        return code
    return code + struct.pack(">h", round(values["output"]["celsius"] * 10))
"""
GOOD_VALUES = {"status": {"code": 200}, "output": {"celsius": 21.5}}
LAYOUT_PROPOSAL = proposal(
    format="binary",
    encoding="Binary, big-endian, without anything between the fields.",
    codec=LAYOUT,
    examples=[
        {"kind": kind, "values": json.dumps(values), "bytes": data, "hex": True}
        for kind, values, data in (
            ("request", {"input": {"station": 7}}, "0007"),
            ("response", GOOD_VALUES, "00c800d7"),
            ("error", {"status": {"code": 404}}, "0194"),
        )
    ],
)
WEATHER = Capability(
    "weather.now",
    "Temperature",
    strict(station={"type": "integer"}),
    strict(celsius=NUMBER),
)


async def stationed(codec: str = LAYOUT) -> tuple[Contact, Offer]:
    """Return the contact of both sides over the fixed layout."""
    caller = ScriptedModel({"propose": [{**LAYOUT_PROPOSAL, "codec": codec}]})
    other = ScriptedModel({"offer": [offer_answer(call("weather.now"), codec=codec)]})
    offer = Offer((WEATHER,))
    return await meet(LlmMind(caller), LlmMind(other), STATION, offer), offer


@clause("ANP-70")
async def test_a_layout_without_a_message_id_is_served() -> None:
    contact, offer = await stationed()
    layout = read_layout(read_document(contact.document).of_values)
    # The daemon then has one call in flight at a time.
    assert layout.message_id is None
    tools: dict[str, Tool] = {"weather.now": lambda given: {"celsius": 21.5}}
    assert await contact.call({"station": 7}, tools, offer) == {"celsius": 21.5}
    tools = {"weather.now": failing("404", "no such station")}
    assert (await contact.call({"station": 8}, tools, offer))["code"] == 404


@pytest.mark.parametrize("celsius", [5000.0, -4000.5, 1e300])
async def test_a_result_out_of_the_layouts_range_is_the_documents_error(
    celsius: float,
) -> None:
    contact, offer = await stationed()
    tools: dict[str, Tool] = {"weather.now": lambda given: {"celsius": celsius}}
    assert (await contact.call({"station": 7}, tools, offer))["code"] == 502


async def test_a_request_out_of_the_layouts_range_is_not_sent() -> None:
    contact, offer = await stationed()
    with pytest.raises(HalfError, match="cannot hold the values"):
        await contact.call({"station": 70_000}, {}, offer)
    assert contact.called == []


async def test_a_result_is_rounded_as_the_layout_says() -> None:
    contact, offer = await stationed()
    tools: dict[str, Tool] = {"weather.now": lambda given: {"celsius": 21.53}}
    assert await contact.call({"station": 7}, tools, offer) == {"celsius": 21.5}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x = datetime.now()", "now reads the clock"),
        ("x = date.today().year", "today reads the clock"),
        ("x = hash('a')", "hash differs between two processes"),
        ("x = list(map(id, []))", "id differs between two processes"),
        ("import random", "random cannot be imported here"),
        ("from time import time", "time cannot be imported here"),
    ],
)
async def test_a_codec_gives_the_same_for_the_same(line: str, why: str) -> None:
    impure = f"{line}\n{OWN_XML}"
    wrong = {**XML_PROPOSAL, "codec": impure}
    model = ScriptedModel({"propose": [wrong, XML_PROPOSAL]})
    await LlmMind(model).propose(XML_TASK)
    assert why in model.asked[1].user


async def test_a_codec_without_its_functions_is_answered_with_our_terms() -> None:
    document, offer = XML.file("document.md"), Offer((TOOLS["xml"],))
    bad = {**OFFERS["xml"], "codec": "import os"}
    model = ScriptedModel({"offer": [bad, bad]})
    verdict = await LlmMind(model).judge(document, offer, ())
    assert isinstance(verdict, Counter)
    assert "does not define read_message" in verdict.summary
    assert read_document(verdict.document).is_json
