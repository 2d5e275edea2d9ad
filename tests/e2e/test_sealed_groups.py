"""A sealed group of three daemons around a hub in a process of its own.

Everything that the hub has is read: its memory, its files, its log and its records.
"""

from __future__ import annotations

import asyncio
import secrets
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.elements import Part, PartKind
from anp.interaction.errors import InteractionError
from anp.interaction.groups.member_state import MemberState
from anp.sidecar.daemon import Daemon
from anp.sidecar.groups.shelf import SEALED
from cache.records.peers import PeerState
from tests.e2e.daemons import Anpd
from tests.e2e.test_groups import daemon, place
from tests.waiting import until


@asynccontextmanager
async def sealed(folder: Path, *names: str) -> AsyncIterator[tuple[Anpd, list[Any]]]:
    """Run members in this process, and a hub that knows them in another one."""
    made = [daemon(folder, name) for name in names]
    hub = Anpd(folder / "hub", groups__hub_for="listed")
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        for one in made:
            await stack.enter_async_context(one.running())
        hub.home.mkdir()
        peers = [
            f'[[peer]]\nname = "{name}"\ndid = "{one.did}"\npolicy = "allow"\n'
            for name, one in zip(names, made, strict=True)
        ]
        config = ['[log]\nlevel = "debug"\n', *peers]
        (hub.home / "anpd.toml").write_text("\n".join(config))
        hub.start()
        # Its polite stop is not what is shown here.
        stack.callback(hub.kill)
        yield hub, made


def memory(process: int) -> bytes:
    """Return everything that a process can write, as it is now."""
    found = []
    areas = Path(f"/proc/{process}/maps").read_text().splitlines()
    with Path(f"/proc/{process}/mem").open("rb", 0) as mem:
        for area in areas:
            place, rights, *_ = area.split()
            start, end = (int(one, 16) for one in place.split("-"))
            if rights.startswith("rw"):
                mem.seek(start)
                # Some areas of the kernel's own cannot be read.
                with suppress(OSError):
                    found.append(mem.read(end - start))
    return b"".join(found)


def everything(hub: Anpd) -> bytes:
    """Return all that a hub has: memory, files of its home, and its log."""
    assert hub.process is not None
    files = [one.read_bytes() for one in hub.home.rglob("*") if one.is_file()]
    return b"".join([memory(hub.process.pid), *files, hub.log().encode()])


async def join(owner: Daemon, group: str, one: Daemon) -> None:
    await owner.groups.invite(group, place(one))
    await until(lambda: any(known.group.id == group for known in one.groups.all()))
    await one.groups.accept(group, is_owner=True)
    await until(lambda: one.did in members(owner, group))
    await until(lambda: members(one, group) == members(owner, group))


def members(one: Daemon, group: str) -> list[str]:
    sealing = one.groups.known(group).sealing
    assert sealing is not None
    return list(sealing["members"])


async def texts(one: Daemon, group: str, count: int) -> list[str]:
    """Return the messages of a group in its order; keys may come after them."""
    found: dict[int, str] = {}
    async for event in one.groups.watch(group):
        if event.mark == SEALED:
            found[event.number] = event.frame()["dataItems"][0]["payload"]
            if len(found) >= count:
                break
    return [found[number] for number in sorted(found)]


@pytest.mark.slow
async def test_the_hub_of_a_sealed_group_has_ciphertext_only(tmp_path: Path) -> None:
    async with sealed(tmp_path, "a", "b", "c") as (hub, (a, b, c)):
        group = (await a.groups.create(hub=hub.address, sealed=True)).group.id
        await until(lambda: members(a, group) == [a.did])
        for one in (b, c):
            await join(a, group, one)
        # The hub was started before, so it has them from nobody but the members.
        words = [secrets.token_hex(16) for _ in range(3)]
        for one, word in zip((a, b, c), words, strict=True):
            part = Part(kind=PartKind.TEXT, content=word, name=f"name {word}")
            await one.groups.post(group, [part], metadata={"about": word})
        for one in (a, b, c):
            assert await texts(one, group, 3) == words
            known = one.groups.known(group)
            assert known.sealing is not None
            assert known.sealing["alarms"] == []
        # In a group that is not sealed the same look finds what was said.
        open_group = (await a.groups.create(hub=hub.address)).group.id
        control = secrets.token_hex(16)
        await a.groups.post(open_group, [Part.text(control)])
        found = await asyncio.to_thread(everything, hub)
        assert control.encode() in found
        assert group.encode() in found
        assert b"application/vnd.anpd.sealed" in found
        for word in words:
            assert word.encode() not in found
            assert b64encode(word.encode()) not in found

        # One that is removed reads nothing more; the others go on.
        await a.groups.remove(group, c.did)
        await until(lambda: members(b, group) == [a.did, b.did])
        await a.groups.post(group, [Part.text("without c")])
        assert await texts(b, group, 4) == [*words, "without c"]
        assert c.groups.known(group).state is MemberState.REMOVED
        with pytest.raises(InteractionError):
            await c.groups.post(group, [Part.text("c is here still")])


async def test_a_member_that_restarts_goes_on_in_a_sealed_group(tmp_path: Path) -> None:
    hub = daemon(tmp_path, "hub", **{"groups.hub_for": "listed"})
    a, b = daemon(tmp_path, "a"), daemon(tmp_path, "b")
    async with asyncio.timeout(30), hub.running(), a.running():
        await hub.policy.remember(a.did, shown_did=a.did, state=PeerState.ALLOWED)
        async with b.running():
            group = (await a.groups.create(hub=place(hub), sealed=True)).group.id
            await until(lambda: members(a, group) == [a.did])
            await join(a, group, b)
            await b.groups.post(group, [Part.text("one")])
            assert await texts(a, group, 1) == ["one"]
        await a.groups.post(group, [Part.text("while b is away")])
        b = daemon(tmp_path, "b")
        async with b.running():
            # What it said itself and what it missed, then something new of each.
            assert await texts(b, group, 2) == ["one", "while b is away"]
            await b.groups.post(group, [Part.text("two")])
            await a.groups.post(group, [Part.text("three")])
            wanted = ["one", "while b is away", "two", "three"]
            assert await texts(a, group, 4) == wanted
            assert await texts(b, group, 4) == wanted
            for one in (a, b):
                sealing = one.groups.known(group).sealing
                assert sealing is not None
                assert sealing["alarms"] == []


async def test_a_sealed_group_needs_the_hub_of_another(tmp_path: Path) -> None:
    one = daemon(tmp_path, "a", **{"groups.seal": True})
    async with asyncio.timeout(20), one.running():
        with pytest.raises(InteractionError, match="hub that is no member"):
            await one.groups.create(sealed=True)
        # The setting is about groups at another's hub.
        assert not (await one.groups.create()).group.sealed
