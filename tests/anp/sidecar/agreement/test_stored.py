"""The records of an agreement name the origin of its half, in every case."""

from __future__ import annotations

from dataclasses import replace

from anp.sidecar.agreement.stored import (
    DocumentCandidate,
    agreement_by_uri,
    agreement_with,
    negotiated,
)
from cache.records.records import AgreementRole, AgreementState
from negotiation.mind import Demand, HalfSource, Offer
from negotiation.need import Capability, Need, need_key, schema_hash

TEXT = "# Requirement\n\n> twice\n"
MODEL = HalfSource("def a(): ...\n", "model", ("m.twice",), "some-model", "full")
TASK = Need("twice", {"type": "object"}, None)
TWICE = Capability("m.twice", "", {"type": "object"}, {"type": "object"})
OTHER = replace(TWICE, name="m.other")


def test_a_protocol_known_by_its_uri_keeps_the_model_that_wrote_our_half() -> None:
    uri = "https://example.com/twice/1.0"
    document, half, agreement = agreement_by_uri(
        DocumentCandidate(uri, TEXT, MODEL),
        TASK,
        own_did="did:key:zOwn",
        peer_did="did:key:zPeer",
        created=5.0,
    )
    assert (half.origin, half.model) == ("model", "some-model")
    assert half.hash == agreement.hash == document.hash
    assert agreement.tests["consensus"] == uri
    assert agreement.need_key == need_key(TASK)
    assert (agreement.role, agreement.state) == (
        AgreementRole.REQUESTER,
        AgreementState.ACTIVE,
    )


def test_a_provider_stores_the_schemas_of_what_its_half_calls_and_no_task_key() -> None:
    _, half, agreement = negotiated(
        TEXT,
        MODEL,
        Offer((TWICE, OTHER)),
        own_did="did:key:zOwn",
        peer_did="did:key:zPeer",
        need=None,
        negotiation_id="0123456789abcdef",
        begins=AgreementState.ACTIVE,
        created=5.0,
    )
    assert half.capabilities == {"m.twice": schema_hash(TWICE)}
    assert half.negotiation_id == agreement.negotiation_id == "0123456789abcdef"
    assert (half.role, agreement.need_key) == (AgreementRole.PROVIDER, None)


def test_a_requester_begins_with_tests_and_another_peer_with_a_clean_record() -> None:
    _, half, agreement = negotiated(
        TEXT,
        MODEL,
        Demand(TASK, {}),
        own_did="did:key:zOwn",
        peer_did="did:key:zPeer",
        need={"requirement": "twice", "input_schema": None, "output_schema": None},
        negotiation_id="0123456789abcdef",
        begins=AgreementState.TESTING,
        created=5.0,
    )
    assert (half.capabilities, agreement.state) == ({}, AgreementState.TESTING)
    used = replace(agreement, uses=4, last_used=9.0)
    ours = agreement_with("did:key:zOther", used, created=10.0)
    assert (ours.peer_did, ours.uses, ours.last_used) == ("did:key:zOther", 0, None)
    assert ours.negotiation_id is None
