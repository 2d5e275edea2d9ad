"""Tells histories in simulated time: `python -m tests.crossings [COUNT [FIRST]]`."""

from __future__ import annotations

import sys
import time
from collections import Counter

from tests.crossings.history import Wrong, tell


def main() -> int:
    """Tell the histories, and return the exit code."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    kinds: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    wrong: list[str] = []
    began = time.process_time()
    for seed in range(first, first + count):
        try:
            outcome = tell(seed)
        except Wrong as exc:
            wrong.append(str(exc))
            print(exc)
        else:
            kinds += outcome.kinds
            faults += outcome.faults
    spent = time.process_time() - began
    print(f"{count} histories, {len(wrong)} wrong, {spent:.0f} s of CPU")
    print(f"work {dict(kinds)}")
    print(f"faults {dict(faults)}")
    return bool(wrong)


sys.exit(main())
