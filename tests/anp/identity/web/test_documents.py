"""DID documents of the web: what is taken from them, and what is not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ConfigError, ErrorCode, PeerError
from anp.identity.keys import PrivateKey
from anp.identity.public_keys import KeyKind
from anp.identity.web.documents import (
    MAX_DOCUMENT,
    MAX_METHODS,
    DidDocument,
    parse_document,
)
from anp.identity.web.own_document import (
    document_bytes,
    identity_of_document,
    make_document,
    make_web_did,
)
from anp.identity.web_dids import parse_web_did

VECTORS = Path(__file__).parents[3] / "vectors" / "identity" / "did_wba.json"
SDK = json.loads(VECTORS.read_text())["vectors"]
NOW = datetime(2026, 11, 21, tzinfo=UTC)
P256 = PrivateKey.generate()
BINDING = PrivateKey.generate(KeyKind.ED25519)
OTHER = PrivateKey.generate(KeyKind.ED25519)
HOST = make_web_did("agent.example")
BOUND = make_web_did("agent.example", path="alice", binding_key=BINDING.public_key)
PLAIN = make_document(
    HOST,
    hello_key=P256.public_key,
    binding_key=None,
    url="wss://a.example/",
    created=NOW,
)
SIGNED = make_document(
    BOUND,
    hello_key=P256.public_key,
    binding_key=BINDING,
    url="wss://a.example/",
    created=NOW,
)


def parsed(document: dict[str, Any], did: Any = HOST) -> DidDocument:
    return parse_document(json.dumps(document).encode(), did)


def method(name: str, **fields: Any) -> dict[str, Any]:
    """Return a verification method of the host's DID."""
    return {
        "id": f"{HOST.text}#{name}",
        "type": "Multikey",
        "controller": HOST.text,
        "publicKeyMultibase": OTHER.public_key.multibase,
        **fields,
    }


@pytest.mark.parametrize("vector", SDK, ids=lambda vector: vector["name"])
def test_documents_of_the_sdk_are_read(vector: dict[str, Any]) -> None:
    document = parsed(vector["document"], parse_web_did(vector["did"]))
    names = {key_id.partition("#")[2]: key for key_id, key in document.keys.items()}
    # Its key for end-to-end hellos stands in no relationship.
    assert names["key-2"].kind is KeyKind.P256
    last = vector["did"].rpartition(":")[2]
    assert (document.bound_key is not None) == last.startswith(("e1_", "k1_"))


@pytest.mark.parametrize(
    "vector",
    [v for v in SDK if "_" in v["did"].rpartition(":")[2][:3]],
    ids=lambda vector: vector["name"],
)
def test_a_bound_document_of_the_sdk_that_was_touched_is_refused(
    vector: dict[str, Any],
) -> None:
    did = parse_web_did(vector["did"])
    changes: tuple[dict[str, Any], ...] = (
        {"service": []},
        {"verificationMethod": vector["document"]["verificationMethod"][:1]},
        {"proof": None},
        {"extra": 1},
    )
    for change in changes:
        with pytest.raises(PeerError) as caught:
            parsed({**vector["document"], **change}, did)
        assert caught.value.code is ErrorCode.NOT_ALLOWED


def test_our_own_documents_are_read() -> None:
    plain = parsed(PLAIN)
    assert plain.keys == {f"{HOST.text}#key-1": P256.public_key}
    assert plain.urls == ("wss://a.example/",)
    signed = parsed(SIGNED, BOUND)
    assert signed.bound_key == BINDING.public_key
    assert set(signed.keys.values()) == {P256.public_key, BINDING.public_key}


def test_a_path_is_bound_to_its_key_whoever_runs_the_server() -> None:
    # The server puts its own key first, and signs with it.
    forged = make_document(
        BOUND,
        hello_key=PrivateKey.generate().public_key,
        binding_key=OTHER,
        url="wss://evil.example/",
        created=NOW,
    )
    with pytest.raises(PeerError) as caught:
        parsed(forged, BOUND)
    assert caught.value.code is ErrorCode.NOT_ALLOWED
    # It takes the true document and adds a key.
    methods = [*SIGNED["verificationMethod"], forged["verificationMethod"][1]]
    methods[-1] = {**methods[-1], "id": f"{BOUND.text}#key-9"}
    with pytest.raises(PeerError):
        parsed({**SIGNED, "verificationMethod": methods}, BOUND)


def test_a_document_of_another_did_is_refused() -> None:
    for text in (
        "did:wba:other.example",
        "did:wba:AGENT.example",
        "did:web:agent.example",
    ):
        with pytest.raises(PeerError):
            parsed({**PLAIN, "id": text})


@pytest.mark.parametrize(
    ("entry", "is_taken"),
    [
        (method("new"), True),
        (method("new", id="#new"), True),
        (method("new", controller="did:wba:other.example"), False),
        (method("new", controller=None), False),
        (method("new", id="did:wba:other.example#new"), False),
        (method("new", type="NewerKey2030"), False),
        (method("new", publicKeyMultibase="z111"), False),
    ],
)
def test_a_key_has_to_be_the_dids_own(entry: dict[str, Any], is_taken: bool) -> None:
    embedded = parsed({**PLAIN, "authentication": [entry]})
    assert (f"{HOST.text}#new" in embedded.keys) is is_taken
    listed = parsed(
        {**PLAIN, "verificationMethod": [entry], "authentication": [entry["id"]]}
    )
    assert (f"{HOST.text}#new" in listed.keys) is is_taken


@pytest.mark.parametrize(
    "relationship", ["assertionMethod", "keyAgreement", "capabilityInvocation", None]
)
def test_a_key_for_something_else_does_not_sign_hellos(
    relationship: str | None,
) -> None:
    document: dict[str, Any] = {
        "id": HOST.text,
        "verificationMethod": [method("new")],
    }
    if relationship is not None:
        document[relationship] = [f"{HOST.text}#new"]
    assert parsed(document).keys == {}


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"id": 1}',
        b'{"id": "did:wba:agent.example", "id": "did:wba:agent.example"}',
        b'{"id": "did:wba:agent.example", "verificationMethod": {}}',
        b'{"id": "did:wba:agent.example", "verificationMethod": [1]}',
        b'{"id": "did:wba:agent.example", "authentication": [{"id": 1}]}',
        b"[" * 100_000,
        b'{"a":' * 20 + b"1" + b"}" * 20,
        b" " * (MAX_DOCUMENT + 1),
        json.dumps(
            {
                "id": HOST.text,
                "verificationMethod": [method(f"k{n}") for n in range(MAX_METHODS + 1)],
            }
        ).encode(),
        json.dumps(
            {"id": HOST.text, "verificationMethod": [method("a"), method("a")]}
        ).encode(),
    ],
    ids=lambda data: repr(data[:40]),
)
def test_a_hostile_document_is_refused(document: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        parse_document(document, HOST)
    assert caught.value.code is ErrorCode.DID_NOT_FOUND


def test_as_many_methods_as_allowed_are_read() -> None:
    methods = [method(f"k{number}") for number in range(MAX_METHODS)]
    ids = [entry["id"] for entry in methods]
    document = {"id": HOST.text, "verificationMethod": methods, "authentication": ids}
    assert len(parsed(document).keys) == MAX_METHODS


def test_only_web_sockets_are_addresses() -> None:
    services = [
        {"type": "Other", "serviceEndpoint": "wss://other.example/"},
        {"type": "messageService", "serviceEndpoint": "https://a.example/"},
        {"type": "messageService", "serviceEndpoint": {"uri": "wss://a.example/"}},
        {"type": "messageService", "serviceEndpoint": "wss://user@a.example/"},
        {"type": "messageService", "serviceEndpoint": "wss://A.example"},
        1,
    ]
    found = parsed({**PLAIN, "service": services})
    assert found.urls == ("wss://a.example/", "wss://other.example/")


def test_a_did_that_was_given_up_has_no_keys() -> None:
    found = parsed({**PLAIN, "deactivated": True})
    assert found.deactivated
    assert found.keys == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.sampled_from([*PLAIN, "proof", "keyAgreement", "deactivated"]),
    JSON,
    st.booleans(),
)
def test_any_value_anywhere_is_read_or_refused(
    name: str, value: Any, bound: bool
) -> None:
    document, did = (SIGNED, BOUND) if bound else (PLAIN, HOST)
    try:
        parsed({**document, name: value}, did)
    except PeerError:
        return


def test_our_document_says_who_we_are() -> None:
    data = document_bytes(SIGNED)
    did, identity, urls = identity_of_document(data, (P256,))
    assert (did, urls) == (BOUND, ("wss://a.example/",))
    assert identity.key_id == f"{BOUND.text}#key-2"
    _, identity, _ = identity_of_document(data, (BINDING,))
    assert identity.key_id == f"{BOUND.text}#key-1"
    assert identity.public_key_hex == BINDING.public_bytes.hex()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b'{"id": 1}', document_bytes(SIGNED)]
)
def test_a_document_that_does_not_fit_our_keys_is_an_error(data: bytes) -> None:
    with pytest.raises(ConfigError):
        identity_of_document(data, (PrivateKey.generate(),))


@pytest.mark.parametrize(
    ("host", "port", "path"),
    [
        ("127.0.0.1", None, ""),
        ("a b", None, ""),
        ("a.example", 0, ""),
        ("a.example", None, "a/b"),
    ],
)
def test_a_did_is_made_of_a_host_name(host: str, port: int | None, path: str) -> None:
    with pytest.raises(ConfigError):
        make_web_did(host, port=port, path=path, binding_key=BINDING.public_key)
