"""Attaching and reloading while calls are under way."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.attachments.supervisor import SupervisedAttachment
from anp.sidecar.daemon import Daemon
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
"""


def spec(folder: Path, **more: dict[str, str]) -> AttachmentSpec:
    return AttachmentSpec(
        kind="python",
        name="slow",
        target=f"{folder}/slow.py:child",
        cwd=folder,
        expose=("*",),
        **more,  # type: ignore[arg-type]  # env alone
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
