"""Documents whose bytes are not JSON: the model writes a codec, code all else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from negotiation.document.reader import read_document
from negotiation.document.shape import ExampleKind
from negotiation.errors import CapabilityFailed, HalfError
from negotiation.llm.mind import LlmMind
from negotiation.mind import Accept, Counter, Demand, Offer
from negotiation.need import Capability, Need
from negotiation.rules.rules import RulesMind
from negotiation.strict_json import Json
from tests.clauses import clause
from tests.negotiation.formats import BINARY, XML, Format, strict
from tests.negotiation.inprocess import InProcessHalf
from tests.negotiation.llm.scripted import (
    ScriptedModel,
    call,
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


async def test_rules_answer_a_format_with_json_and_the_requester_takes_it() -> None:
    caller = ScriptedModel({"propose": [XML_PROPOSAL]})
    offer = Offer(
        (
            Capability(
                "shop.price", "", SHOP.input_schema, SHOP.output_schema, read_only=True
            ),
        )
    )
    contact = await meet(LlmMind(caller), RulesMind(), XML_TASK, offer)
    tools = {"shop.price": lambda given: {"price": 1.0}}
    assert await contact.call({"sku": "x"}, tools, offer) == {"price": 1.0}
    assert caller.calls == {"propose": 1}


async def test_examples_that_do_not_fit_make_the_proposal_json() -> None:
    broken = {**XML_PROPOSAL, "examples": XML_PROPOSAL["examples"][:2]}
    mind = LlmMind(ScriptedModel({"propose": [broken]}))
    assert read_document(await mind.propose(XML_TASK)).is_json


async def test_a_codec_without_its_functions_is_answered_with_our_terms() -> None:
    document, offer = XML.file("document.md"), Offer((TOOLS["xml"],))
    bad = {**OFFERS["xml"], "codec": "import os"}
    model = ScriptedModel({"offer": [bad, bad]})
    verdict = await LlmMind(model).judge(document, offer, ())
    assert isinstance(verdict, Counter)
    assert "does not define read_message" in verdict.summary
    assert read_document(verdict.document).is_json
