"""Whose fault a reported error is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.document.shape import Document
from negotiation.errors import HalfError
from negotiation.exchange.dialogue.reports import judge_fault
from negotiation.exchange.events import Fault, OurFault, PeerFault
from negotiation.messages import MAX_TEXT_SIZE
from tests.clauses import clause
from tests.negotiation.inprocess import JsonschemaValidator

SEED = read_document(
    (
        Path(__file__).parents[3] / "vectors" / "negotiation" / "seed_product_full.md"
    ).read_text(encoding="utf-8")
)
OWN = read_document(
    render_document(
        "add two numbers",
        {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
        {"type": "object", "properties": {"sum": {"type": "number"}}},
    )
)
GOOD_PRODUCT = {
    "messageId": "msg001",
    "type": "RESPONSE",
    "status": {"code": 200, "message": "成功"},
    "productInfo": {
        "id": "P12345",
        "name": "高性能笔记本电脑",
        "description": "x",
        "price": 8999.99,
        "currency": "CNY",
        "stock": 3,
        "category": "x",
        "brand": "x",
        "attributes": {},
    },
}
Kind = Literal["request", "response"]


async def judged(
    kind: Kind, value: Any, document: Document = OWN, description: str = "no code"
) -> Fault:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return await judge_fault(
        kind, data, document, description, validator=JsonschemaValidator()
    )


@clause("ANP-60")
@pytest.mark.parametrize(
    ("kind", "value", "document"),
    [
        ("request", {"messageId": "m", "input": {"a": 1}}, OWN),
        (
            "response",
            {
                "messageId": "m",
                "status": {"code": 200, "message": "ok"},
                "output": {"sum": 3},
            },
            OWN,
        ),
        (
            "response",
            {"messageId": "m", "status": {"code": 404, "message": "none"}},
            OWN,
        ),
        (
            "response",
            {
                "messageId": "msg002",
                "type": "RESPONSE",
                "status": {"code": 404, "message": "产品未找到"},
                "productInfo": None,
            },
            SEED,
        ),
    ],
)
async def test_a_message_that_fits_is_not_our_fault(
    kind: Kind, value: Any, document: Document
) -> None:
    fault = await judged(kind, value, document)
    assert isinstance(fault, PeerFault)
    assert "'messageId'" in fault.reason
    assert "Reported was: 'no code'" in fault.reason
    assert f"fits the {kind} schema" in fault.reason


@clause("ANP-60", "ANP-62")
@pytest.mark.parametrize(
    ("kind", "value", "document", "finding"),
    [
        ("request", {"messageId": "m", "input": {"a": "1"}}, OWN, "number"),
        ("request", {"messageId": "m"}, OWN, "input"),
        ("request", b"\xff", OWN, ""),
        ("request", b"[" * 100_000, OWN, ""),
        (
            "response",
            {"messageId": "m", "status": {"message": "none"}},
            OWN,
            "code",
        ),
        (
            "response",
            {"messageId": "m", "status": {"code": 200, "message": "ok"}},
            OWN,
            "output",
        ),
        (
            "response",
            {**GOOD_PRODUCT, "status": {"message": "成功"}},
            SEED,
            "code",
        ),
        ("response", {**GOOD_PRODUCT, "productInfo": {"id": 5}}, SEED, ""),
    ],
)
async def test_a_message_that_does_not_fit_is_our_fault(
    kind: Kind, value: Any, document: Document, finding: str
) -> None:
    fault = await judged(kind, value, document, "响应消息中,status字段缺少code字段")
    assert isinstance(fault, OurFault)
    assert fault.findings
    assert finding in "; ".join(fault.findings)


async def test_the_complaint_is_quoted_and_never_followed() -> None:
    value = {"messageId": "m", "input": {"a": 1}}
    hostile = "Admit it.\nmessageId: x\n" + "y" * 100_000
    fault = await judged("request", value, description=hostile)
    assert isinstance(fault, PeerFault)
    assert len(fault.reason) < 1_000
    assert "\n" not in fault.reason
    silent = await judged("request", value, description=" ")
    assert isinstance(silent, PeerFault)
    assert "which field" in silent.reason


async def test_many_or_long_findings_are_cut() -> None:
    class Wordy(JsonschemaValidator):
        def fits(self, schema: Any, data: bytes, value: Any) -> bool:
            return False

        async def validate_json(
            self, schema: Any, data: bytes, values: Any = None
        ) -> list[str]:
            return ["x" * 100_000] * 100

        async def validate(self, schema: Any, value: Any) -> list[str]:
            return await self.validate_json(schema, b"")

    fault = await judge_fault("request", b"{}", OWN, "", validator=Wordy())
    assert isinstance(fault, OurFault)
    assert sum(map(len, fault.findings)) < MAX_TEXT_SIZE / 4


async def read_pair(kind: str, data: bytes) -> dict[str, Any]:
    """Read `a=1`, and be ended on one message."""
    if data == b"hangs":
        raise HalfError("timeout", "ended after 1 s")
    name, equals, number = data.decode().partition("=")
    if not equals:
        raise HalfError("error", "no equals sign")
    return {"messageId": "m", "input": {name: int(number)}}


@clause("ANP-60", "ANP-70")
@pytest.mark.parametrize(
    ("data", "fault"),
    [(b"a=1", PeerFault), (b"b=1", OurFault), (b"a", OurFault), (b"hangs", PeerFault)],
)
async def test_bytes_that_are_not_json_are_read_by_our_half(
    data: bytes, fault: type[Fault]
) -> None:
    document = replace(OWN, encoding="text")
    found = await judge_fault(
        "request", data, document, "", validator=JsonschemaValidator(), read=read_pair
    )
    assert type(found) is fault


async def test_what_nothing_reads_is_not_admitted() -> None:
    found = await judged("request", b"a=1", replace(OWN, encoding="text"))
    assert isinstance(found, PeerFault)
    assert "could not be checked" in found.reason
