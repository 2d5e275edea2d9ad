"""Actions that no other test does, by keyboard, with what came of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

import pytest

pytest.importorskip("playwright", reason="needs a browser (run by `make test-browser`)")

from playwright.async_api import Locator, Page, expect

from tests.browser.hands import press, tab_to
from tests.browser.looks import viewport
from tests.browser.scene import Scene, scene_in
from tests.browser.stage import open_browser
from tests.browser.test_pages import enter, visit
from tests.e2e.owner import owner_client

expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Give a daemon with peers, groups and tasks."""
    with scene_in(tmp_path_factory.mktemp("keyboard")) as playing:
        yield playing


@pytest.fixture
async def page(scene: Scene) -> AsyncIterator[Page]:
    """Give the dashboard of that daemon."""
    async with open_browser(viewport=viewport("wide")) as (context, seen):
        await context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield await enter(context, scene)
        assert seen.complaints == []
        assert seen.dialogs == []


async def test_the_theme_changes_and_an_address_is_copied(
    scene: Scene, page: Page
) -> None:
    theme = button(page, "Theme: auto")
    await press(page, theme)
    assert await page.evaluate("document.documentElement.dataset.theme") == "light"
    await page.keyboard.press("Enter")
    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
    await expect(button(page, "Theme: dark")).to_be_focused()
    copy = page.get_by_role("button", name=f"Copy {scene.agent.url}")
    await press(page, copy)
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied == scene.agent.address
    # The control is drawn anew with the page; what it copies stays.
    await expect(page.locator(".copyline")).to_contain_text(scene.agent.did)


async def test_a_question_is_declined_and_a_task_is_cancelled(
    scene: Scene, page: Page
) -> None:
    for wanted, told, state in (
        ("Decline", "The question was declined.", "completed|failed|canceled|rejected"),
        ("Cancel", "The task was asked to end.", "canceled"),
    ):
        kind = ("-d", '{"kind": "rolls"}')
        start = ("tasks", "start", "bakery", "oven.bake", *kind)
        begun = await asyncio.to_thread(scene.agent.ok, *start)
        task = begun.stdout.strip()
        show = ("tasks", "show", task, "--json")
        shown = await asyncio.to_thread(scene.agent.ok, *show)
        await visit(page, f"tasks/{shown.json()['session']}")
        await expect(page.locator("section.decide")).to_be_visible()
        control = page.get_by_role("button", name=wanted).first
        await press(page, control)
        await expect(page.locator("#said")).to_have_text(told)
        chip = page.locator(".listing tbody .chip").first
        await expect(chip).to_have_text(re.compile(f"^({state})$"))
        await expect(page.locator("section.decide")).to_have_count(0)


async def test_a_member_is_removed_and_a_group_is_closed(
    scene: Scene, page: Page
) -> None:
    await visit(page, scene.pages["group"])
    remove = page.get_by_role("button", name="Remove member 2")
    await press(page, remove)
    # Escape is a no, and the focus is back where it was.
    await page.keyboard.press("Escape")
    await expect(remove).to_be_focused()
    await page.keyboard.press("Enter")
    await press(page, button(page, "Yes, remove it"))
    await expect(page.locator("#said")).to_have_text("The member was removed.")
    await expect(page.locator("svg.members circle")).to_have_count(1)
    await press(page, button(page, "Close the group"))
    await press(page, button(page, "Yes, close it"))
    await expect(page.locator("#said")).to_have_text("The group is closed.")
    await expect(page.locator(".title .chip")).to_have_text("closed")


async def test_an_invitation_is_declined(scene: Scene, page: Page) -> None:
    made = ("groups", "create", "Sunday stall", "--invite", scene.agent.address)
    await asyncio.to_thread(scene.bakery.ok, *made)
    await visit(page, "groups")
    row = page.get_by_role("row").filter(has_text="invitation")
    await expect(row).to_contain_text("Sunday stall")
    await press(page, row.get_by_role("button", name="Reject"))
    await expect(page.locator("#said")).to_have_text("The invitation was declined.")
    await expect(page.get_by_role("row").filter(has_text="invitation")).to_have_count(0)


async def test_a_running_negotiation_is_ended(scene: Scene, page: Page) -> None:
    await visit(page, "negotiations")
    # The owner has twenty seconds; a command would take some of them to start.
    body = {
        "peer": scene.agent.address,
        "need": "place_order",
        "input": {"amount": 2, "label": "rolls"},
    }
    wait = {"Prefer": "respond-async"}
    with owner_client(scene.guest.home) as guest:
        await asyncio.to_thread(guest.post, "/v1/calls", json=body, headers=wait)
        row = page.get_by_role("row").filter(has_text="place_order")
        await press(page, row.get_by_role("link").first)
        await press(page, button(page, "Cancel the negotiation"))
        # Its end may be announced before this line is read.
        await expect(page.locator(".toast")).to_contain_text("is being ended")
        await expect(page.locator(".title .chip")).to_have_text("cancelled")
        await expect(button(page, "Cancel the negotiation")).to_have_count(0)


async def test_the_focus_stays_in_a_list_that_changes(scene: Scene, page: Page) -> None:
    await visit(page, "calls")
    link = page.locator("tbody a.first").nth(1)
    await tab_to(page, link)
    where = await link.get_attribute("href")
    rows = page.locator("tbody tr").first
    day = ("-d", '{"day": "Tuesday"}')
    before = await rows.text_content()
    await asyncio.to_thread(scene.agent.ok, "call", "bakery", "oven.price_list", *day)
    await expect(rows).not_to_have_text(before or "")
    kept = "document.activeElement.getAttribute('href')"
    assert await page.evaluate(kept) == where


def button(page: Page, name: str) -> Locator:
    """Return a button by its whole name."""
    return page.get_by_role("button", name=name, exact=True)
