"""Clients of A2A that others wrote, against the face; see `make test-clients`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.a2a.clients.matrix import CLIENTS, face_with_token
from tests.clauses import clause

pytestmark = pytest.mark.slow


@clause("A2A-2", "A2A-4", "A2A-19", "A2A-21", "A2A-22", "A2A-24", "A2A-25")
@pytest.mark.parametrize("name", CLIENTS)
async def test_a_client(tmp_path: Path, name: str) -> None:
    program = CLIENTS[name]
    missing = program.missing()
    if missing is not None:
        pytest.skip(missing)
    async with face_with_token(tmp_path) as url:
        found = await program.run(url)
    for method, ended in found.items():
        assert ended == "pass" or ended.startswith("- "), f"{method}: {ended}"
