"""Signs push notifications as JWTs, whose public key callers find under the face.

The claims are those of the A2A documents (JWT and JWKS), with the hash of the body as
the samples of A2A have it, so that a receiver written after them takes ours.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any, Final

from anp.identity.keys import PrivateKey

PURPOSE: Final = b"anpd a2a push notifications"
"The purpose of the key, which is made of that of the identity."

KEYS_PATH: Final = "/.well-known/jwks.json"
"Path of the public key below the address of the face."

SIGNATURE_HEADER: Final = "X-A2A-Notification-Signature"
"Header with the JWT; `Authorization` may hold credentials of the receiver's."

LIFETIME: Final = 300
"Seconds after which a receiver believes a JWT no more."


class PushSigner:
    """Makes the JWT of each attempt to bring an update."""

    def __init__(
        self, key: PrivateKey, issuer: str, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Make it.

        Args:
            key: A P-256 key that signs nothing else.
            issuer: The address of the face, as its card has it.
            clock: Unix time in seconds.
        """
        self._key = key
        self.issuer = issuer
        self._clock = clock
        self._head = {"alg": "ES256", "kid": key.public_key.thumbprint, "typ": "JWT"}

    @property
    def keys(self) -> dict[str, Any]:
        """The public key as a JWK set (RFC 7517)."""
        more = {"use": "sig", "alg": "ES256", "kid": self._head["kid"]}
        return {"keys": [{**self._key.public_key.jwk, **more}]}

    def sign(self, body: bytes, *, url: str, task: str) -> str:
        """Return a JWT for a body that is sent to an address now.

        Args:
            task: Id of the task in A2A.
        """
        now = int(self._clock())
        claims = {
            "iss": self.issuer,
            "aud": url,
            "iat": now,
            "exp": now + LIFETIME,
            "jti": str(uuid.uuid4()),
            "taskId": task,
            "request_body_sha256": hashlib.sha256(body).hexdigest(),
        }
        text = b".".join(_encode(_json(one)) for one in (self._head, claims))
        return b".".join((text, _encode(self._key.sign(text)))).decode("ascii")


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _encode(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")
