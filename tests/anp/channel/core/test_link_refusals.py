"""Handshakes that a link refuses, and limits against floods."""

from __future__ import annotations

import json

import pytest

from anp.channel.core.events import (
    ChannelEnded,
    ChannelOpened,
    CloseLink,
    FrameReceived,
    HandshakeRefused,
    LinkFault,
    NeedPeerKeyCheck,
)
from anp.channel.core.handshakes import TOO_MANY_CHANNELS
from anp.channel.core.limits import LinkConfig
from anp.errors import ErrorCode, PeerError
from anp.wire.frames import Frame, ProtocolType
from anp.wire.messages import make_heartbeat
from anp.wire.outcome import HandshakeConfig
from tests.anp.channel.core.link_ends import (
    PLAIN,
    changed,
    ends,
    exchange,
    fault_of,
    opened,
    refused,
)
from tests.anp.wire.peers import BOB, EVE, WALL_NOW
from tests.clauses import clause


@clause("WIRE row 25")
def test_a_response_to_a_hello_ends_only_that_handshake() -> None:
    alice, bob = ends()
    first, second = alice.open(BOB), alice.open(BOB)
    hello, other = alice.core.messages_to_send()
    bob.refusal = PeerError(ErrorCode.NOT_ALLOWED, "policy: secret detail")
    response = refused(bob.give(hello), ErrorCode.NOT_ALLOWED)
    assert "secret" not in json.dumps(response)
    alice.give(json.dumps(response))
    [failed] = alice.of(HandshakeRefused)
    assert (failed.session_id, failed.by_peer) == (first, True)

    bob.refusal = None
    answers = bob.give(other)
    said = alice.give(*map(json.dumps, answers))
    bob.give(*map(json.dumps, said))
    assert [o.session_id for o in alice.of(ChannelOpened)] == [second]
    assert alice.core.channels == bob.core.channels


@clause("WIRE row 25")
@pytest.mark.parametrize("code", [ErrorCode.NOT_ALLOWED, ErrorCode.DID_NOT_FOUND])
def test_a_key_that_its_did_does_not_own_is_refused(code: ErrorCode) -> None:
    alice, bob = ends()
    bob.key_error = PeerError(code, "looked up at an inner address")
    session_id = alice.open(BOB)
    response = refused(bob.give(*alice.core.messages_to_send()), code)
    assert "inner address" not in json.dumps(response)
    assert fault_of(bob, code).detail == "looked up at an inner address"
    assert not bob.core.busy
    alice.give(json.dumps(response))
    assert alice.of(HandshakeRefused)[0].session_id == session_id


@clause("WIRE row 25")
def test_a_hello_to_another_did_is_refused() -> None:
    alice, bob = ends()
    alice.open(EVE)
    refused(bob.give(*alice.core.messages_to_send()), ErrorCode.NOT_ALLOWED)
    assert EVE.did in fault_of(bob, ErrorCode.NOT_ALLOWED).detail


@clause("WIRE row 13")
def test_a_repeated_hello_is_refused() -> None:
    alice, bob, _ = opened()
    alice.open(BOB)
    [hello] = alice.core.messages_to_send()
    assert [m["type"] for m in bob.give(hello)] == ["destinationHello", "finished"]
    # While the first is under way its session is in use; later it was seen before.
    refused(bob.give(hello), ErrorCode.NOT_ALLOWED)
    assert "in use" in bob.of(LinkFault)[-1].detail
    bob.wait(bob.core.get_timer() or 0.0)
    refused(bob.give(hello), ErrorCode.NOT_ALLOWED)
    assert "before" in bob.of(LinkFault)[-1].detail


@clause("WIRE row 13")
def test_a_stale_hello_is_told_how_far_the_clocks_differ() -> None:
    alice, bob = ends()
    alice.open(BOB)
    [hello] = alice.core.messages_to_send()
    bob.now = 3600.0
    response = refused(bob.give(hello), ErrorCode.NOT_ALLOWED)
    assert "3600" in response["detail"]
    assert "3600" in bob.of(LinkFault)[-1].detail


@clause("WIRE row 25")
def test_a_hello_signed_by_another_key_is_refused() -> None:
    alice, bob = ends()
    alice.open(BOB)
    [hello] = alice.core.messages_to_send()
    assert isinstance(hello, str)
    refused(bob.give(changed(hello, random="0" * 64)), ErrorCode.NOT_ALLOWED)
    fault_of(bob, ErrorCode.NOT_ALLOWED)
    assert not bob.of(NeedPeerKeyCheck)


def test_a_handshake_nobody_answers_fails_by_the_timer() -> None:
    [alice, _] = ends(config=LinkConfig(handshake=HandshakeConfig(timeout=10.0)))
    session_id = alice.open(BOB)
    assert alice.core.get_timer() == 10.0
    alice.wait(10.0)
    [failed] = alice.of(HandshakeRefused)
    assert failed.session_id == session_id
    assert (failed.timed_out, failed.by_peer) == (True, False)
    assert not alice.of(LinkFault)


def test_an_abandoned_handshake_is_forgotten() -> None:
    alice, bob = ends()
    alice.core.abandon(alice.open(BOB))
    assert not alice.core.busy
    answers = bob.give(*alice.core.messages_to_send())
    assert alice.give(*map(json.dumps, answers)) == []
    assert not alice.core.channels


def test_answers_for_a_handshake_that_is_gone_are_ignored() -> None:
    [_, bob] = ends()
    bob.core.key_checked("gone", None, now=bob.moment)
    bob.core.answer_hello("gone", PLAIN, now=bob.moment)
    bob.core.refuse_hello("gone", ErrorCode.NOT_ALLOWED, "", now=bob.moment)
    assert bob.core.messages_to_send() == []


def test_a_hello_that_cannot_be_judged_now_is_no_fault_of_the_peer() -> None:
    alice, bob = ends(config=LinkConfig(max_faults=2))
    bob.refusal = PeerError(ErrorCode.UNAVAILABLE, "the store is away")
    for _ in range(5):
        alice.open(BOB)
        (said,) = bob.give(*alice.core.messages_to_send())
        assert (said["type"], said["code"]) == ("response", 503)
        # Nothing about our disk or server.
        assert "store" not in said["detail"]
        alice.give(json.dumps(said))
    assert {one.code for one in alice.of(HandshakeRefused)} == {ErrorCode.UNAVAILABLE}
    assert not bob.of(LinkFault)
    assert not bob.of(CloseLink)


def test_a_handshake_past_the_limit_is_refused() -> None:
    alice, bob = ends(config=LinkConfig(max_handshakes=2))
    for _ in range(3):
        alice.open(BOB)
    said = bob.give(*alice.core.messages_to_send())
    assert [m["type"] for m in said] == ["destinationHello", "finished"] * 2 + [
        "response"
    ]
    # Our limit, which the peer cannot know.
    assert not bob.of(LinkFault)


def test_a_channel_past_the_limit_is_refused_and_the_others_stay() -> None:
    alice, bob = ends(config=LinkConfig(max_channels=2))
    for _ in range(3):
        alice.open(BOB)
        exchange(alice, bob)
    assert len(bob.core.channels) == 2
    assert alice.core.channels == bob.core.channels
    assert not bob.of(LinkFault)
    [refused] = alice.of(HandshakeRefused)
    assert refused.detail == TOO_MANY_CHANNELS


def test_what_our_limits_refuse_never_closes_the_link() -> None:
    alice, bob = ends(config=LinkConfig(max_channels=1, max_faults=3))
    for _ in range(10):
        alice.open(BOB)
        exchange(alice, bob)
    assert not bob.of(CloseLink)
    assert len(alice.of(HandshakeRefused)) == 9


def test_too_many_faults_close_the_link_once() -> None:
    [bob, _] = ends(config=LinkConfig(max_faults=3))
    bob.give("no JSON", "no JSON")
    assert not bob.of(CloseLink)
    bob.give("no JSON", "no JSON")
    assert bob.of(CloseLink) == [CloseLink(1008, "too many faults")]


@clause("WIRE row 34")
def test_a_first_message_at_the_limit_is_read_and_one_past_it_closes() -> None:
    [bob, _] = ends(config=LinkConfig(max_first_message=200))
    beat = make_heartbeat("ping", message_id="1", timestamp=WALL_NOW)
    assert len(bob.give(beat + " " * (200 - len(beat)))) == 1
    assert bob.give(beat + " " * (201 - len(beat))) == []
    assert bob.of(CloseLink) == [CloseLink(1009, "message too big")]
    assert len(bob.of(LinkFault)) == 1


@clause("WIRE row 34")
def test_messages_may_be_larger_once_a_channel_was_open() -> None:
    config = LinkConfig(max_first_message=4096, max_message=8192, max_payload=10**6)
    alice, bob, channel_id = opened(config=config)
    frame = Frame(ProtocolType.APPLICATION, bytes(4096))
    assert bob.give(alice.send(channel_id, frame)) == []
    assert bob.of(FrameReceived)[-1].frame == frame
    bob.give(alice.send(channel_id, Frame(ProtocolType.APPLICATION, bytes(8192))))
    assert not bob.of(CloseLink)
    [ended] = bob.of(ChannelEnded)
    assert ended.channel_id == channel_id
    assert "limit 8192" in ended.reason
