"""The handshake that fails: each fault with its code and its answer."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from anp.errors import ErrorCode
from anp.wire.frames import encrypt
from anp.wire.messages import Response, make_response
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.outcome import HandshakeFailed, NeedHelloReply, NeedKeyCheck
from anp.wire.side import HandshakeState
from tests.anp.wire.peers import (
    ALICE,
    BOB,
    EVE,
    HASH,
    NOW,
    URI,
    WALL_NOW,
    FixedIdentity,
    after_answer,
    completed,
    events_of,
    failure_of,
    finish_pair,
    finished_with,
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


@clause("WIRE row 25")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"destinationDid": EVE.did}, ErrorCode.NOT_ALLOWED),
        ({"sourceDid": EVE.did}, ErrorCode.NOT_ALLOWED),
        ({"random": "r" * 192}, None),
        ({"version": "2.0"}, ErrorCode.INVALID_ENCRYPTION_KEY),
        ({"supportedVersions": ["2.0"]}, ErrorCode.INVALID_ENCRYPTION_KEY),
        ({"metaProtocol": {"version": "0.9"}}, ErrorCode.INVALID_ENCRYPTION_KEY),
        ({"cipherSuites": []}, ErrorCode.INVALID_ENCRYPTION_KEY),
        (
            {"cipherSuites": ["TLS_AES_256_GCM_SHA384"]},
            ErrorCode.INVALID_ENCRYPTION_KEY,
        ),
        ({"keyShares": []}, ErrorCode.INVALID_ENCRYPTION_KEY),
        (
            {"keyShares": [{"group": "secp384r1", "expires": 1, "keyExchange": "04"}]},
            ErrorCode.INVALID_ENCRYPTION_KEY,
        ),
    ],
)
def test_a_hello_that_cannot_be_served_is_answered_with_its_code(
    change: dict[str, Any], code: ErrorCode | None
) -> None:
    responder = refused_hello(**change)
    if code is None:
        # Only with our own random is it known that both are too long (WIRE row 3).
        assert isinstance(responder.next_event(), NeedKeyCheck)
        responder.key_checked(None, now=NOW)
        assert isinstance(responder.next_event(), NeedHelloReply)
        responder.answer(MetaProtocol(), now=NOW)
        code = ErrorCode.NOT_ALLOWED
    failure = failure_of(responder)
    response = response_of(responder)
    assert failure.code is response.code is code
    assert response.detail == failure.detail
    assert response.original_type == "sourceHello"
    assert response.source_did == BOB.did


@clause("WIRE row 3")
@pytest.mark.parametrize(("size", "served"), [(191, True), (192, False)])
def test_a_random_is_used_while_both_fit_in_255_bytes(size: int, served: bool) -> None:
    responder = refused_hello(random="r" * size)
    responder.key_checked(None, now=NOW)
    responder.answer(MetaProtocol(), now=NOW)
    assert (responder.state is HandshakeState.EXPECT_FINISHED) == served


@clause("WIRE row 15")
def test_a_key_exchange_that_is_no_point_is_refused() -> None:
    shares = [{"group": "secp256r1", "expires": 60, "keyExchange": "04" + "00" * 64}]
    responder = refused_hello(keyShares=shares)
    responder.key_checked(None, now=NOW)
    events_of(responder)
    responder.answer(MetaProtocol(), now=NOW)
    assert failure_of(responder).code is ErrorCode.INVALID_ENCRYPTION_KEY
    assert response_of(responder).code is ErrorCode.INVALID_ENCRYPTION_KEY


@clause("WIRE row 12", "WIRE row 25")
def test_a_stale_hello_is_told_the_difference_between_the_clocks() -> None:
    [hello] = make_initiator().messages_to_send()
    late = WALL_NOW + timedelta(seconds=45)
    responder = make_responder(hello, wall_now=late)
    assert "45 s behind" in failure_of(responder).detail
    response = response_of(responder)
    assert response.code is ErrorCode.NOT_ALLOWED
    assert "45 s behind" in response.detail


@clause("WIRE row 25")
def test_a_bad_signature_is_refused_before_anybody_is_asked() -> None:
    [text] = make_initiator().messages_to_send()
    responder = make_responder({**json.loads(text), "more": 1})
    assert failure_of(responder).code is ErrorCode.NOT_ALLOWED
    assert response_of(responder).original_message_id == json.loads(text)["messageId"]


@clause("WIRE row 25")
@pytest.mark.parametrize("code", [ErrorCode.NOT_ALLOWED, ErrorCode.DID_NOT_FOUND])
@pytest.mark.parametrize("way", ["key_checked", "refuse"])
def test_a_refusal_of_the_shell_tells_the_peer_the_code_and_no_secrets(
    code: ErrorCode, way: str
) -> None:
    [hello] = make_initiator().messages_to_send()
    responder = make_responder(hello)
    events_of(responder)
    if way == "refuse":
        responder.refuse(code, "cannot reach 10.0.0.7", now=NOW)
    else:
        responder.key_checked("cannot reach 10.0.0.7", code=code, now=NOW)
    assert failure_of(responder) == HandshakeFailed(code, "cannot reach 10.0.0.7")
    response = response_of(responder)
    assert response.code is code
    assert "10.0.0.7" not in response.detail


def test_a_refusal_of_the_answer_is_told_as_well() -> None:
    [hello] = make_initiator().messages_to_send()
    responder = make_responder(hello)
    responder.key_checked(None, now=NOW)
    events_of(responder)
    responder.refuse(ErrorCode.NOT_ALLOWED, "not listed", now=NOW)
    failure_of(responder)
    assert response_of(responder).code is ErrorCode.NOT_ALLOWED


@clause("WIRE row 14", "WIRE row 15", "WIRE row 25")
@pytest.mark.parametrize(
    "change",
    [
        {"cipherSuite": "TLS_AES_256_GCM_SHA384"},
        {"cipherSuite": "TLS_CHACHA20_POLY1305_SHA256"},
        {"selectedVersion": "1.1"},
        {"version": "2.0"},
        {"keyShare": {"group": "secp384r1", "expires": 60, "keyExchange": "04"}},
        {"keyShare": {"group": "secp256r1", "expires": 60, "keyExchange": "04"}},
        {"metaProtocol": {"version": "2.0"}},
    ],
)
def test_the_initiator_refuses_what_was_not_offered(change: dict[str, Any]) -> None:
    initiator = after_answer(**change)
    assert failure_of(initiator).code is ErrorCode.INVALID_ENCRYPTION_KEY
    response = response_of(initiator)
    assert response.code is ErrorCode.INVALID_ENCRYPTION_KEY
    assert response.original_type == "destinationHello"
    assert response.source_did == ALICE.did


@clause("ANP-86", "ANP-Q19", "WIRE row 3", "WIRE row 18")
@pytest.mark.parametrize(
    "change",
    [
        {"sessionId": "another"},
        {"sourceDid": EVE.did},
        {"destinationDid": EVE.did},
        {"random": "r" * 192},
        {"metaProtocol": {"usedProtocolHash": "f" * 64}},
        {"metaProtocol": {"usedProtocolHash": HASH, "selectedProtocol": URI}},
        {"metaProtocol": {"selectedProtocol": URI + "x"}},
    ],
)
def test_the_initiator_refuses_an_answer_that_does_not_belong(
    change: dict[str, Any],
) -> None:
    initiator = after_answer(**change)
    assert failure_of(initiator).code is ErrorCode.NOT_ALLOWED
    assert response_of(initiator).code is ErrorCode.NOT_ALLOWED


@clause("WIRE row 4")
def test_an_answer_signed_by_somebody_else_is_refused() -> None:
    pair = start_pair()
    pair.initiator.messages_to_send()
    method = {**json.loads(pair.sent[0])["verificationMethod"]}
    method["publicKeyHex"] = EVE.public_key_hex
    forged = FixedIdentity(BOB.did, 0xE7E)
    tell(pair.initiator, resigned(pair.sent[0], forged, verificationMethod=method))
    # The signature fits the key inside, so whose key it is decides.
    event = pair.initiator.next_event()
    assert isinstance(event, NeedKeyCheck)
    assert event.public_key.hex() == EVE.public_key_hex
    pair.initiator.key_checked("not Bob's key", now=NOW)
    failure_of(pair.initiator)
    assert response_of(pair.initiator).code is ErrorCode.NOT_ALLOWED


@clause("WIRE row 21")
@pytest.mark.parametrize(
    "content",
    [
        b'{"secretKeyId":"0000000000000000"}',
        b'{"secretKeyId":null}',
        b'{"secretKeyId":"\xc3\xa9"}',
        b'{"secretKeyId":"\\u00e9"}',
        b"{}",
        b"[]",
        b"",
        b"\xff",
        b"[" * 1024,
        b" " * 5000,
    ],
)
def test_a_finished_that_names_another_key_fails(content: bytes) -> None:
    def change(key: bytes, finished: dict[str, Any]) -> dict[str, Any]:
        return {**finished, "verifyData": encrypt(AESGCM(key), content, iv=bytes(12))}

    assert finished_with(change).code is ErrorCode.DECRYPTION_FAILED


@clause("WIRE row 21", "WIRE row 25")
@pytest.mark.parametrize(
    "data",
    [
        {"iv": "", "tag": "", "ciphertext": ""},
        {"iv": "not base64"},
        {"tag": "AAAAAAAAAAAAAAAAAAAAAA=="},
        {"ciphertext": ""},
    ],
)
def test_a_finished_that_does_not_decrypt_is_answered_with_4001(
    data: dict[str, str],
) -> None:
    def change(key: bytes, finished: dict[str, Any]) -> dict[str, Any]:
        return {**finished, "verifyData": {**finished["verifyData"], **data}}

    assert finished_with(change).code is ErrorCode.DECRYPTION_FAILED


def test_our_own_finished_sent_back_fails() -> None:
    pair = start_pair()
    finished = json.loads(pair.sent[1])
    swapped = {"sourceDid": ALICE.did, "destinationDid": BOB.did}
    tell(pair.responder, json.dumps({**finished, **swapped}))
    assert failure_of(pair.responder).code is ErrorCode.DECRYPTION_FAILED


@clause("WIRE row 18")
@pytest.mark.parametrize("name", ["sessionId", "sourceDid", "destinationDid"])
def test_a_finished_of_another_handshake_fails(name: str) -> None:
    def change(key: bytes, finished: dict[str, Any]) -> dict[str, Any]:
        return {**finished, name: "did:example:other"}

    assert finished_with(change).code is ErrorCode.NOT_ALLOWED


@clause("WIRE row 25")
def test_a_response_to_our_hello_ends_the_handshake_unanswered() -> None:
    initiator = make_initiator()
    [hello] = initiator.messages_to_send()
    text = make_response(
        ErrorCode.DID_NOT_FOUND,
        "who?\n" * 100,
        source_did=BOB.did,
        destination_did=ALICE.did,
        original_type="sourceHello",
        original_message_id=json.loads(hello)["messageId"],
        message_id="m-1",
        timestamp=WALL_NOW,
    )
    tell(initiator, text)
    failure = failure_of(initiator)
    assert failure.code is ErrorCode.DID_NOT_FOUND
    assert "\n" not in failure.detail
    assert initiator.messages_to_send() == []


@clause("WIRE row 25")
def test_a_response_in_the_form_of_the_sdk_is_understood() -> None:
    initiator = make_initiator()
    message_id = json.loads(initiator.messages_to_send()[0])["messageId"]
    short = {"type": "response", "messageId": message_id, "code": 403}
    response = read_message(json.dumps(short))
    assert isinstance(response, Response)
    assert initiator.is_refused_by(response)


@pytest.mark.parametrize(
    "fields", [{"originalMessageId": "x", "code": 403}, {"code": 403}, {"code": 200}]
)
def test_any_other_response_changes_nothing(fields: dict[str, Any]) -> None:
    pair = start_pair()
    message_id = json.loads(pair.source_hello)["messageId"]
    text = json.dumps({"type": "response", **fields})
    good = {"type": "response", "originalMessageId": message_id, "code": 200}
    for side in (pair.initiator, pair.responder):
        tell(side, text, json.dumps(good))
        assert side.messages_to_send() == []
    ours, theirs = finish_pair(pair)
    completed(ours)
    completed(theirs)


@clause("WIRE row 25")
def test_a_key_that_is_not_the_dids_is_an_answer_to_the_hello() -> None:
    pair = start_pair()
    pair.initiator.messages_to_send()
    tell(pair.initiator, *pair.sent)
    events_of(pair.initiator)
    pair.initiator.key_checked("not Bob's key", now=NOW)
    response = response_of(pair.initiator)
    assert response.original_type == "destinationHello"
    assert response.original_message_id == json.loads(pair.sent[0])["messageId"]
