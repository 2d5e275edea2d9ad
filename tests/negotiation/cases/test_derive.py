"""The requester proposes requests of its own half, with room for answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from negotiation.cases.case import fixture_key
from negotiation.cases.proposal import derive_cases
from negotiation.cases.samples import ODD, telling_values
from negotiation.cases.text import render_cases
from negotiation.document.reader import read_document
from negotiation.document.shape import Document
from negotiation.errors import HalfError
from negotiation.mind import Demand
from negotiation.need import Capability, Need, Schema
from negotiation.rules.rules import own_terms, propose, write_from_text
from negotiation.schema.intake import prepared
from negotiation.schema.samples import SampleKind
from tests.clauses import clause
from tests.negotiation.cases.pairs import ORDER, ORDERED, PAIRS
from tests.negotiation.cases.table import VALIDATOR, agree, obj
from tests.negotiation.inprocess import InProcessHalf
from tests.negotiation.schema.schema_strategies import schemas

TEXT = {"type": "string"}


@clause("ANP-48", "ANP-50")
@pytest.mark.parametrize("name", PAIRS)
async def test_rules_propose_valid_boundary_and_error_cases(name: str) -> None:
    table = await agree(PAIRS[name])
    kinds = [case.good for case in table.proposed]
    assert 1 < kinds.count(True) <= 3
    assert 1 <= kinds.count(False) <= 2
    assert len(kinds) <= 5
    assert table.proposed[0].title == "the data at hand"
    assert len({case.request for case in table.proposed}) == len(kinds)
    assert all(case.response is None for case in table.proposed)


async def test_each_request_has_a_message_id_of_its_own_and_is_made_again_from_it() -> (
    None
):
    table = await agree(PAIRS["the task's own terms"])
    ids = [json.loads(case.request)["messageId"] for case in table.proposed]
    assert ids == [f"case{number:012d}" for number in range(1, 6)]
    assert all(len(one) == 16 for one in ids)
    half = InProcessHalf(table.pair.requester)
    assert table.asked.keys() == {fixture_key(one.request) for one in table.proposed}
    for case in table.proposed:
        [made_of] = table.asked[fixture_key(case.request)]
        again = await half.encode_request(made_of["message_id"], made_of["arguments"])
        assert again == case.request


async def test_the_same_task_gives_the_same_cases() -> None:
    one, other = [await agree(PAIRS["conversions inside"]) for _ in range(2)]
    assert one.text == other.text


async def test_without_message_ids_every_case_has_data_of_its_own() -> None:
    table = await agree(PAIRS["no message id"])
    assert len({case.request for case in table.cases}) == len(table.cases) == 5
    assert table.fixtures.keys() == {fixture_key(one.request) for one in table.cases}


async def test_a_schema_without_samples_leaves_the_data_at_hand() -> None:
    schema = obj({"sku": {"type": "string", "pattern": "^(P|Q)[0-9]+$"}}, "sku")
    demand = Demand(Need("shop.price", schema), {"sku": "P1"})
    text = propose(demand)
    half = InProcessHalf(write_from_text(text, demand).text)
    found = await derive_cases(
        read_document(text), demand, runner=half, validator=VALIDATOR
    )
    assert [case.good for case in found.cases] == [True, False, False, False]
    assert {json.loads(case.request)["input"]["sku"] for case in found.cases} == {"P1"}


class Broken(InProcessHalf):
    """A half that encodes nothing."""

    async def encode_request(self, message_id: str, arguments: dict[str, Any]) -> bytes:
        raise HalfError("error", "it is broken")


class Unfit(InProcessHalf):
    """A half whose requests do not fit the document."""

    async def encode_request(self, message_id: str, arguments: dict[str, Any]) -> bytes:
        return b'{"messageId": 5}'


@pytest.mark.parametrize("half", [Broken, Unfit])
async def test_a_half_that_makes_no_good_request_gives_no_cases(
    half: type[InProcessHalf],
) -> None:
    document = PAIRS["the task's own terms"].document
    found = await derive_cases(document, ORDERED, runner=half(""), validator=VALIDATOR)
    assert found.cases == ()
    assert found.asked == {}


async def test_data_at_hand_that_is_too_large_leaves_room_for_the_others() -> None:
    demand = Demand(ORDERED.need, {"sku": "P1", "count": 2, "note": "x" * 60_000})
    await _fits(read_document(own_terms(ORDER)), demand, least=3)


async def test_data_that_no_case_has_room_for_gives_none() -> None:
    schema = obj({"note": {"type": "string", "minLength": 20_000}}, "note")
    demand = Demand(Need("x", schema), {"note": "x" * 20_000})
    tool = Capability("shop.x", "", schema, TEXT)
    await _fits(read_document(own_terms(tool)), demand, least=0)


async def _fits(document: Document, demand: Demand, *, least: int) -> None:
    half = InProcessHalf(write_from_text(document.text, demand).text)
    found = await derive_cases(document, demand, runner=half, validator=VALIDATOR)
    assert len(found.cases) >= least
    if found.cases:
        # More than half of the text stays free for the responses.
        assert len(render_cases(found.cases, document)) < 32 * 1024
    else:
        assert found.asked == {}


def leaves(value: object) -> list[object]:
    """Return all texts and numbers in a value."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [] if isinstance(value, bool) or value is None else [value]


async def test_places_of_one_type_have_different_values() -> None:
    schema = obj(
        {
            "a": TEXT,
            "b": {"type": "string", "maxLength": 1},
            "c": {"type": "string", "maxLength": 1},
            "d": {"type": "string", "minLength": 12, "maxLength": 12},
            "e": {"type": "integer", "minimum": 100, "maximum": 200},
            "f": {"type": "integer", "multipleOf": 5},
            "g": {"type": "number"},
            "h": {"type": "string", "format": "date"},
            "i": {"type": "string", "format": "date"},
            "j": {"enum": ["x", "y"]},
            "k": {"enum": ["x", "y"]},
            "l": {"type": "array", "items": TEXT},
            "m": {"anyOf": [{"type": "null"}, TEXT]},
            "n": {"type": "number", "minimum": 0, "maximum": 1},
        },
        *"abcdefghijklmn",
    )
    values = dict(reversed(await telling_values(schema, (), VALIDATOR)))
    found = leaves(values[SampleKind.FULL])
    assert len(set(map(repr, found))) == len(found) == 15
    flags = obj({"a": {"type": "boolean"}, "b": {"type": "boolean"}}, "a", "b")
    [(_, first), *_] = await telling_values(flags, (), VALIDATOR)
    assert first == {"a": True, "b": False}


async def test_the_fullest_value_has_odd_characters_and_more_than_it_has_to() -> None:
    schema = obj({"a": TEXT}, additionalProperties=TEXT)
    values = dict(reversed(await telling_values(schema, (), VALIDATOR)))
    full = values[SampleKind.FULL]
    assert isinstance(full, dict)
    assert ODD in str(full["a"])
    assert set(full) > {"a"}
    assert values[SampleKind.MINIMAL] == {}


@settings(max_examples=60)
@given(schemas())
async def test_all_values_fit_their_schema_and_differ(schema: Schema) -> None:
    ready = prepared(schema)
    values = [value for _, value in await telling_values(ready, (), VALIDATOR)]
    for value in values:
        assert await VALIDATOR.validate(ready, value) == []
    assert len({json.dumps(value, sort_keys=True) for value in values}) == len(values)
