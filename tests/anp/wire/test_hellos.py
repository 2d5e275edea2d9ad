"""Messages of a handshake by their forms, held against the parser and the writer."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anp.errors import PeerError
from anp.wire.handshake import Initiator
from anp.wire.hellos import read_handshake
from anp.wire.messages import (
    DestinationHello,
    SourceHello,
    canonical_bytes,
    parse_message,
)
from anp.wire.meta_protocol import LostKey, MetaProtocol
from anp.wire.outcome import HandshakeConfig
from negotiation.strict_json import MAX_DEPTH
from tests.anp.wire.peers import (
    MAX_SIZE,
    NOW,
    OFFER,
    WALL_NOW,
    FixedIdentity,
    fixed_random,
    sign_hello,
    start_pair,
    tell,
)
from tests.clauses import clause

PAIR: Final = start_pair(offer=OFFER)
tell(PAIR.initiator, *PAIR.sent)
PAIR.initiator.key_checked(None, now=NOW)
USUAL: Final = [PAIR.source_hello, *PAIR.sent, *PAIR.initiator.messages_to_send()]


def parsed(text: str | bytes) -> object:
    """Return what the parser makes of a text, or why it makes nothing."""
    try:
        return parse_message(text, max_size=MAX_SIZE)
    except PeerError as exc:
        return exc.code, exc.detail


@clause("WIRE row 9")
@pytest.mark.parametrize("text", USUAL)
def test_our_own_messages_are_read_by_their_forms(text: str) -> None:
    message = read_handshake(text)
    assert message is not None
    assert message == parsed(text) == read_handshake(text.encode())
    if isinstance(message, SourceHello | DestinationHello):
        assert message.signed == canonical_bytes(json.loads(text))


PIECES: Final = [
    *('"', "\\", "\\u0041", "\\ud800", "}", "{", "]", ",", ":", " ", "\n", "\t", "%s"),
    *("\x00", "\x7f", "é", "0", "-1", "1e999", "null", "did:", '""', "[]", '["x"]'),
    *('"x":1,', '"type":"finished",', '"extensions":[],', '"version":null,', "[" * 70),
]


@settings(max_examples=400)
@given(
    st.sampled_from(USUAL),
    st.floats(0, 1),
    st.integers(0, 90),
    st.sampled_from(PIECES) | st.text(max_size=3),
)
@example(USUAL[0], 0.0, len(USUAL[0]), "")
def test_what_a_form_reads_the_parser_reads_the_same(
    text: str, where: float, left_out: int, put_in: str
) -> None:
    at = int(where * len(text))
    changed = text[:at] + put_in + text[at + left_out :]
    message = read_handshake(changed)
    assert message is None or message == parsed(changed)


VALUES: Final = st.sampled_from(
    [
        *("1.0", "", "did:", "%", "é", "\\", 'a"b', "\x00", "did:x#keys-1", 0, 1, -1),
        *(10**15, 1.5, True, None, [], ["1.0"], [""], ["1.0", "2"], [1], [None], {}),
        {"version": "2.0", "extensions": ["x", "y"], "candidateProtocols": ["a:b"]},
        {"lostKey": {"secretKeyId": "ab" * 8, "counter": 1}},
        {"supportedCapabilities": "x"},
    ]
)


@settings(max_examples=400)
@given(st.sampled_from(USUAL), st.data(), VALUES)
def test_any_value_in_any_member_is_read_as_the_parser_does(
    text: str, data: st.DataObject, value: Any
) -> None:
    message = json.loads(text)
    holders = [message, *(v for v in message.values() if isinstance(v, dict))]
    holder = data.draw(st.sampled_from(holders))
    holder[data.draw(st.sampled_from(sorted(holder)))] = value
    changed = json.dumps(message, separators=(",", ":"))
    read = read_handshake(changed)
    assert read is None or read == parsed(changed)


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH])
def test_a_hello_is_as_deep_by_its_form_as_for_the_parser(depth: int) -> None:
    start = '"metaProtocol":{'
    inner = "[" * (depth - 1) + "]" * (depth - 1)
    text = USUAL[0].replace(start, f'{start}"x":{inner},', 1)
    assert text != USUAL[0]
    # The message itself is one more.
    is_read = depth < MAX_DEPTH
    assert isinstance(parsed(text), SourceHello) is is_read
    assert read_handshake(text) == (parsed(text) if is_read else None)


class Recorder(FixedIdentity):
    """An identity that keeps what it signed."""

    signed = b""

    def sign(self, data: bytes) -> bytes:
        self.signed = data
        return bytes(64)


TEXTS: Final = st.text(max_size=8) | st.sampled_from(["%", "%(meta)s", '"', "\\", "é"])
METAS: Final = st.builds(
    MetaProtocol,
    version=TEXTS,
    candidate_protocols=st.lists(TEXTS, max_size=2).map(tuple),
    extensions=st.lists(TEXTS, max_size=2).map(tuple),
    max_message=st.none() | st.integers(0, 2**48),
    lost_key=st.none() | st.builds(LostKey, TEXTS, st.integers(0, 9)),
)


@clause("WIRE row 9")
@given(TEXTS, TEXTS, METAS)
def test_a_hello_is_written_as_json_and_signed_in_its_canonical_form(
    ours: str, theirs: str, meta: MetaProtocol
) -> None:
    identity = Recorder(f"did:{ours}", 0xA11CE)
    [text] = Initiator(
        HandshakeConfig(versions=(meta.version,)),
        identity=identity,
        peer_did=f"did:{theirs}",
        meta=meta,
        now=NOW,
        random_bytes=fixed_random(),
    ).messages_to_send()
    hello = json.loads(text)
    # The compact form of JSON in ASCII, so the bytes are what they always were.
    assert text == json.dumps(hello, separators=(",", ":"))
    assert hello["sourceDid"] == f"did:{ours}"
    assert hello["destinationDid"] == f"did:{theirs}"
    assert hello["metaProtocol"] == meta.to_json()
    assert identity.signed == canonical_bytes(hello)
    bare = {name: value for name, value in hello.items() if name != "proof"}
    assert hello == sign_hello(bare, identity, created=WALL_NOW)
    # The order of members is the one that every version of ours had.
    assert list(hello) == list(json.loads(PAIR.source_hello))
