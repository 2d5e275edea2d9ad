"""Two fresh daemons with default settings, one attached server and one call.

The pictures of all pages of both sides go to the folder in `ANPD_SHOTS`, or to
`build/screenshots/fresh`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="needs a browser (run by `make test-browser`)")

from playwright.async_api import Page, expect

from tests.browser.looks import NAMELESS, PALE, SIZES, THEMES, WIDE, viewport
from tests.browser.stage import open_browser
from tests.browser.test_actions import SERVER
from tests.browser.test_dashboard import enter, heading
from tests.e2e.daemons import Anpd
from tests.e2e.owner import owner_client

SHOTS = Path(
    os.environ.get("ANPD_SHOTS", "")
    or Path(__file__).resolve().parents[2] / "build" / "screenshots" / "fresh"
)
"Where the pictures go."

SECTIONS = (
    *("overview", "approvals", "negotiations", "protocols", "calls", "peers"),
    *("spend", "daemon"),
)
"The sections of the rail; the first has an empty name in the address."


async def test_a_fresh_pair_shows_itself_after_one_call(tmp_path: Path) -> None:
    default = {"consensus__use": "true"}
    caller = Anpd(tmp_path / "caller", **default)
    provider = Anpd(tmp_path / "provider", **default)
    words = ("attach", "mcp", "--name", "shop", "--expose", "*")
    provider.ok(*words, "--", sys.executable, str(SERVER))
    with caller.up(), provider.up():
        data = json.dumps({"sku": "A-17", "amount": 3})
        call = ("call", provider.address, "order", "-d", data, "--json")
        answer = caller.ok(*call).json()
        assert answer["capability"] == "shop.order"
        pages = {name: "" if name == "overview" else name for name in SECTIONS}
        pages["protocol"] = f"protocols/{answer['protocol']}"
        for side, daemon in (("caller", caller), ("provider", provider)):
            peers = daemon.ok("peers", "list", "--json").json()["peers"]
            own = {**pages, "peer": f"peers/{peers[0]['did']}"}
            if daemon is provider:
                own["attachment"] = "daemon/shop"
            else:
                with owner_client(daemon.home) as owner:
                    [one] = owner.get("/v1/calls").json()["calls"]
                own["call"] = f"calls/{one['id']}"
            for theme in THEMES:
                for size in SIZES:
                    look = open_browser(viewport=viewport(size), color_scheme=theme)
                    async with look as (context, seen):
                        link = daemon.ok("dashboard").stdout.strip()
                        page = await enter(context, link)
                        for name, where in own.items():
                            await visit(page, where)
                            shot = SHOTS / f"{side}-{name}-{size}-{theme}.png"
                            await page.screenshot(path=shot, full_page=True)
                            await check(page, name)
                        shot = SHOTS / f"{side}-{{}}-{size}-{theme}.png"
                        await act(page, own, str(shot))
                        assert seen.complaints == []


async def act(page: Page, own: dict[str, str], shot: str) -> None:
    """Take pictures of a form with its answer, and of a question before an action."""
    await visit(page, own.get("attachment", own["peer"]))
    order = page.get_by_role("article", name="shop.order")
    if await order.count():
        await page.get_by_label("Try shop.order").click()
        send = page.get_by_role("button", name="Call shop.order")
        await send.click()
        await expect(order.get_by_text("It is required").first).to_be_visible()
        await page.evaluate("scrollTo(0, 0)")
        await page.screenshot(path=shot.format("form-wrong"), full_page=True)
        await page.get_by_label("sku").fill("A-17")
        await page.get_by_label("amount").fill("3")
        await send.click()
        await expect(order.get_by_role("region", name="Answer")).to_be_visible()
        await page.evaluate("scrollTo(0, 0)")
        await page.screenshot(path=shot.format("form"), full_page=True)
        await check(page, "form")
    await visit(page, own["protocol"])
    await page.get_by_role("button", name="Revoke", exact=True).click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.screenshot(path=shot.format("question"))
    await page.keyboard.press("Escape")


async def visit(page: Page, where: str) -> None:
    """Go to a page, and wait until it is there."""
    await page.goto(f"{page.url.partition('#')[0]}#/{where}")
    await expect(page.locator("#main")).not_to_have_attribute("aria-busy", "true")
    await expect(heading(page)).to_be_visible()
    # The page asks for what it offers only when it is told to.
    ask = page.get_by_role("button", name="Ask the peer for its capabilities")
    if await ask.count():
        await ask.click()
        await expect(page.get_by_text("Asking…")).to_have_count(0)


async def check(page: Page, name: str) -> None:
    """Check what a program can see of the looks of a page."""
    assert await page.evaluate(WIDE) == [], name
    assert await page.evaluate(PALE) == [], name
    assert await page.evaluate(NAMELESS) == [], name
    if name in {"protocols", "peers", "calls", "overview"}:
        # Nothing is as empty as it was before the call.
        assert await page.locator("main").get_by_text("There are no ").count() == 0
