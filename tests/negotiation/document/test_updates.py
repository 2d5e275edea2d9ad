"""Documents with updates before the answer: written, read, and mapped by rules."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from negotiation.document.layout import read_layout
from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.document.shape import Document, document_hash
from negotiation.errors import DocumentError, HalfError
from negotiation.mind import Accept, Counter, Demand, HalfSource, Offer
from negotiation.need import Capability, Need, schema_hash
from negotiation.rules.halves import write_half
from negotiation.rules.rules import judge_offer, own_terms, propose
from negotiation.strict_json import Json
from negotiation.trial.acceptance import check_half
from tests.negotiation.inprocess import InProcessHalf, JsonschemaValidator

TEXT = {"type": "string"}
LINES = {
    "type": "object",
    "properties": {"lines": {"type": "integer"}},
    "required": ["lines"],
    "additionalProperties": False,
}
JOINED = {"type": "object", "properties": {"result": TEXT}, "required": ["result"]}
POEM = Capability("agent.poem", "Writes", LINES, JOINED, updates=TEXT)
PLAIN = replace(POEM, updates=None)
DEMAND = Demand(Need("agent.poem"), {"lines": 2})


def document() -> Document:
    return read_document(own_terms(POEM))


async def checked(half: HalfSource, side: Demand | Offer) -> tuple[str, ...]:
    found = await check_half(
        half,
        document(),
        side,
        runner=InProcessHalf(half.text),
        validator=JsonschemaValidator(),
    )
    return found.problems


def test_a_capability_that_streams_has_a_document_with_updates() -> None:
    text = own_terms(POEM)
    assert "# Update Format" in text
    read = read_document(text)
    assert read.given_before == TEXT
    assert read.input_schema is not None
    # Equal needs give equal bytes, and without updates those that there were before.
    assert own_terms(POEM) == text
    assert own_terms(POEM, updates=False) == own_terms(PLAIN)
    assert schema_hash(POEM) != schema_hash(PLAIN)
    again = render_document("x", LINES, JOINED, updates={})
    assert read_document(again).given_before == {}


@pytest.mark.parametrize(
    "heading",
    ["Update Format", "2. Update format:", "Updates", "Update messages", "更新格式"],
)
def test_a_heading_of_others_is_understood(heading: str) -> None:
    text = own_terms(POEM).replace("Update Format", heading)
    assert read_document(text).given_before == TEXT


@pytest.mark.parametrize("heading", ["Update order request", "Request of an update"])
def test_a_document_about_an_update_of_something_has_none(heading: str) -> None:
    text = own_terms(PLAIN).replace("Request message", heading, 1)
    assert read_document(text).update_schema is None


def test_an_update_has_to_be_told_from_a_response() -> None:
    schema = {
        "type": "object",
        "properties": {"messageId": TEXT, "output": TEXT},
        "required": ["messageId", "output"],
    }
    with pytest.raises(DocumentError, match="told from a response"):
        read_layout(replace(document(), update_schema=schema))
    schema["properties"] = {"part": TEXT}
    schema["required"] = ["part"]
    with pytest.raises(DocumentError, match="messageId"):
        read_layout(replace(document(), update_schema=schema))


def test_the_provider_counters_once_with_its_updates() -> None:
    first = propose(DEMAND)
    verdict = judge_offer(first, Offer((POEM,)), ())
    assert isinstance(verdict, Counter)
    assert verdict.document == own_terms(POEM)
    # Who declines them gets the protocol without.
    assert judge_offer(first, Offer((POEM,)), (verdict.document,)) == Accept()
    assert judge_offer(verdict.document, Offer((POEM,)), ()) == Accept()
    # A peer that cannot be told of them sees nothing of all this.
    assert judge_offer(first, Offer((POEM,), updates=False), ()) == Accept()
    assert judge_offer(first, Offer((PLAIN,)), ()) == Accept()


async def test_rules_write_halves_that_pass_updates_on() -> None:
    read = document()
    ours, theirs = write_half(read, Offer((POEM,))), write_half(read, DEMAND)
    assert await checked(ours, Offer((POEM,))) == ()
    assert await checked(theirs, DEMAND) == ()
    provider, requester = InProcessHalf(ours.text), InProcessHalf(theirs.text)
    sent: list[bytes] = []

    async def on_call(name: str, arguments: Json) -> Json:
        raise AssertionError("it streams")

    async def on_stream(name: str, arguments: Json, write: Any) -> Json:
        assert arguments == {"lines": 2}
        sent.extend([await write("a"), await write("b")])
        return {"result": "ab"}

    request = await requester.encode_request("m", {"lines": 2})
    answer = await provider.handle_request(request, on_call, on_stream)
    assert [json.loads(one) for one in sent] == [
        {"messageId": "m", "update": "a"},
        {"messageId": "m", "update": "b"},
    ]
    read_back = [await requester.decode_response(one) for one in (*sent, answer)]
    assert read_back == [
        {"message_id": "m", "update": "a"},
        {"message_id": "m", "update": "b"},
        {"message_id": "m", "result": {"result": "ab"}},
    ]


def test_a_document_of_others_with_marks_of_its_own_is_mapped() -> None:
    text = own_terms(POEM).replace('"update"', '"piece"')
    read = read_document(text)
    assert read.given_before is None
    layout = read_layout(read)
    assert layout.update is not None
    assert layout.update.mark == "piece"
    # A text beside the id is no object, so the values stand among the other fields.
    assert document_hash(text) != document_hash(own_terms(POEM))
    half = write_half(read, DEMAND)
    assert "'piece' in response" in half.text


@pytest.mark.parametrize(
    ("find", "put", "problem"),
    [
        ('return {"message_id": message_id, "update": values}', "pass", "update"),
        ('"update": values}', '"result": values}', "update"),
        ('{"message_id": message_id, "update"', '{"message_id": "x", "update"', "id"),
    ],
)
async def test_a_requesters_half_that_misreads_updates_is_refused(
    find: str, put: str, problem: str
) -> None:
    half = write_half(document(), DEMAND)
    assert find in half.text
    wrong = replace(half, text=half.text.replace(find, put))
    problems = await checked(wrong, DEMAND)
    assert any("update" in one and problem in one for one in problems)


@pytest.mark.parametrize(
    ("find", "put"),
    [
        ("'update': given", "'update': 5"),
        ("message = {\n            'messageId'", "message = {\n            'id'"),
        ("def write_update(value):", "def write_update(value):\n        return 5"),
    ],
)
async def test_a_providers_half_that_miswrites_updates_is_refused(
    find: str, put: str
) -> None:
    half = write_half(document(), Offer((POEM,)))
    assert find in half.text, half.text
    wrong = replace(half, text=half.text.replace(find, put))
    try:
        problems = await checked(wrong, Offer((POEM,)))
    except HalfError as exc:
        problems = (str(exc),)
    assert any("update" in one for one in problems)
