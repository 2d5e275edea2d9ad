"""A cache of a million agreements against one of a thousand.

`python -m bench.store` fills a thousand and a hundred thousand, `--long` a thousand and
a million; it prints look-up by DID, role and task key, start-up, a page of the list,
memory and room on disk, each as a ratio of one run. Filling writes the product's own
records, many in one transaction.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from cache.disk import Database, PlainCache
from cache.parts.shelf import Shelf
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    DocumentRecord,
    HalfRecord,
)
from cache.store import Store

SMALL, MEDIUM, LARGE = 1_000, 100_000, 1_000_000
BATCH = 20_000
LOOKS = 2_000
STARTS = 7
PAGES = 50
OF_A_DOCUMENT = 1_000
"Agreements that share a document: a peer that many know publishes what it speaks."

OWN = "did:key:zOwn"
SOURCE = "def encode_request(message_id, arguments): ...\n"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["sku"],
}

START = """
import resource, sys, time
from pathlib import Path
from cache.records.records import Role
from cache.store import Store
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
with Store(Path(sys.argv[1])) as store:
    found = store.agreements(sys.argv[2], sys.argv[3], Role.REQUESTER, sys.argv[4])
    ready = time.perf_counter() - began
    assert len(found) == 1
    store.page(limit=100)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(ready, after - before)
"""


def _peer(number: int) -> str:
    return f"did:key:z{number:012d}"


def _need(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def _records(
    size: int,
) -> Iterable[tuple[DocumentRecord, HalfRecord] | AgreementRecord]:
    shown: AgreementRecord | None = None
    for number in range(size):
        if number % OF_A_DOCUMENT == 0:
            document = DocumentRecord.of(f"# Requirement\n\n> Task {number}.\n" * 20)
            half = HalfRecord(
                hash=document.hash,
                role=AgreementRole.REQUESTER,
                revision=1,
                source=SOURCE,
                origin="rules",
                capabilities={},
                created=1_000.0,
            )
            yield document, half
            shown = AgreementRecord.from_json(
                {
                    "own_did": OWN,
                    "peer_did": _peer(0),
                    "role": AgreementRole.REQUESTER.value,
                    "need_key": _need(0),
                    "hash": document.hash,
                    "revision": 1,
                    "need": {
                        "requirement": "Stock of an article",
                        "input_schema": SCHEMA,
                        "output_schema": SCHEMA,
                    },
                    "samples": "full",
                    "tests": {"acceptance": "passed", "cases": []},
                    "negotiation_id": None,
                    "created": 1_000.0,
                }
            )
        assert shown is not None
        yield replace(shown, peer_did=_peer(number), need_key=_need(number))


def _fill(folder: Path, size: int) -> None:
    shelf = Shelf()
    database = Database(folder)
    records = iter(_records(size))
    try:
        while batch := list(islice(records, BATCH)):

            def work(cache: PlainCache, batch: list[Any] = batch) -> None:
                for one in batch:
                    for record in one if isinstance(one, tuple) else (one,):
                        shelf.put(cache, record)

            database.write(work)
    finally:
        database.close()


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _looked_up(folder: Path, size: int) -> tuple[float, float]:
    """Return seconds for one look-up, and for one page of the list, in the median."""
    chance = random.Random(size)
    with Store(folder) as store:

        def look() -> None:
            number = chance.randrange(size)
            found = store.agreements(
                OWN, _peer(number), AgreementRole.REQUESTER, _need(number)
            )
            assert [one.peer_did for one in found] == [_peer(number)]

        looks = [_timed(look) for _ in range(LOOKS)]
        pages, after = [], ""
        for _ in range(PAGES):
            began = time.perf_counter()
            page = store.page(after=after, limit=10)
            pages.append(time.perf_counter() - began)
            assert len(page.agreements) == 10
            after = page.after or ""
    return statistics.median(looks), statistics.median(pages)


def _started(folder: Path, size: int) -> tuple[float, int]:
    """Return seconds from nothing open to the first agreement, and KiB it took."""
    chance = random.Random(size)
    times, memory = [], []
    for _ in range(STARTS):
        number = chance.randrange(size)
        done = subprocess.run(
            [
                *(sys.executable, "-c", START),
                *(str(folder), OWN, _peer(number), _need(number)),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        ready, grown = done.stdout.split()
        times.append(float(ready))
        memory.append(int(grown))
    return statistics.median(times), max(memory)


def main() -> None:
    """Fill both stores, measure both, and print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="a million, some minutes")
    large = LARGE if parser.parse_args().long else MEDIUM
    with tempfile.TemporaryDirectory() as folder:
        rows = {}
        for size in (SMALL, large):
            place = Path(folder) / str(size)
            began = time.perf_counter()
            _fill(place, size)
            filled = time.perf_counter() - began
            look, page = _looked_up(place, size)
            start, memory = _started(place, size)
            disk = sum(file.stat().st_size for file in place.rglob("*"))
            rows[size] = (look, start, page, memory, disk)
            print(
                f"{size:>9,} agreements: look-up {look * 1e6:.0f} us, "
                f"start-up {start * 1e3:.1f} ms, page of 10 {page * 1e3:.2f} ms, "
                f"memory +{memory / 1024:.1f} MB, {disk / 1e6:.0f} MB on disk "
                f"(filled in {filled:.0f} s)",
                flush=True,
            )
        one, other = rows[SMALL], rows[large]
        for name, index in (("look-up", 0), ("start-up", 1), ("page", 2)):
            print(f"{name}: {large:,} / {SMALL:,} = {other[index] / one[index]:.2f}")


if __name__ == "__main__":
    main()
