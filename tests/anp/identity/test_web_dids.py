"""`did:web` and `did:wba`: their spelling and where their documents are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import CallError, PeerError
from anp.identity.address import parse_peer
from anp.identity.web_dids import parse_web_did

VECTORS = Path(__file__).parents[2] / "vectors" / "identity" / "did_wba.json"
SDK = json.loads(VECTORS.read_text())["vectors"]
BOUND = "e1_" + "A" * 43


@pytest.mark.parametrize("vector", SDK, ids=lambda vector: vector["name"])
def test_documents_are_where_the_sdk_looks_for_them(vector: dict[str, str]) -> None:
    did = parse_web_did(vector["did"])
    assert did.text == vector["did"]
    assert did.document_url == vector["url"]


@pytest.mark.parametrize(
    ("did", "url"),
    [
        ("did:wba:example.com", "https://example.com/.well-known/did.json"),
        ("did:web:example.com%3A3000", "https://example.com:3000/.well-known/did.json"),
        (
            "did:web:w3c-ccg.github.io:user:alice",
            "https://w3c-ccg.github.io/user/alice/did.json",
        ),
        ("did:web:example.com:a%20b", None),
        ("did:web:example.com:%E5%90%8D", "https://example.com/%E5%90%8D/did.json"),
        (f"did:wba:example.com:u:{BOUND}", f"https://example.com/u/{BOUND}/did.json"),
    ],
)
def test_a_did_says_where_its_document_is(did: str, url: str | None) -> None:
    if url is None:
        with pytest.raises(PeerError):
            parse_web_did(did)
        return
    assert parse_web_did(did).document_url == url
    assert parse_web_did(did).text == did


@pytest.mark.parametrize(
    ("given_did", "did"),
    [
        ("did:wba:EXAMPLE.com", "did:wba:example.com"),
        ("did:wba:example.com%3a8443", "did:wba:example.com%3A8443"),
        ("did:wba:example.com%3A0443", "did:wba:example.com"),
        ("did:wba:example.com%3A443:a", "did:wba:example.com:a"),
        ("did:web:example.com:%61b", "did:web:example.com:ab"),
        ("did:web:example.com:%e5%90%8d", "did:web:example.com:%E5%90%8D"),
    ],
)
def test_a_did_has_one_spelling(given_did: str, did: str) -> None:
    assert parse_web_did(given_did).text == did
    assert parse_peer(given_did).did == did


@pytest.mark.parametrize(
    "did",
    [
        "did:wba:",
        "did:web",
        "did:key:z6Mk",
        "did:wba:example.com:",
        "did:wba:example.com::a",
        "did:wba:example.com:..",
        "did:web:example.com:%2e%2e",
        "did:web:example.com:a%2Fb",
        "did:web:example.com:a%5Cb",
        "did:web:example.com:a%00",
        "did:web:example.com:%FF",
        "did:web:example.com:a%3Fb",
        "did:web:example.com:a%23b",
        "did:wba:example.com:a%41",
        "did:wba:127.0.0.1",
        "did:wba:127.1",
        "did:web:0x7f.0x1",
        "did:web:%5B%3A%3A1%5D",
        "did:wba:example.com%3A",
        "did:wba:example.com%3A0",
        "did:wba:example.com%3A65536",
        "did:wba:example.com%3A80%3A80",
        "did:wba:user%40example.com",
        "did:wba:exa_mple.com",
        "did:wba:-a.com",
        "did:wba:a..com",
        "did:wba:a.com.",
        f"did:wba:{'a' * 64}.com",
        "did:wba:example.com:user:e1_short",
        f"did:wba:example.com:user:{BOUND}A",
        "did:wba:example.com:user:k1_",
        "did:wba:example.com/path",
        "did:wba:example.com?query",
        "did:wba:example.com#key-1",
        "did:wba:" + ":".join(["example.com", *("a" * 17)]),
        "did:wba:" + "a" * 1100,
    ],
)
def test_what_leads_elsewhere_is_no_web_did(did: str) -> None:
    with pytest.raises(PeerError):
        parse_web_did(did)
    with pytest.raises(CallError):
        parse_peer(did) if did.startswith(("did:wba:", "did:web:")) else parse_peer("?")


def test_a_path_names_the_key_it_is_bound_to() -> None:
    binding = parse_web_did(f"did:wba:example.com:user:{BOUND}").binding
    assert binding is not None
    assert (binding.profile, binding.thumbprint) == ("e1", "A" * 43)
    # The prefix means something at the end of a did:wba only.
    assert parse_web_did(f"did:wba:example.com:{BOUND}:alice").binding is None
    assert parse_web_did(f"did:web:example.com:{BOUND}").binding is None


@given(st.text(max_size=60))
def test_any_text_is_a_did_in_its_one_spelling_or_a_refusal(text: str) -> None:
    for method in ("wba", "web"):
        try:
            did = parse_web_did(f"did:{method}:{text}")
        except PeerError:
            continue
        assert parse_web_did(did.text) == did
