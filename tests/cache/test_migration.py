"""Stores of earlier versions: what becomes of their records.

The files in `tests/vectors/homes` are the rows of stores that daemons of two earlier
commits made: agreements that were used, a block, and a revocation.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anp.identity.dids import agent_name
from cache.condition import StoreFault, condition_of
from cache.disk import Database
from cache.errors import StoreUnavailable
from cache.migration import outdated
from cache.parts.shelf import THIS_STORE
from cache.records.peers import PeerState
from cache.records.records import AgreementRole, StoreRecord, seal
from cache.store import OwnHome, Store, open_store

HOMES = Path(__file__).parent.parent / "vectors" / "homes"
BLOCKED = "did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169"


def stored(folder: Path, name: str) -> None:
    """Make a store with the rows of an earlier version."""
    lines = (HOMES / f"{name}.jsonl").read_text().splitlines()
    database = Database(folder)

    def work(cache: object) -> None:
        for line in lines:
            key, value = json.loads(line)
            cache.set(key, value)  # type: ignore[attr-defined]  # any rows will do

    database.write(work)
    database.close()


def opened(home: Path, *, new_store: bool = False) -> Store:
    """Open the store of a home as a daemon does."""
    own = OwnHome(
        safeguard=home / "safeguard.json", agent_of=agent_name, new_store=new_store
    )
    return open_store(home / "store", home=own)


@pytest.mark.parametrize(
    ("name", "changed"), [("8804eb8-requester", 5), ("4d4ebb6d-requester", 0)]
)
def test_agreements_blocks_and_revocations_of_an_earlier_version_count(
    tmp_path: Path, name: str, changed: int
) -> None:
    stored(tmp_path / "store", name)
    with Store(tmp_path / "store") as before:
        assert len(outdated(before, agent_name)) == changed
    with opened(tmp_path) as store:
        assert condition_of(store, thorough=True).fault is None
        page = store.page()
        needs = {str(one.need and one.need["requirement"]) for one in page.agreements}
        assert needs == {"find_song", "find_song please"}
        for one in page.agreements:
            assert one.need_key is not None
        assert [one.outcome for one in store.negotiations()] == ["agreed"] * 2
        (pin,) = store.pins()
        assert store.pinned_url(pin.agent) == "ws://127.0.0.1:28401/"
        (blocked,) = store.peers_known_as(BLOCKED)
        assert blocked.state is PeerState.BLOCKED
        (revocation,) = store.revocations()
        assert store.is_revoked(revocation.hash)
    copy = tmp_path / "store.version-0"
    assert copy.exists() == bool(changed)
    if changed:
        # The copy is a store of the earlier version, which that one can use.
        with Store(copy) as kept:
            assert len(outdated(kept, agent_name)) == changed


def test_records_are_migrated_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stored(tmp_path / "store", "8804eb8-provider")
    opened(tmp_path).close()
    assert "records migrated count=4" in caplog.text
    caplog.clear()
    with opened(tmp_path) as store:
        assert "migrated" not in caplog.text
        roles = [one.role for one in store.page().agreements]
        assert roles == [AgreementRole.PROVIDER] * 2


def test_what_cannot_be_read_is_named_and_kept(tmp_path: Path) -> None:
    stored(tmp_path / "store", "8804eb8-requester")
    database = Database(tmp_path / "store")
    (row, _) = database.read(lambda cache: cache.rows("agreement/"))
    assert isinstance(row.value, dict)
    # Of no version that is known: the checksum is right, the fields are not.
    value = {**row.value["record"], "mood": "good"}
    from cache.records.records import _checksum

    sealed = {
        **row.value,
        "record": value,
        "sha256": _checksum("agreement", row.key, value),
    }
    database.write(lambda cache: cache.set(row.key, sealed))
    database.close()
    with opened(tmp_path) as store:
        found = condition_of(store, thorough=True)
        assert found.fault is StoreFault.RECORDS
        assert found.works
        peer, need = value["peer_did"], value["task"]["requirement"]
        assert f"agreement with {peer} for '{need}'" in found.text
        assert "need_key" in found.text
        assert store.values([row.key]) == {row.key: sealed}


def test_a_store_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    database = Database(tmp_path / "store")
    later = seal(StoreRecord("one", 1.0, 99), THIS_STORE)
    database.write(lambda cache: cache.set(THIS_STORE, later))
    database.close()
    with pytest.raises(StoreUnavailable, match="later version of anpd"):
        opened(tmp_path)
