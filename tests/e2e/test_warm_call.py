"""A warm call costs the same with one peer known as with a thousand.

Counted, not timed: rows of both stores that are read, project files that are entered,
and calls of project functions, which would show a walk through what is in memory.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

import anp
from anp.sidecar.daemon import Daemon
from cache.records.peers import (
    AddressRecord,
    AliasRecord,
    DidKeysRecord,
    PeerRecord,
    PeerState,
    PinRecord,
)
from cache.rows import Row, Rows
from sandbox.processes.worker_process import WorkerProcess
from tests.e2e.house import House, house_in

MANY = 1_000
"Peers, agreements and open requesters beside the one that is called."

MAX_ROWS = 8
"Rows that a warm call may read in both stores together."

MAX_FILES = 76
"Project files that a warm call may enter in both daemons together."

WARM = 70
"Calls before the first that is counted: a channel keeps its last 64 exchanges."

ROUNDS = 5
"Calls that are counted; the smallest count is free of what timers do meanwhile."

PRODUCT = tuple(
    f"{Path(anp.__file__).parents[1] / name}/"
    for name in ("anp", "cache", "jsonic", "negotiation", "sandbox")
)


@dataclass
class Count:
    """What one call did."""

    rows: int = 0
    calls: int = 0
    files: set[str] = field(default_factory=set)


class CountedRows:
    """Rows of a transaction, each of which is counted when it is read."""

    def __init__(self, rows: Rows, count: Count) -> None:
        self._rows = rows
        self._count = count

    def __contains__(self, key: str) -> bool:
        self._count.rows += 1
        return key in self._rows

    def get(self, key: str) -> object:
        self._count.rows += 1
        return self._rows.get(key)

    def rows(self, prefix: str, **options: Any) -> list[Row]:
        return self._seen(self._rows.rows(prefix, **options))

    def keys(self, prefix: str, **options: Any) -> list[str]:
        return self._seen(self._rows.keys(prefix, **options))

    def sizes(self, prefix: str, **options: Any) -> list[tuple[str, int]]:
        return self._seen(self._rows.sizes(prefix, **options))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def _seen(self, found: list[Any]) -> list[Any]:
        # One that finds nothing is a look at the index all the same.
        self._count.rows += max(1, len(found))
        return found


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of what is given to threads and to workers of the sandbox."""
    found: list[str] = []
    submit, ask = ThreadPoolExecutor.submit, WorkerProcess.ask_timed

    def submitted(self: Any, work: Any, *args: Any, **kwargs: Any) -> Any:
        found.append(f"thread: {work}")
        return submit(self, work, *args, **kwargs)

    async def asked(self: Any, request: Any, **kwargs: Any) -> Any:
        found.append(f"worker: {request['op']}")
        return await ask(self, request, **kwargs)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submitted)
    monkeypatch.setattr(WorkerProcess, "ask_timed", asked)
    return found


async def test_a_warm_call_stays_on_the_event_loop(
    tmp_path: Path, elsewhere: list[str]
) -> None:
    async with house_in(tmp_path) as house:
        for _ in range(WARM):
            await house.others_are_served()
        rounds = []
        for _ in range(ROUNDS):
            elsewhere.clear()
            await house.others_are_served()
            rounds.append([*elsewhere])
    # Timers may fire in one of them, such as the one that writes counts of use.
    assert [] in rounds, rounds


class Counter:
    """Counts while it is told to, in every thread that begins after `watching`."""

    def __init__(self) -> None:
        self._count: Count | None = None
        self.named: str | None = None

    async def warm_call(self, house: House) -> None:
        """Make the call that is counted; it names the protocol `named`, if any."""
        found = await house.result("twice", {"number": 4}, protocol=self.named)
        assert found.output == {"twice": 8}

    def hook(self, frame: FrameType, event: str, arg: object) -> None:
        """See `sys.setprofile`."""
        count = self._count
        if count is not None and event == "call":
            file = frame.f_code.co_filename
            if file.startswith(PRODUCT):
                count.calls += 1
                count.files.add(file)

    def wrap(self, daemon: Daemon) -> None:
        """Count what the daemon's store reads from now on."""
        database: Any = daemon.store._database
        database.read = self._counted(database.read)
        database.write = self._counted(database.write)

    def _counted(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def counted(work: Callable[[Any], Any], **options: Any) -> Any:
            count = self._count or Count()
            return run(lambda rows: work(CountedRows(rows, count)), **options)

        return counted

    async def one_call(self, house: House) -> Count:
        """Return the counts of one call, without those of timers."""
        counts = []
        for _ in range(ROUNDS):
            self._count = count = Count()
            await self.warm_call(house)
            self._count = None
            counts.append(count)
        return Count(
            min(count.rows for count in counts),
            min(count.calls for count in counts),
            set.intersection(*(count.files for count in counts)),
        )


@contextmanager
def watching(counter: Counter) -> Iterator[None]:
    """Let the counter see every function that is called, in all new threads."""
    threading.setprofile(counter.hook)
    sys.setprofile(counter.hook)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def fill(daemon: Daemon) -> None:
    """Put further peers, each with all agreements there are, into a daemon's store."""
    store = daemon.store
    agreements = store.all_agreements()
    assert agreements

    def work(rows: Rows) -> None:
        for number in range(MANY):
            did, agent, url = (
                f"did:key:z{number}",
                f"did:all:1{number}",
                f"ws://{number}/",
            )
            web = f"did:web:h{number}.example"
            for record in (
                PeerRecord(did, PeerState.ALLOWED, 1.0, 1.0, aliases=(agent,)),
                AliasRecord(agent, did),
                PinRecord(url, did, 1.0, agent),
                AddressRecord(agent, url, 1.0),
                DidKeysRecord(web, ("zKey",), 1.0),
                *(replace(one, peer_did=did) for one in agreements),
            ):
                store._shelf.put(rows, record)

    store._database.write(work)


@contextmanager
def open_requesters(house: House) -> Iterator[None]:
    """Let the caller have further bound channels, each with another peer."""
    kept = house.caller.binder.requesters._bound
    agreement = house.caller.store.all_agreements()[0]
    before = dict(kept)
    kept.clear()
    for number in range(MANY):
        other = replace(agreement, peer_did=f"did:key:z{number}")
        bound: Any = SimpleNamespace(
            alive=True,
            agreement=other,
            channel=SimpleNamespace(retired=False, peer_did=other.peer_did),
        )
        kept[other.peer_did, other.hash] = [bound]
        if number == MANY // 2:
            # In the middle: a walk is long from either end.
            kept.update(before)
    try:
        yield
    finally:
        kept.clear()
        kept.update(before)


NAMED = "urn:example:twice:1"
"The name under which the provider publishes a negotiated protocol."


@pytest.mark.parametrize("way", ["agreement", "named", "looked up", "envelope"])
async def test_a_warm_call_costs_the_same_however_many_are_known(
    tmp_path: Path, way: str
) -> None:
    counter = Counter()
    consensus = way == "envelope"
    with watching(counter):
        async with house_in(tmp_path) as house:
            # There has to be an agreement to copy, whatever the counted call goes over.
            await house.call("count", step=1)
            if way == "looked up":
                # As with a store that other daemons share: no way is remembered.
                shared: Any = SimpleNamespace(writes=None)
                house.caller.caller._store = shared
            house.caller.candidates.enabled = consensus
            if way == "named":
                await _published(house)
                counter.named = NAMED
            await house.others_are_served()
            found = await house.result("twice", {"number": 1}, protocol=counter.named)
            assert found.source == ("consensus" if consensus else "agreement")
            for daemon in (house.caller, house.provider):
                counter.wrap(daemon)
            for _ in range(WARM):
                await counter.warm_call(house)
            one = await counter.one_call(house)
            for daemon in (house.caller, house.provider):
                fill(daemon)
            with open_requesters(house):
                many = await counter.one_call(house)
    assert one.rows == many.rows <= (0 if way in {"agreement", "named"} else MAX_ROWS)
    assert len(one.files | many.files) <= MAX_FILES
    assert many.calls <= one.calls * 1.02


async def _published(house: House) -> None:
    """Let the provider publish the protocol of `twice` under a URI."""
    agreed = await house.result("twice", {"number": 1})
    assert agreed.protocol is not None
    await house.provider.consensus.publish(
        agreed.protocol, NAMED, version="1", summary="Doubles a number."
    )
