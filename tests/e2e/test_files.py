"""Files with tasks, between two daemons in this process."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tests.e2e.daemons import Anpd
from tests.e2e.talks import talks_in

AGENT = '''
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol


class Context(Protocol):
    """What this agent uses of a call's context."""

    folder: Path


def digest(book: Path) -> dict[str, str]:
    """Say what a file is."""
    return {"name": book.name, "sha256": hashlib.sha256(book.read_bytes()).hexdigest()}


def double(book: Path, context: Context) -> Path:
    """Return a file twice as long."""
    target = context.folder / "double.bin"
    target.write_bytes(book.read_bytes() * 2)
    return target
'''


async def test_a_file_reaches_a_function_and_another_comes_back(tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    async with talks_in(tmp_path, source=AGENT) as talks:
        spool = talks.caller.tasks.files.spool
        kept, writer = spool.begin(name="a.bin", media_type="application/pdf")
        for start in range(0, len(content), 100_000):
            writer.append(content[start : start + 100_000])
        upload = spool.keep(kept, writer)
        task = await talks.caller.tasks.start_task(
            talks.address, capability="agent.digest", parts=[upload.part]
        )
        seen = await talks.follow(task)
        assert seen.results == [
            {"name": "a.bin", "sha256": hashlib.sha256(content).hexdigest()}
        ]
        task = await talks.caller.tasks.start_task(
            talks.address, capability="agent.double", parts=[upload.part]
        )
        seen = await talks.follow(task)
        [part] = seen.parts
        assert part.is_file
        assert part.name == "double.bin"
        found = spool.find(task.log, task.task.id, str(part.content))
        assert found is not None
        await talks.caller.tasks.files.whole(found)
        assert b"".join(spool.content(found)) == content * 2


def test_a_large_file_goes_and_comes_by_command(tmp_path: Path) -> None:
    (tmp_path / "file_agent.py").write_text(AGENT)
    content = os.urandom(5_000_000)
    (tmp_path / "large.bin").write_bytes(content)
    provider = Anpd(tmp_path / "provider")
    attach = ("attach", "python", "--name", "agent", "--expose", "*", "file_agent")
    provider.ok(*attach, cwd=tmp_path)
    with provider.up(), Anpd(tmp_path / "caller").up() as caller:
        words = ("tasks", "start", provider.address, "agent.double", "--watch")
        saved = tmp_path / "saved"
        caller.ok(
            *(*words, "--file", f"book={tmp_path / 'large.bin'}"),
            *("--save", str(saved)),
        )
        [path] = saved.iterdir()
        assert path.name == "double.bin"
        assert path.read_bytes() == content * 2
        # What was in clear is gone with the call.
        assert not list((provider.home / "calls-at-work").glob("*/*"))
        # What rests on disk is not in clear.
        kept = list((caller.home / "files").glob("*/*.data"))
        assert kept
        assert all(content[:64] not in one.read_bytes() for one in kept)
