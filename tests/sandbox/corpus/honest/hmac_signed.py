# kind: HMAC-signed messages with constant-time comparison
"""Messages signed with HMAC-SHA256 over a canonical form."""

import hashlib
import hmac
import json
from datetime import datetime, timedelta, timezone
from typing import Any

MAX_AGE = timedelta(minutes=5)


class SignatureError(Exception):
    """The signature does not match, or the message is too old."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code if not detail else f"{code}: {detail}")
        self.code = code


def _canonical(body: dict[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode("utf-8")


def _mac(key: bytes, *parts: bytes) -> str:
    mac = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        mac.update(len(part).to_bytes(4, "big"))
        mac.update(part)
    return mac.hexdigest()


def sign(key_hex: str, body: dict[str, Any], at: str) -> dict[str, Any]:
    key = bytes.fromhex(key_hex)
    return {"at": at, "body": body, "sig": _mac(key, at.encode(), _canonical(body))}


def verify(key_hex: str, message: dict[str, Any], now: str) -> dict[str, Any]:
    key = bytes.fromhex(key_hex)
    try:
        at, body, signature = message["at"], message["body"], message["sig"]
    except KeyError as exc:
        raise SignatureError("missing_field", exc.args[0]) from exc
    expected = _mac(key, at.encode(), _canonical(body))
    if not hmac.compare_digest(expected, signature):
        raise SignatureError("bad_signature")
    age = datetime.fromisoformat(now) - datetime.fromisoformat(at)
    if not timedelta(0) <= age <= MAX_AGE:
        raise SignatureError("too_old", f"{age.total_seconds():.0f} s")
    return {
        "body": body,
        "signed_at": datetime.fromisoformat(at).astimezone(timezone.utc).isoformat(),
    }
