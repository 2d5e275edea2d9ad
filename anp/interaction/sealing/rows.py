"""The stored form of one epoch: small rows, so that a message rewrites two of them.

The rows hold keys. Whoever stores them encrypts them, and overwrites or deletes a row
when it changes, or else deleted keys could be read from the old one.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec, x25519

from anp.interaction.sealing.epoch import Inbound, SealedEpoch
from anp.interaction.sealing.packages import KeyPackage, SeenMessages
from anp.interaction.sealing.ratchet import Ratchet
from anp.interaction.sealing.transcript import Transcript

KEYS: Final = "keys"
OWN: Final = "own"


def json_bytes(value: Any) -> bytes:
    """Return a row as bytes."""
    return json.dumps(value, separators=(",", ":")).encode()


def epoch_row(epoch: SealedEpoch, name: str) -> bytes:
    """Return one row of an epoch: `keys`, `own`, or the DID of a sender."""
    if name == KEYS:
        return json_bytes(_keys(epoch))
    if name == OWN:
        return json_bytes(_own(epoch))
    return json_bytes(_inbound(epoch.inbound[name]))


def read_epoch(rows: Mapping[str, bytes], *, me: str) -> SealedEpoch:
    """Return the epoch of its rows."""
    keys = json.loads(rows[KEYS])
    epoch = SealedEpoch(keys["number"], _bytes(keys["entry"]), keys["members"], me=me)
    _read_keys(epoch, keys)
    _read_own(epoch, json.loads(rows[OWN]))
    for did in rows.keys() - {KEYS, OWN}:
        epoch.inbound[did] = _read_inbound(json.loads(rows[did]))
    return epoch


def _keys(epoch: SealedEpoch) -> dict[str, Any]:
    agreement = epoch.agreement
    return {
        "number": epoch.number,
        "entry": _text(epoch.entry),
        "members": epoch.members,
        "agreement": agreement and _text(agreement.private_bytes_raw()),
        "signing": _number_text(epoch.signing),
        "packages": [one.json() for one in epoch.packages.values()],
        "to": {did: _text(one) for did, one in epoch.to_pairs.items()},
        "from": {did: _text(one) for did, one in epoch.from_pairs.items()},
        "start": epoch.own.start and _text(epoch.own.start),
        "granted": list(epoch.own.granted),
    }


def _read_keys(epoch: SealedEpoch, keys: dict[str, Any]) -> None:
    if keys["agreement"]:
        epoch.agreement = x25519.X25519PrivateKey.from_private_bytes(
            _bytes(keys["agreement"])
        )
    epoch.signing = ec.derive_private_key(int(keys["signing"], 16), ec.SECP256R1())
    found = [KeyPackage.read(one) for one in keys["packages"]]
    epoch.packages = {one.did: one for one in found}
    epoch.to_pairs = {did: _bytes(one) for did, one in keys["to"].items()}
    epoch.from_pairs = {did: _bytes(one) for did, one in keys["from"].items()}
    epoch.own.start = _bytes(keys["start"]) if keys["start"] else None
    epoch.own.granted = dict.fromkeys(keys["granted"])


def _own(epoch: SealedEpoch) -> dict[str, Any]:
    own, seen = epoch.own, epoch.transcript.seen
    return {
        "ratchet": _ratchet(own.ratchet),
        "counter": own.counter,
        "taken": own.last_taken,
        "pending": {str(one): _text(digest) for one, digest in own.pending.items()},
        "seen": [seen.count, _text(seen.hash)],
        "forked": epoch.is_forked,
    }


def _read_own(epoch: SealedEpoch, row: dict[str, Any]) -> None:
    own = epoch.own
    own.ratchet = _read_ratchet(row["ratchet"])
    own.counter = row["counter"]
    own.last_taken = row["taken"]
    own.pending = {int(one): _bytes(text) for one, text in row["pending"].items()}
    count, text = row["seen"]
    epoch.transcript = Transcript(epoch.entry, SeenMessages(count, _bytes(text)))
    epoch.is_forked = row["forked"]


def _inbound(inbound: Inbound) -> dict[str, Any]:
    return {
        "ratchet": _ratchet(inbound.ratchet),
        "commitment": _text(inbound.commitment),
        "last": inbound.last,
        "missing": list(inbound.missing),
        "keys": {str(one): _text(key) for one, key in inbound.keys.items()},
    }


def _read_inbound(row: dict[str, Any]) -> Inbound:
    found = Inbound()
    found.ratchet = _read_ratchet(row["ratchet"])
    found.commitment = _bytes(row["commitment"])
    found.last = row["last"]
    found.missing = dict.fromkeys(row["missing"])
    found.keys = {int(one): _bytes(key) for one, key in row["keys"].items()}
    return found


def _ratchet(ratchet: Ratchet | None) -> list[Any] | None:
    return [_text(ratchet.key), ratchet.counter] if ratchet else None


def _read_ratchet(row: list[Any] | None) -> Ratchet | None:
    return Ratchet(_bytes(row[0]), row[1]) if row else None


def _number_text(key: ec.EllipticCurvePrivateKey) -> str:
    return f"{key.private_numbers().private_value:x}"


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
