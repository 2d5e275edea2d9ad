"""Attaching and reloading while calls are under way."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError
from anp.sidecar.attachments import AttachmentSpec, remove_attachment, save_attachment
from anp.sidecar.attachments.supervisor import SupervisedAttachment
from anp.sidecar.daemon import Daemon
from anp.sidecar.operation import reload_daemon
from tests.e2e.house import house_in
from tests.waiting import until

SOURCE = """
import os
import pathlib
import time


def child(marker: str) -> dict[str, int]:
    folder = pathlib.Path(__file__).parent
    (folder / f"{marker}.began").touch()
    while not (folder / f"{marker}.go").exists():
        time.sleep(0.01)
    return {"child": os.getpid()}


def nap(number: int) -> dict[str, int]:
    time.sleep(0.1)
    return {"number": number}
"""


def spec(folder: Path, function: str = "child", **more: Any) -> AttachmentSpec:
    return AttachmentSpec(
        kind="python",
        name="slow",
        target=f"{folder}/slow.py:{function}",
        cwd=folder,
        **{"expose": ("*",), **more},
    )


def running(daemon: Daemon) -> SupervisedAttachment:
    attachment = daemon.exposure.attachments["slow"][1]
    assert isinstance(attachment, SupervisedAttachment)
    return attachment


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_reload_leaves_alone_what_did_not_change(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SOURCE)
    async with house_in(tmp_path) as house:
        save_attachment(house.provider.home.attachments, spec(tmp_path))
        await house.provider.reload()
        attached = running(house.provider)
        call = asyncio.create_task(house.call("child", marker="a"))
        await until((tmp_path / "a.began").exists)
        for _ in range(3):
            await house.provider.reload()
        assert running(house.provider) is attached
        (tmp_path / "a.go").touch()
        first = (await call)["child"]
        (tmp_path / "b.go").touch()
        assert (await house.call("child", marker="b"))["child"] == first


async def test_what_changed_starts_beside_and_the_old_one_ends_after_its_calls(
    tmp_path: Path,
) -> None:
    (tmp_path / "slow.py").write_text(SOURCE)
    async with house_in(tmp_path) as house:
        folder = house.provider.home.attachments
        save_attachment(folder, spec(tmp_path))
        await house.provider.reload()
        call = asyncio.create_task(house.call("child", marker="a"))
        await until((tmp_path / "a.began").exists)
        save_attachment(folder, spec(tmp_path, env={"CHANGED": "1"}))
        await house.provider.reload()
        (tmp_path / "b.go").touch()
        second = (await house.call("child", marker="b"))["child"]
        assert not call.done()
        (tmp_path / "a.go").touch()
        first = (await call)["child"]
        assert first != second
        await until(lambda: not alive(first))
        assert alive(second)


async def test_attaching_the_same_again_starts_it_again(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SOURCE)
    async with house_in(tmp_path) as house:
        folder = house.provider.home.attachments
        save_attachment(folder, spec(tmp_path))
        await house.provider.reload()
        attached = running(house.provider)
        save_attachment(folder, spec(tmp_path))
        await house.provider.reload()
        assert running(house.provider) is not attached
        (tmp_path / "a.go").touch()
        assert (await house.call("child", marker="a"))["child"] > 0


async def test_what_is_removed_takes_no_new_calls_and_ends_after_its_old_ones(
    tmp_path: Path,
) -> None:
    (tmp_path / "slow.py").write_text(SOURCE)
    async with house_in(tmp_path) as house:
        folder = house.provider.home.attachments
        save_attachment(folder, spec(tmp_path))
        await reload_daemon(house.provider)
        call = asyncio.create_task(house.call("child", marker="a"))
        await until((tmp_path / "a.began").exists)
        remove_attachment(folder, "slow")
        await reload_daemon(house.provider)
        assert "slow" not in house.provider.exposure.attachments
        with pytest.raises(CallError) as caught:
            await house.call("child", marker="b")
        assert not caught.value.may_have_run
        assert not (tmp_path / "b.began").exists()
        assert not call.done()
        (tmp_path / "a.go").touch()
        first = (await call)["child"]
        await until(lambda: not alive(first))
        # The channel whose protocol called it has ended, too.
        await until(lambda: house.provider.links.open_channels == 0)


async def test_what_is_hidden_while_it_leaves_ends_at_once(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SOURCE)
    async with house_in(tmp_path) as house:
        folder = house.provider.home.attachments
        save_attachment(folder, spec(tmp_path))
        await reload_daemon(house.provider)
        call = asyncio.create_task(house.call("child", marker="a"))
        await until((tmp_path / "a.began").exists)
        remove_attachment(folder, "slow")
        await reload_daemon(house.provider)
        save_attachment(folder, spec(tmp_path, expose=()))
        await reload_daemon(house.provider)
        async with asyncio.timeout(5):
            with pytest.raises(CallError) as caught:
                await call
        assert caught.value.may_have_run
        (tmp_path / "a.go").touch()


async def test_reloads_and_attaches_under_load_lose_no_call(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SOURCE)
    async with house_in(tmp_path) as house:
        folder = house.provider.home.attachments
        entry = spec(tmp_path, "nap")
        save_attachment(folder, entry)
        await reload_daemon(house.provider)
        assert await house.call("nap", number=0) == {"number": 0}

        async def change() -> None:
            for step in range(5):
                await asyncio.sleep(0.8)
                if step % 2:
                    # As `anpd attach` does again.
                    env = {"ROUND": str(step)} if step == 1 else {}
                    save_attachment(folder, replace(entry, env=env))
                await reload_daemon(house.provider)
            await asyncio.sleep(0.5)

        changing = asyncio.create_task(change())
        calls: list[asyncio.Task[Any]] = []
        while not changing.done():
            calls.append(asyncio.create_task(house.call("nap", number=len(calls))))
            await asyncio.sleep(0.05)
        await changing
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert len(results) >= 50
        assert results == [{"number": number} for number in range(len(results))]
