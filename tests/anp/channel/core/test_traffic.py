"""Frames that need a capability of both sides: the rule, and a link that keeps it."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.channel.core.events import (
    ChannelEnded,
    ChannelOpened,
    CloseLink,
    FrameIgnored,
    FrameReceived,
    LinkFault,
    RenewalDue,
)
from anp.channel.core.limits import LinkConfig, RenewalLimits
from anp.channel.core.traffic import (
    NEEDED,
    check_agreed,
    missing_capability,
)
from anp.errors import ErrorCode, LocalError
from anp.wire.frames import (
    FORMAT_1_0,
    Frame,
    FrameFormat,
    ProtocolType,
    encode_frame,
)
from anp.wire.meta_protocol import CAPABILITIES, MetaProtocol
from anp.wire.outcome import HandshakeConfig
from anp.wire.replay import EXTENSION_COUNTER
from tests.anp.channel.core.link_ends import (
    End,
    changed,
    exchange,
    fault_of,
    refused,
)
from tests.anp.wire.peers import ALICE, BOB, WALL_NOW, seal
from tests.clauses import clause

ALL = MetaProtocol(supported_capabilities=CAPABILITIES)
NONE = MetaProtocol()
BASIC = [ProtocolType.META, ProtocolType.APPLICATION]
OPTIONAL = [ProtocolType.NATURAL_LANGUAGE, ProtocolType.VERIFICATION]
LATER = FrameFormat("2.0", header_size=2)
LIMIT = LinkConfig().max_unagreed_frames


def between(
    requester: MetaProtocol,
    provider: MetaProtocol,
    *,
    configs: tuple[LinkConfig, LinkConfig] | None = None,
) -> tuple[End, End, str]:
    """Return Alice's and Bob's ends with one channel from her to him, and its id."""
    one, two = configs or (LinkConfig(), LinkConfig())
    alice = End(ALICE, meta=requester, config=one)
    bob = End(BOB, meta=provider, config=two)
    alice.open(BOB)
    exchange(alice, bob)
    [channel_id] = alice.core.channels
    return alice, bob, channel_id


class Hostile:
    """Seals what the core would refuse to send, with the keys of Alice's channel."""

    def __init__(self, alice: End, channel_id: str) -> None:
        # A peer that keeps no rules has no core; here it borrows the keys of one.
        self._keys = alice.core._channels[channel_id].keys
        self._numbers = itertools.count(1)

    def frame(self, protocol_type: ProtocolType, data: bytes = b"x") -> str:
        number = next(self._numbers)
        return seal(
            self._keys,
            encode_frame(Frame(protocol_type, data)),
            source_did=ALICE.did,
            destination_did=BOB.did,
            message_id=f"m-{number}",
            iv=number.to_bytes(12, "big"),
            timestamp=WALL_NOW,
        )


# --- the rule ------------------------------------------------------------------------


@clause("ANP-77", "ANP-81", "ANP-Q12")
def test_two_protocol_types_are_optional_and_two_are_basic() -> None:
    assert {kind: kind.value for kind in NEEDED} == {
        ProtocolType.NATURAL_LANGUAGE: 0b10,
        ProtocolType.VERIFICATION: 0b11,
    }
    assert set(NEEDED.values()) == {"naturalLanguageProtocol", "verificationProtocol"}


@clause("ANP-77")
@pytest.mark.parametrize("protocol_type", BASIC)
def test_basic_types_need_nothing(protocol_type: ProtocolType) -> None:
    assert missing_capability(protocol_type, frozenset()) is None
    check_agreed(protocol_type, frozenset())


@clause("ANP-81")
@given(st.sampled_from(OPTIONAL), st.frozensets(st.sampled_from(CAPABILITIES)))
def test_an_optional_type_needs_its_own_capability_and_no_other(
    protocol_type: ProtocolType, common: frozenset[str]
) -> None:
    needed = NEEDED[protocol_type]
    assert missing_capability(protocol_type, common) == (
        None if needed in common else needed
    )


@clause("ANP-81")
@pytest.mark.parametrize("protocol_type", OPTIONAL)
def test_sending_what_is_not_common_is_our_error_and_names_the_capability(
    protocol_type: ProtocolType,
) -> None:
    with pytest.raises(LocalError, match=NEEDED[protocol_type]):
        check_agreed(protocol_type, frozenset())


@pytest.mark.parametrize(
    # `finished` has the first counter; without counters only frames are counted.
    ("meta", "frames"),
    [(MetaProtocol(extensions=(EXTENSION_COUNTER,)), 9), (MetaProtocol(), 5)],
)
def test_a_renewal_is_due_at_a_number_of_messages(
    meta: MetaProtocol, frames: int
) -> None:
    config = LinkConfig(renewal=RenewalLimits(messages=10, plain_messages=5))
    alice, _, channel_id = between(meta, meta, configs=(config, LinkConfig()))
    for number in range(1, frames + 2):
        frame = Frame(ProtocolType.APPLICATION, b"x")
        alice.core.send_frame(channel_id, frame, now=alice.moment)
        alice.act()
        assert len(alice.of(RenewalDue)) == (number >= frames)


# --- on a link -----------------------------------------------------------------------


@clause("ANP-81")
@pytest.mark.parametrize(
    ("requester", "provider", "common"),
    [
        (ALL, ALL, CAPABILITIES),
        (ALL, NONE, ()),
        (NONE, ALL, ()),
        (
            MetaProtocol(supported_capabilities=CAPABILITIES[:3]),
            MetaProtocol(supported_capabilities=CAPABILITIES[2:]),
            CAPABILITIES[2:3],
        ),
    ],
)
def test_both_ends_know_the_same_common_capabilities(
    requester: MetaProtocol, provider: MetaProtocol, common: tuple[str, ...]
) -> None:
    alice, bob, _ = between(requester, provider)
    for end in (alice, bob):
        [opened] = end.of(ChannelOpened)
        assert opened.capabilities == frozenset(common)
        assert opened.version == "1.0"


@clause("ANP-13", "ANP-81")
@pytest.mark.parametrize("protocol_type", ProtocolType)
def test_with_all_capabilities_common_every_type_passes_both_ways(
    protocol_type: ProtocolType,
) -> None:
    alice, bob, channel_id = between(ALL, ALL)
    frame = Frame(protocol_type, b"\xff any bytes")
    for sender, receiver in ((alice, bob), (bob, alice)):
        assert receiver.give(sender.send(channel_id, frame)) == []
        assert receiver.of(FrameReceived)[-1].frame == frame


@clause("ANP-81")
@pytest.mark.parametrize(("requester", "provider"), [(ALL, NONE), (NONE, ALL)])
@pytest.mark.parametrize("protocol_type", OPTIONAL)
def test_what_one_side_did_not_list_leaves_neither_of_them(
    requester: MetaProtocol, provider: MetaProtocol, protocol_type: ProtocolType
) -> None:
    alice, bob, channel_id = between(requester, provider)
    for end in (alice, bob):
        with pytest.raises(LocalError, match=NEEDED[protocol_type]):
            end.core.send_frame(channel_id, Frame(protocol_type, b"x"), now=end.moment)
        assert end.core.messages_to_send() == []
        assert channel_id in end.core.channels


@clause("ANP-81", "ANP-Q17")
@pytest.mark.parametrize("protocol_type", OPTIONAL)
def test_an_unagreed_frame_is_dropped_and_the_channel_goes_on(
    protocol_type: ProtocolType,
) -> None:
    alice, bob, channel_id = between(ALL, NONE)
    hostile = Hostile(alice, channel_id)
    assert bob.give(hostile.frame(protocol_type)) == []
    assert bob.of(FrameIgnored) == [FrameIgnored(channel_id, NEEDED[protocol_type], 1)]
    assert bob.give(hostile.frame(ProtocolType.APPLICATION, b"real")) == []
    [received] = bob.of(FrameReceived)
    assert received.frame == Frame(ProtocolType.APPLICATION, b"real")
    assert not bob.of(LinkFault)


@clause("ANP-Q17")
def test_too_many_unagreed_frames_end_their_channel_and_no_other() -> None:
    alice, bob, channel_id = between(ALL, NONE)
    alice.open(BOB)
    exchange(alice, bob)
    [other] = alice.core.channels - {channel_id}
    hostile = Hostile(alice, channel_id)
    for number in range(1, LIMIT):
        assert bob.give(hostile.frame(OPTIONAL[number % 2])) == []
    assert channel_id in bob.core.channels

    response = refused(
        bob.give(hostile.frame(OPTIONAL[0])), ErrorCode.ENCRYPTION_KEY_EXPIRED
    )
    assert response["detail"] == (
        f"{LIMIT} frames that need naturalLanguageProtocol, which not both sides listed"
    )
    assert [event.count for event in bob.of(FrameIgnored)] == [*range(1, LIMIT + 1)]
    [ended] = bob.of(ChannelEnded)
    assert (ended.channel_id, ended.by_peer) == (channel_id, False)
    assert bob.core.channels == {other}
    assert not bob.of(CloseLink)


@clause("ANP-Q17")
def test_a_peer_with_our_extension_is_told_of_the_end_in_it() -> None:
    meta = MetaProtocol(extensions=("close",))
    config = LinkConfig(max_unagreed_frames=1)
    alice, bob, channel_id = between(meta, meta, configs=(LinkConfig(), config))
    said = bob.give(Hostile(alice, channel_id).frame(ProtocolType.VERIFICATION))
    alice.give(json.dumps(said[0]))
    [ended] = alice.of(ChannelEnded)
    assert ended.by_peer
    assert "verificationProtocol" in ended.reason


@clause("ANP-Q17")
@given(
    st.lists(
        st.tuples(st.sampled_from(ProtocolType), st.binary(max_size=8)), max_size=30
    )
)
def test_any_mixture_of_frames_is_handed_on_counted_or_the_end(
    frames: list[tuple[ProtocolType, bytes]],
) -> None:
    alice, bob, channel_id = between(NONE, ALL)
    hostile = Hostile(alice, channel_id)
    for protocol_type, data in frames:
        bob.give(hostile.frame(protocol_type, data))
    assert all(e.frame.protocol_type in BASIC for e in bob.of(FrameReceived))
    unagreed = sum(kind in OPTIONAL for kind, _ in frames)
    assert len(bob.of(FrameIgnored)) == min(unagreed, LIMIT)
    assert (channel_id in bob.core.channels) == (unagreed < LIMIT)


# --- versions on a link --------------------------------------------------------------


@clause("ANP-15")
def test_two_ends_that_speak_a_later_format_use_its_longer_header() -> None:
    config = LinkConfig(handshake=HandshakeConfig(formats=(FORMAT_1_0, LATER)))
    alice, bob, channel_id = between(ALL, ALL, configs=(config, config))
    frame = Frame(ProtocolType.VERIFICATION, b"data")
    text = alice.send(channel_id, frame)
    assert json.loads(text)["version"] == "2.0"
    assert bob.give(text) == []
    assert bob.of(FrameReceived)[-1].frame == frame


@clause("ANP-15")
def test_a_later_daemon_speaks_the_old_format_with_an_old_one() -> None:
    later = LinkConfig(handshake=HandshakeConfig(formats=(FORMAT_1_0, LATER)))
    alice, bob, channel_id = between(ALL, ALL, configs=(later, LinkConfig()))
    for sender, receiver in ((alice, bob), (bob, alice)):
        text = sender.send(channel_id)
        assert json.loads(text)["version"] == "1.0"
        assert receiver.give(text) == []


@clause("ANP-15")
@pytest.mark.parametrize("version", ["2.0", "1.1", "", "one"])
def test_a_frame_of_an_unknown_version_is_refused_and_never_read_as_1_0(
    version: str,
) -> None:
    alice, bob, channel_id = between(ALL, ALL)
    text = alice.send(channel_id)
    refused(bob.give(changed(text, version=version)), ErrorCode.NOT_ALLOWED)
    assert (
        "on a channel of version '1.0'" in fault_of(bob, ErrorCode.NOT_ALLOWED).detail
    )
    assert not bob.of(FrameReceived)
    # It did not use up the iv either: the true message still passes.
    assert bob.give(text) == []
    assert len(bob.of(FrameReceived)) == 1


@clause("ANP-15")
def test_a_message_without_a_version_is_one_of_its_channel() -> None:
    alice, bob, channel_id = between(ALL, ALL)
    assert bob.give(changed(alice.send(channel_id), version=None)) == []
    assert len(bob.of(FrameReceived)) == 1
