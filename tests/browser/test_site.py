"""The built site in a browser without a network: search, themes, and accessibility.

It needs `build/site/html`, which `make docs` makes.
"""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="needs a browser (run by `make test-browser`)")

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from tests.browser.looks import SIZES, THEMES, Theme, viewport
from tests.browser.stage import open_browser
from tests.documents import ROOT

SITE = ROOT / "build" / "site" / "html"
RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]
PAGES = ("index", "why", "concepts", "troubleshooting", "recipes/frameworks")

pytestmark = pytest.mark.skipif(not SITE.exists(), reason="make docs makes the site")


async def test_search_finds_a_page_and_nothing_is_asked_of_anybody() -> None:
    async with open_browser() as (context, seen):
        page = await context.new_page()
        await page.goto(f"file://{SITE}/index.html")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("seccomp profile forbids")
        await expect(page.get_by_text("A container with npx").last).to_be_visible()
        assert [one for one in seen.requests if one.startswith("http")] == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES)
async def test_pages_are_accessible_and_fit(size: str, theme: Theme) -> None:
    options = {"viewport": viewport(size), "color_scheme": theme}
    async with open_browser(**options) as (context, _):
        page = await context.new_page()
        for name in PAGES:
            await page.goto(f"file://{SITE}/{name}.html")
            wide = "document.documentElement.scrollWidth > window.innerWidth"
            assert not await page.evaluate(wide), name
            # The rules of WCAG 2.2 that a program can check.
            found = await Axe().run(page, options={"runOnly": RULES})
            assert found.violations_count == 0, found.generate_report()
