"""The core of a link, as two cores wired back to back; no socket and no clock."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.channel.core.events import (
    ChannelEnded,
    ChannelOpened,
    ChannelRole,
    CloseLink,
    FrameReceived,
    HandshakeRefused,
    LinkEvent,
    LinkFault,
    NeedHelloAnswer,
    NeedPeerKeyCheck,
)
from anp.channel.core.handshakes import TOO_MANY_CHANNELS
from anp.channel.core.limits import LinkConfig
from anp.channel.core.link_core import (
    EXTENSION_CLOSE,
    IDLE,
    FrameTooLarge,
    LinkCore,
)
from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.envelopes import is_binary
from anp.wire.frames import Frame, ProtocolType
from anp.wire.handshake import HandshakeConfig
from anp.wire.messages import MetaProtocol, make_heartbeat
from anp.wire.moment import Moment
from anp.wire.replay import HelloMemory
from tests.anp.wire.peers import ALICE, BOB, EVE, WALL_NOW, FixedIdentity, fixed_random
from tests.clauses import clause

PLAIN = MetaProtocol()
CLOSING = MetaProtocol(extensions=("close",))
HELLO = Frame(ProtocolType.APPLICATION, b"hello")


class End:
    """One core, its events, and what it said that was not delivered yet."""

    def __init__(
        self,
        identity: FixedIdentity,
        *,
        meta: MetaProtocol = PLAIN,
        config: LinkConfig | None = None,
        seed: str = "",
    ) -> None:
        self.identity = identity
        self.meta = meta
        self.now = 0.0
        self.key_error: PeerError | None = None
        self.refusal: PeerError | None = None
        self.events: list[LinkEvent] = []
        self.core = LinkCore(
            config or LinkConfig(),
            identity_for=lambda did: identity if did == identity.did else None,
            hellos=HelloMemory(),
            random_bytes=fixed_random(f"{identity.did} {seed}"),
            now=0.0,
        )

    @property
    def moment(self) -> Moment:
        """The time as the core wants it."""
        return Moment(self.now, WALL_NOW + timedelta(seconds=self.now))

    def open(self, peer: FixedIdentity, meta: MetaProtocol | None = None) -> str:
        return self.core.open_channel(
            self.identity, peer.did, meta or self.meta, now=self.moment
        )

    def act(self) -> None:
        """Do what the shell does: answer questions, keep the other events."""
        while (event := self.core.next_event()) is not None:
            self.events.append(event)
            match event:
                case NeedPeerKeyCheck(session_id):
                    self.core.key_checked(session_id, self.key_error, now=self.moment)
                case NeedHelloAnswer(session_id) if self.refusal is not None:
                    self.core.refuse_hello(
                        session_id,
                        self.refusal.code,
                        self.refusal.detail,
                        now=self.moment,
                    )
                case NeedHelloAnswer(session_id):
                    self.core.answer_hello(session_id, self.meta, now=self.moment)

    def give(self, *texts: str | bytes) -> list[dict[str, Any]]:
        """Give messages to the core and return what it says to them."""
        for text in texts:
            self.core.receive_text(text, now=self.moment)
            self.act()
        return [json.loads(text) for text in self.core.messages_to_send()]

    def send(self, channel_id: str, frame: Frame = HELLO) -> str:
        """Return one sealed frame as text."""
        self.core.send_frame(channel_id, frame, now=self.moment)
        [text] = self.core.messages_to_send()
        assert isinstance(text, bytes)
        assert not is_binary(text)
        return text.decode()

    def wait(self, seconds: float) -> list[dict[str, Any]]:
        """Let time pass and fire the timer; return what the core says."""
        self.now += seconds
        self.core.handle_timer(now=self.moment)
        self.act()
        return [json.loads(text) for text in self.core.messages_to_send()]

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the events of one kind so far."""
        return [event for event in self.events if isinstance(event, kind)]


def exchange(one: End, other: End) -> None:
    """Carry messages both ways until nobody has anything to say."""
    while True:
        moved = False
        for end, peer in ((one, other), (other, one)):
            end.act()
            for text in end.core.messages_to_send():
                peer.core.receive_text(text, now=peer.moment)
                peer.act()
                moved = True
        if not moved:
            return


def ends(*, meta: MetaProtocol = PLAIN, config: LinkConfig | None = None) -> list[End]:
    """Return Alice's and Bob's ends of one link."""
    return [End(who, meta=meta, config=config) for who in (ALICE, BOB)]


def opened(
    *, meta: MetaProtocol = PLAIN, config: LinkConfig | None = None
) -> tuple[End, End, str]:
    """Return both ends with one channel from Alice to Bob, and its id."""
    alice, bob = ends(meta=meta, config=config)
    alice.open(BOB)
    exchange(alice, bob)
    [channel_id] = alice.core.channels
    assert bob.core.channels == {channel_id}
    return alice, bob, channel_id


def fault_of(end: End, code: ErrorCode) -> LinkFault:
    """Return the one fault that was counted."""
    [fault] = end.of(LinkFault)
    assert fault.code is code
    assert isinstance(fault, LinkFault)
    return fault


def refused(said: list[dict[str, Any]], code: ErrorCode) -> dict[str, Any]:
    """Return the one `response` that was said."""
    [response] = said
    assert (response["type"], response["code"]) == ("response", int(code))
    return response


def changed(text: str, **changes: Any) -> str:
    return json.dumps({**json.loads(text), **changes})


# --- channels and frames -------------------------------------------------------------


@clause("ANP-11", "WIRE row 26")
def test_several_channels_of_both_directions_share_one_link() -> None:
    alice, bob = ends()
    alice.open(BOB)
    bob.open(ALICE)
    alice.open(BOB)
    exchange(alice, bob)

    assert alice.core.channels == bob.core.channels
    assert len(alice.core.channels) == 3
    ours = {o.channel_id: o.role for o in alice.of(ChannelOpened)}
    theirs = {o.channel_id: o.role for o in bob.of(ChannelOpened)}
    assert sorted(ours.values()) == [
        ChannelRole.PROVIDER,
        ChannelRole.REQUESTER,
        ChannelRole.REQUESTER,
    ]
    assert all(ours[channel] is not theirs[channel] for channel in ours)
    for channel in ours:
        for end, peer in ((alice, bob), (bob, alice)):
            frame = Frame(ProtocolType.META, channel.encode())
            assert peer.give(end.send(channel, frame)) == []
            received = peer.of(FrameReceived)[-1]
            assert (received.channel_id, received.frame) == (channel, frame)
    assert not alice.of(LinkFault) + bob.of(LinkFault)


def test_a_channel_tells_who_the_peer_is_and_what_it_offered() -> None:
    alice, bob, channel_id = opened(meta=CLOSING)
    [seen] = bob.of(ChannelOpened)
    assert (seen.channel_id, seen.local_did, seen.peer_did) == (
        channel_id,
        BOB.did,
        ALICE.did,
    )
    assert seen.public_key.hex() == ALICE.public_key_hex
    assert seen.peer_meta.extensions == CLOSING.extensions
    assert alice.of(ChannelOpened)[0].public_key.hex() == BOB.public_key_hex


def test_a_link_is_busy_from_the_hello_to_the_end_of_the_last_channel() -> None:
    alice, bob = ends()
    assert not alice.core.busy
    alice.open(BOB)
    assert alice.core.busy
    exchange(alice, bob)
    [channel_id] = alice.core.channels
    alice.core.close_channel(
        channel_id, ErrorCode.ENCRYPTION_KEY_EXPIRED, "done", now=alice.moment
    )
    assert not alice.core.busy


@clause("WIRE row 26")
def test_a_replayed_envelope_is_refused() -> None:
    alice, bob, channel_id = opened()
    text = alice.send(channel_id)
    assert bob.give(text) == []
    response = refused(bob.give(text), ErrorCode.NOT_ALLOWED)
    assert response["originalMessageId"] == json.loads(text)["messageId"]
    assert "replay" in fault_of(bob, ErrorCode.NOT_ALLOWED).detail
    assert len(bob.of(FrameReceived)) == 1
    assert bob.core.channels == {channel_id}


@clause("WIRE row 26")
@pytest.mark.parametrize("field", ["sourceDid", "destinationDid"])
def test_an_envelope_with_other_dids_than_its_key_is_refused(field: str) -> None:
    alice, bob, channel_id = opened()
    text = changed(alice.send(channel_id), **{field: EVE.did})
    refused(bob.give(text), ErrorCode.NOT_ALLOWED)
    fault_of(bob, ErrorCode.NOT_ALLOWED)
    assert not bob.of(FrameReceived)


@clause("WIRE row 25")
def test_a_flipped_bit_is_refused_and_the_channel_goes_on() -> None:
    alice, bob, channel_id = opened()
    text = alice.send(channel_id)
    data = json.loads(text)["encryptedData"]
    cipher = data["ciphertext"]
    data["ciphertext"] = ("B" if cipher[0] == "A" else "A") + cipher[1:]
    refused(bob.give(changed(text, encryptedData=data)), ErrorCode.DECRYPTION_FAILED)
    fault_of(bob, ErrorCode.DECRYPTION_FAILED)
    # The iv of what did not decrypt is not used up, so the true message still passes.
    assert bob.give(text) == []
    assert len(bob.of(FrameReceived)) == 1


@clause("WIRE row 25")
def test_an_unknown_key_id_is_refused() -> None:
    alice, bob, channel_id = opened()
    text = changed(alice.send(channel_id), secretKeyId="f" * 16)
    refused(bob.give(text), ErrorCode.INVALID_DECRYPTION_KEY)
    fault_of(bob, ErrorCode.INVALID_DECRYPTION_KEY)


@clause("ANP-12", "WIRE row 36")
def test_a_frame_without_a_byte_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    alice, bob, channel_id = opened()
    monkeypatch.setattr("anp.channel.core.traffic.encode_frame", lambda *_: b"")
    refused(bob.give(alice.send(channel_id)), ErrorCode.NOT_ALLOWED)
    assert "without a header" in fault_of(bob, ErrorCode.NOT_ALLOWED).detail
    assert bob.core.channels == {channel_id}


def test_nothing_is_sent_on_a_channel_that_is_not_open() -> None:
    alice, _, _ = opened()
    with pytest.raises(LocalError):
        alice.core.send_frame("unknown", HELLO, now=alice.moment)


@clause("WIRE row 34")
def test_a_payload_at_the_limit_passes_and_one_byte_more_is_not_sent() -> None:
    alice, bob, channel_id = opened(config=LinkConfig(max_payload=100))
    fits = Frame(ProtocolType.APPLICATION, bytes(100))
    assert bob.give(alice.send(channel_id, fits)) == []
    assert bob.of(FrameReceived)[-1].frame == fits

    with pytest.raises(FrameTooLarge, match="too_large: 101 bytes"):
        alice.core.send_frame(
            channel_id, Frame(ProtocolType.APPLICATION, bytes(101)), now=alice.moment
        )
    assert alice.core.messages_to_send() == []


# --- what comes before `finished` ----------------------------------------------------


def overtaken(count: int, config: LinkConfig) -> tuple[End, list[dict[str, Any]]]:
    """Give Bob `count` envelopes before `finished`; return him and what he said."""
    alice, bob = ends(config=config)
    alice.open(BOB)
    answers = bob.give(*alice.core.messages_to_send())
    [finished] = map(json.dumps, alice.give(*map(json.dumps, answers)))
    [channel_id] = alice.core.channels
    early = [
        alice.send(channel_id, Frame(ProtocolType.APPLICATION, bytes([number])))
        for number in range(count)
    ]
    said = bob.give(*early)
    assert not bob.of(FrameReceived)
    said += bob.give(finished)
    return bob, said


@clause("GBZ-2", "GBZ-3", "WIRE row 29")
def test_envelopes_that_overtake_finished_are_held_up_to_the_limit() -> None:
    bob, said = overtaken(16, LinkConfig())
    assert said == []
    assert [e.frame.data for e in bob.of(FrameReceived)] == [
        bytes([number]) for number in range(16)
    ]
    kinds = [type(event) for event in bob.events]
    assert kinds.index(ChannelOpened) < kinds.index(FrameReceived)


@clause("WIRE row 29")
def test_one_envelope_past_the_limit_is_refused() -> None:
    bob, said = overtaken(17, LinkConfig())
    refused(said, ErrorCode.INVALID_DECRYPTION_KEY)
    fault_of(bob, ErrorCode.INVALID_DECRYPTION_KEY)
    assert len(bob.of(FrameReceived)) == 16


def test_held_envelopes_are_bounded_in_bytes_as_well() -> None:
    bob, said = overtaken(2, LinkConfig(max_held_bytes=600))
    refused(said, ErrorCode.INVALID_DECRYPTION_KEY)
    assert len(bob.of(FrameReceived)) == 1


# --- ends ----------------------------------------------------------------------------


@clause("WIRE row 16")
def test_a_channel_ends_when_its_key_expires() -> None:
    config = LinkConfig(handshake=HandshakeConfig(key_lifetime=100))
    alice, bob, channel_id = opened(config=config)
    assert bob.core.get_timer() == 100.0
    text = alice.send(channel_id)
    bob.wait(99.0)
    assert bob.core.channels == {channel_id}
    bob.wait(1.0)
    assert bob.of(ChannelEnded) == [ChannelEnded(channel_id, "the key expired", False)]
    assert bob.core.get_timer() is None
    refused(bob.give(text), ErrorCode.INVALID_DECRYPTION_KEY)


@clause("WIRE row 25")
def test_an_expired_key_is_refused_even_before_the_timer_fired() -> None:
    config = LinkConfig(handshake=HandshakeConfig(key_lifetime=100))
    alice, bob, channel_id = opened(config=config)
    text = alice.send(channel_id)
    bob.now = 100.0
    refused(bob.give(text), ErrorCode.DECRYPTION_KEY_EXPIRED)
    fault_of(bob, ErrorCode.DECRYPTION_KEY_EXPIRED)
    assert not bob.core.channels


def test_a_channel_is_closed_with_the_extension_when_both_have_it() -> None:
    alice, bob, channel_id = opened(meta=CLOSING)
    alice.core.close_channel(
        channel_id, ErrorCode.ENCRYPTION_KEY_EXPIRED, "enough", now=alice.moment
    )
    alice.act()
    [text] = alice.core.messages_to_send()
    assert json.loads(text)["type"] == "message"
    assert bob.give(text) == []
    assert alice.of(ChannelEnded) == [ChannelEnded(channel_id, "enough", False)]
    assert bob.of(ChannelEnded) == [ChannelEnded(channel_id, "enough", True)]
    assert not bob.core.channels
    assert not bob.of(LinkFault)


def test_closing_at_the_same_time_is_no_fault_of_anybody() -> None:
    alice, bob, channel_id = opened(meta=CLOSING)
    crossing = [bob.send(channel_id) for _ in range(3)]
    for end in (alice, bob):
        end.core.close_channel(
            channel_id, ErrorCode.ENCRYPTION_KEY_EXPIRED, "enough", now=end.moment
        )
    [close] = alice.give(*crossing)
    assert close["type"] == "message"
    bob.give(json.dumps(close))
    exchange(alice, bob)
    assert not alice.of(LinkFault)
    assert not bob.of(LinkFault)


def test_what_goes_on_coming_on_a_closed_channel_is_a_fault() -> None:
    alice, bob, channel_id = opened(meta=CLOSING)
    frames = [bob.send(channel_id) for _ in range(17)]
    alice.core.close_channel(
        channel_id, ErrorCode.ENCRYPTION_KEY_EXPIRED, "enough", now=alice.moment
    )
    alice.core.messages_to_send()
    refused(alice.give(*frames), ErrorCode.INVALID_DECRYPTION_KEY)
    fault_of(alice, ErrorCode.INVALID_DECRYPTION_KEY)


@clause("WIRE row 25")
def test_a_peer_without_the_extension_is_told_that_the_key_expired() -> None:
    alice, bob, channel_id = opened()
    alice.core.close_channel(
        channel_id, ErrorCode.ENCRYPTION_KEY_EXPIRED, "enough", now=alice.moment
    )
    [text] = alice.core.messages_to_send()
    refused([json.loads(text)], ErrorCode.ENCRYPTION_KEY_EXPIRED)
    # It is not authenticated, so it must not end the channel on the other side.
    assert bob.give(text) == []
    assert bob.core.channels == {channel_id}
    fault_of(bob, ErrorCode.NOT_ALLOWED)


def test_closing_a_channel_twice_is_harmless() -> None:
    alice, _, channel_id = opened()
    for _ in range(2):
        alice.core.close_channel(
            channel_id, ErrorCode.ENCRYPTION_KEY_EXPIRED, "enough", now=alice.moment
        )
    alice.act()
    assert len(alice.of(ChannelEnded)) == 1
    assert len(alice.core.messages_to_send()) == 1


def test_everything_ends_with_the_link() -> None:
    alice, _, channel_id = opened()
    session_id = alice.open(BOB)
    alice.core.link_lost("gone")
    alice.act()
    assert alice.of(ChannelEnded) == [ChannelEnded(channel_id, "gone", False)]
    [failed] = alice.of(HandshakeRefused)
    assert (failed.session_id, failed.detail) == (session_id, "gone")
    assert not alice.core.busy


def test_a_link_on_which_no_channel_opens_is_closed_once() -> None:
    [alice, _] = ends()
    assert alice.core.get_timer() == 20.0
    alice.wait(19.0)
    assert not alice.of(CloseLink)
    alice.wait(1.0)
    alice.wait(1.0)
    assert alice.of(CloseLink) == [CloseLink(1008, "no channel was opened")]


# --- refusals ------------------------------------------------------------------------


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


# --- floods --------------------------------------------------------------------------


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


# --- the rest of the wire ------------------------------------------------------------


@clause("WIRE row 31")
def test_a_heartbeat_is_answered_before_any_handshake() -> None:
    [bob, _] = ends()
    [pong] = bob.give(make_heartbeat("ping", message_id="7", timestamp=WALL_NOW))
    assert (pong["type"], pong["message"]) == ("heartbeat", "pong")
    assert bob.give(json.dumps(pong)) == []
    assert not bob.events


@clause("WIRE row 32")
def test_a_registration_for_a_router_is_ignored() -> None:
    [bob, _] = ends()
    assert bob.give(json.dumps({"type": "register", "messageId": "1"})) == []
    assert not bob.events


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "",
        "null",
        "[]",
        '"sourceHello"',
        "{}",
        '{"type": 1}',
        '{"type": "unheardOf"}',
        '{"type": "sourceHello"}',
        '{"type": "message", "secretKeyId": []}',
        '{"type": "response", "code": "403"}',
        '{"type": "heartbeat", "messageId": "1", "message": "pang"}',
        '{"type": "heartbeat", "type": "register"}',
        '{"type": "finished", "sessionId": "unknown"}',
        b"\xff\xfe",
        nested(30_000),
        '{"type": "sourceHello", "x": ' + nested(30_000) + "}",
    ],
    ids=lambda text: repr(text[:30]),
)
def test_what_is_no_message_is_one_fault_and_no_exception(text: str | bytes) -> None:
    [bob, _] = ends()
    bob.give(text)
    [fault] = bob.events
    assert isinstance(fault, LinkFault)
    assert "\n" not in fault.detail
    assert len(fault.detail) < 500


KINDS = [
    *("sourceHello", "destinationHello", "finished", "message"),
    *("response", "heartbeat", "register"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner)
    ),
    max_leaves=10,
)
FIELDS = st.sampled_from(
    [
        *("sessionId", "sourceDid", "destinationDid", "messageId", "random"),
        *("secretKeyId", "encryptedData", "verifyData", "metaProtocol", "proof"),
        *("keyShares", "keyShare", "code", "verificationMethod", "message"),
    ]
)


@given(texts=st.lists(st.text() | st.binary(), max_size=5))
def test_no_bytes_raise(texts: list[str | bytes]) -> None:
    [bob, _] = ends()
    bob.give(*texts)
    assert len(bob.of(LinkFault)) == len(bob.events)


@given(kind=st.sampled_from(KINDS), fields=st.dictionaries(FIELDS, JSON))
def test_no_fields_raise(kind: str, fields: dict[str, Any]) -> None:
    [bob, _] = ends()
    bob.give(json.dumps({"type": kind, **fields}))
    assert not bob.core.channels


@given(data=st.data())
def test_no_change_of_a_true_hello_raises_or_opens(data: st.DataObject) -> None:
    alice, bob = ends()
    alice.open(BOB)
    [hello] = alice.core.messages_to_send()
    value = json.loads(hello)
    name = data.draw(st.sampled_from(sorted(set(value) - {"type"})))
    value[name] = data.draw(JSON)
    bob.give(json.dumps(value))
    assert not bob.core.channels


# --- idle channels -------------------------------------------------------------------


CLOSES = MetaProtocol(extensions=(EXTENSION_CLOSE,))


@pytest.mark.parametrize(("reason", "unprocessed"), [(IDLE, True), ("revoked", False)])
def test_a_request_that_crosses_the_end_of_an_idle_channel_was_not_acted_on(
    reason: str, unprocessed: bool
) -> None:
    alice, bob, channel_id = opened(meta=CLOSES)
    crossing = alice.send(channel_id, Frame(ProtocolType.APPLICATION, b"request"))
    bob.core.close_channel(
        channel_id, ErrorCode.ENCRYPTION_KEY_EXPIRED, reason, now=bob.moment
    )
    said = bob.core.messages_to_send()
    assert bob.give(crossing) == []
    assert not bob.of(FrameReceived)
    assert not bob.of(LinkFault)
    alice.give(*said)
    [ended] = alice.of(ChannelEnded)
    assert (ended.by_peer, ended.unprocessed) == (True, unprocessed)


def test_what_a_provider_waits_for_is_not_proved_by_an_idle_requester() -> None:
    alice, bob, channel_id = opened(meta=CLOSES)
    alice.core.close_channel(
        channel_id, ErrorCode.ENCRYPTION_KEY_EXPIRED, IDLE, now=alice.moment
    )
    bob.give(*alice.core.messages_to_send())
    [ended] = bob.of(ChannelEnded)
    assert not ended.unprocessed
