"""The dashboard's pages of tasks and sessions, in a browser."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="needs a browser (run by `make test-browser`)")

from playwright.async_api import expect

from tests.browser.hands import press, write
from tests.browser.stage import EVIL, open_browser
from tests.e2e.daemons import Anpd

AGENT = """
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol


class Context(Protocol):
    pass


def draw(words: str, dots: Path) -> Iterator[str]:
    yield words


def book(seat: str, context: Context) -> str:
    context.progress(1, 2, "looked at the plan")
    return f"{seat}: {context.ask('Is that right?')}"
"""


def png() -> bytes:
    """Return a picture of 8 by 8 points."""

    def piece(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + b"\x20\x80\xff" * 8 for _ in range(8)))
    parts = piece(b"IHDR", head), piece(b"IDAT", rows), piece(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


async def test_a_session_is_shown_as_a_conversation(tmp_path: Path) -> None:
    (tmp_path / "drawing.py").write_text(AGENT)
    provider = Anpd(tmp_path / "provider")
    attach = ("attach", "python", "--name", "agent", "--expose", "*", "drawing")
    provider.ok(*attach, cwd=tmp_path)
    with provider.up(), Anpd(tmp_path / "caller").up() as caller:
        start = ("tasks", "start", provider.address)
        (tmp_path / "dots.png").write_bytes(png())
        file = ("--file", f"dots.png={tmp_path / 'dots.png'}")
        data = ("-d", json.dumps({"words": EVIL}))
        drawn = caller.ok(*start, "agent.draw", *data, *file)
        caller.ok("tasks", "watch", drawn.stdout.strip())
        async with open_browser(viewport={"width": 1280, "height": 900}) as opened:
            context, seen = opened
            page = await context.new_page()
            await page.goto(caller.ok("dashboard").stdout.strip())
            await press(page, page.get_by_role("link", name="Tasks"))
            await expect(page.locator("h1")).to_have_text("Tasks")
            await press(page, page.get_by_role("link", name="agent.draw"))
            lines = page.locator("ol.timeline")
            await expect(lines).to_contain_text("completed")
            # What a peer wrote is text, and its picture is a picture.
            await expect(lines).to_contain_text("<script>window.pwned = 1</script>")
            picture = lines.locator("img")
            await expect(picture).to_have_count(1)
            width = "e => e.decode().then(() => e.naturalWidth)"
            assert await picture.evaluate(width) == 8
            # Another task of the session comes while it is shown, and is answered here.
            joined = ("--after", drawn.stdout.strip(), "agent.book")
            caller.ok("tasks", "start", *joined, "-d", '{"seat": "4A"}')
            asked = page.locator("section.decide")
            await expect(asked).to_contain_text("Is that right?")
            # The overview has it among the things to do, and leads back here.
            await press(page, page.get_by_role("link", name="Overview"))
            need = page.locator(".needs li", has_text="Is that right?")
            await press(page, need.get_by_role("link", name="Open"))
            await write(page, asked.get_by_label("Your answer"), "yes")
            await press(page, asked.get_by_role("button", name="Send"))
            await expect(lines).to_contain_text("4A: yes")
            await expect(asked).to_have_count(0)
            await page.set_viewport_size({"width": 360, "height": 740})
            wide = "document.documentElement.scrollWidth"
            assert await page.evaluate(wide) <= 360
            assert await page.evaluate("window.pwned") is None
            assert seen.complaints == []
