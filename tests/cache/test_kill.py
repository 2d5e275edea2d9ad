"""Killed at any moment, the store opens again and holds whole agreements only."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

from cache.store import Store
from tests.clauses import clause

ROUNDS = 8
MOST_AGREEMENTS = 100_000

WRITER = f"""
import sys
from pathlib import Path
from cache.store import Store
from tests.cache.samples import trio
store = Store(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), {MOST_AGREEMENTS}):
    store.save_agreement(*trio(number))
    print(number, flush=True)
"""


def write_until_killed(folder: Path, first: int, *, lines: int, delay: float) -> int:
    """Return how many agreements the child reported as saved before it was killed."""
    command = [sys.executable, "-c", WRITER, str(folder), str(first)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root) as child:
        assert child.stdout is not None
        seen = first
        for line in child.stdout:
            seen = int(line) + 1
            if seen - first >= lines:
                break
        try:
            # Not for the store's sake: it moves the kill into the middle of a write.
            child.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().splitlines()
        assert child.wait() == -signal.SIGKILL
    return int(rest[-1]) + 1 if rest else seen


@clause("ANP-84")
def test_after_a_kill_every_agreement_is_whole_and_none_that_was_saved_is_lost(
    tmp_path: Path,
) -> None:
    dice = random.Random()
    reported = 0
    for _ in range(ROUNDS):
        delay = dice.uniform(0.0, 0.01)
        reported = write_until_killed(
            tmp_path, reported, lines=dice.randint(1, 15), delay=delay
        )
        with Store(tmp_path) as store:
            agreements = store.all_agreements()
            for agreement in agreements:
                document = store.document(agreement.hash)
                half = store.half(agreement.hash, agreement.role, agreement.revision)
                assert document is not None
                assert half is not None
                assert document.hash == half.hash
            problems, damaged = store.check()
            hashes = {agreement.hash for agreement in agreements}
            documents = store._database.read(lambda cache: cache.sizes("document/"))
        assert (problems, damaged) == ([], ())
        # All or nothing: no document without its agreement, and at most the one in
        # flight beyond what the child reported.
        assert {key.removeprefix("document/") for key, _ in documents} == hashes
        assert reported <= len(agreements) <= reported + 1
        reported = len(agreements)
    assert ROUNDS <= reported < MOST_AGREEMENTS
