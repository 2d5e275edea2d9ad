"""Prints what each client of A2A makes of the face: `make test-clients`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.a2a.clients.matrix import CLIENTS, face_with_token, table


async def _all(only: str) -> dict[str, dict[str, str]]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        async with face_with_token(Path(folder)) as url:
            for name, program in CLIENTS.items():
                if only not in name:
                    continue
                missing = program.missing()
                if missing is None:
                    found[name] = await program.run(url)
                else:
                    print(f"{name}: {missing}", file=sys.stderr)
    return found


if __name__ == "__main__":
    print(table(asyncio.run(_all(sys.argv[1] if len(sys.argv) > 1 else ""))))
