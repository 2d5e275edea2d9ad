"""Records: what is sealed is read again, everything else is refused."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.errors import RecordError
from cache.records.negotiations import NegotiationRecord
from cache.records.peers import PeerRecord, PeerState, PinRecord
from cache.records.records import (
    FORMAT,
    MAX_RECORD,
    AgreementRecord,
    AgreementRole,
    AgreementState,
    DocumentRecord,
    HalfRecord,
    Record,
    hash_text,
    open_envelope,
    seal,
)
from tests.cache.samples import AGREEMENT, DOCUMENT, NEGOTIATION, PIN, RECORDS
from tests.clauses import clause

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(text, json_values, max_size=3)
hashes = st.binary(max_size=8).map(lambda data: hashlib.sha256(data).hexdigest())
dids = st.text("abcXYZ019.:_-%", min_size=1, max_size=30).map(lambda t: f"did:{t}")
seconds = st.floats(0, 1e11, exclude_max=True)
ids = st.text("abcXYZ019_-", min_size=1, max_size=64)
roles, states = st.sampled_from(AgreementRole), st.sampled_from(AgreementState)

records: st.SearchStrategy[Record] = st.one_of(
    st.builds(DocumentRecord.of, text),
    st.builds(
        HalfRecord,
        hash=hashes,
        role=roles,
        revision=st.integers(0, 10**6),
        source=text,
        origin=st.sampled_from(["rules", "model", "imported", "hand-written"]),
        capabilities=st.dictionaries(text, hashes, max_size=3),
        created=seconds,
        state=states,
    ),
    st.builds(
        AgreementRecord,
        own_did=dids,
        peer_did=dids,
        role=roles,
        need_key=st.none() | hashes,
        hash=hashes,
        revision=st.integers(0, 10**6),
        need=st.none() | objects,
        samples=st.sampled_from(["full", "partial", "none"]),
        tests=objects,
        negotiation_id=st.none() | ids,
        created=seconds,
        last_used=st.none() | seconds,
        uses=st.integers(0, 2**70),
        state=states,
    ),
    st.builds(
        NegotiationRecord,
        id=ids,
        peer_did=dids,
        role=roles,
        need=st.none() | objects,
        turns=st.lists(objects, max_size=3).map(tuple),
        outcome=text,
        reason=text,
        hash=st.none() | hashes,
        started=seconds,
        ended=st.none() | seconds,
    ),
    st.builds(
        PeerRecord,
        did=dids,
        state=st.sampled_from(PeerState),
        names=st.lists(text, max_size=2).map(tuple),
        urls=st.lists(st.just("ws://h/"), max_size=2).map(tuple),
        first_seen=seconds,
        last_seen=seconds,
        aliases=st.lists(dids, max_size=2).map(tuple),
    ),
    st.builds(PinRecord, st.just("wss://h:1/?a=b"), dids, seconds, dids),
)


@given(records, text)
def test_what_is_sealed_is_read_again(record: Record, key: str) -> None:
    envelope = json.loads(json.dumps(seal(record, key)))
    again = open_envelope(type(record), key, envelope)
    assert again == record
    for field in fields(record):
        value = getattr(record, field.name)
        assert type(getattr(again, field.name)) is type(value)


@given(json_values)
def test_any_json_is_an_envelope_or_refused(value: Any) -> None:
    kinds: list[type[Record]] = [type(record) for record in RECORDS]
    for kind in kinds:
        with pytest.raises(RecordError):
            open_envelope(kind, "key", value)
        with pytest.raises(RecordError):
            kind.from_json(value)


@given(records, st.data())
def test_a_changed_envelope_is_refused(record: Record, data: st.DataObject) -> None:
    envelope = seal(record, "key")
    part = data.draw(st.sampled_from(["format", "kind", "sha256", "record"]))
    other = data.draw(json_values.filter(lambda value: value != envelope[part]))
    with pytest.raises(RecordError):
        open_envelope(type(record), "key", {**envelope, part: other})
    with pytest.raises(RecordError):
        open_envelope(type(record), "another key", envelope)
    del envelope[part]
    with pytest.raises(RecordError):
        open_envelope(type(record), "key", envelope)


@pytest.mark.parametrize("other", [FORMAT + 1, FORMAT - 1, True, "1", None])
def test_another_format_version_is_refused(other: object) -> None:
    with pytest.raises(RecordError, match="format"):
        open_envelope(PinRecord, "key", {**seal(PIN, "key"), "format": other})


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.kind)
def test_a_missing_or_further_field_is_refused(record: Record) -> None:
    value = record.to_json()
    with pytest.raises(RecordError):
        type(record).from_json({**value, "further": 1})
    del value[next(iter(value))]
    with pytest.raises(RecordError):
        type(record).from_json(value)


@clause("ANP-88")
def test_the_hash_is_sha_256_of_the_utf_8_bytes_in_lower_case_hex() -> None:
    assert hash_text("") == (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
    # Nothing is normalised: composed and decomposed, CRLF and LF stay apart.
    texts = ["é", "e\u0301", "a\n", "a\r\n", "a", "a ", "\ufeffa", "协议"]
    assert len({hash_text(each) for each in texts}) == len(texts)
    for each in texts:
        assert hash_text(each) == hashlib.sha256(each.encode("utf-8")).hexdigest()


@clause("ANP-88")
def test_a_document_under_a_hash_that_is_not_its_own_is_refused() -> None:
    with pytest.raises(RecordError, match="not that of the text"):
        replace(DOCUMENT, text=DOCUMENT.text + " ").to_json()
    with pytest.raises(RecordError):
        replace(DOCUMENT, hash=DOCUMENT.hash.upper()).to_json()


def test_a_text_without_utf_8_bytes_has_no_hash() -> None:
    with pytest.raises(RecordError, match="surrogate"):
        DocumentRecord.of("half a character: \ud83d")


@pytest.mark.parametrize(
    "record",
    [
        replace(AGREEMENT, own_did="did:a/b"),
        replace(AGREEMENT, peer_did="did:a\n"),
        replace(AGREEMENT, peer_did="did:" + "a" * 1021),
        replace(AGREEMENT, hash="0" * 63),
        replace(AGREEMENT, need_key="g" * 64),
        replace(AGREEMENT, uses=-1),
        replace(AGREEMENT, created=float("nan")),
        replace(AGREEMENT, created=float("inf")),
        replace(AGREEMENT, tests={"value": float("nan")}),
        replace(AGREEMENT, tests={"value": ("a", "tuple")}),
        replace(AGREEMENT, tests={"value": "\ud800"}),
        replace(AGREEMENT, tests={"value": object()}),
        replace(NEGOTIATION, id="a/b"),
        replace(NEGOTIATION, id=""),
        replace(NEGOTIATION, reason="r" * (64 * 1024 + 1)),
        replace(PIN, url="ws://h/ x"),
        replace(PIN, url="ws://" + "h" * 2044),
    ],
)
def test_a_record_that_could_not_be_read_again_is_not_written(record: Record) -> None:
    with pytest.raises(RecordError) as caught:
        seal(record, "key")
    assert "\n" not in str(caught.value)


def test_lengths_are_allowed_up_to_their_limits() -> None:
    for record in (
        replace(AGREEMENT, peer_did="did:" + "a" * 1020),
        replace(NEGOTIATION, reason="r" * 64 * 1024),
        replace(NEGOTIATION, id="n" * 64),
        replace(PIN, url="ws://" + "h" * 2043),
    ):
        assert open_envelope(type(record), "key", seal(record, "key")) == record


def test_the_size_of_a_record_is_limited() -> None:
    empty = len(json.dumps(DocumentRecord.of("").to_json(), separators=(",", ":")))
    DocumentRecord.of("x" * (MAX_RECORD - empty)).to_json()
    with pytest.raises(RecordError, match="at most 16777216"):
        DocumentRecord.of("x" * (MAX_RECORD - empty + 1)).to_json()


def test_a_refusal_quotes_nothing_of_the_record() -> None:
    with pytest.raises(RecordError) as caught:
        PinRecord.from_json({**PIN.to_json(), "did": "secret words"})
    assert "secret" not in str(caught.value)
