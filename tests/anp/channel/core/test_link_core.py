"""The channels of a link and their frames, from their beginning to their end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anp.channel.core.events import (
    ChannelEnded,
    ChannelOpened,
    ChannelRole,
    CloseLink,
    FrameReceived,
    HandshakeRefused,
    LinkFault,
)
from anp.channel.core.limits import LinkConfig
from anp.channel.core.traffic import EXTENSION_CLOSE, IDLE, FrameTooLarge
from anp.errors import ErrorCode, LocalError
from anp.wire.frames import Frame, ProtocolType
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.outcome import HandshakeConfig
from tests.anp.channel.core.link_ends import (
    CLOSING,
    HELLO,
    End,
    changed,
    ends,
    exchange,
    fault_of,
    opened,
    refused,
)
from tests.anp.wire.peers import ALICE, BOB, EVE
from tests.clauses import clause


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
