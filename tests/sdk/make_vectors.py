"""Make `tests/vectors/wire/sdk.json` with the official SDK.

Run it with the SDK's own environment, outside this repository, whose package has the
same name, so that `anp` is the SDK's:

    cd /tmp && REPOSITORY/.venvs/sdk/bin/python \
        REPOSITORY/tests/sdk/make_vectors.py > sdk.json

Keys, clock and random bytes are fixed; every byte is made by the SDK's own functions.
Only ECDSA signatures, which need a random number of the library's, differ between runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from importlib import import_module
from importlib.metadata import version
from itertools import count
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

# By name, because type checkers would find our own `anp`.
generation: Any = import_module("anp.e2e_encryption.message_generation")
generater: Any = import_module("anp.e2e_encryption.short_term_key_generater")
tool: Any = import_module("anp.utils.crypto_tool")

WALL_NOW = datetime(2026, 3, 14, 15, 9, 26, 535000, tzinfo=UTC)
SOURCE, DESTINATION = 0xA11CE, 0xB0B
PLAINTEXTS = (
    b"",
    b"\x00",
    b'\x00{"action":"protocolNegotiation"}',
    b'\x40{"productId":"P12345"}',
    "\x40Grüße, 世界 \U0001f600".encode(),
    b"\x80natural language",
    b"\xc0verification",
    bytes(range(256)),
    b"\x40" + b"x" * 4095,
)
EXTRAS: tuple[dict[str, Any], ...] = (
    {"note": "Gr\u00fc\u00dfe, \u4e16\u754c \U0001f600 \u007f\u2028"},
    {"zeta": {"b": [1, {"z": None, "a": True}], "B": "", "a": -1.5e-7}, "\u00e9": {}},
    {"large": 10**30, "small": 1e-320, "slash": '</a>\\/"', "whole": 2.0},
)
RANDOMS = (
    ("00" * 32, "ff" * 32),
    ("a", "b"),
    ("grüße", "世界"),
    ("s" * 127, "d" * 128),
)


class FixedClock(datetime):
    """A clock that stands still, in place of the SDK's `datetime`."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> FixedClock:
        """Return the fixed moment."""
        return cls.fromtimestamp(WALL_NOW.timestamp(), tz)

    @classmethod
    def utcnow(cls) -> FixedClock:
        """Return the fixed moment without a zone."""
        return cls.fromtimestamp(WALL_NOW.timestamp(), UTC).replace(tzinfo=None)


def fixed_random() -> Callable[[int], bytes]:
    """Return a source of bytes that is the same in every run."""
    numbers = count()

    def read(size: int) -> bytes:
        return hashlib.shake_256(b"vectors %d" % next(numbers)).digest(size)

    return read


def private_key(scalar: int) -> Any:
    """Return the P-256 key of a scalar."""
    return ec.derive_private_key(scalar, ec.SECP256R1())


def scalar_hex(key: Any) -> str:
    """Return a key's scalar as 64 hex characters."""
    return f"{key.private_numbers().private_value:064x}"


def key_schedule(source: Any, destination: Any, randoms: tuple[str, str]) -> Any:
    """Return inputs and outputs of one key derivation."""
    secret = tool.generate_shared_secret(source, destination.public_key())
    keys = tool.derive_tls13_data_keys(secret, *(text.encode() for text in randoms))
    return {
        "source_private": scalar_hex(source),
        "source_public": tool.get_hex_from_public_key(source.public_key()),
        "destination_private": scalar_hex(destination),
        "destination_public": tool.get_hex_from_public_key(destination.public_key()),
        "source_random": randoms[0],
        "destination_random": randoms[1],
        "shared_secret": secret.hex(),
        "source_key": keys[0].hex(),
        "destination_key": keys[1].hex(),
        "secret_key_id": tool.generate_16_char_from_random_num(*randoms),
    }


def address(scalar: int) -> Any:
    """Return the did:all address of one key."""
    public = private_key(scalar).public_key()
    text = tool.generate_bitcoin_address(public)
    did = f"did:all:{text}"
    assert tool.verify_did_with_public_key(did, public)
    assert tool.verify_did_with_public_key(f"{did}@example.com:9000", public)
    return {
        "private": f"{scalar:064x}",
        "public_key_hex": tool.get_hex_from_public_key(public),
        "address": text,
    }


async def handshake(host: str, delta: timedelta) -> Any:
    """Run the SDK against itself and return every message with the keys."""
    sides = []
    sent: list[str] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(json.dumps(message))

    dids = {s: f"did:all:{address(s)['address']}{host}" for s in (SOURCE, DESTINATION)}
    session_id = tool.generate_random_hex(16)
    for own, other in ((SOURCE, DESTINATION), (DESTINATION, SOURCE)):
        pem = private_key(own).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        sides.append(
            generater.ShortTermKeyGenerater(
                dids[own], pem.decode(), dids[other], send, own == SOURCE, session_id
            )
        )
    source, destination = sides
    await source.send_source_hello()
    destination.receive_json_message(json.loads(sent[0]))
    assert destination.process_source_hello()
    await destination.send_destination_hello()
    destination.generate_keys()
    await destination.send_finished()
    source.receive_json_message(json.loads(sent[1]))
    source.receive_json_message(json.loads(sent[2]))
    assert source.process_destination_hello()
    source.generate_keys()
    await source.send_finished()
    destination.receive_json_message(json.loads(sent[3]))
    assert source.process_finished()
    assert destination.process_finished()
    return {
        "wall_now": (WALL_NOW + delta).isoformat(),
        "source_did": dids[SOURCE],
        "destination_did": dids[DESTINATION],
        "source_ephemeral": scalar_hex(source.local_ec_key_pair.private_key),
        "destination_ephemeral": scalar_hex(destination.local_ec_key_pair.private_key),
        "source_hello": sent[0],
        "destination_hello": sent[1],
        "destination_finished": sent[2],
        "source_finished": sent[3],
        "source_key": source.send_encryption_key.hex(),
        "destination_key": destination.send_encryption_key.hex(),
        "secret_key_id": source.secret_key_id,
    }


def envelope(shaken: Any, plaintext: bytes) -> Any:
    """Return one sealed message of the source's."""
    message = generation.generate_encrypted_message(
        "1.0",
        tool.generate_random_hex(16),
        shaken["source_did"],
        shaken["destination_did"],
        shaken["secret_key_id"],
        plaintext,
        bytes.fromhex(shaken["source_key"]),
    )
    return {"plaintext": plaintext.hex(), "message": json.dumps(message)}


def signed(shaken: Any, extra: dict[str, Any]) -> str:
    """Return the source's hello with fields nobody knows, signed again."""
    hello = {**json.loads(shaken["source_hello"]), **extra}
    del hello["proof"]["proofValue"]
    value = tool.generate_signature_for_json(private_key(SOURCE), hello)
    hello["proof"]["proofValue"] = value
    return json.dumps(hello)


def main() -> None:
    """Print the vectors."""
    random = fixed_random()
    scalars = (int.from_bytes(random(32), "big") >> 1 for _ in count())

    def key_pair(curve: Any) -> Any:
        key = private_key(next(scalars))
        return key, key.public_key(), tool.get_hex_from_public_key(key.public_key())

    # Only where the SDK takes time and chance from is replaced.
    tool.secrets.token_hex = lambda size: random(size).hex()
    tool.os.urandom = random
    for module in (generation, generater):
        module.datetime = FixedClock
    generater.generate_ec_key_pair = key_pair

    shaken = [
        asyncio.run(handshake(host, timedelta(seconds=seconds)))
        for host, seconds in (("", 0), ("@127.0.0.1:9870", 28))
    ]
    vectors = {
        "made_by": f"anp {version('anp')}",
        "addresses": [address(s) for s in (1, 2, SOURCE, DESTINATION, 2**255 - 19)],
        "key_schedules": [
            key_schedule(private_key(next(scalars)), private_key(next(scalars)), texts)
            for texts in RANDOMS
        ],
        "handshakes": shaken,
        "hellos_with_unknown_fields": [signed(shaken[0], extra) for extra in EXTRAS],
        "envelopes": [envelope(shaken[0], plaintext) for plaintext in PLAINTEXTS],
    }
    print(json.dumps(vectors, indent=1))


if __name__ == "__main__":
    main()
