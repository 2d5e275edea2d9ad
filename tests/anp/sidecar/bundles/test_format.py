"""The bytes of a bundle: written one way, and read only if not a byte is off."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.sidecar.bundles.format import (
    MAX_BUNDLE,
    MAX_SOURCE,
    Bundle,
    BundledCapability,
    BundledHalf,
    BundleError,
    read_bundle,
    render_bundle,
)
from negotiation.document.renderer import render_document
from negotiation.need import Need, Role
from negotiation.strict_json import canonical_json
from tests.clauses import clause

NUMBER = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}
TEXT = render_document("Double a number, 数字", NUMBER, NUMBER)
PROVIDER = BundledHalf(
    Role.PROVIDER,
    "def handle_request(data): ...\n",
    "model",
    (BundledCapability("shop.double", NUMBER, True),),
    tests={"acceptance": "passed", "cases": {"text": "é\u2028", "at": 1.5}},
)
REQUESTER = BundledHalf(
    Role.REQUESTER, "def encode_request(message_id, arguments): ...\n", "rules"
)
BUNDLE = Bundle(
    TEXT, Need("double", NUMBER), (PROVIDER, REQUESTER), 1763722000.25, "did:key:zA"
)
DATA = render_bundle(BUNDLE)


def sealed(value: dict[str, Any]) -> bytes:
    """Return a bundle whose checksum fits, as an attacker could write it."""
    content = {name: part for name, part in value.items() if name != "sha256"}
    checksum = hashlib.sha256(canonical_json(content)).hexdigest()
    text = json.dumps(
        {**content, "sha256": checksum}, sort_keys=True, indent=2, ensure_ascii=False
    )
    return f"{text}\n".encode()


def changed(*path: str | int, value: Any) -> bytes:
    """Return the bundle with another value at `path`, sealed again."""
    whole = json.loads(DATA)
    place = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return sealed(whole)


def test_what_is_written_is_read_again() -> None:
    assert read_bundle(DATA) == BUNDLE
    assert sealed(json.loads(DATA)) == DATA
    small = Bundle(TEXT, None, (REQUESTER,), 0)
    assert read_bundle(render_bundle(small)) == small
    streams = BundledCapability("shop.double", NUMBER, True, {"type": "string"})
    half = replace(PROVIDER, capabilities=(streams,))
    large = replace(BUNDLE, halves=(half, REQUESTER))
    assert read_bundle(render_bundle(large)) == large
    assert streams.schema_hash != PROVIDER.capabilities[0].schema_hash


def test_the_same_content_gives_the_same_bytes() -> None:
    turned = replace(
        BUNDLE,
        halves=(
            REQUESTER,
            replace(PROVIDER, tests=dict(reversed([*PROVIDER.tests.items()]))),
        ),
    )
    assert render_bundle(turned) == DATA


@clause("ANP-85")
def test_no_byte_can_be_another() -> None:
    for place in range(len(DATA)):
        for flip in (0x01, 0x20, 0x80):
            data = bytearray(DATA)
            data[place] ^= flip
            with pytest.raises(BundleError) as caught:
                read_bundle(bytes(data))
            assert "\n" not in str(caught.value)


def test_no_byte_can_be_missing_or_too_many() -> None:
    for place in range(0, len(DATA) + 1, 7):
        for data in (
            DATA[:place] + DATA[place + 1 :] if place < len(DATA) else DATA[:-1],
            DATA[:place] + b" " + DATA[place:],
            DATA[:place] + b"\n" + DATA[place:],
        ):
            with pytest.raises(BundleError):
                read_bundle(data)


@given(st.binary(max_size=300))
def test_other_bytes_are_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(BundleError) as caught:
        read_bundle(data)
    assert "\n" not in str(caught.value)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_tests_may_hold_any_json(value: Any) -> None:
    bundle = replace(BUNDLE, halves=(replace(REQUESTER, tests={"any": value}),))
    try:
        data = render_bundle(bundle)
    except BundleError:
        # Half a character, or a number of more digits than are read.
        return
    assert read_bundle(data) == bundle


def test_what_json_readers_disagree_on_is_refused() -> None:
    twice = DATA.replace(b'"version": 1', b'"version": 1,\n  "version": 1')
    for data, words in (
        (twice, "twice"),
        (DATA.replace(b": 1763722000.25", b": NaN"), "NaN"),
        (b"\xef\xbb\xbf" + DATA, "not JSON"),
        (b"[" * 5000 + b"]" * 5000, "nested"),
        (DATA + b" " * MAX_BUNDLE, "at most"),
    ):
        with pytest.raises(BundleError, match=words):
            read_bundle(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{}", "export"),
        (b"null", "export"),
        (changed("format", value="other"), "export"),
        (changed("version", value=2), "version 2; this anpd reads version 1"),
        (changed("version", value=True), "version True"),
        (changed("more", value=1), "the bundle: an object with"),
        (changed("document", "text", value=TEXT + "\n"), "document.sha256"),
        (changed("document", "sha256", value="0" * 64), "document.sha256"),
        (changed("document", "request_schema", value=True), "request_schema"),
        (changed("document", "response_schema", value={}), "response_schema"),
        (changed("need", value="double"), "need: an object"),
        (changed("need", "requirement", value=" "), "requirement is empty"),
        (changed("need", "input_schema", value=7), "need: a schema"),
        (changed("halves", value=[]), "halves"),
        (changed("halves", value={}), "halves"),
        (changed("halves", 1, value=json.loads(DATA)["halves"][0]), "each role"),
        (changed("halves", 0, "role", value="boss"), r"halves\[0\].role"),
        (changed("halves", 0, "role", value=["provider"]), r"halves\[0\].role"),
        (changed("halves", 0, "origin", value="me"), "origin"),
        (changed("halves", 0, "origin", value={}), "origin"),
        (changed("halves", 0, "source", value="x"), "not the hash of its source"),
        (changed("halves", 0, "source", value=None), "source: a text"),
        (changed("halves", 0, "tests", value=[]), "tests"),
        (changed("halves", 0, "capabilities", 0, "sha256", value="x"), "schemas"),
        (changed("halves", 0, "capabilities", 0, "output_schema", value=1), "schema"),
        (changed("halves", 0, "capabilities", value=[{}] * 65), "at most 64"),
        (
            changed(
                "halves",
                1,
                "capabilities",
                value=json.loads(DATA)["halves"][0]["capabilities"],
            ),
            "a requester half calls none",
        ),
        (
            changed(
                "halves",
                0,
                "capabilities",
                value=json.loads(DATA)["halves"][0]["capabilities"] * 2,
            ),
            "each name stands there once",
        ),
        (changed("provenance", "created", value="now"), "seconds"),
        (changed("provenance", "created", value=-1), "seconds"),
        (changed("provenance", "did", value="me"), "DID"),
        (changed("provenance", "key", value="secret"), "provenance: an object"),
    ],
)
def test_a_checksum_that_fits_does_not_help(data: bytes, words: str) -> None:
    with pytest.raises(BundleError, match=words) as caught:
        read_bundle(data)
    assert "\n" not in str(caught.value)


def test_a_document_that_cannot_be_read_is_refused() -> None:
    text = "# Nothing\n"
    value = json.loads(DATA)
    value["document"] |= {
        "text": text,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    with pytest.raises(BundleError, match="the document cannot be used"):
        read_bundle(sealed(value))
    with pytest.raises(BundleError, match="this cannot be a bundle"):
        render_bundle(replace(BUNDLE, text=text))


def test_a_source_is_taken_at_its_limit_and_not_past_it() -> None:
    least = replace(
        BUNDLE, halves=(replace(REQUESTER, source="é" * (MAX_SOURCE // 2)),)
    )
    assert read_bundle(render_bundle(least)) == least
    with pytest.raises(BundleError, match=f"over {MAX_SOURCE} bytes"):
        render_bundle(least.with_source(Role.REQUESTER, "x" * (MAX_SOURCE + 1)))


def test_a_bundle_is_taken_at_its_limit_and_not_past_it() -> None:
    def of(size: int) -> Bundle:
        return replace(BUNDLE, halves=(replace(REQUESTER, tests={"x": "y" * size}),))

    rest = len(render_bundle(of(0)))
    assert len(render_bundle(of(MAX_BUNDLE - rest))) == MAX_BUNDLE
    with pytest.raises(BundleError, match=f"at most {MAX_BUNDLE}"):
        render_bundle(of(MAX_BUNDLE - rest + 1))


@pytest.mark.parametrize(
    "line_ends", [lambda d: d.replace(b"\n", b"\r\n"), bytes.strip]
)
def test_a_file_that_another_program_rewrote_says_so(
    line_ends: Callable[[bytes], bytes],
) -> None:
    with pytest.raises(BundleError, match="blanks, line ends"):
        read_bundle(line_ends(DATA))
