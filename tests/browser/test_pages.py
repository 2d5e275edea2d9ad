"""Every page, in both languages, themes and widths, with axe-core; lists by keyboard.

The pictures of all pages go to the folder in `ANPD_SHOTS`, or to
`build/screenshots/pages`; `make pictures` writes those of the documentation.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="needs a browser (run by `make test-browser`)")

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import BrowserContext, Page, expect

from tests.browser.hands import press, tab_to, write
from tests.browser.looks import NAMELESS, PALE, SIZES, THEMES, WIDE, viewport
from tests.browser.scene import Scene, scene_in
from tests.browser.small_png import small_png
from tests.browser.stage import open_browser

SHOTS = Path(
    os.environ.get("ANPD_SHOTS", "")
    or Path(__file__).resolve().parents[2] / "build" / "screenshots" / "pages"
)
"Where all pictures go."

PICTURES = os.environ.get("ANPD_PICTURES", "")
"A folder for the few pictures of the documentation; empty for none."

SHOWN = {
    "overview-wide-light-en": "dashboard",
    "overview-wide-dark-en": "dashboard-dark",
    "overview-narrow-light-en": "dashboard-narrow",
    "overview-wide-light-zh": "dashboard-zh",
    "traffic-wide-light-en": "traffic",
    "traffic-narrow-dark-zh": "traffic-narrow-zh",
    "calls-wide-light-en": "calls",
    "negotiation-wide-light-en": "negotiation",
    "session-wide-dark-en": "session",
    "group-wide-light-en": "group",
    "peers-narrow-dark-en": "peers-narrow",
}
"The pictures of the documentation."

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
"The rules of axe-core: all of WCAG 2.2, A and AA, that a program can check."

LOCALES = {"en": "en-GB", "zh": "zh-CN"}

ENGLISH = """() => {
  const strange = "code, pre, bdi, time, svg a, svg .name, option, .words, .peer, "
    + ".brand, .me, #language";
  const found = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const one = walk.currentNode.parentElement;
    if (one.closest(strange) || !one.checkVisibility()) continue;
    const words = walk.currentNode.data.match(/[A-Za-z]{3,}/g) ?? [];
    for (const word of words) found.add(word);
  }
  for (const one of document.querySelectorAll("[aria-label]:not(article)")) {
    const text = one.getAttribute("aria-label");
    if (/[a-z]{3}/i.test(text) && !/[\u4e00-\u9fff]/.test(text)) found.add(text);
  }
  return [...found];
}"""
"Words in Latin letters that are not those of a peer, of the daemon or of a command."

NAMES = {"anpd", "DID", "URI", "SHA", "JSON", "UTC", "did", "key", "wba", "example"}
"Words that are the same in every language."

expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Give the daemon with a past."""
    with scene_in(tmp_path_factory.mktemp("scene")) as playing:
        yield playing


@pytest.mark.parametrize("language", LOCALES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", THEMES)
async def test_every_page_has_no_finding_of_axe(
    scene: Scene, theme: str, size: str, language: str
) -> None:
    await asyncio.to_thread(SHOTS.mkdir, parents=True, exist_ok=True)
    look = {"viewport": viewport(size), "color_scheme": theme}
    async with open_browser(**look, locale=LOCALES[language]) as (context, seen):
        page = await enter(context, scene)
        faults: list[object] = []
        for name, where in scene.pages.items():
            await visit(page, where)
            title = f"{name}-{size}-{theme}-{language}"
            await take(page, title)
            for rule in (NAMELESS, PALE, WIDE):
                faults += [(title, one) for one in await page.evaluate(rule)]
            found = await Axe().run(page, options=RULES)
            if found.violations_count:
                faults.append((title, found.generate_report()))
            if language == "zh":
                words = set(await page.evaluate(ENGLISH)) - NAMES
                faults += [(title, words)] if words else []
        assert faults == [], "\n".join(map(str, faults))
        out = {"en": "Sign out", "zh": "退出登录"}[language]
        await press(page, page.get_by_role("button", name=out))
        await expect(page.locator("pre.command")).to_have_text("anpd dashboard")
        await take(page, f"sign-in-{size}-{theme}-{language}")
        found = await Axe().run(page, options=RULES)
        assert found.violations_count == 0, found.generate_report()
        assert [one for one in seen.complaints if "404" not in one] == []


async def test_a_list_is_searched_filtered_and_turned_by_keyboard(scene: Scene) -> None:
    async with open_browser(viewport=viewport("wide")) as (context, seen):
        page = await enter(context, scene)
        await visit(page, "calls")
        rows = page.locator("tbody tr")
        count = page.locator(".count")
        await expect(rows).to_have_count(25)
        await expect(count).to_have_text("The newest 200 entries")
        await press(page, page.get_by_role("button", name="Next page"))
        await expect(page.locator(".pager .note")).to_have_text("Page 2 of 8")
        await expect(page.get_by_role("button", name="Next page")).to_be_focused()
        assert "page=2" in page.url
        await press(page, page.get_by_role("button", name="First"))
        await expect(page.locator(".pager .note")).to_have_text("Page 1 of 8")
        # The filter and the search narrow each other, and stand in the address.
        await tab_to(page, page.get_by_label("Direction"))
        await page.keyboard.type("made")
        search = page.get_by_role("searchbox")
        await write(page, search, "courier 160")
        await expect(page.locator(".listing")).to_contain_text(
            "Nothing fits the search"
        )
        await write(page, search, "courier")
        await expect(count).to_contain_text("of the newest 200")
        for row in await rows.all():
            await expect(row).to_contain_text("courier")
        assert re.search(r"\?.*q=courier", page.url)
        # A call that comes meanwhile is in the list, and takes nothing of it away.
        await page.evaluate("window.stayed = true")
        day = ("-d", '{"day": "Monday"}')
        await asyncio.to_thread(
            scene.agent.ok, "call", "bakery", "oven.price_list", *day
        )
        await expect(page.get_by_role("searchbox")).to_be_focused()
        await expect(page.get_by_role("searchbox")).to_have_value("courier")
        await press(page, page.get_by_role("button", name="Clear"))
        await expect(page.get_by_role("searchbox")).to_be_focused()
        await expect(rows.first).to_contain_text("oven.price_list")
        await expect(page.get_by_label("Direction")).to_have_value("")
        # Older ones are read when they are asked for, on the last page.
        for _ in range(7):
            await press(page, page.get_by_role("button", name="Next page"))
        await press(page, page.get_by_role("button", name="Load older ones"))
        await expect(page.locator(".pager .note")).to_contain_text("of 16")
        # The address alone brings the same list back.
        await page.goto(f"{page.url.partition('#')[0]}#/calls?q=courier")
        await expect(page.get_by_role("searchbox")).to_have_value("courier")
        await expect(rows.first).to_contain_text("courier")
        assert seen.complaints == []


async def test_every_list_has_a_search_that_finds_and_says_when_nothing_fits(
    scene: Scene,
) -> None:
    lists = {
        "negotiations": "stock_level",
        "protocols": "price_list",
        "tasks": "bake",
        "groups": "market",
        "subscriptions": "price_list",
        "peers": "courier",
        "traffic": "courier",
    }
    async with open_browser(viewport=viewport("wide")) as (context, _):
        page = await enter(context, scene)
        for where, word in lists.items():
            await visit(page, where)
            search = page.locator("#list-main-q")
            await write(page, search, word)
            await expect(page.locator(".listing tbody tr").first).to_contain_text(word)
            await page.keyboard.type(" zzz")
            nothing = page.locator(".listing .empty").first
            await expect(nothing).to_have_text("Nothing fits the search.")
            await press(page, page.get_by_role("button", name="Clear").first)
            await expect(page.locator(".listing tbody tr").first).to_be_visible()


async def test_traffic_is_a_picture_of_peers_and_charts_over_time(scene: Scene) -> None:
    async with open_browser(viewport=viewport("wide")) as (context, seen):
        page = await enter(context, scene)
        await visit(page, "traffic")
        peers = page.locator("svg.network a")
        assert await peers.count() >= len(("bakery", "courier", "price-watch"))
        courier = page.get_by_role("link", name=re.compile("^courier: made"))
        await expect(courier).to_contain_text("failed")
        charts = page.locator("figure.chart")
        assert [
            await one.text_content() for one in await charts.locator("h3").all()
        ] == [
            "Calls",
            "Latency of good calls",
            "Share of failed calls",
            "Tokens of models",
        ]
        for one in await charts.all():
            await expect(one.get_by_role("img")).to_be_visible()
        # The numbers of a chart stand below it, for who cannot see it.
        await press(page, charts.first.locator("summary"))
        await expect(charts.first.locator("tbody tr").first).to_be_visible()
        # A new call comes into the picture by itself.
        row = page.locator(".listing tbody tr", has_text="bakery did:key").first
        before = await row.text_content()
        day = ("-d", '{"day": "Sunday"}')
        await asyncio.to_thread(
            scene.agent.ok, "call", "bakery", "oven.price_list", *day
        )
        await expect(row).not_to_have_text(before or "")
        # Open numbers stay open meanwhile, with the focus.
        await expect(charts.first.locator("tbody tr").first).to_be_visible()
        await expect(charts.first.locator("summary")).to_be_focused()
        await press(page, page.get_by_role("button", name="Last day"))
        day_button = page.get_by_role("button", name="Last day")
        await expect(day_button).to_have_attribute("aria-pressed", "true")
        assert "window=day" in page.url
        # Each peer of the picture leads to its page.
        await press(page, courier)
        await expect(page.locator("h1")).to_have_text("courier")
        assert seen.complaints == []


async def test_the_language_is_the_browsers_or_the_one_that_a_person_chose(
    scene: Scene,
) -> None:
    async with open_browser(viewport=viewport("wide"), locale="zh-CN") as (context, _):
        page = await enter(context, scene)
        await expect(page.locator("h1")).to_have_text("概览")
        assert await page.evaluate("document.documentElement.lang") == "zh-Hans"
        await press(page, page.get_by_role("button", name="English"))
        await expect(page.locator("h1")).to_have_text("Overview")
        await page.reload()
        await expect(page.locator("h1")).to_have_text("Overview")
        await press(page, page.get_by_role("button", name="中文"))
        await expect(page.locator("h1")).to_have_text("概览")
    async with open_browser(viewport=viewport("wide"), locale="fr-FR") as (context, _):
        page = await enter(context, scene)
        await expect(page.locator("h1")).to_have_text("Overview")


async def test_a_session_under_way_is_answered_from_the_list_of_tasks(
    scene: Scene,
) -> None:
    async with open_browser(viewport=viewport("wide")) as (context, seen):
        page = await enter(context, scene)
        await visit(page, "tasks")
        live = page.locator("ul.rows li")
        await expect(live).to_contain_text("input required")
        await press(page, live.get_by_role("link").first)
        await write(page, "Your answer", "with")
        await press(page, page.get_by_role("button", name="Send"))
        lines = page.locator("ol.timeline")
        await expect(lines).to_contain_text("rye loaf: with")
        await visit(page, "tasks")
        await expect(page.locator("main")).to_contain_text("No session is under way.")
        assert seen.complaints == []


async def enter(context: BrowserContext, scene: Scene) -> Page:
    """Open the dashboard with a fresh link."""
    page = await context.new_page()
    link = await asyncio.to_thread(scene.agent.ok, "dashboard")
    await page.goto(link.stdout.strip())
    await expect(page.locator("#link.live")).to_be_visible()
    return page


async def visit(page: Page, where: str) -> None:
    """Go to a page, and wait until it is there."""
    await page.goto(f"{page.url.partition('#')[0]}#/{where}")
    section = where.partition("/")[0]
    await expect(page.locator(f'#rail a[data-section="{section}"]')).to_have_count(
        0 if section == "no-such-page" else 1
    )
    await expect(page.locator("#main")).not_to_have_attribute("aria-busy", "true")
    await expect(page.locator("h1")).to_be_visible()


async def take(page: Page, title: str) -> None:
    """Take a picture of a page; a few are kept small for the documentation."""
    await page.evaluate("scrollTo(0, 0)")
    await page.screenshot(path=SHOTS / f"{title}.png", full_page=True)
    name = SHOWN.get(title)
    if PICTURES and name:
        shot = await page.screenshot()
        file = Path(PICTURES) / f"{name}.png"
        await asyncio.to_thread(file.write_bytes, small_png(shot))
