"""Files with tasks, between two daemons."""

from __future__ import annotations

import asyncio
import hashlib
import os
import statistics
import time
from pathlib import Path

import pytest

from anp.errors import CallError
from anp.interaction.elements import Part
from anp.sidecar.files.spool import KeptFile
from cache.records.peers import PeerState
from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.talks import Talks, talks_in
from tests.e2e.test_kill_files import save
from tests.e2e.test_run_and_clients import client
from tests.waiting import until

AGENT = '''
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol


class Context(Protocol):
    """What this agent uses of a call's context."""

    folder: Path

    def send_file(self, file: Path, name: str = "", media_type: str = "") -> None: ...


def digest(book: Path, more: list[Path] = []) -> dict[str, str]:
    """Say what files are."""
    found = {book.name: hashlib.sha256(book.read_bytes()).hexdigest()}
    return found | {one.name: one.read_text() for one in more}


def double(book: Path, context: Context) -> Path:
    """Return a file twice as long."""
    target = context.folder / "double.bin"
    target.write_bytes(book.read_bytes() * 2)
    return target


def several(context: Context) -> Iterator[object]:
    """Yield a text, bytes, a path and an open file."""
    yield "a text"
    yield b"some bytes"
    path = context.folder / "a.txt"
    path.write_text("a path")
    yield path
    with (context.folder / "b.txt").open("w+") as file:
        file.write("an open file")
        yield file
    (context.folder / "c").write_text("by context")
    context.send_file(Path("c"), name="c.md", media_type="text/markdown")


def steal() -> Path:
    """Return a path that is not in the folder of the call."""
    return Path(__file__)


def twice(number: int) -> dict[str, int]:
    """Double a number."""
    return {"number": number * 2}
'''


def upload(talks: Talks, content: bytes, *, name: str = "a.bin") -> KeptFile:
    """Give the caller's daemon a file."""
    spool = talks.caller.tasks.files.spool
    kept, writer = spool.begin(name=name, media_type="application/pdf")
    writer.append(content)
    return spool.keep(kept, writer)


async def came(talks: Talks, log: str, task: str, part: Part) -> bytes:
    """Return the content of a result, when it is here."""
    if isinstance(part.content, bytes):
        return part.content
    files = talks.caller.tasks.files
    kept = files.spool.find(log, task, str(part.content))
    assert kept is not None
    await files.whole(kept)
    return b"".join(files.spool.content(kept))


async def test_a_file_reaches_a_function_and_another_comes_back(tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    async with talks_in(tmp_path, source=AGENT) as talks:
        large = upload(talks, content, name="book")
        small = Part.data(b"small", name="more")
        task = await talks.caller.tasks.start_task(
            talks.address, capability="agent.digest", parts=[small, large.part]
        )
        seen = await talks.follow(task)
        sha256 = hashlib.sha256(content).hexdigest()
        assert seen.results == [{"book": sha256, "more": "small"}]
        task = await talks.caller.tasks.start_task(
            talks.address, capability="agent.double", parts=[large.part]
        )
        [part] = (await talks.follow(task)).parts
        assert part.is_file
        assert part.name == "double.bin"
        assert await came(talks, task.log, task.task.id, part) == content * 2


async def test_a_function_gives_files_in_every_form(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        task = await talks.start("several")
        seen = await talks.follow(task)
        assert seen.states[-1] == "completed"
        text, *files = seen.parts
        assert text.content == "a text"
        assert [await came(talks, task.log, task.task.id, part) for part in files] == [
            b"some bytes",
            b"a path",
            b"an open file",
            b"by context",
        ]
        assert [part.name for part in files[1:]] == ["a.txt", "b.txt", "c.md"]
        assert files[3].media_type == "text/markdown"


async def test_a_path_from_elsewhere_is_no_result(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        seen = await talks.follow(await talks.start("steal"))
        assert seen.end is not None
        assert (seen.end.state, seen.end.code) == ("failed", "502")
        assert "outside" in seen.end.reason
        assert seen.parts == []


async def test_a_file_that_no_parameter_takes_is_refused(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        large = upload(talks, bytes(100))
        task = await talks.caller.tasks.start_task(
            talks.address,
            capability="agent.twice",
            parts=[Part.value({"number": 1}), large.part],
        )
        seen = await talks.follow(task)
        assert seen.end is not None
        assert (seen.end.state, seen.end.code) == ("rejected", "400")
        assert "a.bin" in seen.end.reason


@pytest.mark.parametrize(
    ("limit", "code"),
    [("interaction__max_file", "too_large"), ("interaction__max_files", "too_many")],
)
async def test_the_peers_limit_is_a_clear_error(
    tmp_path: Path, limit: str, code: str
) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        spool = talks.provider.tasks.files.spool
        setattr(spool, {"too_large": "max_file"}.get(code, "_max_files"), 50_000)
        large = upload(talks, bytes(100_000))
        task = await talks.caller.tasks.start_task(
            talks.address, capability="agent.digest", parts=[large.part]
        )
        seen = await talks.follow(task)
        assert seen.end is not None
        assert (seen.end.state, seen.end.code) == ("rejected", code)
        assert not spool.logs()


async def test_our_own_limit_stands_before_anything_is_sent(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        foreign = Part.link("urn:anpd:file:x", size=1, sha256="0" * 64)
        with pytest.raises(CallError, match="no upload"):
            await talks.caller.tasks.start_task(
                talks.address, capability="agent.digest", parts=[foreign]
            )


async def test_a_peer_reads_only_files_of_its_own_tasks(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        own = upload(talks, bytes(1000))
        task = await talks.caller.tasks.start_task(
            talks.address, capability="agent.digest", parts=[own.part]
        )
        await talks.follow(task)
        spool = talks.caller.tasks.files.spool
        assert spool.find(task.log, task.task.id, own.id) is not None
        # An upload that no task has is nobody's to ask for, nor is another task's.
        assert spool.find(task.log, "another", own.id) is None
        assert spool.find("uploads", task.task.id, own.id) is None


async def seconds(talks: Talks) -> float:
    """Return the seconds that a small task takes."""
    began = time.monotonic()
    await talks.follow(await talks.start("twice", number=1))
    return time.monotonic() - began


async def test_calls_go_on_while_a_file_is_under_way(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        await talks.provider.policy.rule(talks.caller.did, PeerState.ALLOWED)
        await talks.follow(await talks.start("twice", number=1))
        alone = statistics.median([await seconds(talks) for _ in range(5)])
        large = upload(talks, os.urandom(24 * 1024 * 1024))
        task = await talks.caller.tasks.start_task(
            talks.address, capability="agent.double", parts=[large.part]
        )
        following = asyncio.create_task(talks.follow(task))
        files = talks.provider.tasks.files
        await until(lambda: bool(files._coming))
        took = []
        while files._coming:
            took.append(await seconds(talks))
        seen = await following
        assert seen.states[-1] == "completed"
        assert len(took) >= 2
        beside = statistics.median(took)
        print(f"{len(took)} tasks beside a file: {beside:.3f} s, alone {alone:.3f} s")
        # Each has five frames and more on the line of the file.
        assert beside < 5


async def test_files_go_with_their_session(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        large = upload(talks, bytes(500_000))
        task = await talks.caller.tasks.start_task(
            talks.address, capability="agent.double", parts=[large.part]
        )
        [part] = (await talks.follow(task)).parts
        await came(talks, task.log, task.task.id, part)
        spools = [one.tasks.files.spool for one in (talks.caller, talks.provider)]
        assert all(spool.logs() for spool in spools)
        await talks.caller.tasks.delete(task.log)
        assert not spools[0].logs()
        talks.provider.tasks.files.spool._max_files = 0
        await talks.provider.tasks.upkeep.prune()
        assert not spools[1].logs()


@clause("GBZ-57")
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
        by_the_client(caller, provider, tmp_path / "large.bin", tmp_path / "by client")


def by_the_client(caller: Anpd, provider: Anpd, source: Path, target: Path) -> None:
    """Do the same with the Python client, and ask for the file as a browser would."""
    with client.Anpd(caller.home) as local:
        files = {"book": source, "more": b"small"}
        task = local.start_task(provider.address, "agent.digest", files=files)
        [event] = [
            one
            for one in local.task_events(task.id)
            if one["type"] == "task.message"
            and one["data"]["message"]["purpose"] == "result"
        ]
        [part] = event["data"]["message"]["parts"]
        sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
        assert part["value"] == {"book": sha256, "more": "small"}
        task = local.start_task(provider.address, "agent.double", files={"b": source})
        while not (found := local.task(task.id)).ended:
            time.sleep(0.05)
        [part] = found.messages[-1]["parts"]
        assert (part["kind"], part["size"]) == ("bytes", 2 * source.stat().st_size)
        save(local, task.id, part["artifact"], target)
        assert target.read_bytes() == source.read_bytes() * 2
        path = f"/v1/tasks/{task.id}/artifacts/{part['artifact']}"
        answer = local._send(local._connect(), "GET", path, None, {})
        assert answer.getheader("content-length") == str(part["size"])
        assert answer.getheader("x-content-type-options") == "nosniff"
        assert answer.getheader("content-disposition") == "attachment"
        for path, body, wanted in (
            ("/v1/files", None, 415),
            (f"/v1/tasks/{task.id}/messages", {"parts": [{"file": "no"}]}, 404),
        ):
            answer = local._send(local._connect(), "POST", path, body, {})
            assert answer.status == wanted
