"""The extension `binary` on a link: who gets binary frames, and what is refused."""

from __future__ import annotations

import json

import pytest

from anp.channel.core.events import ChannelEnded, FrameReceived, LinkFault
from anp.channel.core.limits import LinkConfig
from anp.channel.core.traffic import OpenChannel
from anp.errors import ErrorCode
from anp.wire.envelopes import EXTENSION_BINARY, EnvelopeWriter, is_binary
from anp.wire.frames import Frame, ProtocolType
from anp.wire.meta_protocol import MetaProtocol
from tests.anp.channel.core.link_ends import End, refused
from tests.anp.channel.core.test_traffic import between
from tests.anp.wire.peers import ALICE, BOB

LISTED = MetaProtocol(extensions=(EXTENSION_BINARY, "counter"))
UNLISTED = MetaProtocol(extensions=("counter",))
FRAME = Frame(ProtocolType.APPLICATION, b"some words")


def open_channel(end: End, channel_id: str) -> OpenChannel:
    return end.core._channels[channel_id]


@pytest.mark.parametrize(
    ("requester", "provider", "binary"),
    [
        (LISTED, LISTED, True),
        (LISTED, UNLISTED, False),
        (UNLISTED, LISTED, False),
        (MetaProtocol(), MetaProtocol(), False),
    ],
)
def test_frames_are_binary_only_where_both_sides_listed_it(
    requester: MetaProtocol, provider: MetaProtocol, *, binary: bool
) -> None:
    alice, bob, channel_id = between(requester, provider)
    for one, other in ((alice, bob), (bob, alice)):
        one.core.send_frame(channel_id, FRAME, now=one.moment)
        [sent] = one.core.messages_to_send()
        assert isinstance(sent, bytes)
        assert is_binary(sent) == binary
        assert other.give(sent) == []
        assert other.of(FrameReceived)[-1].frame == FRAME


@pytest.mark.parametrize("meta", [LISTED, MetaProtocol(extensions=("binary",))])
def test_a_binary_frame_that_comes_again_is_refused(meta: MetaProtocol) -> None:
    alice, bob, channel_id = between(meta, meta)
    alice.core.send_frame(channel_id, FRAME, now=alice.moment)
    [sent] = alice.core.messages_to_send()
    bob.give(sent)
    refused(bob.give(sent), ErrorCode.NOT_ALLOWED)
    assert len(bob.of(FrameReceived)) == 1


def binary_writer(end: End, channel_id: str) -> EnvelopeWriter:
    """Return what writes binary frames with the keys of a channel without them."""
    keys = open_channel(end, channel_id).keys
    ids = {"source_did": ALICE.did, "destination_did": BOB.did}
    return EnvelopeWriter(keys, **ids, version="1.0", binary=True)


def test_a_binary_frame_that_was_not_agreed_on_is_refused() -> None:
    alice, bob, channel_id = between(UNLISTED, LISTED)
    sent = binary_writer(alice, channel_id).write(
        b"\x40x", message_id="m", iv=bytes(11) + b"\x05", unix_ns=alice.moment.unix_ns
    )
    refused(bob.give(sent), ErrorCode.NOT_ALLOWED)
    assert bob.of(FrameReceived) == []
    assert "not agreed on" in bob.of(LinkFault)[-1].detail
    # The channel goes on.
    assert bob.give(alice.send(channel_id, FRAME)) == []
    assert bob.of(FrameReceived)[-1].frame == FRAME


def test_json_is_taken_where_binary_was_agreed_on() -> None:
    alice, bob, channel_id = between(LISTED, LISTED)
    keys = open_channel(alice, channel_id).keys
    ids = {"source_did": ALICE.did, "destination_did": BOB.did}
    writer = EnvelopeWriter(keys, **ids, version="1.0", binary=False)
    sent = writer.write(
        b"\x40x", message_id="m", iv=bytes(11) + b"\x05", unix_ns=alice.moment.unix_ns
    )
    assert bob.give(sent) == []
    assert bob.of(FrameReceived)[-1].frame.data == b"x"


@pytest.mark.parametrize("listed", [LISTED, UNLISTED])
def test_the_choice_cannot_be_changed_on_the_way(listed: MetaProtocol) -> None:
    """A hello whose list somebody shortened, or made longer, has no valid signature."""
    alice, bob = End(ALICE, meta=listed), End(BOB, meta=LISTED)
    alice.open(BOB)
    [hello] = alice.core.messages_to_send()
    changed = json.loads(hello)
    changed["metaProtocol"]["extensions"] = sorted(
        {EXTENSION_BINARY, "counter"} ^ set(listed.extensions) | {"counter"}
    )
    refused(bob.give(json.dumps(changed)), ErrorCode.NOT_ALLOWED)
    assert "signature" in bob.of(LinkFault)[-1].detail
    assert not bob.core.channels


def test_a_binary_frame_that_is_cut_off_or_damaged_leaves_the_channel_open() -> None:
    alice, bob, channel_id = between(LISTED, LISTED)
    alice.core.send_frame(channel_id, FRAME, now=alice.moment)
    [sent] = alice.core.messages_to_send()
    assert isinstance(sent, bytes)
    for damaged in (sent[:1], sent[:40], sent[:-1], sent[:-1] + b"\x00", sent + b"x"):
        [answer] = bob.give(damaged)
        assert answer["type"] == "response"
    assert bob.of(FrameReceived) == []
    assert bob.give(sent) == []
    assert bob.of(FrameReceived)[-1].frame == FRAME


def test_a_binary_frame_over_the_limit_ends_its_channel_alone() -> None:
    small = LinkConfig(max_message=4096)
    alice, bob, channel_id = between(LISTED, LISTED, configs=(LinkConfig(), small))
    alice.core.send_frame(
        channel_id, Frame(ProtocolType.APPLICATION, bytes(5000)), now=alice.moment
    )
    [sent] = alice.core.messages_to_send()
    bob.give(sent)
    [ended] = bob.of(ChannelEnded)
    assert ended.channel_id == channel_id
    assert "limit 4096" in ended.reason
