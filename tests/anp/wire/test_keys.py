"""The key schedule, against vectors of the official SDK."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ErrorCode, LocalError, PeerError
from anp.identity.dids import did_all
from anp.wire.keys import EphemeralKey, derive_keys
from tests.anp.wire.peers import ALICE, VECTORS, fixed_random
from tests.clauses import clause

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
SCHEDULES = VECTORS["key_schedules"]


def key_of(private_hex: str) -> EphemeralKey:
    return EphemeralKey.of_value(int(private_hex, 16))


@clause("WIRE row 3", "WIRE row 19", "WIRE row 20")
@pytest.mark.parametrize("vector", SCHEDULES)
def test_both_sides_derive_the_keys_of_the_sdk(vector: dict[str, str]) -> None:
    source = key_of(vector["source_private"])
    destination = key_of(vector["destination_private"])
    secret = source.exchange(vector["destination_public"])
    assert source.public_hex == vector["source_public"]
    assert secret == destination.exchange(vector["source_public"])
    assert secret.hex() == vector["shared_secret"]
    randoms = {
        "source_random": vector["source_random"],
        "destination_random": vector["destination_random"],
    }
    ours = derive_keys(secret, **randoms, is_initiator=True)
    theirs = derive_keys(secret, **randoms, is_initiator=False)
    assert ours.secret_key_id == theirs.secret_key_id == vector["secret_key_id"]
    assert ours.send_key.hex() == theirs.receive_key.hex() == vector["source_key"]
    assert ours.receive_key.hex() == vector["destination_key"]
    assert theirs.send_key.hex() == vector["destination_key"]


@clause("WIRE row 6")
@pytest.mark.parametrize("vector", VECTORS["addresses"])
def test_the_sdks_addresses_are_ours(vector: dict[str, str]) -> None:
    key = key_of(vector["private"])
    assert key.public_hex == vector["public_key_hex"]
    did = did_all(bytes.fromhex(vector["public_key_hex"]))
    assert did == f"did:all:{vector['address']}"


@clause("WIRE row 15")
def test_a_compressed_key_gives_the_same_secret() -> None:
    key = EphemeralKey.of_value(7)
    point = ALICE.public_key_hex
    prefix = "03" if int(point, 16) % 2 else "02"
    assert key.exchange(prefix + point[2:66]) == key.exchange(point)


@clause("WIRE row 15")
@pytest.mark.parametrize(
    "text",
    ["", "04", "05" + "11" * 64, "04" + "00" * 64, "02" + "ff" * 32, "00", "é" * 130],
)
def test_what_is_no_point_is_the_peers_error(text: str) -> None:
    with pytest.raises(PeerError) as caught:
        EphemeralKey.of_value(7).exchange(text)
    assert caught.value.code is ErrorCode.INVALID_ENCRYPTION_KEY


@given(st.text() | st.from_regex(r"0[234][0-9a-f]{64,128}", fullmatch=True))
def test_any_text_is_a_point_or_refused(text: str) -> None:
    try:
        assert len(EphemeralKey.of_value(7).exchange(text)) == 32
    except PeerError:
        return


@clause("WIRE row 3")
@pytest.mark.parametrize(
    ("source", "destination"), [("s" * 191, "d" * 64), ("é" * 95 + "s", "d" * 64)]
)
def test_randoms_of_255_bytes_are_used_and_256_refused(
    source: str, destination: str
) -> None:
    arguments: dict[str, Any] = {"destination_random": destination}
    derive_keys(b"z" * 32, source_random=source, is_initiator=True, **arguments)
    with pytest.raises(PeerError):
        derive_keys(
            b"z" * 32, source_random=source + "x", is_initiator=True, **arguments
        )


@pytest.mark.parametrize("value", [0, -1, ORDER])
def test_a_private_value_outside_the_group_is_our_bug(value: int) -> None:
    with pytest.raises(LocalError):
        EphemeralKey.of_value(value)


@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_every_random_source_gives_a_key(byte: bytes) -> None:
    assert EphemeralKey.generate(lambda size: byte * size).public_hex.startswith("04")


def test_new_random_bytes_give_a_new_key() -> None:
    chance = fixed_random()
    keys = {EphemeralKey.generate(chance).public_hex for _ in range(20)}
    assert len(keys) == 20


def test_keys_do_not_show_in_logs() -> None:
    keys = derive_keys(
        b"z" * 32, source_random="s", destination_random="d", is_initiator=True
    )
    assert keys.send_key.hex() not in repr(keys)
    assert repr(keys) == f"SessionKeys(secret_key_id={keys.secret_key_id!r})"
