"""Kept keys: their counters are spoken for once, killed in between or not."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
)

from cache.errors import StoreUnavailable
from cache.parts import keys
from cache.parts.keys import KEEP_ENDED, MAX_PEER_KEYS
from cache.records.peers import KeyRecord, PeerState
from cache.records.records import AgreementRole
from cache.store import Store

PEER = "did:key:zPeer"
KEY = KeyRecord(
    "0123456789abcdef",
    AgreementRole.PROVIDER,
    PEER,
    "ab" * 32,
    created=100.0,
    expires=1000.0,
    sealed="c2VhbGVk",
    reserved=1024,
    mark=1023,
)
NAME = (KEY.role, KEY.peer_did, KEY.id)


def claim(store: Store, block: int, *, now: float = 200.0) -> bool:
    first = block * 1024
    return store.claim_key(*NAME, first=first, last=first + 1023, now=now)


def test_a_key_is_found_again_by_its_id_and_by_what_it_is_bound_to(
    tmp_path: Path,
) -> None:
    with Store(tmp_path) as store:
        assert store.save_key(KEY, now=100.0)
        assert not store.save_key(KEY, now=100.0)
    with Store(tmp_path) as store:
        assert store.key(*NAME) == KEY
        assert store.keys_with(KEY.role, PEER, KEY.binding) == [KEY]
        assert store.keys_with(KEY.role, PEER, "other") == []
        assert store.key(AgreementRole.REQUESTER, PEER, KEY.id) is None
        assert store.check() == ([], ())


def test_a_block_is_reserved_once(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_key(replace(KEY, reserved=1025), now=100.0)
        assert store.reserve_key(*NAME, size=1024, now=200.0) == 2048
    with Store(tmp_path) as store:
        assert store.reserve_key(*NAME, size=1024, now=200.0) == 3072


def test_a_block_is_claimed_once_and_never_one_below_it(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_key(KEY, now=100.0)
        assert not claim(store, 0)
        assert claim(store, 3)
    with Store(tmp_path) as store:
        assert not claim(store, 3)
        assert not claim(store, 2)
        assert claim(store, 4)


def test_nothing_happens_under_a_key_that_ended_or_expired(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_key(KEY, now=100.0)
        assert not claim(store, 5, now=1000.0)
        assert store.reserve_key(*NAME, size=1024, now=1000.0) is None
        assert store.end_key(*NAME)
        assert not claim(store, 5)
        assert store.reserve_key(*NAME, size=1024, now=200.0) is None
        assert store.keys_with(KEY.role, PEER, KEY.binding) == []


def test_a_lost_key_ends_unless_something_was_accepted_under_it(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_key(KEY, now=100.0)
        assert claim(store, 3)
        assert not store.end_key(*NAME, unless_claimed=3072)
        assert claim(store, 4)
        assert store.end_key(*NAME, unless_claimed=5120)
        # What was said holds: nothing from there on is accepted any more.
        assert not claim(store, 5)
        assert store.end_key(*NAME, unless_claimed=5120)
        assert not store.end_key(*NAME, unless_claimed=4096)
        assert store.end_key(AgreementRole.PROVIDER, PEER, "f" * 16, unless_claimed=1)


def test_of_a_damaged_key_nothing_is_promised(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_key(KEY, now=100.0)
        where = f"key/provider/{PEER}/{KEY.id}"
        store._database.write(lambda cache: cache.set(where, {"format": 1}))
        assert store.key(*NAME) is None
        assert not claim(store, 5)
        assert not store.end_key(*NAME, unless_claimed=5120)


def test_a_peer_fills_its_own_room_only_and_old_keys_make_some(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        many = [replace(KEY, id=f"{n:016x}") for n in range(MAX_PEER_KEYS + 1)]
        assert [store.save_key(key, now=100.0) for key in many[:-1]] == [
            True
        ] * MAX_PEER_KEYS
        assert not store.save_key(many[-1], now=100.0)
        assert store.save_key(replace(many[-1], peer_did="did:key:zOther"), now=100.0)
        assert not store.save_key(many[-1], now=KEY.expires + KEEP_ENDED - 1)
        assert store.save_key(many[-1], now=KEY.expires + KEEP_ENDED)


def test_keys_of_strangers_leave_half_of_the_room_to_listed_peers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MAX_KEYS", 8)
    friend, alias = "did:key:zFriend", "did:all:friend"
    with Store(tmp_path) as store:
        store.see_peer(friend, shown_did=alias, now=1.0, state=PeerState.ALLOWED)
        strangers = [replace(KEY, peer_did=f"did:key:z{number}") for number in range(6)]
        kept = [store.save_key(record, now=100.0) for record in strangers]
        assert kept == [True] * 4 + [False] * 2
        assert store.save_key(replace(KEY, peer_did=friend), now=100.0)
        assert store.save_key(replace(KEY, peer_did=alias), now=100.0)
        # When theirs have expired there is room again.
        later = 1000.0 + KEEP_ENDED
        assert store.save_key(replace(strangers[5], expires=9999.0), now=later)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.close()
    with pytest.raises(StoreUnavailable):
        claim(store, 1)


class Takers(RuleBasedStateMachine):
    """Any number of takers of one key, who come and go as they like."""

    stores = Bundle("stores")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.reserved: set[int] = set()
        self.claimed: set[int] = set()
        self.promised: int | None = None
        self.open: list[Store] = []
        with Store(Path(self.folder.name)) as store:
            store.save_key(KEY, now=100.0)

    @rule(target=stores)
    def begin(self) -> Store:
        store = Store(Path(self.folder.name))
        self.open.append(store)
        return store

    @rule(store=consumes(stores))
    def leave(self, store: Store) -> None:
        store.close()

    @rule(store=stores)
    def reserve(self, store: Store) -> None:
        first = store.reserve_key(*NAME, size=1024, now=200.0)
        if first is not None:
            assert first % 1024 == 0
            assert first not in self.reserved
            self.reserved.add(first)

    @rule(store=stores, block=st.integers(0, 20))
    def claim(self, store: Store, block: int) -> None:
        if claim(store, block):
            assert block not in self.claimed
            assert block > max([0, *self.claimed])
            assert self.promised is None or block < self.promised
            self.claimed.add(block)

    @rule(store=stores, block=st.integers(1, 20))
    def ask(self, store: Store, block: int) -> None:
        if store.end_key(*NAME, unless_claimed=block * 1024):
            assert not {known for known in self.claimed if known >= block}
            self.promised = min(block, self.promised or block)

    @invariant()
    def reserved_is_past_the_start(self) -> None:
        assert all(first >= 1024 for first in self.reserved)

    def teardown(self) -> None:
        for store in self.open:
            store.close()
        self.folder.cleanup()


TestTakers = Takers.TestCase
TestTakers.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)

TAKER = """
import sys
from pathlib import Path
from cache.store import Store
from tests.cache.parts.test_keys import NAME, claim
store = Store(Path(sys.argv[1]))
block = int(sys.argv[2])
while True:
    print("r", store.reserve_key(*NAME, size=1024, now=200.0), flush=True)
    block += 1
    print("c", block, claim(store, block), flush=True)
"""


@pytest.mark.on_disk
def test_killed_at_any_moment_no_block_is_used_twice(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_key(KEY, now=100.0)
    dice = random.Random()
    reserved: list[int] = []
    claimed: list[int] = []
    for _ in range(5):
        # The next one tries first what may have been claimed when it was killed.
        start = str(max(claimed, default=0) - 1)
        with subprocess.Popen(
            [sys.executable, "-c", TAKER, str(tmp_path), start],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        ) as child:
            assert child.stdout is not None
            for count, line in enumerate(child.stdout):
                if count == 0:
                    lines = [line]
                    # So that each has a fresh one, behind that of the one before.
                    enough = dice.randint(6, 16)
                    continue
                lines.append(line)
                if count >= enough:
                    break
            child.send_signal(signal.SIGKILL)
            lines += child.stdout.readlines()
        for words in (line.split() for line in lines):
            if words[0] == "r" and len(words) == 2:
                reserved.append(int(words[1]))
            elif words[0] == "c" and words[2:] == ["True"]:
                claimed.append(int(words[1]))
    assert len(reserved) == len(set(reserved)) >= 5
    assert len(claimed) == len(set(claimed)) >= 5
