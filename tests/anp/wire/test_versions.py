"""Two sides choose a message version, and with it the form of their frames."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ConfigError, ErrorCode, PeerError
from anp.wire.encrypted import Envelope
from anp.wire.frames import (
    FORMAT_1_0,
    FORMATS,
    Frame,
    FrameFormat,
    ProtocolType,
    check_envelope_version,
    decode_frame,
    encode_frame,
    find_format,
)
from anp.wire.meta_protocol import (
    CAPABILITIES,
    META_PROTOCOL_VERSIONS,
    MetaProtocol,
    common_version,
    highest_version,
    read_version,
)
from anp.wire.outcome import HandshakeCompleted, HandshakeConfig, NeedHelloReply
from tests.anp.wire.peers import (
    ALICE,
    BOB,
    NOW,
    OFFER,
    VECTORS,
    completed,
    events_of,
    failure_of,
    finish_pair,
    make_initiator,
    make_responder,
    read_message,
    refused_hello,
    resigned,
    response_of,
    start_pair,
    tell,
)
from tests.clauses import clause

LATER = FrameFormat("2.0", header_size=2)
"A format of a version to come, with a header of two bytes; for these tests only."

OLD = HandshakeConfig()
NEW = HandshakeConfig(versions=("1.0", "1.1"), formats=(FORMAT_1_0, LATER))
NEWEST_ONLY = HandshakeConfig(formats=(LATER,))

VERSIONS = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(
    lambda pair: f"{pair[0]}.{pair[1]}"
)


# --- the highest common version ------------------------------------------------------


@clause("ANP-80", "ANP-Q15")
@pytest.mark.parametrize(
    ("ours", "theirs", "used"),
    [
        (["1.0"], "1.0", "1.0"),
        (["1.0"], "1.1", "1.0"),
        (["1.0"], "1.99", "1.0"),
        (["1.0", "1.1"], "1.0", "1.0"),
        (["1.1", "1.0"], "1.1", "1.1"),
        (["1.0", "1.9", "1.10"], "1.10", "1.10"),
        (["1.0", "1.9", "1.10"], "1.9", "1.9"),
        (["1.0", "2.0"], "1.0", "1.0"),
        (["1.0", "2.0"], "2.7", "2.0"),
        (["1.0"], "2.0", "1.0"),
        (["1.0", "2.0"], "3.0", "2.0"),
        (["2.0"], "1.9", None),
        (["1.0"], "0.9", None),
        (["1.1"], "1.0", None),
        (["1.0"], "1", None),
        (["1.0"], "", None),
        (["1.0"], "v1.0", None),
        (["1.0"], "1.0\n", None),
        (["1.0"], "١.٠", None),
        (["1.0"], "1." + "0" * 10, None),
        ([], "1.0", None),
    ],
)
def test_both_use_the_highest_version_they_have_in_common(
    ours: list[str], theirs: str, used: str | None
) -> None:
    assert common_version(ours, theirs) == used


@clause("ANP-80")
@given(st.lists(VERSIONS, max_size=6), VERSIONS | st.text(max_size=6))
def test_what_is_used_is_ours_and_no_higher_than_theirs(
    ours: list[str], theirs: str
) -> None:
    used = common_version(ours, theirs)
    limit = read_version(theirs)
    below = [v for v in ours if limit and rank(v) <= rank(theirs)]
    assert used == (highest_version(below) if below else None)


def rank(version: str) -> tuple[int, int]:
    read = read_version(version)
    assert read is not None
    return read


def test_we_speak_1_0_in_both_ways() -> None:
    # A peer that names no version means this one (ANP-Q15).
    assert "1.0" in META_PROTOCOL_VERSIONS
    assert all(read_version(known.version) for known in FORMATS)


@pytest.mark.parametrize("field", ["versions", "formats"])
def test_speaking_no_version_at_all_is_the_owners_error(field: str) -> None:
    nothing: dict[str, Any] = {field: ()}
    with pytest.raises(ConfigError, match=field):
        HandshakeConfig(**nothing)


# --- in the hellos -------------------------------------------------------------------


def shaken(
    initiator: HandshakeConfig, responder: HandshakeConfig
) -> tuple[HandshakeCompleted, HandshakeCompleted, dict[str, Any], dict[str, Any]]:
    """Return what both sides say at the end, and both hellos."""
    pair = start_pair(initiator_config=initiator, responder_config=responder)
    ours, theirs = finish_pair(pair)
    hellos = json.loads(pair.source_hello), json.loads(pair.sent[0])
    return completed(ours), completed(theirs), *hellos


@clause("ANP-80", "ANP-Q15")
@pytest.mark.parametrize(
    ("initiator", "responder", "version"),
    [(OLD, OLD, "1.0"), (NEW, OLD, "1.0"), (OLD, NEW, "1.0"), (NEW, NEW, "1.1")],
)
def test_a_hello_offers_our_highest_version_and_the_answer_names_the_one_used(
    initiator: HandshakeConfig, responder: HandshakeConfig, version: str
) -> None:
    ours, theirs, source, destination = shaken(initiator, responder)
    assert source["metaProtocol"]["version"] == initiator.versions[-1]
    assert destination["metaProtocol"]["version"] == version
    assert ours.version == theirs.version == version
    assert ours.own_meta.version == initiator.versions[-1]
    assert theirs.own_meta.version == version


@clause("ANP-80", "ANP-Q15")
def test_a_requester_that_offers_less_is_answered_in_its_version() -> None:
    # Whatever the daemon hands in: the core knows what is spoken.
    pair = start_pair(
        answer=MetaProtocol(version="9.9"),
        initiator_config=OLD,
        responder_config=NEW,
    )
    ours, theirs = finish_pair(pair)
    assert completed(ours).peer_meta == completed(theirs).own_meta == MetaProtocol()


@clause("ANP-80", "ANP-Q16", "WIRE row 22", "WIRE row 23")
@pytest.mark.parametrize("said", [None, {}, {"version": None}, {"protocolHash": None}])
def test_a_requester_without_a_version_is_answered_with_1_0(
    said: dict[str, Any] | None,
) -> None:
    pair = start_pair(initiator_config=NEW, responder_config=NEW)
    responder = make_responder(
        resigned(pair.source_hello, ALICE, metaProtocol=said), config=NEW
    )
    responder.key_checked(None, now=NOW)
    responder.answer(MetaProtocol(), now=NOW)
    hello = json.loads(responder.messages_to_send()[0])
    assert hello["metaProtocol"]["version"] == "1.0"


@clause("ANP-80", "ANP-Q16", "WIRE row 23", "WIRE row 54")
@pytest.mark.parametrize("said", [None, {}, {"supportedCapabilities": None}])
def test_an_answer_without_a_version_means_1_0_and_the_basic_capabilities(
    said: dict[str, Any] | None,
) -> None:
    pair = start_pair(offer=OFFER, initiator_config=NEW)
    pair.sent[0] = resigned(pair.sent[0], BOB, metaProtocol=said)
    ours, _ = finish_pair(pair)
    assert completed(ours).version == "1.0"
    assert completed(ours).own_meta.common_capabilities(completed(ours).peer_meta) == (
        frozenset()
    )


@clause("ANP-76", "ANP-79", "ANP-Q16")
def test_a_hello_with_names_and_fields_of_later_versions_is_understood() -> None:
    said = {
        "version": "1.7",
        "supportedCapabilities": ["telepathy", CAPABILITIES[1], "x" * 500],
        "mood": {"today": ["good"]},
    }
    pair = start_pair(offer=OFFER)
    hello = resigned(pair.source_hello, ALICE, metaProtocol=said, weather="fine")
    responder = make_responder(hello)
    responder.key_checked(None, now=NOW)
    need = events_of(responder)[-1]
    assert isinstance(need, NeedHelloReply)
    assert need.meta == MetaProtocol("1.7", (CAPABILITIES[1],))
    assert OFFER.common_capabilities(need.meta) == {CAPABILITIES[1]}
    responder.answer(MetaProtocol(), now=NOW)
    answer = json.loads(responder.messages_to_send()[0])["metaProtocol"]
    assert answer["version"] == "1.0"


# --- the length of the header --------------------------------------------------------


@clause("ANP-15")
@pytest.mark.parametrize(
    ("initiator", "responder", "used"),
    [
        (OLD, OLD, FORMAT_1_0),
        (NEW, OLD, FORMAT_1_0),
        (OLD, NEW, FORMAT_1_0),
        (NEW, NEW, LATER),
    ],
)
def test_the_common_message_version_decides_how_frames_look(
    initiator: HandshakeConfig, responder: HandshakeConfig, used: FrameFormat
) -> None:
    ours, theirs, source, destination = shaken(initiator, responder)
    assert ours.frame_format == theirs.frame_format == used
    # Every peer can read the hello itself; what else we speak stands in the list.
    assert source["version"] == "1.0"
    assert source["supportedVersions"] == [f.version for f in initiator.formats]
    assert destination["version"] == destination["selectedVersion"] == used.version


@clause("ANP-15", "ANP-80")
@pytest.mark.parametrize("version", ["2.0", "0.9", "10.0", "one", ""])
def test_a_hello_of_an_unknown_message_version_is_refused_with_words(
    version: str,
) -> None:
    responder = refused_hello(version=version)
    assert failure_of(responder).code is ErrorCode.INVALID_ENCRYPTION_KEY
    response = response_of(responder)
    assert response.code is ErrorCode.INVALID_ENCRYPTION_KEY
    assert response.detail == f"version is {version!r}, we speak 1.0"


@clause("ANP-15")
def test_a_hello_that_is_unreadable_in_our_version_is_refused_for_its_version() -> None:
    # The rest of it may mean something else, so its signature says nothing yet.
    [hello] = make_initiator().messages_to_send()
    responder = make_responder({**json.loads(hello), "version": "2.0"})
    assert "we speak 1.0" in failure_of(responder).detail


@clause("ANP-15", "ANP-Q15")
def test_a_speaker_of_1_1_is_answered_in_1_0() -> None:
    [hello] = make_initiator().messages_to_send()
    later = resigned(hello, ALICE, version="1.1", supportedVersions=["1.1", "1.0"])
    responder = make_responder(later)
    responder.key_checked(None, now=NOW)
    responder.answer(MetaProtocol(), now=NOW)
    answer = json.loads(responder.messages_to_send()[0])
    assert (answer["version"], answer["selectedVersion"]) == ("1.0", "1.0")


@clause("ANP-15")
def test_a_peer_that_offers_only_what_we_do_not_speak_is_refused() -> None:
    [hello] = make_initiator(config=NEWEST_ONLY).messages_to_send()
    responder = make_responder(hello, config=OLD)
    assert "no common version: we have 1.0" in failure_of(responder).detail
    assert response_of(responder).code is ErrorCode.INVALID_ENCRYPTION_KEY


@clause("ANP-15")
@pytest.mark.parametrize(
    "change",
    [
        {"version": "2.0"},
        {"version": "1.1"},
        {"version": "2.0", "selectedVersion": "2.0"},
        {"selectedVersion": "2.0"},
    ],
)
def test_an_answer_in_a_version_that_was_not_offered_is_refused(
    change: dict[str, Any],
) -> None:
    pair = start_pair()
    pair.initiator.messages_to_send()
    tell(pair.initiator, resigned(pair.sent[0], BOB, **change))
    assert failure_of(pair.initiator).code is ErrorCode.INVALID_ENCRYPTION_KEY
    assert "version" in response_of(pair.initiator).detail.lower()


@clause("ANP-15")
def test_an_answer_that_names_two_versions_is_refused() -> None:
    pair = start_pair(initiator_config=NEW, responder_config=NEW)
    pair.initiator.messages_to_send()
    tell(pair.initiator, resigned(pair.sent[0], BOB, version="1.0"))
    assert "selectedVersion is '2.0'" in failure_of(pair.initiator).detail


# --- frames --------------------------------------------------------------------------


@clause("ANP-15")
@pytest.mark.parametrize("protocol_type", ProtocolType)
def test_a_longer_header_is_one_row_of_the_table(protocol_type: ProtocolType) -> None:
    frame = Frame(protocol_type, b"data")
    plaintext = encode_frame(frame, LATER)
    assert plaintext == bytes([protocol_type << 6, 0]) + b"data"
    assert decode_frame(plaintext, LATER) == frame
    assert decode_frame(bytes([protocol_type << 6 | 0x3F, 0xFF]), LATER) == Frame(
        protocol_type, b""
    )


@clause("ANP-15")
@given(
    st.sampled_from(ProtocolType),
    st.binary(max_size=64),
    st.integers(min_value=1, max_value=8),
)
def test_what_is_encoded_in_a_format_is_decoded_in_it(
    protocol_type: ProtocolType, data: bytes, header_size: int
) -> None:
    frame, later = Frame(protocol_type, data), replace(LATER, header_size=header_size)
    plaintext = encode_frame(frame, later)
    assert len(plaintext) == header_size + len(data)
    assert decode_frame(plaintext, later) == frame


@clause("ANP-12", "ANP-15")
@pytest.mark.parametrize("data", [b"", b"\x40"])
def test_a_frame_shorter_than_its_header_is_the_peers_error(data: bytes) -> None:
    with pytest.raises(PeerError, match="without a header of 2") as caught:
        decode_frame(data, LATER)
    assert caught.value.code is ErrorCode.NOT_ALLOWED


@clause("ANP-15")
@pytest.mark.parametrize("version", ["2.0", "1.1", "1", "", "1.00"])
def test_no_format_stands_in_for_an_unknown_version(version: str) -> None:
    with pytest.raises(PeerError, match=r"we speak 1\.0") as caught:
        find_format(version)
    assert caught.value.code is ErrorCode.INVALID_ENCRYPTION_KEY


@clause("ANP-15")
def test_a_known_version_has_its_own_format() -> None:
    assert find_format("1.0") is FORMAT_1_0
    assert find_format("2.0", (FORMAT_1_0, LATER)) is LATER


@clause("ANP-15", "WIRE row 26")
@pytest.mark.parametrize("vector", VECTORS["envelopes"])
def test_messages_of_the_sdk_name_the_version_of_their_channel(
    vector: dict[str, str],
) -> None:
    envelope = read_message(vector["message"])
    assert isinstance(envelope, Envelope)
    check_envelope_version(envelope, "1.0")
    with pytest.raises(PeerError, match=r"on a channel of version '2\.0'"):
        check_envelope_version(envelope, "2.0")
