"""An owner acts on the pages of the dashboard, by keyboard."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs a browser (run by `make test-browser`)")

from playwright.async_api import BrowserContext, Locator, Page, expect

from anp.sidecar.home.home import Home
from cache.records.records import AgreementState
from cache.store import Store
from tests.browser.hands import press, tab_to, write
from tests.browser.looks import NAMELESS, PALE, SIZES, THEMES, WIDE, viewport
from tests.browser.stage import EVIL, Seen, open_browser
from tests.browser.test_dashboard import enter, heading, nothing_else_happened
from tests.e2e.daemons import Anpd
from tests.e2e.owner import owner_client

SERVER = Path(__file__).with_name("shop_server.py")
"The attached MCP server."

expect.set_options(timeout=20_000)


@dataclass(frozen=True)
class Pair:
    """Two daemons with default settings; the provider has the shop."""

    caller: Anpd
    provider: Anpd

    def call(self, need: str, **arguments: Any) -> Any:
        """Call the provider; return the whole answer."""
        data = json.dumps(arguments)
        words = ("call", self.provider.address, need, "-d", data, "--json")
        return self.caller.ok(*words).json()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Give both, for all tests of this file; only `order` is hidden at first."""
    folder = tmp_path_factory.mktemp("actions")
    default = {"consensus__use": "true"}
    found = Pair(
        Anpd(folder / "caller", **default), Anpd(folder / "provider", **default)
    )
    command = (sys.executable, str(SERVER), EVIL)
    names = ("broken", "slow", "odd")
    exposed = [word for name in names for word in ("--expose", name)]
    found.provider.ok(
        *("attach", "mcp", "--name", "shop", *exposed, "--", *command), cwd=folder
    )
    with found.caller.up(), found.provider.up():
        yield found


@pytest.fixture
async def browser() -> AsyncIterator[tuple[BrowserContext, Seen]]:
    """Give a browser without a past, of the width of a phone."""
    async with open_browser(viewport=viewport("narrow")) as opened:
        yield opened


def link_to(daemon: Anpd) -> str:
    return daemon.ok("dashboard").stdout.strip()


def announced(page: Page) -> Locator:
    """Return the place that a screen reader reads out."""
    return page.locator("#said[role=status]")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=name)


async def test_a_capability_is_exposed_tried_and_hidden(
    pair: Pair, browser: tuple[BrowserContext, Seen]
) -> None:
    context, seen = browser
    page = await enter(context, link_to(pair.provider), "#/daemon")
    await press(page, page.get_by_role("link", name="shop", exact=True))
    await expect(heading(page)).to_have_text("shop")
    shop = card(page, "shop.order")
    await expect(shop).to_contain_text("not exposed")
    await press(page, button(page, "Expose shop.order"))
    # It says what it did, and the focus stays where it was.
    await expect(announced(page)).to_have_text("shop.order is exposed to peers.")
    await expect(button(page, "Hide shop.order")).to_be_focused()
    listed = pair.provider.ok("capabilities", "list", "--json").json()
    assert {one["name"]: one["exposed"] for one in listed["capabilities"]} == {
        "shop.order": True,
        "shop.broken": True,
        "shop.slow": True,
        "shop.odd": True,
    }
    # A form of its schema: required, enum, default, nested; wrong values are named.
    await press(page, page.get_by_label("Try shop.order"), "Space")
    send = button(page, "Call shop.order")
    await press(page, send)
    await expect(page.get_by_label(re.compile("^sku"))).to_be_focused()
    await expect(shop).to_contain_text("It is required; write a value.")
    await page.keyboard.type("A-17")
    await write(page, re.compile("^amount"), "many")
    await write(page, re.compile("^address"), "Paris")
    await press(page, send)
    await expect(page.get_by_label(re.compile("^amount"))).to_be_focused()
    await expect(shop).to_contain_text("Write a whole number, such as 42.")
    await expect(shop).to_contain_text("This is no JSON.")
    await write(page, re.compile("^amount"), "3")
    await write(page, re.compile("^price"), "12345678901234567.89")
    await write(page, re.compile("^address"), '{"city": "Paris"}')
    await tab_to(page, page.get_by_label("tone"))
    await page.keyboard.type("dry")
    await press(page, send)
    await expect(shop.get_by_role("status")).to_contain_text("shop.order answered in")
    answer = page.get_by_role("region", name="Answer", exact=True)
    for part in ('sku\\": \\"A-17', 'amount\\": 3', 'tone\\": \\"dry', "gift", "Paris"):
        await expect(answer).to_contain_text(part)
    await expect(answer).not_to_contain_text("note")
    # The same as one JSON text, for what single fields do not say.
    await press(page, button(page, "Write all as JSON"))
    whole = shop.get_by_label(re.compile("^All arguments"))
    await expect(whole).to_be_focused()
    await expect(whole).to_have_value(re.compile('"price": 12345678901234567.89'))
    await page.keyboard.press("Control+A")
    await page.keyboard.type('{"sku": "C", "amount": 5}')
    await press(page, send)
    await expect(answer).to_contain_text('amount\\": 5')
    # Errors of the tool stand in words below the form.
    await press(page, page.get_by_label("Try shop.broken"), "Space")
    await press(page, button(page, "Call shop.broken"))
    await expect(card(page, "shop.broken").get_by_role("alert")).to_contain_text(
        "the oven is cold"
    )
    await press(page, button(page, "Hide shop.order"))
    await expect(announced(page)).to_have_text("shop.order is hidden from peers.")
    await press(page, button(page, "Expose shop.order"))
    await expect(button(page, "Hide shop.order")).to_be_visible()
    seen.complaints = [one for one in seen.complaints if "424" not in one]
    nothing_else_happened(seen, pair.provider)


async def test_a_capability_of_a_peer_is_called_from_its_page(
    pair: Pair, browser: tuple[BrowserContext, Seen]
) -> None:
    context, seen = browser
    exposed(pair)
    pair.call("shop.order", sku="A", amount=1)
    page = await enter(context, link_to(pair.caller), "#/peers")
    await press(page, page.locator("tbody a").first)
    await press(page, button(page, "Ask the peer for its capabilities"))
    await press(page, page.get_by_label("Try shop.order"), "Space")
    await write(page, re.compile("^sku"), "B-2")
    await write(page, re.compile("^amount"), "0")
    await press(page, button(page, "Call shop.order"))
    order = card(page, "shop.order")
    await expect(order.get_by_role("alert")).to_contain_text("amount")
    await write(page, re.compile("^amount"), "2")
    await press(page, button(page, "Call shop.order"))
    await expect(order.get_by_role("status")).to_contain_text("shop.order answered in")
    await expect(order.get_by_role("status")).to_contain_text("by")
    await expect(page.get_by_role("region", name="Answer", exact=True)).to_contain_text(
        "B-2"
    )
    # The call has a page of its own, with the same form.
    await page.goto(f"{page.url.partition('#')[0]}#/calls")
    await press(page, page.locator("tbody a.first").first)
    await expect(page.locator(".facts")).to_contain_text("shop.order")
    await press(page, button(page, "Show the form for its arguments"))
    await write(page, re.compile("^sku"), "C-3")
    await write(page, re.compile("^amount"), "3")
    await press(page, button(page, "Call shop.order"))
    await expect(page.get_by_role("region", name="Answer", exact=True)).to_contain_text(
        "C-3"
    )
    seen.complaints = [one for one in seen.complaints if "400" not in one]
    nothing_else_happened(seen, pair.caller)


async def test_a_protocol_is_tested_revoked_approved_and_released(
    pair: Pair, browser: tuple[BrowserContext, Seen]
) -> None:
    context, seen = browser
    exposed(pair)
    digest = pair.call("shop.order", sku="A", amount=1)["protocol"]
    page = await enter(context, link_to(pair.caller), f"#/protocols/{digest}")
    await press(page, button(page, "Test"))
    await expect(announced(page)).to_contain_text("The tests passed")
    # Revoking asks once; Escape and the first button are a no.
    await press(page, button(page, "Revoke"))
    dialog = page.get_by_role("dialog", name="Revoke this protocol?")
    await expect(button(page, "No, go back")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(button(page, "Revoke")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    await expect(dialog).to_have_count(0)
    assert state_of(pair.caller, digest) == {"active"}
    await press(page, button(page, "Revoke"))
    await write(page, "Reason, for your own records (optional)", "too dear")
    await press(page, button(page, "Yes, revoke it"))
    await expect(announced(page)).to_contain_text("The protocol is revoked")
    await expect(page.locator(".title .chip")).to_have_text("revoked")
    assert state_of(pair.caller, digest) == {"revoked"}
    # The same control gives it back.
    await expect(button(page, "Approve")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(announced(page)).to_contain_text("The protocol is approved")
    assert state_of(pair.caller, digest) == {"active"}
    # For one peer alone, in the row of the agreement.
    await press(page, page.get_by_role("button", name=re.compile("Revoke for did")))
    await press(page, button(page, "Yes, revoke it"))
    await expect(announced(page)).to_contain_text("revoked for this peer")
    await press(page, page.get_by_role("button", name=re.compile("Approve for did")))
    await expect(announced(page)).to_contain_text("approved for this peer")
    # One whose test cases failed is released.
    pair.caller.stop()
    with closing(Store(Home(pair.caller.home).store)) as store:
        [kept] = store.agreements_of(digest)
        document = store.document(digest)
        [half] = store.halves(digest)
        assert document is not None
        failed = replace(kept, state=AgreementState.FAILED)
        store.save_agreement(document, half, failed)
    pair.caller.start()
    page = await enter(context, link_to(pair.caller), f"#/protocols/{digest}")
    await press(page, button(page, "Release"))
    await expect(announced(page)).to_contain_text("The protocol is released")
    assert seen.dialogs == []


def state_of(daemon: Anpd, digest: str) -> set[str]:
    shown = daemon.ok("protocols", "show", digest, "--json").json()
    return {one["state"] for one in shown["agreements"]}


async def test_a_peer_is_blocked_and_allowed(
    pair: Pair, browser: tuple[BrowserContext, Seen]
) -> None:
    context, seen = browser
    exposed(pair)
    pair.call("shop.order", sku="A", amount=1)
    page = await enter(context, link_to(pair.provider), "#/peers")
    await press(page, page.locator("tbody a").first)
    await press(page, button(page, "Block the peer"))
    await expect(page.get_by_role("dialog", name="Block this peer?")).to_be_visible()
    await press(page, button(page, "No, go back"))
    await expect(page.locator(".title .chip")).not_to_have_text("blocked")
    await press(page, button(page, "Block the peer"))
    await press(page, button(page, "Yes, block it"))
    await expect(announced(page)).to_have_text("The peer is blocked.")
    await expect(page.locator(".title .chip")).to_have_text("blocked")
    words = ("call", pair.provider.address, "shop.order", "-d")
    assert pair.caller.run(*words, '{"sku": "A", "amount": 1}').code != 0
    await press(page, button(page, "Allow the peer"))
    await expect(announced(page)).to_have_text("The peer is allowed.")
    pair.call("shop.order", sku="A", amount=1)
    nothing_else_happened(seen, pair.provider)


async def test_a_call_is_cancelled(
    pair: Pair, browser: tuple[BrowserContext, Seen]
) -> None:
    context, _ = browser
    exposed(pair)
    pair.call("shop.order", sku="A", amount=1)
    page = await enter(context, link_to(pair.caller), "#/peers")
    await press(page, page.locator("tbody a").first)
    await press(page, button(page, "Ask the peer for its capabilities"))
    await press(page, page.get_by_label("Try shop.slow"), "Space")
    await press(page, button(page, "Call shop.slow"))
    slow = card(page, "shop.slow")
    await expect(slow.get_by_role("status")).to_have_text("Calling…")
    await press(page, button(page, "Cancel"))
    await expect(slow.get_by_role("alert")).to_contain_text("You cancelled it.")
    await expect(button(page, "Call shop.slow")).to_be_focused()
    # One that another program of ours began, on its own page.
    body = {"peer": pair.provider.address, "need": "shop.slow", "input": {}}
    with owner_client(pair.caller.home) as owner:
        wait = {"Prefer": "respond-async"}
        begun = owner.post("/v1/calls", json=body, headers=wait).json()["id"]
    await page.goto(f"{page.url.partition('#')[0]}#/calls/{begun}")
    await press(page, button(page, "Cancel the call"))
    await expect(announced(page)).to_have_text("The call is cancelled.")
    await expect(page.locator(".title .chip")).to_have_text("cancelled")
    await page.goto(f"{page.url.partition('#')[0]}#/calls/0123")
    await expect(page.locator("#main")).to_contain_text("does not keep this call")


async def test_the_cookie_alone_acts_on_nothing(
    pair: Pair, browser: tuple[BrowserContext, Seen]
) -> None:
    context, _ = browser
    exposed(pair)
    page = await enter(context, link_to(pair.provider))
    path = f"{page.url.partition('/#')[0]}/v1/capabilities/shop.order/hide"
    for headers, status in (
        ({}, 401),
        ({"Sec-Fetch-Site": "same-site", "X-Anpd-Page": "1"}, 401),
        ({"Origin": "http://127.0.0.1:9", "X-Anpd-Page": "1"}, 403),
    ):
        answer = await context.request.post(path, headers=headers, data={})
        assert answer.status == status
    answer = await context.request.get(path, headers={"X-Anpd-Page": "1"})
    assert answer.status == 405
    listed = pair.provider.ok("capabilities", "list", "--json").json()
    assert all(one["exposed"] for one in listed["capabilities"])


async def test_an_action_that_fails_says_so_in_words(
    pair: Pair, browser: tuple[BrowserContext, Seen]
) -> None:
    context, _ = browser
    exposed(pair)
    page = await enter(context, link_to(pair.provider), "#/daemon/shop")
    await expect(button(page, "Hide shop.order")).to_be_visible()
    file = pair.provider.home / "attachments" / "shop.json"
    kept = file.read_bytes()
    file.write_text("no JSON")
    try:
        await press(page, button(page, "Hide shop.order"))
        await expect(page.get_by_role("alert")).to_contain_text("not valid JSON")
        await expect(button(page, "Hide shop.order")).to_be_visible()
    finally:
        file.write_bytes(kept)


async def test_hostile_words_of_a_peer_are_only_shown(
    pair: Pair, browser: tuple[BrowserContext, Seen]
) -> None:
    context, seen = browser
    exposed(pair)
    pair.call("shop.order", sku=EVIL, amount=1)
    places = [(pair.provider, "#/daemon/shop", "")]
    known = pair.caller.ok("peers", "list", "--json").json()["peers"]
    places.append((pair.caller, f"#/peers/{known[0]['did']}", "Ask the peer"))
    for daemon, where, ask in places:
        page = await enter(context, link_to(daemon), where)
        if ask:
            await page.get_by_role("button", name=re.compile(ask)).click()
        odd = card(page, "shop.odd")
        await expect(odd).to_contain_text("<script>window.pwned = 1</script>")
        await expect(odd.locator(".mark", has_text="RLO").first).to_be_visible()
        await page.get_by_label("Try shop.odd").click()
        await odd.locator("textarea").fill(EVIL)
        await button(page, "Call shop.odd").click()
        answer = odd.get_by_role("region", name="Answer")
        await expect(answer).to_contain_text("<img src=x")
        assert await page.evaluate("window.pwned") is None
        assert await page.locator("main img, main script, main svg").count() == 0
        assert await page.locator("a[href^='javascript']").count() == 0
        assert await page.evaluate(NAMELESS) == []
    assert seen.dialogs == []
    nothing_else_happened(seen, pair.caller)


async def test_hostile_names_are_only_shown(
    pair: Pair, browser: tuple[BrowserContext, Seen]
) -> None:
    context, seen = browser
    exposed(pair)
    pair.call("shop.order", sku="A", amount=1)
    [known] = pair.caller.ok("peers", "list", "--json").json()["peers"]
    page = await enter(context, link_to(pair.caller))
    # Worse than what any daemon lets through: the page does not rely on that.
    schema = {
        "type": "object",
        "properties": {
            EVIL: {"enum": [EVIL], "default": EVIL, "description": EVIL},
            "__proto__": {"$ref": "#/properties/__proto__"},
            "odd": {"type": 7, "anyOf": EVIL, "default": EVIL},
        },
        "required": EVIL,
    }
    offered = {
        "name": EVIL,
        "description": EVIL,
        "input_schema": schema,
        "output_schema": {},
        "read_only": False,
        "idempotent": False,
    }
    offers = {"capabilities": [offered], "protocols": [], "publishes": True}
    peers = {"peers": [{**known, "names": [EVIL], "urls": [f"ws://{EVIL}"]}]}
    await page.route("**/v1/peers/offers*", lambda route: route.fulfill(json=offers))
    await page.route("**/v1/peers*", lambda route: route.fulfill(json=peers))
    base = page.url.partition("#")[0]
    for where in ("peers", f"peers/{known['did']}"):
        await page.goto(f"{base}#/{where}")
        await expect(page.locator("main .mark", has_text="RLO").first).to_be_visible()
    await button(page, "Ask the peer for its capabilities").click()
    await page.locator(".try > summary").click()
    await expect(page.locator(".field select")).to_be_visible()
    await page.locator("form button[type=submit]").click()
    await expect(page.locator("form [role=alert]")).not_to_be_empty()
    for control in ("#block-peer", "#allow-peer"):
        await expect(page.locator(control)).to_be_visible()
    assert await page.evaluate("window.pwned") is None
    assert await page.locator("main img, main script, main svg").count() == 0
    assert await page.locator("a[href^='javascript']").count() == 0
    assert await page.evaluate(WIDE) == []
    assert await page.evaluate(NAMELESS) == []
    assert [one for one in seen.complaints if "status of 4" not in one] == []
    assert seen.dialogs == []


async def test_the_acting_pages_are_readable_on_a_phone_and_in_the_dark(
    pair: Pair,
) -> None:
    exposed(pair)
    call = pair.call("shop.order", sku="A", amount=1)
    peer = pair.caller.ok("peers", "list", "--json").json()["peers"][0]["did"]
    pages = [(pair.provider, "#/daemon/shop")] + [
        (pair.caller, where)
        for where in (f"#/protocols/{call['protocol']}", f"#/peers/{peer}", "#/calls")
    ]
    for theme in THEMES:
        for size in SIZES:
            look = open_browser(viewport=viewport(size), color_scheme=theme)
            async with look as (context, _):
                for daemon, where in pages:
                    page = await enter(context, link_to(daemon), where)
                    ask = page.get_by_role("button", name=re.compile("Ask the peer"))
                    if await ask.count():
                        await ask.click()
                        await expect(card(page, "shop.order")).to_be_visible()
                    for closed in await page.locator(".try > summary").all():
                        await closed.click()
                    assert await page.evaluate(WIDE) == [], (where, size)
                    assert await page.evaluate(PALE) == [], (where, theme)
                    assert await page.evaluate(NAMELESS) == [], where


def exposed(pair: Pair) -> None:
    """Expose everything, whatever a test before did."""
    file = pair.provider.home / "attachments" / "shop.json"
    content = json.loads(file.read_text())
    if content["expose"] != ["*"]:
        file.write_text(json.dumps({**content, "expose": ["*"]}))
        pair.provider.ok("reload")
