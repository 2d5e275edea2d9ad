"""The run of `make quick`: pure tests, counted and held to their CPU time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.loops.quick import MAX_CPU, run


def main() -> int:
    """Run the tests, write build/quick.json, and fail when they took too long."""
    code, took = run(*sys.argv[1:])
    report = Path("build") / "quick.json"
    report.parent.mkdir(exist_ok=True)
    report.write_text(json.dumps(took) + "\n", "utf-8")
    seconds = took["cpu_seconds"]
    print(f"{took['tests']} tests took {seconds} s of CPU time, {MAX_CPU:g} s allowed")
    return code or int(seconds > MAX_CPU)


if __name__ == "__main__":
    sys.exit(main())
