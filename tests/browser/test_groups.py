"""The dashboard's pages of groups and subscriptions, in a browser."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="needs a browser (run by `make test-browser`)")

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from tests.browser.hands import press, write
from tests.browser.looks import NAMELESS, PALE, SIZES, THEMES, WIDE, viewport
from tests.browser.stage import EVIL, open_browser
from tests.e2e.daemons import Anpd

NAME = "旅行计划 · a plan of a trip"
SHOTS = Path("build/screenshots")


async def check_looks(page: Page, name: str) -> None:
    """Look at a page in each width and theme, with axe-core's rules as well."""
    await asyncio.to_thread(SHOTS.mkdir, parents=True, exist_ok=True)
    for size in SIZES:
        await page.set_viewport_size(viewport(size))
        for theme in THEMES:
            await page.emulate_media(color_scheme=theme)
            for rule in (NAMELESS, PALE, WIDE):
                assert await page.evaluate(rule) == [], (name, size, theme)
            await page.screenshot(path=SHOTS / f"{name}-{size}-{theme}.png")
            # The rules of WCAG 2.2 that a program can check.
            found = await Axe().run(
                page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}
            )
            assert found.violations_count == 0, found.generate_report()
    await page.set_viewport_size(viewport("wide"))


async def test_a_group_is_joined_read_and_answered_by_a_person(tmp_path: Path) -> None:
    planner, owner = Anpd(tmp_path / "planner"), Anpd(tmp_path / "owner")
    with planner.up(), owner.up():
        made = ("groups", "create", NAME, "--invite", owner.address, "--json")
        group = planner.ok(*made).json()["id"]
        own = ("groups", "create", "Own", "--join", "apply", "--json")
        mine = owner.ok(*own).json()["id"]
        planner.ok("groups", "apply", owner.address, mine, "--text", EVIL)
        each = ("--every", "1h", "--max-runs", "3")
        owner.ok("subscriptions", "create", planner.address, "shop.look", *each)
        async with open_browser(viewport=viewport("wide")) as (context, seen):
            page = await context.new_page()
            await page.goto(owner.ok("dashboard").stdout.strip())
            badge = page.locator('#rail a[data-section="approvals"] .badge')
            await expect(badge).to_contain_text("2")
            # By keyboard alone, from the list of what waits.
            await press(page, page.get_by_role("link", name="Approvals"))
            await expect(page.locator("h1")).to_have_text("Approvals")
            await check_looks(page, "group-approvals")
            applied = page.get_by_role("row").filter(has_text="application")
            await press(page, applied.get_by_role("button", name="Accept"))
            await expect(page.locator(".toast")).to_contain_text("is a member now")
            await press(page, page.get_by_role("button", name="Close"))
            await press(page, page.get_by_role("link", name="Groups"))
            invited = page.get_by_role("row").filter(has_text="invitation")
            await expect(invited).to_contain_text("stranger")
            await check_looks(page, "groups")
            await press(page, invited.get_by_role("button", name="Accept"))
            await expect(page.locator(".toast")).to_contain_text("is a member now")
            await press(page, page.get_by_role("button", name="Close"))
            await press(page, page.get_by_role("link", name=NAME))
            await expect(page.locator("h1")).to_have_text(NAME)
            await expect(page.locator("svg.members circle")).to_have_count(2)
            # What is said meanwhile comes by itself, and is text.
            planner.ok("groups", "post", group, f"哪一天出发？ {EVIL}")
            lines = page.locator("ol.timeline")
            await expect(lines).to_contain_text("哪一天出发？ <script>")
            await expect(page.locator("circle.spoke")).to_have_count(1)
            await write(page, page.get_by_label("Your message"), "星期五 works")
            await press(page, page.get_by_role("button", name="Send"))
            await expect(page.locator(".toast")).to_contain_text("was sent")
            await expect(lines.locator("li.ours")).to_contain_text("星期五 works")
            await press(page, page.get_by_role("button", name="Close", exact=True))
            await check_looks(page, "group")
            await press(page, page.get_by_role("link", name="Subscriptions"))
            await check_looks(page, "subscriptions")
            await press(page, page.get_by_role("link", name="shop.look"))
            await expect(page.locator("h1")).to_have_text("Subscription")
            await check_looks(page, "subscription")
            await press(page, page.get_by_role("button", name="Cancel"))
            await press(page, page.get_by_role("button", name="End it"))
            await expect(page.locator(".title .chip")).to_have_text("canceled")
            assert await page.evaluate("window.pwned") is None
            assert seen.complaints == []
