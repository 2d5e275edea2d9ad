"""A half of rules as a plan, and its source for what the plan leaves to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anp.sidecar.halves.planned import PlannedHalf
from negotiation.document.reader import read_document
from negotiation.mind import Offer
from negotiation.need import Capability
from negotiation.rules.halves import write_half
from negotiation.rules.plan_run import plan_of, read_message
from negotiation.rules.rules import published_document

TOOL = Capability("t.run", "", {"type": "object"}, {"type": "object"})
REQUEST = b'{"messageId":"m","input":{"a":12345678901234567.89}}'


class Source:
    """Takes the requests that the plan leaves to it."""

    def __init__(self) -> None:
        self.given: list[bytes] = []

    async def handle_request(self, data: bytes, *_: Any) -> bytes:
        self.given.append(data)
        return b"from the source"


@pytest.mark.parametrize("held", [True, False])
async def test_the_source_gets_a_request_that_nobody_holds_any_more(held: bool) -> None:
    document, side, source = (
        read_document(published_document(TOOL)),
        Offer((TOOL,)),
        Source(),
    )
    plan = plan_of(document, [side], write_half(document, side).text)
    assert plan is not None

    async def load() -> Any:
        return source

    async def answer(name: str, arguments: Any) -> Any:
        return {"\ud800": "no text"}

    half = PlannedHalf(plan, load, check=lambda: None)
    given, values = REQUEST if held else b"", read_message(REQUEST)
    found = await half.handle_request(given, answer, None, values)
    assert found == b"from the source"
    again = read_message(source.given[0])
    assert again == values
    assert json.dumps(again) == json.dumps(values)
    assert len(source.given) == 1
