"""The registry: URIs, versions, order (ANP-90 to ANP-93)."""

from __future__ import annotations

import pytest

from negotiation.consensus.registry import (
    MAX_CANDIDATES,
    MAX_PROTOCOLS,
    MAX_URI,
    CodeKind,
    ConsensusProtocol,
    Registry,
    RegistryError,
    check_uri,
)
from negotiation.consensus.selection import Misfits
from negotiation.document.shape import MAX_DOCUMENT_SIZE, document_hash
from tests.clauses import clause


def protocol(
    name: str, *, version: str = "1.0", text: str = "", generic: bool = False
) -> ConsensusProtocol:
    return ConsensusProtocol(
        f"https://protocols.example/{name}",
        version,
        text or f"document of {name}",
        CodeKind.BUNDLE,
        generic=generic,
    )


@clause("ANP-90", "ANP-91")
def test_every_version_is_found_under_its_own_uri() -> None:
    one, two = protocol("weather/1.0"), protocol("weather/2.0", version="2.0")
    registry = Registry([one, two])
    assert registry.get(one.uri) == one
    assert registry.get(two.uri) == two
    assert registry.of_hash(document_hash(two.text)) == [two]
    assert registry.get("https://protocols.example/weather") is None


@clause("ANP-91")
@pytest.mark.parametrize("change", [{"text": "another"}, {"version": "1.1"}])
def test_a_uri_that_names_one_version_cannot_name_another(
    change: dict[str, str],
) -> None:
    registry = Registry([protocol("weather")])
    with pytest.raises(RegistryError, match="a URI of its own"):
        registry.add(protocol("weather", **change))  # type: ignore[arg-type]  # texts
    registry.add(protocol("weather"))
    assert len(registry) == 1


@clause("ANP-92")
def test_candidates_come_in_the_owners_order_and_generic_ones_last() -> None:
    names = [f"https://protocols.example/{name}" for name in "abcd"]
    registry = Registry(order=[names[2]])
    offered = [(names[0], True), (names[1], False), (names[2], False)]
    assert registry.in_order([*offered, (names[3], False)]) == [
        *(names[2], names[1], names[3], names[0])
    ]
    preferring = Registry(order=[names[0], names[1]])
    assert preferring.in_order(offered)[0] == names[0]


@clause("ANP-93")
def test_what_a_peer_offers_is_looked_at_in_its_order_and_to_a_limit() -> None:
    one, two = protocol("one"), protocol("two")
    registry = Registry([one, two])
    assert registry.offered([two.uri, "urn:other:1", one.uri]) == [two, one]
    many = [f"urn:other:{number}" for number in range(MAX_CANDIDATES - 1)]
    assert registry.offered([*many, one.uri]) == [one]
    assert registry.offered([*many, "urn:x:y", one.uri]) == []
    assert registry.offered([]) == []


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "weather",
        "//host/x",
        "https://a b",
        "https://a/#part",
        "https://a/\n",
        "HTTPS://a/",
        "https://ä/",
        "x:" + "y" * MAX_URI,
    ],
)
def test_what_is_no_uri_names_no_protocol(uri: str) -> None:
    with pytest.raises(RegistryError, match="cannot name a protocol"):
        check_uri(uri)


def test_limits_hold_at_and_past_them() -> None:
    assert check_uri("urn:" + "y" * (MAX_URI - 4))
    Registry([protocol("large", text="x" * MAX_DOCUMENT_SIZE)])
    with pytest.raises(RegistryError, match="bytes"):
        Registry([protocol("large", text="x" * (MAX_DOCUMENT_SIZE + 1))])
    with pytest.raises(RegistryError, match="half of a character"):
        Registry([protocol("half", text="\ud800")])
    registry = Registry(protocol(f"n{number}") for number in range(MAX_PROTOCOLS))
    with pytest.raises(RegistryError, match="more than"):
        registry.add(protocol("one-more"))
    registry.add(protocol("n0"))


def test_a_removed_protocol_makes_room_for_another_text() -> None:
    registry = Registry([protocol("weather")])
    assert registry.remove("https://protocols.example/weather") is not None
    assert registry.remove("https://protocols.example/weather") is None
    registry.add(protocol("weather", text="another"))


def test_a_misfit_is_remembered_for_one_peer_protocol_and_task_and_lapses() -> None:
    misfits = Misfits(max_entries=2, lifetime=10.0)
    misfits.note("did:a:1", "urn:p:1", "t", now=0.0)
    assert misfits.known("did:a:1", "urn:p:1", "t", now=9.9)
    assert not misfits.known("did:a:2", "urn:p:1", "t", now=0.0)
    assert not misfits.known("did:a:1", "urn:p:2", "t", now=0.0)
    assert not misfits.known("did:a:1", "urn:p:1", "u", now=0.0)
    assert not misfits.known("did:a:1", "urn:p:1", "t", now=10.0)
    for number in range(3):
        misfits.note("did:a:1", "urn:p:1", f"t{number}", now=20.0)
    known = [misfits.known("did:a:1", "urn:p:1", f"t{n}", now=20.0) for n in range(3)]
    assert known == [False, True, True]
