"""The JWTs of push notifications, read by the library that receivers use."""

from __future__ import annotations

import hashlib

import jwt
import pytest

from anp.identity.keys import PrivateKey
from anp.identity.public_keys import KeyKind
from anp.sidecar.a2a.push import PURPOSE, PushSigner
from tests.clauses import clause

FACE = "https://agent.example/a2a"
URL = "https://client.example/push"
BODY = b'{"statusUpdate":{}}'


def read(signer: PushSigner, signed: str) -> dict[str, object]:
    head = jwt.get_unverified_header(signed)
    assert (head["alg"], head["typ"]) == ("ES256", "JWT")
    keys = jwt.PyJWKSet.from_dict(signer.keys)
    found: dict[str, object] = jwt.decode(
        signed,
        keys[head["kid"]].key,
        algorithms=["ES256"],
        audience=URL,
        issuer=FACE,
        options={"verify_exp": False, "verify_iat": False},
    )
    return found


@clause("A2A-25")
def test_a_notification_says_by_whom_to_whom_when_and_of_what() -> None:
    key = PrivateKey.generate().for_purpose(PURPOSE)
    signer = PushSigner(key, FACE, clock=lambda: 1000.7)
    claims = read(signer, signer.sign(BODY, url=URL, task="t"))
    other = read(signer, signer.sign(BODY, url=URL, task="t"))
    assert claims.pop("jti") != other["jti"]
    assert claims == {
        "iss": FACE,
        "aud": URL,
        "iat": 1000,
        "exp": 1300,
        "taskId": "t",
        "request_body_sha256": hashlib.sha256(BODY).hexdigest(),
    }


def test_only_the_public_part_is_told() -> None:
    signer = PushSigner(PrivateKey.generate(), FACE)
    (key,) = signer.keys["keys"]
    assert {*key} == {"kty", "crv", "x", "y", "use", "alg", "kid"}


@pytest.mark.parametrize("kind", [KeyKind.P256, KeyKind.ED25519])
def test_the_key_is_made_of_the_identity_and_is_another(kind: KeyKind) -> None:
    own = PrivateKey.generate(kind)
    made = own.for_purpose(PURPOSE)
    assert made.kind is KeyKind.P256
    assert made.public_key == own.for_purpose(PURPOSE).public_key
    others = {own.public_key, own.for_purpose(b"other").public_key}
    assert made.public_key not in others
    assert PrivateKey.generate(kind).for_purpose(PURPOSE).public_key != made.public_key
