"""An owner uses the dashboard, with two daemons and a real browser."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("playwright", reason="needs a browser (run by `make test-browser`)")

from playwright.async_api import BrowserContext, Locator, Page, expect

from tests.browser.hands import choose, press, write
from tests.browser.looks import NAMELESS, PALE, SIZES, THEMES, Theme, viewport
from tests.browser.stage import (
    EVIL,
    Seen,
    Stage,
    candidate,
    evil_candidate,
    open_browser,
    order,
    said,
    stage_in,
)
from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.raw_peer import RawPeer, raw_peer

SHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
"Where the pictures go."

expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Give two daemons that run for all tests of this file."""
    with stage_in(tmp_path_factory.mktemp("stage")) as running:
        yield running


@pytest.fixture
async def browser() -> AsyncIterator[tuple[BrowserContext, Seen]]:
    """Give a browser without a past."""
    async with open_browser(viewport=viewport("wide")) as opened:
        yield opened


async def test_a_link_signs_one_browser_in_once_and_leaves_no_trace(
    stage: Stage, browser: tuple[BrowserContext, Seen]
) -> None:
    context, seen = browser
    link = stage.link(stage.provider)
    page = await enter(context, link)
    await expect(heading(page)).to_have_text("Overview")
    assert "code=" not in page.url
    # The code is in no request and in no history entry.
    code = link.partition("code=")[2]
    assert not any(code in url for url in seen.requests)
    (cookie,) = await context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert cookie["expires"] - await page.evaluate("Date.now() / 1000") > 11.9 * 3600
    await press(page, page.get_by_role("button", name="Sign out"))
    await expect(heading(page)).to_have_text("Sign in")
    assert await context.cookies() == []
    await page.goto("about:blank")
    await page.goto(link)
    await expect(heading(page)).to_have_text("Sign in")
    await expect(page.locator("#main")).to_contain_text("anpd dashboard")


@clause("ANP-34")
async def test_a_negotiation_is_watched_live_and_its_rounds_are_compared(
    stage: Stage, browser: tuple[BrowserContext, Seen]
) -> None:
    context, seen = browser
    page = await enter(context, stage.link(stage.caller))
    await press(page, page.get_by_role("link", name="Negotiations", exact=True))
    await expect(heading(page)).to_have_text("Negotiations")
    await expect(page.locator("#link")).to_have_text("Live")
    async with two_rounds(stage.caller) as peer:
        # It appears without a reload, and goes on before the owner's eyes.
        running = page.locator("tbody tr", has_text="running")
        await press(page, running.get_by_role("link", name="place_order"))
        timeline = page.get_by_role("list").filter(has=page.locator(".theirs"))
        await expect(timeline.locator(".theirs")).to_have_count(1)
        await expect(timeline.locator(".ours")).to_have_count(1)
        await expect(page.get_by_text("Our side wants changes")).to_be_visible()
        await page.evaluate("window.stayed = true")
        await peer.send_meta(candidate(2, order("few"), "I would rather have texts"))
        await expect(timeline.locator(".theirs")).to_have_count(2)
        await expect(timeline).to_contain_text("I would rather have texts")
        await peer.hear_meta()
        await peer.send_meta(said(4, "rejected"))
        await expect(page.locator(".title .chip")).not_to_have_text("running")
    assert await page.evaluate("window.stayed") is True
    # The diff of two rounds of the person's choice.
    await page.get_by_label("From", exact=True).select_option(
        label="Proposal 1 · the peer's"
    )
    await page.get_by_label("To", exact=True).select_option(label="Proposal 2 · ours")
    diff = page.locator(".diff")
    await expect(diff.locator("caption")).to_contain_text("removed")
    assert await diff.locator("td.text.old").count() > 0
    assert await diff.locator("td.text.new").count() > 0
    assert await diff.locator("mark").count() > 0
    await expect(
        diff.locator("td.text.new", has_text='"integer"').first
    ).to_be_visible()
    # The raw message is there for who wants it.
    await press(page, page.get_by_text("Raw message").first)
    raw = page.get_by_role("region", name="Raw message 1")
    await expect(raw).to_contain_text('"sequence_id": 0')
    nothing_else_happened(seen, stage.caller)


@clause("ANP-34")
async def test_an_approval_is_decided_and_the_protocol_can_be_read(
    stage: Stage, browser: tuple[BrowserContext, Seen]
) -> None:
    context, seen = browser
    page = await enter(context, stage.link(stage.provider))
    call = stage.call("place_order", amount=7, label="chairs")
    need = page.locator(".needs li", has_text="waits for your decision now")
    await press(page, need.get_by_role("link", name="Open"))
    await expect(
        page.get_by_role("heading", name="Waits for your decision")
    ).to_be_visible()
    await expect(
        page.get_by_text("Our code for it may call these capabilities:")
    ).to_contain_text("place.place_order")
    # By keyboard alone, as a person without a mouse does it.
    await choose(page, "Accept")
    await write(page, "Note (optional)", "good for both")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Accept the proposal")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator(".toast")).to_contain_text("Your decision was stored")
    out, err = call.communicate(timeout=60)
    assert call.returncode == 0, err
    assert json.loads(out)["output"] == {"total": 21, "label": "chairs"}
    await expect(page.locator(".title .chip")).to_have_text("agreed")
    await expect(page.locator("#main")).to_contain_text("good for both")
    # The protocol that came of it: document, code, tests, provenance.
    await press(
        page, page.locator(".facts").get_by_role("link", name=re.compile("…")).last
    )
    document = page.get_by_role("region", name="Protocol text")
    await expect(document).to_contain_text("place_order")
    code = page.get_by_role("region", name="Code for the provider")
    await expect(code).to_contain_text("def handle_request(data)")
    await expect(page.get_by_text("SHA-256 of this code")).to_contain_text(
        re.compile("[0-9a-f]{64}")
    )
    await expect(
        page.locator(".card", has_text="Our code for the provider")
    ).to_contain_text("passed")
    # The latest calls below name it, too.
    origin = page.locator(".facts").get_by_role("link", name=re.compile("negotiation"))
    await expect(origin).to_be_visible()
    nothing_else_happened(seen, stage.provider)


async def test_an_approval_is_rejected_with_a_note_that_the_caller_reads(
    stage: Stage, browser: tuple[BrowserContext, Seen]
) -> None:
    context, _ = browser
    page = await enter(context, stage.link(stage.provider), "#/approvals")
    call = stage.call("stock_level", sku="A-17")
    row = page.locator("tbody tr", has_text="waiting")
    await press(page, row.get_by_role("link", name="stock_level"))
    await choose(page, "Reject")
    await write(page, page.get_by_label("Note (optional)"), "ask again on Monday")
    await press(page, page.get_by_role("button", name="Reject the proposal"))
    await expect(page.locator(".toast")).to_contain_text("Your decision was stored")
    out, _ = call.communicate(timeout=60)
    assert call.returncode == 6
    assert "ask again on Monday" in out


async def test_an_ended_negotiation_is_rescued_by_an_edit_and_a_hint(
    stage: Stage, browser: tuple[BrowserContext, Seen]
) -> None:
    context, _ = browser
    async with two_rounds(stage.caller) as peer:
        await peer.send_meta(said(2, "rejected"))
    newest = stage.caller.ok("negotiations", "list", "--json").json()["negotiations"]
    where = f"#/negotiations/{newest[0]['id']}"
    page = await enter(context, stage.link(stage.caller), where)
    await choose(page, "Edit and send")
    field = page.get_by_label("Your protocol text")
    await expect(field).to_have_value(re.compile("place_order"))
    await write(page, field, "no document")
    await press(page, page.get_by_role("button", name="Send your text"))
    await expect(page.get_by_role("alert")).to_contain_text("cannot be used")
    await write(page, field, order(1))
    await press(page, page.get_by_role("button", name="Send your text"))
    await expect(page.locator(".toast")).to_contain_text("next negotiation")
    await press(page, page.get_by_text("Give a hint to our side"))
    await write(page, page.get_by_label("For our rules or model"), "use place_order")
    await press(page, page.get_by_role("button", name="Give the hint"))
    await expect(page.locator(".toast")).to_contain_text("The hint was stored")
    said_ = stage.caller.ok("negotiations", "decisions", "--json").json()["decisions"]
    assert {one["verdict"] for one in said_ if one["used"] is None} >= {"edit", "hint"}


async def test_markup_and_hidden_characters_of_a_peer_do_nothing_but_show(
    stage: Stage, browser: tuple[BrowserContext, Seen]
) -> None:
    context, seen = browser
    async with raw_peer(stage.caller.url, stage.caller.did) as peer:
        await peer.open()
        await peer.send_meta(evil_candidate(0))
        await peer.hear_meta()
        await peer.send_meta(evil_candidate(2))
        await peer.hear_meta()
    page = await enter(context, stage.link(stage.caller), "#/negotiations")
    await press(page, page.locator("tbody tr a.first").first)
    main = page.locator("#main")
    await expect(main).to_contain_text("<script>window.pwned = 1</script>")
    await expect(main.locator(".mark", has_text="RLO").first).to_be_visible()
    await expect(main.locator(".mark", has_text="ZWSP").first).to_be_visible()
    await expect(main.locator(".mark", has_text="ESC").first).to_be_visible()
    # Every other place that shows it.
    await page.get_by_label("From", exact=True).select_option(value="-1")
    await expect(
        page.get_by_role("region", name=re.compile("Proposal"))
    ).to_contain_text("<img src=x")
    for section in ("", "approvals", "negotiations", "peers", "protocols"):
        await page.goto(f"{page.url.partition('#')[0]}#/{section}")
        await expect(heading(page)).to_be_visible()
    assert await page.evaluate("window.pwned") is None
    assert await page.locator("main img, main script, main svg[onload]").count() == 0
    assert await page.locator("a[href^='javascript']").count() == 0
    # The browser itself would refuse what our code never does.
    refused = await page.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; return false }"
        " catch (error) { return error instanceof TypeError } }"
    )
    assert refused is True
    assert seen.dialogs == []
    assert EVIL not in page.url
    seen.complaints = [one for one in seen.complaints if "TrustedHTML" not in one]
    nothing_else_happened(seen, stage.caller)


async def test_a_page_of_another_origin_gets_nothing_with_the_cookie(
    stage: Stage, browser: tuple[BrowserContext, Seen]
) -> None:
    context, _ = browser
    page = await enter(context, stage.link(stage.provider))
    own = page.url.partition("/#")[0]
    # Another daemon's dashboard is another origin of the same site: the same host.
    other = await enter(context, stage.link(stage.caller))
    for options in (
        "{credentials: 'include'}",
        "{credentials: 'include', mode: 'no-cors'}",
        "{credentials: 'include', headers: {'X-Anpd-Page': '1'}}",
        "{credentials: 'include', method: 'POST', body: '{}'}",
    ):
        outcome = await other.evaluate(
            f"fetch('{own}/v1/info', {options}).then((a) => a.status, () => 'refused')"
        )
        assert outcome == "refused"
    # Their own content security policy is not what refuses: the daemon does.
    answer = await context.request.get(
        f"{own}/v1/info", headers={"Origin": other.url.partition("/#")[0]}
    )
    assert answer.status == 403
    answer = await context.request.get(
        f"{own}/v1/info",
        headers={"X-Anpd-Page": "1", "Sec-Fetch-Site": "same-site"},
    )
    assert answer.status == 401
    assert (await context.request.get(f"{own}/v1/info")).status == 401


async def test_every_control_has_a_name_and_the_keyboard_reaches_the_content(
    stage: Stage, browser: tuple[BrowserContext, Seen]
) -> None:
    context, _ = browser
    page = await enter(context, stage.link(stage.provider))
    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    await expect(skip).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    newest = stage.provider.ok("negotiations", "list", "--json").json()["negotiations"]
    for where in (*SECTIONS[1:], f"negotiations/{newest[0]['id']}"):
        await page.goto(f"{page.url.partition('#')[0]}#/{where}")
        await expect(page.locator("#main")).not_to_have_attribute("aria-busy", "true")
        await expect(heading(page)).to_be_focused()
        assert await page.locator("h1").count() == 1
        assert await page.evaluate(NAMELESS) == []


async def test_the_pages_look_well(stage: Stage) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    kept = stage.provider.ok("protocols", "list", "--json").json()["protocols"]
    agreed = kept[0]["hash"]
    met = stage.caller.ok("negotiations", "list", "--json").json()["negotiations"]
    compared = next(one["id"] for one in met if one["proposals"] >= 3)
    async with raw_peer(stage.caller.url, stage.caller.did) as peer:
        await peer.open()
        await peer.send_meta(evil_candidate(0))
        await peer.hear_meta()
    waits = {
        "overview": "",
        "approvals": "approvals",
        "protocol": f"protocols/{agreed}",
        "peers": "peers",
    }
    met = stage.caller.ok("negotiations", "list", "--json").json()["negotiations"]
    others = {
        "negotiations": "negotiations",
        "negotiation": f"negotiations/{compared}",
        "hostile": f"negotiations/{met[0]['id']}",
        "protocols": "protocols",
        "calls": "calls",
        "spend": "spend",
        "daemon": "daemon",
    }
    for theme in THEMES:
        for size in SIZES:
            call = stage.call("stock_level", sku=f"{theme} {size}")
            where = await waiting(stage.provider)
            asked = {**waits, "approval": f"negotiations/{where}"}
            await take_shots(stage, stage.provider, asked, theme=theme, size=size)
            stage.provider.ok("negotiations", "decide", where, "reject")
            call.communicate(timeout=60)
            await take_shots(stage, stage.caller, others, theme=theme, size=size)


async def take_shots(
    stage: Stage, daemon: Anpd, pages: dict[str, str], *, theme: Theme, size: str
) -> None:
    """Take a picture of each page, and check what a program can see of its looks."""
    look = open_browser(viewport=viewport(size), color_scheme=theme)
    async with look as (context, seen):
        page = await enter(context, stage.link(daemon))
        base = page.url.partition("#")[0]
        for name, where in pages.items():
            await page.goto(f"{base}#/{where}")
            section = "a[aria-current]"
            await expect(page.locator(f"nav {section}")).to_have_attribute(
                "data-section", where.partition("/")[0]
            )
            await expect(page.locator("#main")).not_to_have_attribute(
                "aria-busy", "true"
            )
            await page.screenshot(path=SHOTS / f"{name}-{size}-{theme}.png")
            await page.screenshot(
                path=SHOTS / f"{name}-{size}-{theme}-whole.png", full_page=True
            )
            # Wide things scroll by themselves, the page never does.
            assert await page.evaluate(
                "document.documentElement.scrollWidth <= innerWidth"
            ), (name, size)
            assert await page.evaluate(PALE) == [], (name, theme)
        nothing_else_happened(seen, daemon)


async def waiting(daemon: Anpd) -> str:
    """Return the id of the negotiation that waits for the owner, once one does."""
    async with asyncio.timeout(60):
        while True:
            open_ = daemon.ok("negotiations", "list", "--open", "--json").json()
            for one in open_["negotiations"]:
                if one["waiting"]:
                    return str(one["id"])
            await asyncio.sleep(0.1)


SECTIONS = (
    *("", "approvals", "negotiations", "protocols", "calls", "peers", "spend"),
    "daemon",
)
"The sections of the rail."


async def enter(context: BrowserContext, link: str, where: str = "") -> Page:
    """Open a link as a person does, and go somewhere."""
    page = await context.new_page()
    await page.goto(link)
    await expect(heading(page)).to_have_text("Overview")
    if where:
        await page.goto(page.url.partition("#")[0] + where)
        await expect(heading(page)).not_to_have_text("Overview")
    return page


def heading(page: Page) -> Locator:
    """Return the page's title."""
    return page.get_by_role("heading", level=1)


def nothing_else_happened(seen: Seen, daemon: Anpd) -> None:
    """Check that the pages asked nobody but the daemon, and nothing went wrong."""
    assert {urlsplit(url).hostname for url in seen.requests} == {"127.0.0.1"}
    assert {urlsplit(url).port for url in seen.requests} != {daemon.port}
    assert seen.complaints == []
    assert seen.dialogs == []


@asynccontextmanager
async def two_rounds(daemon: Anpd) -> AsyncIterator[RawPeer]:
    """Give a peer whose proposal was countered; it goes on as the test wants."""
    async with raw_peer(daemon.url, daemon.did) as peer:
        await peer.open()
        await peer.send_meta(candidate(0, order("many"), "an order of chairs"))
        answer = await peer.hear_meta()
        assert answer["status"] == "negotiating", answer
        yield peer
