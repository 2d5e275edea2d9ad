"""The file beside a store: the store's id, and refusals that outlive the store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cache.condition import StoreFault, condition_of
from cache.errors import StoreUnavailable
from cache.records.peers import PeerState
from cache.records.records import AgreementRole, WithdrawnRecord
from cache.rows import Rows
from cache.safeguard import GuardedRows, Safeguard
from cache.store import OwnHome, Store, open_store

PEER = "did:key:zPeer"
OTHER = "did:all:other"
HASH = "ab" * 32


def opened(home: Path, *, new_store: bool = False) -> Store:
    """Open the store of a home as a daemon does."""
    own = OwnHome(safeguard=home / "safeguard.json", agent_of=str, new_store=new_store)
    return open_store(home / "store", home=own)


WITHDRAWN = WithdrawnRecord(
    AgreementRole.PROVIDER, PEER, "songs.find", 1.0, hashes=(HASH,)
)


def is_withdrawn(store: Store) -> bool:
    """Tell whether the capability is withdrawn from the peer."""
    return bool(store.withdrawn(WITHDRAWN.role, PEER, [WITHDRAWN.capability]))


def block(
    store: Store, state: PeerState = PeerState.BLOCKED, *, now: float = 1.0
) -> None:
    """Decide about the peer, under both of its DIDs."""
    store.see_peer(PEER, shown_did=OTHER, now=now, state=state)


def states(store: Store, did: str) -> list[PeerState]:
    """Return the decisions about a peer."""
    return [peer.state for peer in store.peers_known_as(did)]


def lose(home: Path) -> None:
    """Leave the store's file with zero bytes, as a power cut may do."""
    for one in (home / "store").iterdir():
        one.unlink()
    (home / "store" / "cache.db").touch()


@pytest.mark.on_disk
def test_a_home_notes_which_store_it_has(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as store:
        made = store.identity()
        assert made is not None
    assert json.loads((tmp_path / "safeguard.json").read_text())["store"] == made.id
    assert not caplog.text
    with opened(tmp_path) as again:
        assert again.identity() == made
    # One of an earlier version has a store and no note of it.
    (tmp_path / "safeguard.json").unlink()
    opened(tmp_path).close()
    assert f"the home noted its store id={made.id}" in caplog.text


@pytest.mark.on_disk
@pytest.mark.parametrize("way", ["emptied", "gone", "another"])
def test_a_store_that_lost_what_it_held_is_not_taken_for_a_new_one(
    tmp_path: Path, way: str
) -> None:
    with opened(tmp_path) as store:
        block(store)
        store.revoke(HASH, at=1.0)
        store.withdraw([WITHDRAWN])
    match way:
        case "emptied":
            lose(tmp_path)
        case "gone":
            shutil.rmtree(tmp_path / "store")
        case _:
            shutil.rmtree(tmp_path / "store")
            with Store(tmp_path / "store") as other:
                other.identify("other", at=2.0)
    with pytest.raises(StoreUnavailable, match="anpd up --new-store"):
        opened(tmp_path)
    with opened(tmp_path, new_store=True) as store:
        assert states(store, PEER) == [PeerState.BLOCKED]
        assert states(store, OTHER) == [PeerState.BLOCKED]
        assert store.is_revoked(HASH)
        assert is_withdrawn(store)
    with opened(tmp_path) as store:
        assert condition_of(store).fault is None
        assert [one.hash for one in store.revocations()] == [HASH]


@pytest.mark.on_disk
def test_what_either_holds_counts_and_allowing_clears_both(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        block(store)
        store.revoke(HASH, at=1.0)
        store.withdraw([WITHDRAWN])
    shutil.copytree(tmp_path / "store", tmp_path / "backup")
    with opened(tmp_path) as store:
        block(store, PeerState.ALLOWED)
        assert store.give_back(HASH).revocations
        assert store.readmit(WITHDRAWN.role, PEER, [WITHDRAWN.capability], at=2.0)
        assert not is_withdrawn(store)
        assert json.loads((tmp_path / "safeguard.json").read_text())["rows"] == {}
        assert states(store, PEER) == [PeerState.ALLOWED]
    # A backup from before still refuses, and so it counts.
    shutil.rmtree(tmp_path / "store")
    shutil.copytree(tmp_path / "backup", tmp_path / "store")
    with opened(tmp_path) as store:
        assert states(store, OTHER) == [PeerState.BLOCKED]
        assert store.is_revoked(HASH)
        assert is_withdrawn(store)
        assert len(json.loads((tmp_path / "safeguard.json").read_text())["rows"]) == 3


@pytest.mark.on_disk
def test_a_backup_from_before_a_block_does_not_end_it(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        block(store, PeerState.ALLOWED)
    shutil.copytree(tmp_path / "store", tmp_path / "backup")
    with opened(tmp_path) as store:
        block(store)
    shutil.rmtree(tmp_path / "store")
    shutil.copytree(tmp_path / "backup", tmp_path / "store")
    with opened(tmp_path) as store:
        assert states(store, PEER) == [PeerState.BLOCKED]


def test_a_store_that_is_emptied_while_it_runs_is_told_and_still_refuses(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as store:
        block(store)
        store.revoke(HASH, at=1.0)
        store.withdraw([WITHDRAWN])

        def flush(cache: Rows) -> None:
            for key in cache.keys(""):
                cache.delete(key)

        # As a server does, behind the back of the daemon.
        store._raw.write(flush)
        found = condition_of(store)
        assert found.fault is StoreFault.EMPTIED
        assert "lost what it held" in found.text
        assert states(store, OTHER) == [PeerState.BLOCKED]
        assert store.is_revoked(HASH)
        assert is_withdrawn(store)
        assert [one.hash for one in store.revocations()] == [HASH]
        # It knocks again, which writes its record anew.
        store.see_peer(PEER, shown_did=PEER, now=5.0)
        assert states(store, PEER) == [PeerState.BLOCKED]
        block(store, PeerState.ALLOWED)
        assert states(store, OTHER) == [PeerState.ALLOWED]
        assert store.give_back(HASH).revocations
        assert store.readmit(WITHDRAWN.role, PEER, [WITHDRAWN.capability], at=2.0)
        assert not is_withdrawn(store)
        assert not store.is_revoked(HASH)


def test_a_blocked_peer_that_knocks_writes_no_file(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        block(store)
        before = (tmp_path / "safeguard.json").stat()
        for second in range(3):
            store.see_peer(PEER, shown_did=OTHER, now=second + 2.0)
        assert (tmp_path / "safeguard.json").stat() == before


def test_what_another_daemon_of_the_store_ended_is_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as ours, Store(ours._raw) as sister:
        block(ours)
        block(sister, PeerState.ALLOWED)
        # Until it is noticed, the stronger word counts.
        assert states(ours, PEER) == [PeerState.BLOCKED]
        ours.follow_sisters()
        assert states(ours, PEER) == [PeerState.ALLOWED]


def test_a_file_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "safeguard.json").write_text("")
    with pytest.raises(StoreUnavailable, match=r"safeguard.json .* cannot be read"):
        opened(tmp_path)


def test_rows_of_both_come_in_one_order(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for number in (1, 3):
            store.revoke(f"{number}" * 64, at=1.0)
        kept: dict[str, object] = {
            f"revocation/{'2' * 64}/-": {},
            f"revocation/{'4' * 64}/-": {},
        }

        def seen(cache: Rows) -> list[list[str]]:
            rows = GuardedRows(cache, kept)
            pages = [
                rows.rows("revocation/", limit=2),
                rows.rows("revocation/", limit=2, descending=True),
                rows.rows("", after=f"revocation/{'3' * 64}/-", limit=1),
            ]
            assert [key[11] for key in rows.keys("revocation/")] == list("1234")
            return [[row.key[11] for row in page] for page in pages]

        assert store._raw.read(seen) == [["1", "2"], ["4", "3"], ["4"]]


def test_the_file_is_read_only_in_its_version(tmp_path: Path) -> None:
    path = tmp_path / "safeguard.json"
    assert Safeguard(path).is_new
    path.write_text(json.dumps({"format": 2, "store": "a", "rows": {}}))
    with pytest.raises(StoreUnavailable, match="another version"):
        Safeguard(path)
