"""The handshake that works: order, answers, lifetimes, deadlines."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from anp.errors import ConfigError, ErrorCode, LocalError
from anp.wire.encrypted import Envelope
from anp.wire.frames import encrypt
from anp.wire.meta_protocol import CAPABILITIES, MetaProtocol
from anp.wire.moment import Moment
from anp.wire.outcome import HandshakeConfig, NeedHelloReply, NeedKeyCheck
from anp.wire.replay import BLOCK, counter_of
from anp.wire.side import HandshakeState
from tests.anp.wire.peers import (
    ALICE,
    BOB,
    HASH,
    NOW,
    OFFER,
    URI,
    VECTORS,
    WALL_NOW,
    after_answer,
    completed,
    events_of,
    failure_of,
    finish_pair,
    make_initiator,
    make_responder,
    open_envelope,
    read_message,
    resigned,
    response_of,
    seal,
    start_pair,
    tell,
)
from tests.clauses import clause


@clause("ANP-76", "ANP-78", "WIRE row 13")
def test_a_source_hello_has_all_fields_of_the_spec() -> None:
    [text] = make_initiator(OFFER).messages_to_send()
    hello = json.loads(text)
    theirs = json.loads(VECTORS["handshakes"][0]["source_hello"])
    assert set(hello) == set(theirs)
    assert (hello["type"], hello["version"]) == ("sourceHello", "1.0")
    assert hello["metaProtocol"] == {
        "version": "1.0",
        "supportedCapabilities": list(CAPABILITIES),
        "usedProtocolHash": HASH,
        "candidateProtocols": [URI],
        "extensions": ["close"],
    }
    assert hello["supportedVersions"] == ["1.0"]
    assert hello["cipherSuites"] == ["TLS_AES_128_GCM_SHA256"]
    assert hello["supportedGroups"] == ["secp256r1"]
    [share] = hello["keyShares"]
    assert (share["group"], share["expires"]) == ("secp256r1", 864_000)


@clause("WIRE row 1", "WIRE row 2", "WIRE row 15")
def test_ids_random_and_key_have_the_sizes_the_sdk_sends() -> None:
    [text] = make_initiator().messages_to_send()
    hello = json.loads(text)
    sizes = [len(hello[name]) for name in ("messageId", "sessionId", "random")]
    assert sizes == [32, 32, 64]
    assert len(hello["keyShares"][0]["keyExchange"]) == 130


@clause("ANP-76", "WIRE row 18", "WIRE row 21")
def test_both_sides_complete_with_matching_keys() -> None:
    pair = start_pair(offer=OFFER)
    hello, finished = (json.loads(text) for text in pair.sent)
    theirs = json.loads(VECTORS["handshakes"][0]["destination_hello"])
    assert set(hello) - {"metaProtocol"} == set(theirs)
    assert (hello["type"], finished["type"]) == ("destinationHello", "finished")
    for message in (hello, finished):
        assert message["sessionId"] == pair.initiator.session_id
        assert message["sourceDid"] == BOB.did
        assert message["destinationDid"] == ALICE.did
    ours, theirs = (completed(events) for events in finish_pair(pair))
    assert ours.keys.send_key == theirs.keys.receive_key
    assert ours.keys.receive_key == theirs.keys.send_key
    assert ours.keys.secret_key_id == theirs.keys.secret_key_id
    assert (ours.local_did, ours.peer_did) == (ALICE.did, BOB.did)
    assert (theirs.local_did, theirs.peer_did) == (BOB.did, ALICE.did)
    assert theirs.peer_meta == OFFER
    assert pair.initiator.get_timer() is None
    assert pair.responder.get_timer() is None


@clause("ANP-11", "WIRE row 26")
def test_the_new_keys_carry_messages_both_ways() -> None:
    pair = start_pair()
    ours, theirs = (completed(events) for events in finish_pair(pair))
    for sender, receiver in ((ours, theirs), (theirs, ours)):
        text = seal(
            sender.keys,
            b"\x40data",
            source_did=sender.local_did,
            destination_did=sender.peer_did,
            message_id="m-1",
            iv=bytes(12),
            timestamp=WALL_NOW,
        )
        envelope = read_message(text)
        assert isinstance(envelope, Envelope)
        assert open_envelope(receiver.keys, envelope) == b"\x40data"


@clause("ANP-86", "ANP-Q19")
@pytest.mark.parametrize(
    "answer",
    [MetaProtocol(used_protocol_hash=HASH), MetaProtocol(selected_protocol=URI)],
)
def test_a_hash_or_a_uri_is_confirmed_in_the_answer(answer: MetaProtocol) -> None:
    pair = start_pair(offer=OFFER, answer=answer)
    ours, _ = finish_pair(pair)
    assert completed(ours).peer_meta == answer


@clause("ANP-87", "WIRE row 23")
def test_an_answer_without_a_hash_agrees_on_nothing() -> None:
    pair = start_pair(offer=OFFER)
    assert "usedProtocolHash" not in json.loads(pair.sent[0])["metaProtocol"]
    ours, _ = finish_pair(pair)
    assert completed(ours).peer_meta.used_protocol_hash is None


def test_questions_come_in_order_and_name_what_they_ask() -> None:
    [hello] = make_initiator(OFFER).messages_to_send()
    responder = make_responder(hello)
    key = bytes.fromhex(ALICE.public_key_hex)
    assert events_of(responder) == [NeedKeyCheck(ALICE.did, ALICE.key_id, key)]
    assert responder.messages_to_send() == []
    responder.key_checked(None, now=NOW)
    assert events_of(responder) == [NeedHelloReply(ALICE.did, OFFER)]
    assert responder.messages_to_send() == []


@clause("WIRE row 29")
def test_the_responder_knows_the_key_id_before_the_last_message() -> None:
    pair = start_pair()
    key_id = pair.responder.secret_key_id
    assert key_id is not None
    assert pair.initiator.secret_key_id is None
    ours, _ = finish_pair(pair)
    assert completed(ours).keys.secret_key_id == key_id


def test_a_finished_before_the_key_check_is_held() -> None:
    pair = start_pair()
    tell(pair.initiator, *pair.sent)
    assert isinstance(pair.initiator.next_event(), NeedKeyCheck)
    assert pair.initiator.next_event() is None
    pair.initiator.key_checked(None, now=NOW)
    completed(events_of(pair.initiator))


def test_a_finished_after_the_key_check_completes() -> None:
    pair = start_pair()
    hello, finished = pair.sent
    tell(pair.initiator, hello)
    assert isinstance(pair.initiator.next_event(), NeedKeyCheck)
    pair.initiator.key_checked(None, now=NOW)
    assert len(pair.initiator.messages_to_send()) == 1
    assert events_of(pair.initiator) == []
    tell(pair.initiator, finished)
    completed(events_of(pair.initiator))


def test_a_second_early_finished_fails() -> None:
    pair = start_pair()
    tell(pair.initiator, *pair.sent, pair.sent[1])
    assert isinstance(pair.initiator.next_event(), NeedKeyCheck)
    assert failure_of(pair.initiator).code is ErrorCode.NOT_ALLOWED


def test_a_finished_before_the_destination_hello_fails() -> None:
    pair = start_pair()
    pair.initiator.messages_to_send()
    tell(pair.initiator, pair.sent[1])
    assert "destinationHello" in failure_of(pair.initiator).detail
    assert response_of(pair.initiator).original_type == "finished"


@pytest.mark.parametrize("state", ["asked", "checked"])
def test_a_finished_before_our_answer_fails(state: str) -> None:
    [hello] = make_initiator().messages_to_send()
    responder = make_responder(hello)
    if state == "checked":
        responder.key_checked(None, now=NOW)
    events_of(responder)
    finished = json.loads(VECTORS["handshakes"][0]["source_finished"])
    dids = {"sourceDid": ALICE.did, "destinationDid": BOB.did}
    tell(responder, json.dumps({**finished, **dids, "sessionId": responder.session_id}))
    assert failure_of(responder).code is ErrorCode.NOT_ALLOWED


def test_a_hello_given_twice_to_one_responder_fails() -> None:
    pair = start_pair()
    tell(pair.responder, pair.source_hello)
    assert failure_of(pair.responder).code is ErrorCode.NOT_ALLOWED


def test_after_the_end_nothing_is_said_or_answered() -> None:
    pair = start_pair()
    finish_pair(pair)
    for side in (pair.initiator, pair.responder):
        tell(side, pair.source_hello, *pair.sent, now=99.0)
        side.handle_timer(now=Moment.at(99.0, WALL_NOW))
        side.key_checked("too late", now=Moment.at(99.0, WALL_NOW))
        assert side.messages_to_send() == []
        assert events_of(side) == []
    pair.responder.answer(MetaProtocol(), now=Moment.at(99.0, WALL_NOW))
    pair.responder.refuse(ErrorCode.NOT_ALLOWED, "", now=Moment.at(99.0, WALL_NOW))
    assert pair.responder.state is HandshakeState.DONE


@clause("ANP-82", "ANP-Q1")
def test_an_answer_under_the_alias_counts() -> None:
    initiator = after_answer(metaProtocol={"protocolHash": HASH})
    assert isinstance(initiator.next_event(), NeedKeyCheck)


@clause("WIRE row 23", "WIRE row 54")
def test_an_answer_without_meta_protocol_is_accepted() -> None:
    pair = start_pair(offer=OFFER)
    hello = json.loads(pair.sent[0])
    del hello["metaProtocol"]
    pair.sent[0] = resigned(json.dumps(hello), BOB)
    ours, _ = finish_pair(pair)
    assert completed(ours).peer_meta == MetaProtocol()


@clause("WIRE row 16")
@pytest.mark.parametrize(("ours", "theirs"), [(600, 900), (900, 600)])
def test_the_shorter_key_lifetime_wins_on_both_sides(ours: int, theirs: int) -> None:
    pair = start_pair(
        initiator_config=HandshakeConfig(key_lifetime=ours),
        responder_config=HandshakeConfig(key_lifetime=theirs),
    )
    for events in finish_pair(pair, now=5.0):
        assert completed(events).expires_at == 605.0


@clause("WIRE row 16")
@pytest.mark.parametrize("expires", [1_800_000_000, 10**300])
def test_a_lifetime_that_is_an_epoch_number_is_just_long(expires: int) -> None:
    pair = start_pair()
    share = {**json.loads(pair.sent[0])["keyShare"], "expires": expires}
    pair.sent[0] = resigned(pair.sent[0], BOB, keyShare=share)
    ours, _ = finish_pair(pair)
    assert completed(ours).expires_at == 864_000.0


@clause("WIRE row 21")
def test_the_spacing_inside_a_finished_is_free() -> None:
    pair = start_pair()
    tell(pair.initiator, *pair.sent)
    pair.initiator.key_checked(None, now=NOW)
    ours = completed(events_of(pair.initiator)[1:])
    content = f' {{ "secretKeyId" :\n"{ours.keys.secret_key_id}" }} '.encode()
    finished = json.loads(pair.initiator.messages_to_send()[-1])
    finished["verifyData"] = encrypt(ours.keys.send_cipher, content, iv=bytes(12))
    tell(pair.responder, json.dumps(finished))
    assert completed(events_of(pair.responder)).finished_iv == bytes(12)


@clause("WIRE row 21", "WIRE row 26")
@pytest.mark.parametrize("counter", [1, BLOCK, 2**64 - 1])
@pytest.mark.parametrize("common", [True, False], ids=["counted", "not counted"])
def test_a_finished_has_the_first_counter_where_counters_are_used(
    counter: int, common: bool
) -> None:
    counted = MetaProtocol(extensions=("close", "counter"))
    pair = start_pair(offer=counted, answer=counted if common else MetaProtocol())
    tell(pair.initiator, *pair.sent)
    pair.initiator.key_checked(None, now=NOW)
    ours = completed(events_of(pair.initiator)[1:])
    assert (counter_of(ours.sent_iv) == 0) is common
    content = json.dumps({"secretKeyId": ours.keys.secret_key_id}).encode()
    iv = b"salt" + counter.to_bytes(8, "big")
    finished = json.loads(pair.initiator.messages_to_send()[-1])
    finished["verifyData"] = encrypt(ours.keys.send_cipher, content, iv=iv)
    tell(pair.responder, json.dumps(finished))
    if common:
        # As a `message` it would come back under a counter that nobody has seen.
        assert failure_of(pair.responder).code is ErrorCode.DECRYPTION_FAILED
    else:
        assert completed(events_of(pair.responder)).finished_iv == iv


def test_a_message_of_another_kind_fails() -> None:
    pair = start_pair()
    tell(pair.responder, '{"type": "heartbeat", "messageId": "m", "message": "ping"}')
    assert failure_of(pair.responder).code is ErrorCode.NOT_ALLOWED


def test_the_deadline_holds_just_before_it_and_at_it() -> None:
    initiator = make_initiator(now=100.0)
    assert initiator.get_timer() == 110.0
    initiator.handle_timer(now=Moment.at(109.999, WALL_NOW))
    assert events_of(initiator) == []
    initiator.messages_to_send()
    initiator.handle_timer(now=Moment.at(110.0, WALL_NOW))
    failure = failure_of(initiator)
    assert failure.timed_out
    assert "destinationHello" in failure.detail
    # Nothing was received, so there is nothing to answer.
    assert initiator.messages_to_send() == []


def test_a_responder_whose_peer_falls_silent_says_so() -> None:
    pair = start_pair()
    late = Moment.at(10.0, WALL_NOW + timedelta(seconds=10))
    pair.responder.handle_timer(now=late)
    failure = failure_of(pair.responder)
    assert (failure.code, failure.timed_out) == (ErrorCode.ENCRYPTION_FAILED, True)
    [text] = pair.responder.messages_to_send()
    assert json.loads(text)["timestamp"] == "2026-11-21T12:00:10.000Z"


@pytest.mark.parametrize("call", ["receive", "key_checked", "answer", "refuse"])
def test_what_comes_after_the_deadline_comes_too_late(call: str) -> None:
    [hello] = make_initiator().messages_to_send()
    responder = make_responder(hello)
    events_of(responder)
    late = Moment.at(10.0, WALL_NOW)
    match call:
        case "receive":
            tell(responder, hello, now=10.0)
        case "key_checked":
            responder.key_checked(None, now=late)
        case "answer":
            responder.answer(MetaProtocol(), now=late)
        case _:
            responder.refuse(ErrorCode.NOT_ALLOWED, "no", now=late)
    assert failure_of(responder).timed_out


@clause("ANP-Q19")
@pytest.mark.parametrize(
    "answer",
    [
        MetaProtocol(used_protocol_hash="f" * 64),
        MetaProtocol(selected_protocol=URI + "x"),
        MetaProtocol(used_protocol_hash=HASH, selected_protocol=URI),
        MetaProtocol(candidate_protocols=(URI,)),
    ],
)
def test_a_wrong_answer_of_ours_is_our_bug(answer: MetaProtocol) -> None:
    with pytest.raises(LocalError):
        start_pair(offer=OFFER, answer=answer)


def test_answers_nobody_asked_for_are_our_bug() -> None:
    with pytest.raises(LocalError):
        make_initiator().key_checked(None, now=NOW)
    [hello] = make_initiator().messages_to_send()
    with pytest.raises(LocalError):
        make_responder(hello).answer(MetaProtocol(), now=NOW)


@pytest.mark.parametrize(
    "limit", [{"timeout": 0.0}, {"key_lifetime": 0}, {"max_message_size": -1}]
)
def test_limits_no_handshake_could_meet_are_refused(limit: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must be > 0"):
        HandshakeConfig(**limit)
