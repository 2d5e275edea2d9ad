"""Test cases from a bundle: nobody vouches for their shape or their content."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anp.sidecar.agreement.offline import likely_arguments, retry_cases
from anp.sidecar.halves.workshop import HalfTrial
from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.mind import Demand, HalfSource, Offer
from negotiation.need import Capability, Need
from tests.negotiation.inprocess import InProcessHalf, JsonschemaValidator

NUMBER = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}
DOCUMENT = read_document(render_document("double", NUMBER, NUMBER))
CAPABILITY = Capability("shop.double", "", NUMBER, NUMBER)
OFFER = Offer((CAPABILITY,))
VALIDATOR = JsonschemaValidator()
REQUESTER = """
import json

def encode_request(message_id, arguments):
    return json.dumps({"messageId": message_id, "input": arguments}).encode()

def decode_response(data):
    answer = json.loads(data)
    return {"message_id": answer["messageId"], "result": answer["output"]}
"""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "cases",
                    "text",
                    "asked",
                    "fixtures",
                    "arguments",
                    "message_id",
                    "capability",
                    "error",
                    "output",
                    "number",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def asked(arguments: object) -> dict[str, Any]:
    """Return tests that hold a request's data."""
    one = {"message_id": "case000000000001", "arguments": arguments}
    return {"cases": {"text": "", "asked": {"0" * 64: [one]}}}


@settings(deadline=None)
@given(JSON)
async def test_what_a_bundle_says_of_its_tests_cannot_break_the_import(
    value: Any,
) -> None:
    for tests in ({"cases": value}, value if isinstance(value, dict) else {}):
        need = Need("double", NUMBER)
        found = await likely_arguments(DOCUMENT, need, tests, VALIDATOR)
        assert type(found["number"]) is int
        for side in (OFFER, Demand(need, found)):
            half = HalfSource(REQUESTER, "hand-written")
            trial = HalfTrial(half, DOCUMENT, InProcessHalf(REQUESTER), VALIDATOR)
            retried = await retry_cases(tests, side, trial)
            assert retried.kept is None or retried.problems == ()


@pytest.mark.parametrize(
    ("tests", "number"),
    [
        (asked({"number": 77}), 77),
        (asked({"number": "77"}), None),
        (asked("77"), None),
        ({}, None),
    ],
)
async def test_a_trial_uses_the_data_of_an_earlier_test_if_it_fits(
    tests: dict[str, Any], number: int | None
) -> None:
    found = await likely_arguments(DOCUMENT, Need("double", NUMBER), tests, VALIDATOR)
    assert found["number"] == number or (number is None and "number" in found)


async def test_without_a_schema_of_the_task_the_document_tells_the_data() -> None:
    found = await likely_arguments(DOCUMENT, Need("double"), {}, VALIDATOR)
    assert type(found["number"]) is int


async def test_without_any_hint_the_data_is_an_empty_object() -> None:
    need = Need("double", False)
    assert await likely_arguments(DOCUMENT, need, {}, VALIDATOR) == {}
