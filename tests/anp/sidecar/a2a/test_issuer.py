"""Signed tokens of a trusted issuer: which of them let a caller in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from pydantic import TypeAdapter

from anp.interaction.elements import party_name
from anp.sidecar.a2a.issuer import ALGORITHMS, BadToken, Issuer, IssuerRules, KeyData
from cache.records.records import Party
from tests.clauses import clause

ISSUER = "https://login.example"
AUDIENCE = "https://agent.example/a2a"
SCOPES = {"shop": ("shop.get_product",), "odd": ("odd.odd", "shop.list")}


@cache
def key(name: str) -> Any:
    if name.startswith("rsa"):
        return rsa.generate_private_key(65537, int(name[3:7] or 2048))
    if name.startswith("ed"):
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key({"ec": ec.SECP256R1(), "e3": ec.SECP384R1()}[name])


def public(name: str, **more: Any) -> dict[str, Any]:
    kind = {"r": "RS256", "ed": "EdDSA"}.get(name[:2], "ES256")
    kind = "RS256" if name.startswith("rsa") else kind
    kind = "ES384" if name == "e3" else kind
    algorithm = jwt.get_algorithm_by_name(kind)
    found: dict[str, Any] = json.loads(algorithm.to_jwk(key(name).public_key()))
    return {**found, "kid": name, **more}


def claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    found = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ann",
        "exp": now + 300,
        "scope": "shop",
        **more,
    }
    return {name: value for name, value in found.items() if value is not None}


def token(
    signer: str = "rsa2048", algorithm: str = "RS256", *, head: Any = None, **more: Any
) -> str:
    head = {"kid": signer} if head is None else head
    content = json.dumps(claims(**more)).encode()
    return jwt.PyJWS().encode(content, key(signer), algorithm, headers=head)


class Source:
    """A key set that counts how often it is fetched."""

    def __init__(self, *keys: dict[str, Any], max_age: float | None = None) -> None:
        self.keys = list(keys)
        self.max_age = max_age
        self.fetches = 0
        self.now = 1000.0
        self.is_away = False

    async def __call__(self) -> KeyData:
        self.fetches += 1
        if self.is_away:
            raise OSError("away")
        return KeyData(json.dumps({"keys": self.keys}).encode(), self.max_age)


def issuer(source: Source, **more: Any) -> Issuer:
    given = {"issuer": ISSUER, "audience": AUDIENCE, "scopes": SCOPES, **more}
    return Issuer(IssuerRules(**given), source, clock=lambda: source.now)


def raw(
    head: dict[str, Any], body: dict[str, Any], sign: Callable[[bytes], bytes]
) -> str:
    def coded(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    said = f"{coded(json.dumps(head).encode())}.{coded(json.dumps(body).encode())}"
    return f"{said}.{coded(sign(said.encode()))}"


@clause("A2A-3", "A2A-9", "A2A-21")
@pytest.mark.parametrize(
    ("signer", "algorithm"),
    [
        ("rsa2048", "RS256"),
        ("rsa2048", "PS512"),
        ("ec", "ES256"),
        ("e3", "ES384"),
        ("ed", "EdDSA"),
    ],
)
async def test_a_good_token_names_its_caller(signer: str, algorithm: str) -> None:
    found = await issuer(Source(public(signer))).caller(token(signer, algorithm))
    assert (found.id, found.expose) == ("local:jwt:ann", ("shop.get_product",))


async def test_scopes_open_capabilities() -> None:
    my = issuer(Source(public("rsa2048")))
    both = await my.caller(token(scope=None, scp=["odd", "shop", "else"]))
    assert both.expose == ("odd.odd", "shop.list", "shop.get_product")
    for given in ("", "else", None):
        with pytest.raises(BadToken, match="no scope") as caught:
            await my.caller(token(scope=given))
        assert caught.value.scopes == ("shop", "odd")
    everything = issuer(Source(public("rsa2048")), scopes={})
    assert (await everything.caller(token(scope=None))).expose is None


NOW = int(time.time())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"exp": NOW - 60}, "expired"),
        ({"exp": None}, "lacks a claim"),
        ({"exp": "soon"}, "cannot be read"),
        ({"nbf": NOW + 600}, "not valid yet"),
        ({"iat": NOW + 600}, "not valid yet"),
        ({"aud": "https://other.example"}, "for somebody else"),
        ({"aud": []}, "for somebody else|lacks a claim"),
        ({"aud": None}, "lacks a claim"),
        ({"iss": f"{ISSUER}/"}, "another issuer"),
        ({"iss": [ISSUER]}, "another issuer|cannot be read"),
        ({"iss": None}, "lacks a claim"),
        ({"sub": None}, "lacks a claim"),
        ({"sub": ""}, "does not name|lacks a claim"),
        ({"sub": "a\nb"}, "does not name"),
        ({"sub": "a" * 129}, "does not name"),
    ],
)
async def test_a_token_that_is_not_for_here_and_now(
    more: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadToken, match=said):
        await issuer(Source(public("rsa2048"))).caller(token(**more))


async def test_clocks_may_differ_a_little() -> None:
    my = issuer(Source(public("rsa2048")), leeway=30)
    late = int(time.time()) - 10
    assert (await my.caller(token(exp=late))).name == "jwt:ann"


def none(data: bytes) -> bytes:
    return b""


def secret_of_public_key(data: bytes) -> bytes:
    pem = key("rsa2048").public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    text = pem.public_bytes(serialization.Encoding.PEM, form)
    return hmac.digest(text, data, hashlib.sha256)


@clause("A2A-3")
@pytest.mark.parametrize(
    ("head", "sign"),
    [
        ({"alg": "none"}, none),
        ({"alg": "None"}, none),
        ({"alg": "nOnE", "kid": "rsa2048"}, none),
        ({"alg": "HS256", "kid": "rsa2048"}, secret_of_public_key),
        ({"alg": "RS256", "kid": "rsa2048"}, secret_of_public_key),
        ({"alg": "RS256", "kid": "rsa2048"}, none),
        ({"alg": ["RS256"]}, none),
        ({"alg": "RS256", "kid": 7}, none),
        ({"alg": "RS256", "kid": "../../etc/passwd"}, none),
        ({"alg": "RS256", "crit": ["exp"], "kid": "rsa2048"}, none),
        ({"alg": "RS256", "typ": "logout+jwt", "kid": "rsa2048"}, none),
        ({"kid": "rsa2048"}, none),
    ],
)
async def test_a_forged_head_brings_in_nothing(
    head: dict[str, Any], sign: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(BadToken):
        await issuer(Source(public("rsa2048"))).caller(raw(head, claims(), sign))


async def test_a_key_in_the_token_is_not_taken() -> None:
    mine = token(
        "ed", "EdDSA", head={"jwk": public("ed"), "jku": "https://evil.example"}
    )
    source = Source(public("rsa2048"))
    with pytest.raises(BadToken, match="not signed"):
        await issuer(source).caller(mine)


@pytest.mark.parametrize(
    "known",
    [
        public("rsa2048", use="enc"),
        public("rsa2048", alg="PS256"),
        public("rsa2048", key_ops=["sign"]),
        public("rsa2048", kid="other"),
        {**public("rsa2048"), "d": "AQAB"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "rsa2048", "alg": "HS256"},
        {"kty": "RSA", "kid": "rsa2048"},
        {"kty": ["RSA"], "kid": "rsa2048"},
        "key",
    ],
)
async def test_keys_that_are_for_something_else(known: Any) -> None:
    source = Source(known)
    with pytest.raises(BadToken, match="not signed"):
        await issuer(source).caller(token())


@pytest.mark.filterwarnings("ignore:The RSA key is")
async def test_short_keys_do_not_count() -> None:
    with pytest.raises(BadToken, match="not signed"):
        await issuer(Source(public("rsa1024"))).caller(token("rsa1024"))


async def test_a_token_without_key_id_fits_any_key() -> None:
    source = Source(public("rsa2048b"), public("rsa2048"))
    found = await issuer(source).caller(token(head={}))
    assert found.name == "jwt:ann"


@clause("A2A-3")
async def test_keys_are_kept_and_fetched_again_when_they_change() -> None:
    source = Source(public("rsa2048"))
    my = issuer(source)
    for _ in range(3):
        await my.caller(token())
    assert source.fetches == 1
    # An unknown key makes us look, but not each time that somebody invents one.
    source.now += 31
    for _ in range(3):
        with pytest.raises(BadToken):
            await my.caller(token("rsa2048b"))
    assert source.fetches == 2
    source.now += 31
    source.keys = [public("rsa2048b")]
    assert (await my.caller(token("rsa2048b"))).name == "jwt:ann"
    with pytest.raises(BadToken):
        await my.caller(token())
    # An issuer that is away for a while stops nobody.
    source.now += 4000
    source.is_away = True
    assert (await my.caller(token("rsa2048b"))).name == "jwt:ann"
    source.is_away = False
    source.now += 61
    assert (await my.caller(token("rsa2048b"))).name == "jwt:ann"
    assert source.fetches == 5


@pytest.mark.parametrize("text", ["", "a.b.c", "...", "x" * 20_000, "é.é.é"])
async def test_text_that_is_no_token(text: str) -> None:
    with pytest.raises(BadToken):
        await issuer(Source(public("rsa2048"))).caller(text)


def test_no_algorithm_with_a_shared_secret_counts() -> None:
    assert not [name for name in ALGORITHMS if name.startswith(("HS", "none"))]


async def test_names_of_callers_are_parts_of_keys_in_the_store() -> None:
    for sub, kept in (
        ("auth0|7", "auth0|7"),
        ("spiffe://shop.example/a b", "spiffe:%2F%2Fshop.example%2Fa%20b"),
        ("100%", "100%25"),
        ("李", "%E6%9D%8E"),
        ("%2F", "%252F"),
    ):
        found = await issuer(Source(public("rsa2048"))).caller(token(sub=sub))
        assert found.id == f"local:jwt:{kept}"
        assert party_name(found.id) == f"{sub} (A2A, by JWT)"
        TypeAdapter(Party).validate_python(found.id)
