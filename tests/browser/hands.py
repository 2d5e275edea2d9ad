"""A person's hands on a keyboard: nothing in these tests needs a mouse."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

MAX_TABS = 400
"Controls that are passed before one counts as out of reach."


async def tab_to(page: Page, control: Locator) -> None:
    """Press Tab until a control has the focus, which has to be visible then."""
    await expect(control).to_be_visible()
    for _ in range(MAX_TABS):
        if await control.evaluate("one => one === document.activeElement"):
            break
        await page.keyboard.press("Tab")
    await expect(control).to_be_focused()
    # A control of a picture shows it by its own outline.
    style = (
        "one => getComputedStyle(one.querySelector(':scope > circle') ?? one)"
        "[one.querySelector(':scope > circle') ? 'strokeWidth' : 'outlineStyle']"
    )
    assert await control.evaluate(style) not in {"none", "1.5px"}


async def press(page: Page, control: Locator, key: str = "Enter") -> None:
    """Press a control as a person without a mouse does."""
    await tab_to(page, control)
    await page.keyboard.press(key)


async def write(page: Page, label: str | re.Pattern[str] | Locator, text: str) -> None:
    """Write into a field, over what is there."""
    field = label if isinstance(label, Locator) else page.get_by_label(label)
    await tab_to(page, field)
    await page.keyboard.press("Control+A")
    await page.keyboard.type(text)


async def choose(page: Page, label: str) -> None:
    """Choose one of several radio buttons: Tab goes to them, arrows go among them."""
    wanted = page.get_by_label(label, exact=True)
    await expect(wanted).to_be_visible()
    among = "one => one.name === document.activeElement.name"
    for _ in range(MAX_TABS):
        if await wanted.evaluate(among):
            break
        await page.keyboard.press("Tab")
    await page.keyboard.press("Space")
    for _ in range(MAX_TABS):
        if await wanted.is_checked():
            return
        await page.keyboard.press("ArrowDown")
