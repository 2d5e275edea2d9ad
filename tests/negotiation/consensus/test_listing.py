"""The published list: what is written is read, and what is hostile does no harm."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negotiation.consensus.listing import (
    MAX_LIST,
    ListingError,
    ProtocolListing,
    read_listing,
    render_listing,
)
from negotiation.consensus.registry import CodeKind, ConsensusProtocol
from negotiation.consensus.selection import (
    fits_document,
    meant_capability,
    pick_generic,
    reaching,
)
from negotiation.document.renderer import render_document
from negotiation.mind import Demand
from negotiation.need import Capability, Need
from tests.clauses import clause

NUMBER = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}
TWICE = Capability("math.twice", "Doubles.", NUMBER, NUMBER, read_only=True)
HALVE = Capability("math.halve", "Halves.", NUMBER, NUMBER)
GENERIC = ConsensusProtocol(
    "urn:x:envelope", "1.0", "any", CodeKind.WRITTEN, published=True, generic=True
)
SINGLE = ConsensusProtocol(
    "urn:x:twice",
    "1.0",
    render_document("math.twice", NUMBER, NUMBER),
    CodeKind.AGREED,
    "Doubles a number.",
    published=True,
)


def written(*capabilities: Capability) -> bytes:
    return render_listing([(SINGLE, [TWICE]), (GENERIC, capabilities)])


def listing(*capabilities: Capability) -> ProtocolListing:
    return read_listing(written(*capabilities))


def demand(requirement: str, **arguments: Any) -> Demand:
    return Demand(Need(requirement), arguments)


@clause("ANP-95")
def test_what_is_published_is_read_again() -> None:
    found = listing(TWICE, HALVE)
    single, generic = found.protocols
    assert (single.uri, single.version, single.hash) == (
        *(SINGLE.uri, SINGLE.version, SINGLE.hash),
    )
    assert (single.summary, single.capabilities) == ("Doubles a number.", (TWICE,))
    assert (generic.generic, generic.capabilities) == (True, (TWICE, HALVE))
    assert written(TWICE, HALVE) == written(TWICE, HALVE)


def test_what_does_not_fit_into_a_list_is_left_out_and_the_rest_stays() -> None:
    large = [Capability(f"big.tool{n}", "x" * 8000, NUMBER, NUMBER) for n in range(300)]
    data = render_listing([(SINGLE, [TWICE]), (GENERIC, large)])
    assert len(data) <= MAX_LIST
    single, generic = read_listing(data).protocols
    assert single.capabilities == (TWICE,)
    assert 0 < len(generic.capabilities) < len(large)


def test_a_capability_whose_schema_nobody_could_take_is_not_published() -> None:
    deep: Any = True
    for _ in range(40):
        deep = {"items": deep}
    [single] = read_listing(
        render_listing(
            [(SINGLE, [TWICE]), (GENERIC, [Capability("a.b", "", deep, {})])]
        )
    ).protocols
    assert single.uri == SINGLE.uri


def test_a_task_means_what_it_names() -> None:
    found = listing(TWICE, HALVE)
    assert meant_capability(found, demand("Halve", number=1)) == HALVE
    assert meant_capability(found, demand("please halve this", number=1)) is None
    assert meant_capability(found, demand("make it larger", number=1)) is None
    assert meant_capability(found, demand("halve and twice", number=1)) is None
    assert [one.uri for one in reaching(found, TWICE)] == [SINGLE.uri, GENERIC.uri]
    assert [one.uri for one in reaching(found, HALVE)] == [GENERIC.uri]


def test_what_is_read_only_may_be_meant_by_its_shape_alone_but_not_generically() -> (
    None
):
    wanted = demand("it doubles", number=1)
    found = listing(TWICE)
    assert meant_capability(found, demand("make it larger", number=1)) is None
    assert meant_capability(found, wanted) == TWICE
    assert pick_generic(TWICE, wanted) is None
    assert pick_generic(TWICE, demand("twice", number=1)) is not None


def test_a_schema_that_does_not_fit_is_not_picked() -> None:
    assert pick_generic(TWICE, demand("twice", number="many")) is None
    assert pick_generic(TWICE, demand("twice", other=1)) is None
    demanding = Need("twice", None, {"type": "object", "required": ["nothing"]})
    assert pick_generic(TWICE, Demand(demanding, {"number": 1})) is None
    assert fits_document(SINGLE.text, demand("math.twice", number=1))
    assert not fits_document(SINGLE.text, demand("math.twice", number="many"))
    assert not fits_document("no document", demand("math.twice", number=1))


def test_names_that_differ_in_case_only_are_put_right() -> None:
    pick = pick_generic(TWICE, demand("twice", Number=4))
    assert pick is not None
    assert pick.arguments.apply({"Number": 4}) == {"number": 4}


def test_only_true_marks_a_capability_as_harmless() -> None:
    value = json.loads(written(TWICE))
    value["capabilities"]["math.twice"]["read_only"] = "yes"
    [single, _] = read_listing(json.dumps(value).encode()).protocols
    assert not single.capabilities[0].read_only


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"format": "anpd-protocols", "version": 2}',
        b'{"format": "anpd-protocols", "version": true}',
        b'{"format": "anpd-protocols", "version": 1, "capabilities": []}',
        b"[" * 100_000,
        b" " * (MAX_LIST + 1),
    ],
)
def test_what_is_no_list_is_refused(data: bytes) -> None:
    with pytest.raises(ListingError):
        read_listing(data)


def test_too_many_entries_are_refused() -> None:
    value = json.loads(written(TWICE))
    value["protocols"] *= 200
    with pytest.raises(ListingError, match="too many"):
        read_listing(json.dumps(value).encode())


@pytest.mark.parametrize(
    "change",
    [
        {"uri": 5},
        {"uri": "no uri"},
        {"sha256": "00"},
        {"version": "\x1b[2J"},
        {"capabilities": {}},
    ],
)
def test_an_unfit_entry_is_left_out_alone(change: dict[str, Any]) -> None:
    value = json.loads(written(TWICE))
    value["protocols"][0] |= change
    [left] = read_listing(json.dumps(value).encode()).protocols
    assert left.uri == GENERIC.uri


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_listing(data)
    except ListingError:
        return


@given(_JSON, _JSON, _JSON)
def test_any_values_inside_are_read_or_left_out(one: Any, two: Any, three: Any) -> None:
    value = json.loads(written(TWICE))
    value["capabilities"]["math.twice"]["input_schema"] = one
    value["capabilities"]["x"] = two
    value["protocols"].append(three)
    found = read_listing(json.dumps(value).encode())
    meant_capability(found, demand("twice", number=1))
    for each in found.protocols:
        for capability in each.capabilities:
            pick_generic(capability, demand("twice", number=1))
