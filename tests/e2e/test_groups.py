"""Groups of daemons: three in one process, over real links."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from anp.interaction.elements import (
    Part,
    Party,
    PartyMode,
    Session,
    TaskChange,
)
from anp.interaction.groups.member_state import MemberState
from anp.interaction.states import TaskState, is_terminal
from anp.sidecar.api.app import make_app
from anp.sidecar.api.guard import Door
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from anp.sidecar.tasks.known import Maker
from tests.clauses import clause
from tests.waiting import until

FUNCTIONS = """
from pathlib import Path


def twice(number: int) -> dict[str, int]:
    return {"twice": number * 2}


def size(scan: Path) -> dict[str, str]:
    return {scan.name: scan.read_text()}
"""


def daemon(folder: Path, name: str, **flags: Any) -> Daemon:
    home = Home(folder / name)
    home.create()
    (folder / "group_functions.py").write_text(FUNCTIONS)
    spec = AttachmentSpec(
        kind="python",
        name="twice",
        target="group_functions",
        cwd=folder,
        expose=("*",),
    )
    save_attachment(home.attachments, spec)
    settings = {"listen.port": 0, "consensus.use": False, **flags}
    config = load_config(home, home_given=True, flags=settings, environ={}, cwd=folder)
    return Daemon(home, config)


@asynccontextmanager
async def daemons(folder: Path, *names: str, **flags: Any) -> AsyncIterator[list[Any]]:
    made = [daemon(folder, name, **flags) for name in names]
    async with asyncio.timeout(20), AsyncExitStack() as stack:
        for one in made:
            await stack.enter_async_context(one.running())
        yield made


def place(one: Daemon) -> str:
    return f"{one.url}#{one.did}"


async def member(hub: Daemon, group: str, one: Daemon) -> None:
    """Have a daemon invited, and let it accept."""
    await hub.groups.invite(group, place(one))
    await until(lambda: any(known.group.id == group for known in one.groups.all()))
    await one.groups.accept(group, is_owner=True)


async def said(one: Daemon, group: str, count: int) -> list[tuple[int, str, str]]:
    """Return the first messages of a group, as a daemon has them."""
    found: list[tuple[int, str, str]] = []
    async for event in one.groups.watch(group):
        frame = event.frame()
        if frame["op"] == "message.send":
            text = frame["dataItems"][0]["payload"]
            found.append((event.number, text, event.mark))
            if len(found) >= count:
                break
    return found


@clause("GBZ-5", "GBZ-11", "GBZ-12", "GBZ-14", "GBZ-17")
async def test_a_group_of_three_hears_one_order(tmp_path: Path) -> None:
    async with daemons(tmp_path, "a", "b", "c") as (a, b, c):
        group = (await a.groups.create(name="Build")).group.id
        for one in (b, c):
            await member(a, group, one)
        assert b.groups.known(group).state is MemberState.MEMBER
        for number in range(3):
            for one in (b, a, c):
                _, got = await one.groups.post(group, [Part.text(f"{number}")])
                assert got is not None
        heard = [await said(one, group, 9) for one in (a, b, c)]
        assert [one[:2] for one in heard[0]] == [one[:2] for one in heard[1]]
        # C joined after B did, and before anything was said.
        assert [one[:2] for one in heard[2]] == [one[:2] for one in heard[0]]
        assert {mark for one in heard for _, _, mark in one} == {"signed"}


@clause("GBZ-6", "GBZ-18")
async def test_one_agent_takes_part_in_a_task_and_in_a_group(tmp_path: Path) -> None:
    async with daemons(tmp_path, "a", "b") as (a, b):
        group = (await a.groups.create()).group.id
        await member(a, group, b)
        own, peer = a.identities.canonical, b.identities.canonical
        session = Session(
            id="mixed",
            requester=Party(id=own),
            participants=(
                Party(id=peer, address=b.url),
                Party(id=peer, mode=PartyMode.GROUP, params={"groupId": group}),
            ),
        )
        log = await a.tasks.sessions.begin(session, maker=Maker.AGENT)
        task = await a.tasks.start_task(
            "", capability="twice.twice", parts=[Part.value({"number": 4})], log=log
        )
        # The task takes one path, and what is said of it in the group the other.
        await a.groups.post(
            group, [Part.text("b is at it")], session="mixed", task=task.task.id
        )
        assert [one[1] for one in await said(b, group, 1)] == ["b is at it"]
        async for event in a.tasks.watch(log):
            content = event.content
            if isinstance(content, TaskChange) and is_terminal(content.state):
                assert content.state == TaskState.COMPLETED
                break


@clause("GBZ-18")
async def test_a_task_for_a_group_is_done_by_the_first_that_accepts_it(
    tmp_path: Path,
) -> None:
    flags = {"interaction.max_wait": 2.0}
    async with daemons(tmp_path, "a", "b", "c", **flags) as (a, b, c):
        group = (await a.groups.create()).group.id
        for one in (b, c):
            await member(a, group, one)
        transport = httpx.ASGITransport(make_app(a, door=Door()))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://anpd"
        ) as api:

            async def end_of(**body: Any) -> dict[str, Any]:
                answer = await api.post("/v1/tasks", json={"group": group, **body})
                assert answer.status_code == 202, answer.text
                name = answer.json()["id"]
                await api.post("/v1/tasks/wait", json={"tasks": [name]}, timeout=20)
                found: dict[str, Any] = (await api.get(f"/v1/tasks/{name}")).json()
                return found

            found = await end_of(capability="twice.twice", input={"number": 4})
            assert found["state"] == "completed", found
            (message,) = found["messages"]
            assert message["parts"][0]["value"] == {"twice": 8}
            doers = {one.identities.canonical for one in (b, c)}
            assert message["metadata"]["executor"] in doers
            # A file is in its place there, or the offer comes back with the reason.
            scan = {"bytes": "aGVsbG8=", "name": "scan"}
            found = await end_of(capability="twice.size", parts=[scan])
            assert found["messages"][0]["parts"][0]["text"] == "hello"
            given = {"input": {"number": 4}, "parts": [scan]}
            found = await end_of(capability="twice.twice", **given)
            assert (found["state"], found["may_have_run"]) == ("rejected", False)
            assert "no place for the file 'scan'" in found["reason"]
            large = scan | {"bytes": "A" * 100_000}
            found = await end_of(capability="twice.size", parts=[large])
            assert (found["state"], found["may_have_run"]) == ("failed", False)
            assert "at most 65536" in found["reason"]
            # What nobody can do is taken back, and was nobody's.
            found = await end_of(capability="none.such", text="please")
            assert (found["state"], found["may_have_run"]) == ("failed", False)
            assert "no member accepted it" in found["reason"]
            offer = a.groups._hubs[group].machine.offers.all[-1]
            assert (offer.executor, offer.state) == ("", "canceled")


@clause("GBZ-13")
async def test_the_group_of_the_settings_is_there_after_the_start(
    tmp_path: Path,
) -> None:
    async with daemons(tmp_path, "b") as (b,):
        table = f'[[group]]\nname = "Build"\nmembers = ["{place(b)}"]\n'
        home = Home(tmp_path / "a")
        home.create()
        home.config_file.write_text(table)
        a = daemon(tmp_path, "a")
        async with a.running():
            await until(lambda: bool(b.groups.all()))
            (invited,) = b.groups.all()
            assert (invited.state, invited.group.name) == (MemberState.INVITED, "Build")
            await b.groups.accept(invited.group.id, is_owner=True)
            transport = httpx.ASGITransport(make_app(a, door=Door()))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://anpd"
            ) as api:
                (shown,) = (await api.get("/v1/groups")).json()["groups"]
            assert shown["preset"] == {"members": [b.did], "problems": []}
            assert shown["id"] == invited.group.id
            assert {one["id"] for one in shown["members"]} == {shown["own"], b.did}


async def test_events_go_on_after_the_last_one_that_was_read(tmp_path: Path) -> None:
    async with daemons(tmp_path, "a") as (a,):
        group = (await a.groups.create()).group.id
        for text in ("one", "two", "three"):
            await a.groups.post(group, [Part.text(text)])

        async def numbers(after: str) -> list[str]:
            transport = httpx.ASGITransport(make_app(a, door=Door()))
            async with httpx.AsyncClient(transport=transport) as client:
                answer = await client.get(
                    f"http://anpd/v1/groups/{group}/events",
                    headers={"last-event-id": after} if after else {},
                )
            lines = answer.text.splitlines()
            return [one.removeprefix("id: ") for one in lines if one[:3] == "id:"]

        reading = [asyncio.create_task(numbers(after)) for after in ("", "2")]
        await until(lambda: a.groups.watchers == 2)
        last = a.groups.known(group).last
        # The stream ends with the daemon.
        await a.groups.close()
        whole, rest = [await one for one in reading]
        assert whole == [f"{number}" for number in range(1, last + 1)]
        assert rest == whole[2:]
