"""An argument that a capability takes without naming it gets through."""

from __future__ import annotations

from typing import Any

import pytest

from negotiation.document.reader import read_document
from negotiation.mind import Accept, Counter, Demand, Offer
from negotiation.need import Capability, Need
from negotiation.rules.fit import fit_provider, fit_requester
from negotiation.rules.rules import (
    judge_offer,
    judge_reply,
    propose,
    published_document,
)
from negotiation.schema.plan import Mismatch

NAMED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
}
DATA: dict[str, Any] = {"a": 1, "x-e": 2}
NESTED: dict[str, Any] = {**DATA, "o": {"k": "v", "more": [1]}}


def _capability(schema: dict[str, Any]) -> Capability:
    return Capability(
        name="t.tool", description="", input_schema=schema, output_schema={}
    )


def _negotiated(capability: Capability, demand: Demand) -> str | None:
    """Return the document that rules on both sides come to, or None."""
    ours, offer = propose(demand), Offer((capability,))
    verdict = judge_offer(ours, offer, [])
    if isinstance(verdict, Accept):
        return ours
    assert isinstance(verdict, Counter)
    theirs = verdict.document
    return theirs if isinstance(judge_reply(theirs, demand, [ours]), Accept) else None


@pytest.mark.parametrize("way", ["published", "negotiated"])
@pytest.mark.parametrize("data", [DATA, NESTED])
@pytest.mark.parametrize(
    ("more", "goes"),
    [
        ({}, True),
        ({"additionalProperties": True}, True),
        ({"additionalProperties": {"type": ["integer", "object"]}}, True),
        ({"patternProperties": {"^x-": {"type": "integer"}}}, True),
        ({"additionalProperties": False}, False),
        ({"additionalProperties": {"type": "string"}}, False),
    ],
)
def test_what_the_schema_allows_gets_through(
    way: str, data: dict[str, Any], more: dict[str, Any], goes: bool
) -> None:
    capability = _capability(NAMED | more)
    demand = Demand(Need("t.tool"), data)
    text = (
        published_document(capability)
        if way == "published"
        else _negotiated(capability, demand)
    )
    if text is None:
        assert not goes
        return
    document = read_document(text)
    sending = fit_requester(document, demand)
    assert isinstance(sending, Mismatch) is not goes
    if not isinstance(sending, Mismatch):
        taking = fit_provider(document, capability)
        assert not isinstance(taking, Mismatch)
        values = sending.request.plan.apply(data)
        assert taking.request.plan.apply(values) == data


def test_an_argument_in_other_spelling_is_still_renamed() -> None:
    demand = Demand(Need("t.tool"), {"A": 1})
    document = read_document(published_document(_capability(NAMED)))
    fit = fit_requester(document, demand)
    assert not isinstance(fit, Mismatch)
    assert fit.request.plan.apply({"A": 1}) == {"a": 1}
