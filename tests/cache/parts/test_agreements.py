"""Agreements: whole, looked up by task or hash, and never lost."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cache.disk import PlainDisk
from cache.errors import HashPrefixError, RecordError
from cache.parts.groups import GroupChange
from cache.parts.logs import LogChange, LogItem
from cache.parts.shelf import key_of
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    DocumentRecord,
    HalfRecord,
    Record,
    seal,
)
from cache.store import Store
from tests.cache.samples import (
    AGREEMENT,
    ALIAS,
    ANSWER,
    CALL,
    CONFIRMED,
    DID_KEYS,
    DOCUMENT,
    FIRING,
    HALF,
    KEY,
    KNOWN_PEER,
    LOG,
    MODEL_CALL,
    NAME,
    NEGOTIATION,
    OTHER,
    OWN,
    PEER,
    PIN,
    PROVIDER_AGREEMENT,
    PROVIDER_HALF,
    RECORDS,
    REVOCATION,
    SPEND,
    STANDING,
    SUBSCRIPTION,
    TASK_KEY,
    USAGE,
    WITHDRAWN,
    trio,
)
from tests.cache.states import set_agreement_state, set_state
from tests.clauses import clause


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as opened:
        yield opened


def find(store: Store, **options: object) -> list[AgreementRecord]:
    return store.agreements(OWN, PEER, AgreementRole.REQUESTER, TASK_KEY, **options)  # type: ignore[arg-type]


def save_on(store: Store, text: str, **changes: object) -> AgreementRecord:
    document = DocumentRecord.of(text)
    half = replace(HALF, hash=document.hash)
    agreement = replace(AGREEMENT, hash=document.hash, **changes)  # type: ignore[arg-type]
    return store.save_agreement(document, half, agreement)


def knows_call(store: Store) -> bool:
    """Return whether a key can be read; a damaged one is not an absent one."""
    try:
        return store.kept_call(CALL.id, now=CALL.created) is not None
    except RecordError:
        return False


def overwrite(folder: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(folder / "cache.db")
    with connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


@clause("ANP-84", "ANP-85")
def test_text_and_hash_of_an_agreement_outlive_the_process(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        saved = store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    with Store(tmp_path) as store:
        assert find(store) == [saved]
        document = store.document(saved.hash)
        assert document == DOCUMENT
        assert store.halves(saved.hash) == [replace(HALF, revision=1)]
        assert store.damaged == ()


@clause("ANP-84", "ANP-85")
def test_the_text_is_kept_byte_for_byte(store: Store) -> None:
    text = "\ufeff# 需求\r\n\x00é e\u0301 \U0001f600\t \n\n"
    saved = save_on(store, text)
    document = store.document(saved.hash)
    assert document is not None
    assert document.text.encode() == text.encode()


def test_what_does_not_belong_together_is_not_stored(store: Store) -> None:
    other = DocumentRecord.of("another")
    for trio_ in (
        (other, HALF, AGREEMENT),
        (DOCUMENT, replace(HALF, hash=other.hash), AGREEMENT),
        (DOCUMENT, PROVIDER_HALF, AGREEMENT),
        (replace(DOCUMENT, text="changed"), HALF, AGREEMENT),
        (DOCUMENT, replace(HALF, source="\ud800"), AGREEMENT),
        (DOCUMENT, HALF, replace(AGREEMENT, need_key=None)),
    ):
        with pytest.raises(RecordError):
            store.save_agreement(*trio_)
    assert store.all_agreements() == []
    assert store.document(DOCUMENT.hash) is None
    assert store.halves(DOCUMENT.hash) == []


# Lookups


def test_the_requester_finds_by_own_key_peer_and_task_only(store: Store) -> None:
    saved = store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    assert find(store) == [saved]
    assert store.agreements(OTHER, PEER, AgreementRole.REQUESTER, TASK_KEY) == []
    assert store.agreements(OWN, OTHER, AgreementRole.REQUESTER, TASK_KEY) == []
    assert store.agreements(OWN, PEER, AgreementRole.REQUESTER, "2" * 64) == []
    assert store.agreements(OWN, PEER, AgreementRole.PROVIDER, TASK_KEY) == []


def test_a_peer_whose_did_begins_like_another_is_another(store: Store) -> None:
    store.save_agreement(DOCUMENT, HALF, replace(AGREEMENT, peer_did=PEER + "x"))
    store.save_agreement(
        DOCUMENT, PROVIDER_HALF, replace(PROVIDER_AGREEMENT, peer_did=PEER + ":x")
    )
    assert find(store) == []


def test_the_newest_agreement_of_a_task_comes_first(store: Store) -> None:
    for text, created in (("a", 5.0), ("b", 9.0), ("c", 7.0)):
        save_on(store, text, created=created)
    assert [each.created for each in find(store)] == [9.0, 7.0, 5.0]


def test_only_active_agreements_are_found_unless_asked_for(store: Store) -> None:
    states = list(AgreementState)
    for number, state in enumerate(states):
        saved = save_on(store, state, created=float(number))
        set_agreement_state(store, saved, state)
    assert [each.state for each in find(store)] == [AgreementState.ACTIVE]
    assert {each.state for each in find(store, states=states)} == set(states)


def test_the_provider_answers_with_the_revision_agreed_with_this_peer(
    store: Store,
) -> None:
    first = store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    repaired = replace(PROVIDER_HALF, source="# repaired\n")
    second = store.save_agreement(
        DOCUMENT, repaired, replace(PROVIDER_AGREEMENT, peer_did=OTHER)
    )
    assert (first.revision, second.revision) == (1, 2)
    assert store.provider_agreement(DOCUMENT.hash, PEER) == first
    assert store.provider_agreement(DOCUMENT.hash.upper(), OTHER) == second
    assert store.provider_agreement(DOCUMENT.hash, PEER + "x") is None
    for peer, source in (
        (PEER, PROVIDER_HALF.source),
        (OTHER, repaired.source),
        ("did:key:zStranger", PROVIDER_HALF.source),
    ):
        half = store.provider_half(DOCUMENT.hash.upper(), peer)
        assert half is not None
        assert half.source == source


def test_the_provider_has_no_half_for_other_hashes_and_roles(store: Store) -> None:
    store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    assert store.provider_half(DOCUMENT.hash, PEER) is None
    assert store.provider_half("0" * 64, PEER) is None
    assert store.provider_half("", PEER) is None


def test_a_stale_half_is_passed_over_for_the_next_active_one(store: Store) -> None:
    store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    assert (
        set_state(
            store,
            DOCUMENT.hash,
            AgreementState.STALE,
            role=AgreementRole.PROVIDER,
            revision=1,
        )
        == 2
    )
    assert store.provider_half(DOCUMENT.hash, PEER) is None
    assert store.provider_half(DOCUMENT.hash, OTHER) is None
    fresh = replace(PROVIDER_HALF, capabilities={"catalogue.lookup": "b" * 64})
    store.save_agreement(DOCUMENT, fresh, replace(PROVIDER_AGREEMENT, peer_did=OTHER))
    for peer in (OTHER, "did:key:zStranger"):
        half = store.provider_half(DOCUMENT.hash, peer)
        assert half is not None
        assert half.revision == 2
    # This peer's own agreement is stale: it negotiates again.
    assert store.provider_half(DOCUMENT.hash, PEER) is None


def test_an_agreement_revoked_for_one_peer_serves_the_others(store: Store) -> None:
    saved = store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    set_agreement_state(store, saved, AgreementState.REVOKED)
    assert store.provider_half(DOCUMENT.hash, PEER) is None
    assert store.provider_half(DOCUMENT.hash, OTHER) is not None
    assert not store.is_revoked(DOCUMENT.hash)


def test_a_revoked_document_serves_nobody_and_cannot_be_agreed_again(
    store: Store,
) -> None:
    store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    assert set_state(store, DOCUMENT.hash.upper(), AgreementState.REVOKED) == 4
    assert set_state(store, DOCUMENT.hash, AgreementState.REVOKED) == 0
    assert store.is_revoked(DOCUMENT.hash)
    assert find(store) == []
    assert store.provider_half(DOCUMENT.hash, OTHER) is None
    fresh = replace(PROVIDER_HALF, source="# fresh\n")
    with pytest.raises(RecordError, match="revoked"):
        store.save_agreement(DOCUMENT, fresh, PROVIDER_AGREEMENT)
    set_state(store, DOCUMENT.hash, AgreementState.ACTIVE)
    store.save_agreement(DOCUMENT, fresh, PROVIDER_AGREEMENT)


# Revisions


def test_the_same_text_keeps_its_revision_and_a_new_one_gets_the_next(
    store: Store,
) -> None:
    for half, expected in (
        (HALF, 1),
        (HALF, 1),
        (replace(HALF, source="# two\n"), 2),
        (replace(HALF, origin="model"), 3),
        (replace(HALF, capabilities={"a": "0" * 64}), 4),
        (HALF, 1),
    ):
        assert store.save_agreement(DOCUMENT, half, AGREEMENT).revision == expected
    assert [half.revision for half in store.halves(DOCUMENT.hash)] == [1, 2, 3, 4]
    found = store.half(DOCUMENT.hash, AgreementRole.REQUESTER, 2)
    assert found is not None
    assert found.source == "# two\n"
    assert store.half(DOCUMENT.hash, AgreementRole.PROVIDER, 2) is None


def test_revisions_of_the_two_roles_are_counted_apart(store: Store) -> None:
    assert store.save_agreement(DOCUMENT, HALF, AGREEMENT).revision == 1
    saved = store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    assert saved.revision == 1


def test_a_revision_is_never_overwritten_with_another_text(store: Store) -> None:
    store.save_agreement(DOCUMENT, replace(HALF, revision=3), AGREEMENT)
    other = replace(HALF, revision=3, source="# other\n")
    with pytest.raises(RecordError, match="revision 3 holds another text"):
        store.save_agreement(DOCUMENT, other, AGREEMENT)
    assert store.save_agreement(DOCUMENT, HALF, AGREEMENT).revision == 3
    other = replace(HALF, source="# other\n")
    assert store.save_agreement(DOCUMENT, other, AGREEMENT).revision == 4


@pytest.mark.on_disk
def test_a_damaged_revision_keeps_its_number(store: Store, tmp_path: Path) -> None:
    store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    overwrite(
        tmp_path / "store", "UPDATE Cache SET value = '{}' WHERE key LIKE 'half/%'"
    )
    assert store.halves(DOCUMENT.hash) == []
    assert store.save_agreement(DOCUMENT, HALF, AGREEMENT).revision == 2


# Damage


@pytest.mark.on_disk
@pytest.mark.parametrize(
    "record",
    # The row of kind `ruling` is only written: its change is all that it says.
    {r.kind: r for r in reversed(RECORDS) if r.kind != "ruling"}.values(),
    ids=lambda record: record.kind,
)
def test_a_damaged_record_is_absent_logged_once_and_the_rest_unharmed(
    tmp_path: Path, record: Record, caplog: pytest.LogCaptureFixture
) -> None:
    with Store(tmp_path) as store:
        store.save_agreement(DOCUMENT, replace(HALF, revision=1), AGREEMENT)
        store.save_agreement(*trio(1))
        store.save_negotiation(NEGOTIATION)
        store.save_standing(STANDING, now=STANDING.created)
        store.save_peer(replace(KNOWN_PEER, aliases=(ALIAS.alias,)))
        store.save_pin(PIN)
        store.save_name(NAME)
        store.save_spend(SPEND, MODEL_CALL)
        store.save_answer(ANSWER)
        store.save_did_keys(DID_KEYS)
        store.save_key(KEY, now=KEY.created)
        store.save_call(CALL)
        store.revoke(REVOCATION.hash, peer_did=PEER, reason="x", at=REVOCATION.at)
        store.withdraw([WITHDRAWN])
        store.confirm(CONFIRMED)
        store.add_usage([USAGE])
        store.append_log(
            LogChange(
                log=LOG.id,
                after=0,
                at=1000.0,
                events=(b"event",),
                items=(LogItem(id="0b", content=b"item", open=True),),
                names=LOG.names,
            )
        )
        store.lease_items({"0b": LOG.id}, owner="0c", now=0.0, until=1000.0)
        store.lease_groups(["0d"], owner="0c", now=0.0, until=1000.0)
        store.save_group(
            GroupChange(
                group="0d",
                at=1.0,
                first=3,
                count=2,
                page=b"page",
                content=b"head",
                rows={"0e": b"row"},
            )
        )
        store.save_subscription(replace(SUBSCRIPTION, revision=0), [FIRING])
    if isinstance(record, HalfRecord):
        record = replace(record, revision=1)
    key = key_of(record)
    overwrite(
        tmp_path,
        'UPDATE Cache SET value = REPLACE(value, \'"sha256":"\', \'"sha256":"0\')'
        " WHERE key = ?",
        key,
    )
    caplog.set_level(logging.ERROR)
    with Store(tmp_path) as store:
        for _ in range(2):
            present = {
                "document": store.document(DOCUMENT.hash) is not None,
                "half": store.half(DOCUMENT.hash, AgreementRole.REQUESTER, 1)
                is not None,
                "agreement": bool(find(store)),
                "negotiation": bool(store.negotiations()),
                "standing": bool(store.standing()),
                "peer": bool(store.peers()) and store.peer(PEER) is not None,
                "alias": store.canonical_did(ALIAS.alias) == PEER,
                "address": store.pinned_url(PIN.agent) == PIN.url,
                "name": store.name(NAME.name) is not None,
                "pin": bool(store.pins()) and store.pin(PIN.url) is not None,
                "spend": bool(store.spends(since="")),
                "model_call": bool(store.model_calls(since="")),
                "answer": store.answer(ANSWER.question, now=ANSWER.at) is not None,
                "did_keys": store.did_keys(DID_KEYS.did) is not None,
                "key": store.key(KEY.role, KEY.peer_did, KEY.id) is not None,
                "call": knows_call(store),
                "revocation": bool(store.revocations()),
                "withdrawn": bool(store.withdrawals()),
                "confirmed": bool(store.confirmed(PEER, CONFIRMED.need)),
                "usage": store.usage(DOCUMENT.hash).agreement > 0,
                "log": store.log(LOG.id) is not None,
                "log_name": store.log_named(LOG.names[0]) is not None,
                "log_item": bool(store.items_of_log(LOG.id)),
                "log_lease": bool(store.leases()),
                "subscription": bool(store.subscriptions()),
                "firing": bool(store.firings(FIRING.subscription)),
                "group": bool(store.groups()),
                "group_page": bool(store.group_pages("0d", after=2)),
                "group_row": bool(store.group_rows("0d")),
                "group_lease": bool(store.group_leases()),
            }
            # These are found only together with their log and their item.
            if present["log"]:
                present["log_event"] = bool(store.log_events(LOG.id))
            if present["log_item"]:
                present["log_mark"] = bool(store.log_items(only_open=True))
            assert present == {kind: kind != record.kind for kind in present}
        assert [damage.key for damage in store.damaged] == [key]
        _, other, agreement = trio(1)
        assert store.halves(other.hash) == [replace(other, revision=1)]
        assert store.agreements_of(other.hash) == [replace(agreement, revision=1)]
    lines = [r.getMessage() for r in caplog.records if "damaged" in r.getMessage()]
    assert len(lines) == 1


@pytest.mark.on_disk
def test_a_new_record_in_place_of_a_damaged_one_heals_it(
    store: Store, tmp_path: Path
) -> None:
    store.save_pin(PIN)
    overwrite(tmp_path / "store", "UPDATE Cache SET value = 'x'")
    assert store.pin(PIN.url) is None
    assert [damage.key for damage in store.damaged] == [key_of(PIN)]
    store.save_pin(PIN)
    assert store.pin(PIN.url) == PIN
    assert not store.damaged


@pytest.mark.on_disk
@clause("ANP-88")
def test_a_document_whose_text_was_changed_on_disk_is_absent(
    store: Store, tmp_path: Path
) -> None:
    store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    overwrite(
        tmp_path / "store",
        "UPDATE Cache SET value = REPLACE(value, 'product', 'Product')"
        " WHERE key LIKE 'document/%'",
    )
    assert store.document(DOCUMENT.hash) is None


@pytest.mark.on_disk
def test_a_record_under_the_key_of_another_is_absent(
    store: Store, tmp_path: Path
) -> None:
    store.save_pin(PIN)
    # Sealed correctly for the wrong key.
    key = "pin/ws://other/"
    _, _, _, value = PlainDisk("").store(seal(PIN, key), False)
    overwrite(
        tmp_path / "store",
        "INSERT INTO Cache (key, raw, mode, value) VALUES (?, 1, 1, ?)",
        key,
        value,
    )
    assert store.pin("ws://other/") is None
    assert store.damaged[0].reason == "is stored under the key of another record"


@pytest.mark.on_disk
def test_a_check_finds_all_damage_at_once(store: Store, tmp_path: Path) -> None:
    store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    assert store.check() == ([], ())
    overwrite(tmp_path / "store", "UPDATE Cache SET value = '[]'")
    overwrite(
        tmp_path / "store",
        "INSERT INTO Cache (key, raw, mode, value) VALUES ('new/1', 1, 1, '{}')",
    )
    problems, damaged = store.check()
    assert problems == []
    assert {damage.key.partition("/")[0] for damage in damaged} == {
        "document",
        "half",
        "agreement",
        "new",
    }


# Hash prefixes


def test_a_hash_is_found_by_its_beginning(store: Store) -> None:
    store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    for prefix in (
        DOCUMENT.hash,
        DOCUMENT.hash[:1],
        DOCUMENT.hash[:8].upper(),
        f"sha256:{DOCUMENT.hash}",
        f" {DOCUMENT.hash}\n",
    ):
        assert store.find_hash(prefix) == DOCUMENT.hash
        assert store.document(prefix) == DOCUMENT


def test_an_ambiguous_beginning_names_what_it_fits(store: Store) -> None:
    texts: dict[str, list[str]] = {}
    for number in range(20):
        texts.setdefault(DocumentRecord.of(str(number)).hash[0], []).append(str(number))
    first, numbers = max(texts.items(), key=lambda item: len(item[1]))
    hashes = {save_on(store, number).hash for number in numbers}
    for ask in (store.find_hash, store.document):
        with pytest.raises(HashPrefixError, match="give more of it") as caught:
            ask(first)
        assert set(caught.value.matches) == hashes


@pytest.mark.parametrize("prefix", ["", "xyz", "g", "0" * 65, "sha256:", "%", "a/b"])
def test_what_is_no_beginning_of_a_hash_is_said(store: Store, prefix: str) -> None:
    for ask in (store.find_hash, store.document):
        with pytest.raises(HashPrefixError, match="not the beginning of a hash"):
            ask(prefix)


def test_a_hash_nobody_has_is_said_or_absent(store: Store) -> None:
    assert store.document("0" * 64) is None
    with pytest.raises(HashPrefixError, match="protocols list"):
        store.find_hash("0" * 64)


# Use


def test_a_use_of_what_is_gone_changes_nothing(store: Store) -> None:
    store.add_usage([], [(AGREEMENT, 1, 1.0)])
    assert store.all_agreements() == []


def test_a_change_of_state_keeps_the_counts(store: Store) -> None:
    saved = store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    store.add_usage([], [(saved, 1, 1.0)])
    store.add_usage([], [(saved, 1, 2.0)])
    set_state(store, saved.hash, AgreementState.STALE)
    assert [(each.uses, each.state) for each in store.all_agreements()] == [
        (2, AgreementState.STALE)
    ]


# Size


@pytest.mark.on_disk
def test_opening_and_one_lookup_read_only_what_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path) as store:
        for number in range(50):
            store.save_agreement(*trio(number))
    fetched: list[object] = []
    fetch = PlainDisk.fetch

    def counting(self: PlainDisk, *columns: object) -> object:
        fetched.append(columns)
        return fetch(self, *columns)

    monkeypatch.setattr(PlainDisk, "fetch", counting)
    with Store(tmp_path) as store:
        assert fetched == []
        assert (
            len(store.agreements(OWN, PEER, AgreementRole.REQUESTER, f"{7:064x}")) == 1
        )
        assert len(fetched) == 1
        assert store.document(trio(7)[0].hash) is not None
        assert len(fetched) == 2


def test_channels_that_share_an_agreement_keep_each_others_test_outcomes(
    tmp_path: Path,
) -> None:
    with Store(tmp_path) as store:
        read = store.save_agreement(*trio(0))
        store.set_tests(read, {"one": 1})
        # Another channel still has the agreement as it was read first.
        changed = store.set_tests(read, {"other": 2})
        assert changed.tests == {**read.tests, "one": 1, "other": 2}


def test_new_code_for_an_agreement_loses_no_count_of_its_use(tmp_path: Path) -> None:
    document, half, agreement = trio(0)
    with Store(tmp_path) as store:
        read = store.save_agreement(document, half, agreement)
        # The model takes its time to write the code; calls go on meanwhile.
        store.add_usage([], [(read, 3, 5000.0)])
        new = store.save_agreement(document, replace(half, source="# new\n"), read)
        assert (new.revision, new.uses, new.last_used) == (2, 3, 5000.0)
