"""The attachments that run are those in the owner's files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from anp.sidecar.attachments import AttachmentLimits, AttachmentSpec
from anp.sidecar.attachments.supervisor import SupervisedAttachment
from anp.sidecar.home.home import Home
from anp.sidecar.offer import attached as module
from anp.sidecar.offer.attached import Attaching
from anp.sidecar.offer.exposure import Exposure

SPEC = AttachmentSpec(kind="mcp", name="slow", command=("slow",))


class Slow(SupervisedAttachment):
    """An attachment whose child starts for ever."""

    def __init__(self) -> None:
        super().__init__(SPEC, limits=AttachmentLimits())
        self.lives = asyncio.Event()

    async def _live(self) -> None:
        self.lives.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.lives.clear()

    async def call(self, *_: Any, **__: Any) -> dict[str, Any]:
        """See `Attachment`."""
        return {}


async def test_an_attachment_whose_start_is_cancelled_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()
    monkeypatch.setattr(module, "open_attachment", lambda *_, **__: slow)
    attaching = Attaching(Home(tmp_path), Exposure(), max_calls=1)
    reload = asyncio.create_task(attaching.reload({"slow": SPEC}))
    await slow.lives.wait()
    reload.cancel()
    await asyncio.wait({reload})
    await attaching.close()
    assert not slow.lives.is_set()
