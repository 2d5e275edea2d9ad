"""Envelopes read by their fields alone, and those of the extension `binary`."""

from __future__ import annotations

import base64
import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from anp.errors import PeerError
from anp.wire.encrypted import Envelope, OpenData, decode_base64
from anp.wire.envelopes import (
    EnvelopeWriter,
    binary_key_id,
    is_binary,
    read_envelope,
)
from anp.wire.frames import (
    FORMAT_1_0,
    Frame,
    ProtocolType,
    check_envelope_dids,
    encode_frame,
    frame_header,
    open_long,
)
from anp.wire.keys import SessionKeys
from anp.wire.messages import Message, UnreadableMessage, parse_message
from anp.wire.moment import unix_ns
from tests.anp.wire.peers import VECTORS, open_envelope, seal
from tests.clauses import clause

MAX: Final = 64 * 1024
OURS: Final = SessionKeys("ab" * 8, bytes(range(16)), bytes(range(16, 32)))
THEIRS: Final = SessionKeys("ab" * 8, bytes(range(16, 32)), bytes(range(16)))
IDS: Final = {"source_did": "did:all:alice", "destination_did": "did:all:bob"}
NOW: Final = datetime(2026, 11, 23, 1, 2, 3, 456_789, tzinfo=UTC)
IV: Final = bytes(range(12))
VECTOR: Final = json.loads(
    (Path(__file__).parents[2] / "vectors" / "wire" / "binary.json").read_text()
)


def text_of(plaintext: bytes, message_id: str = "m-1") -> str:
    return seal(OURS, plaintext, **IDS, message_id=message_id, iv=IV, timestamp=NOW)


def binary_of(plaintext: bytes, message_id: str = "m-1", **changes: str) -> bytes:
    writer = EnvelopeWriter(OURS, **{**IDS, "version": "1.0", **changes}, binary=True)
    data = writer.write(plaintext, message_id=message_id, iv=IV, unix_ns=unix_ns(NOW))
    assert isinstance(data, bytes)
    return data


def read_message(data: str | bytes, *, max_size: int) -> Message:
    """Read a message as a link does."""
    return read_envelope(data) or parse_message(data, max_size=max_size)


def both(text: str | bytes) -> tuple[object, object]:
    """Return what each reader makes of a text, in a form that can be compared."""
    return shown(read_message, text), shown(parse_message, text)


def shown(reader: Any, text: str | bytes) -> object:
    try:
        message: Message = reader(text, max_size=MAX)
    except UnreadableMessage as exc:
        return str(exc), exc.code, exc.raw
    if not isinstance(message, Envelope):
        return message
    data = message.encrypted_data
    try:
        decoded: object = data.decode()
    except PeerError as exc:
        decoded = str(exc)
    return (
        *(message.version, message.message_id, message.source_did),
        *(message.destination_did, message.secret_key_id, decoded),
        *(data.iv, data.tag, data.ciphertext),
    )


USUAL: Final = [
    text_of(b"\x40" + b"x" * 40),
    text_of(b"\x40"),
    text_of(b""),
    *(one["message"] for one in VECTORS["envelopes"]),
    *(json.dumps(json.loads(one["message"])) for one in VECTORS["envelopes"]),
]


@clause("WIRE row 26")
@pytest.mark.parametrize("text", USUAL)
def test_usual_envelopes_are_read_by_their_fields(text: str) -> None:
    envelope = read_envelope(text)
    assert envelope is not None
    assert isinstance(envelope.encrypted_data, OpenData)
    assert both(text)[0] == both(text)[1]


PIECES: Final = [
    *('"', "\\", "\\u0041", "\\ud800", "}", "{", "]", ",", ":", " ", "\n", "\t", "="),
    *("\x00", "\x7f", "é", "\ud800", "\N{GRINNING FACE}", "/", "+", "-", "_", "A"),
    *('"x":1,', '"type":"message",', "null", "1e999", "did:", '""', "}}", "[" * 70),
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Return a usual envelope that was changed in a few places."""
    text: str = draw(st.sampled_from(USUAL))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(len(text), at + 60)))
        change = draw(st.sampled_from(PIECES) | st.text(max_size=3))
        match draw(st.integers(0, 3)):
            case 0:
                text = text[:at] + change + text[at:]
            case 1:
                text = text[:at] + text[end:]
            case 2:
                text = text[:at] + change + text[end:]
            case _:
                text = text[:at] + text[at:end] * 2 + text[end:]
    return text


@clause("WIRE row 26")
@given(mutated())
@example(USUAL[0] + " ")
@example(" " + USUAL[0])
@example(USUAL[0].replace("==", "=", 1))
@example(USUAL[0].replace('"did:all:alice"', '"alice"'))
@example(USUAL[0].replace('"m-1"', '""'))
@example(USUAL[0].replace("1.0", "1.0\x7f"))
@example(USUAL[0].replace(":", " :"))
@example(USUAL[0].replace(":", ":  "))
@example(USUAL[0][:-3] + 'A"}}')
@example(USUAL[0][:-3] + '\n"}}')
@example(USUAL[0][:-3] + '","x":"A"}}')
@example(USUAL[0] + USUAL[0])
def test_both_readers_accept_the_same_and_say_the_same(text: str) -> None:
    fast, parsed = both(text)
    assert fast == parsed


@given(mutated(), st.binary(max_size=2), st.integers(0, 400))
@example(USUAL[0], b"\xff", 50)
@example(USUAL[0], b"\xff", 95)
@example(USUAL[0], b"\xc3\xa9", 95)
@example(USUAL[0], b"\xff", len(USUAL[0]) - 10)
def test_both_readers_accept_the_same_bytes(text: str, more: bytes, at: int) -> None:
    data = text.encode(errors="replace")
    changed = data[:at] + more + data[at:]
    assume(not is_binary(changed))
    fast, parsed = both(changed)
    assert fast == parsed


@given(st.text("AQgw+/=\n ", max_size=9) | st.binary(max_size=40).map(bytes.hex))
def test_base64_is_read_as_the_standard_library_does(text: str) -> None:
    try:
        known = base64.b64decode(text, validate=True)
    except ValueError:
        known = None
    if known is not None and base64.b64encode(known).decode() != text:
        known = None
    if known is None:
        with pytest.raises(PeerError, match="not canonical padded base64"):
            decode_base64(text)
    else:
        assert decode_base64(text) == known


# The binary form


def test_the_binary_form_is_that_of_the_vector() -> None:
    keys = SessionKeys(
        VECTOR["secretKeyId"], bytes.fromhex(VECTOR["sendKey"]), bytes(16)
    )
    writer = EnvelopeWriter(
        keys,
        source_did=VECTOR["sourceDid"],
        destination_did=VECTOR["destinationDid"],
        version=VECTOR["version"],
        binary=True,
    )
    written = writer.write(
        bytes.fromhex(VECTOR["plaintext"]),
        message_id=VECTOR["messageId"],
        iv=bytes.fromhex(VECTOR["iv"]),
        unix_ns=unix_ns(datetime.fromisoformat(VECTOR["timestamp"])),
    )
    assert isinstance(written, bytes)
    assert written.hex() == VECTOR["message"]


@given(st.binary(max_size=2000), st.text(min_size=1, max_size=40))
def test_a_binary_envelope_opens_to_what_was_written(
    plaintext: bytes, message_id: str
) -> None:
    envelope = read_envelope(binary_of(plaintext, message_id))
    assert envelope is not None
    assert (envelope.message_id, envelope.version) == (message_id, "1.0")
    assert envelope.secret_key_id == OURS.secret_key_id
    check_envelope_dids(envelope, **IDS)
    assert envelope.iv == IV
    assert open_envelope(THEIRS, envelope) == plaintext


def test_every_cut_of_a_binary_envelope_is_refused() -> None:
    data = binary_of(b"\x40 some words")
    for size in range(1, len(data)):
        with pytest.raises(PeerError):
            opened(data[:size])


def test_every_flipped_bit_of_a_binary_envelope_is_refused() -> None:
    data = binary_of(b"\x40 some words")
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(PeerError):
            opened(bytes(changed))


def opened(data: bytes) -> bytes:
    envelope = read_message(data, max_size=MAX)
    assert isinstance(envelope, Envelope)
    return open_envelope(THEIRS, envelope)


@given(st.binary(max_size=300))
@example(b"\xff\xff" + bytes(300))
@example(b"\x00\x00" + bytes(40))
@example(b"\x00\x02\xff\xff" + bytes(60))
def test_no_bytes_raise_anything_else_in_the_binary_reader(rest: bytes) -> None:
    binary_key_id(b"\x01" + rest)
    with contextlib.suppress(UnreadableMessage):
        assert isinstance(read_message(b"\x01" + rest, max_size=MAX), Envelope)


@pytest.mark.parametrize("changes", [{"source_did": "alice"}, {"destination_did": ""}])
def test_a_head_names_a_key_and_two_dids(changes: dict[str, str]) -> None:
    with pytest.raises(UnreadableMessage, match="names no key, or no DID"):
        read_message(binary_of(b"\x40", **changes), max_size=MAX)


def test_nobody_without_the_key_turns_one_form_into_the_other() -> None:
    """The tag of a binary envelope covers its head, that of JSON covers no head."""
    plaintext = b"\x40 some words"
    text, data = text_of(plaintext), binary_of(plaintext)
    start = len(data) - len(plaintext) - 16 - 12
    envelope = read_envelope(text)
    assert envelope is not None
    iv, sealed, _ = envelope.encrypted_data.sealed()
    with pytest.raises(PeerError, match="does not fit"):
        opened(data[:start] + iv + bytes(sealed))
    changed = json.loads(text)
    bare = OpenData(IV, data[start + 12 :])
    changed["encryptedData"] = {
        "iv": bare.iv,
        "tag": bare.tag,
        "ciphertext": bare.ciphertext,
    }
    other = read_message(json.dumps(changed), max_size=MAX)
    assert isinstance(other, Envelope)
    with pytest.raises(PeerError, match="does not fit"):
        open_envelope(THEIRS, other)


def test_a_key_id_is_found_where_the_rest_is_not_read() -> None:
    assert binary_key_id(binary_of(b"x" * 5000)[:200]) == OURS.secret_key_id
    assert binary_key_id(b"\x01\x00\x09") is None


PIECE: Final = 96 * 1024
"Bytes that are encrypted and encoded at once."


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(
    "size", [0, 1, 15, 16, 70_000, PIECE - 2, PIECE - 1, PIECE, 2 * PIECE, 200_000]
)
def test_a_long_message_is_written_and_opened_as_others_are(
    binary: bool, size: int
) -> None:
    frame = Frame(ProtocolType.APPLICATION, (bytes(range(256)) * 800)[:size])
    plaintext = encode_frame(frame)
    writer = EnvelopeWriter(OURS, **IDS, version="1.0", binary=binary)
    header = frame_header(frame, FORMAT_1_0)
    known = {"message_id": "m", "iv": IV, "unix_ns": unix_ns(NOW)}
    written = writer.write_long(header, frame.data, **known)  # type: ignore[arg-type]  # each fits
    assert written == writer.write(plaintext, **known)  # type: ignore[arg-type]  # each fits
    if not binary:
        assert written.decode() == text_of(plaintext, "m")
        return
    found = read_envelope(written)
    assert found is not None
    data = found.encrypted_data.sealed()
    assert open_long(THEIRS, data, FORMAT_1_0) == (frame, len(plaintext))
    for at in (len(written) - 1, len(written) - 17, len(written) - 40):
        wrong = bytearray(written)
        wrong[at] ^= 1
        broken = read_envelope(bytes(wrong))
        assert broken is not None
        with pytest.raises(PeerError, match="the tag does not fit"):
            open_long(THEIRS, broken.encrypted_data.sealed(), FORMAT_1_0)
