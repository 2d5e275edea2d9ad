"""Two daemons with something to show, a peer that means ill, and a browser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from anp.sidecar.home.home import Home
from cache.records.negotiations import ModelCallRecord, SpendRecord
from cache.store import Store
from negotiation.llm.asking.budget import utc_day
from negotiation.mind import Demand
from negotiation.need import Need
from negotiation.rules.rules import propose
from tests.e2e.daemons import Anpd

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
"Names under which a browser of the system is looked for."

SOURCE = '''
from typing import TypedDict


class Order(TypedDict):
    total: int
    label: str


def place_order(amount: int, label: str) -> Order:
    """Place an order and return what it comes to."""
    return {"total": amount * 3, "label": label}


def stock_level(sku: str) -> int:
    """Tell how many of an article are in stock."""
    return len(sku) * 7
'''

EVIL = (
    "<script>window.pwned = 1</script>"
    "<img src=x onerror='window.pwned = 2'>"
    "<svg onload='window.pwned = 3'></svg>"
    "[click](javascript:window.pwned=4)"
    "<a href='javascript:window.pwned=5'>me</a>"
    "\u202egnp.exe\u202c zero\u200bwidth \x1b[31mred"
)
"Markup, a link, hidden and turning characters, as a peer would smuggle them."


@dataclass(slots=True)
class Seen:
    """Errors and requests of the browser that a test does not look at itself."""

    requests: list[str] = field(default_factory=list)
    "Every URL it asked for."

    complaints: list[str] = field(default_factory=list)
    "Errors of scripts and of the content security policy."

    dialogs: list[str] = field(default_factory=list)
    "Dialogs that a page opened."


class Stage:
    """A caller, and a provider whose owner is asked about every agreement.

    Both have a shop; the caller agrees and counters without asking its owner.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.caller = Anpd(folder / "caller")
        self.provider = Anpd(folder / "provider", negotiation__approve="always")

    def start(self) -> None:
        """Start both, and attach the shop."""
        (self.folder / "shop.py").write_text(SOURCE)
        self.spend(days=6)
        self.provider.start()
        self.caller.start()
        for daemon in (self.provider, self.caller):
            for name in ("place_order", "stock_level"):
                daemon.ok(
                    *("attach", "python", f"shop:{name}"),
                    *("--expose", "*", "--name", name.partition("_")[0]),
                    cwd=self.folder,
                )

    def spend(self, days: int) -> None:
        """Give the caller a past of model calls; a model is no part of this play."""
        home = Home(self.caller.home)
        home.create()
        with closing(Store(home.store)) as store:
            for ago in range(days):
                at = time.time() - ago * 86_400
                day = utc_day(at)
                tokens = 900 + 700 * (ago % 3)
                call = ModelCallRecord(
                    id=f"call{ago}",
                    day=day,
                    at=at,
                    account="owner",
                    peer="did:key:zDnaexample",
                    negotiation_id=None,
                    step="judge" if ago % 2 else "write_half",
                    model="some-model",
                    outcome="ok",
                    input_tokens=tokens,
                    output_tokens=tokens // 4,
                    estimated=False,
                    ms=1_450.0,
                    cost=0.0,
                )
                account = SpendRecord(day, "owner", 3, 3 * tokens, tokens)
                store.save_spend(account, call)

    def stop(self) -> None:
        """Stop both."""
        self.caller.stop()
        self.provider.stop()

    def link(self, daemon: Anpd) -> str:
        """Return a fresh link to a dashboard, as a user gets it."""
        return daemon.ok("dashboard").stdout.strip()

    def call(self, need: str, **arguments: Any) -> subprocess.Popen[str]:
        """Begin a call in a process of its own; it waits for the owner."""
        return begun_call(self.caller, self.provider.address, need, **arguments)


def begun_call(
    caller: Anpd, address: str, need: str, **arguments: Any
) -> subprocess.Popen[str]:
    """Begin a call in a process of its own."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "anp", "--home", str(caller.home)),
            *("call", address, need),
            *("-d", json.dumps(arguments), "--json"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )


@contextmanager
def stage_in(folder: Path) -> Iterator[Stage]:
    """Run both daemons for a block."""
    stage = Stage(folder)
    try:
        stage.start()
        yield stage
    finally:
        stage.stop()


@asynccontextmanager
async def open_browser(**options: Any) -> AsyncIterator[tuple[BrowserContext, Seen]]:
    """Run the system's browser for a block, and note what it does.

    Args:
        options: Of the context: viewport, colour scheme…
    """
    async with async_playwright() as playwright:
        browser: Browser = await playwright.chromium.launch(
            executable_path=_browser(), args=["--disable-dev-shm-usage"]
        )
        context = await browser.new_context(**options)
        context.set_default_timeout(20_000)
        seen = Seen()
        context.on("request", lambda request: seen.requests.append(request.url))
        context.on("page", lambda page: _watch(page, seen))
        try:
            yield context, seen
        finally:
            await browser.close()


def _watch(page: Page, seen: Seen) -> None:
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on(
        "console",
        lambda line: (
            seen.complaints.append(line.text)
            if line.type == "error" and "401" not in line.text
            else None
        ),
    )

    async def dismiss(dialog: Any) -> None:
        seen.dialogs.append(dialog.message)
        await dialog.dismiss()

    page.on("dialog", dismiss)


def _browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert found is not None, "no browser; `make test-browser` says how to install one"
    return found


def order(amount: object) -> str:
    """Return a document for `place_order`, as a peer writes one for this data."""
    return propose(Demand(Need("place_order"), {"amount": amount, "label": "chairs"}))


def candidate(number: int, text: str, summary: str = "") -> bytes:
    """Return a proposal as a peer sends it."""
    return _message(number, text, summary, "negotiating")


def evil_candidate(number: int) -> bytes:
    """Return a proposal that is meant for the eyes of the owner's browser."""
    text = order("many").replace("# ", f"# {EVIL} ", 1) + f"\n{EVIL}\n"
    return candidate(number, text, EVIL)


def said(number: int, status: str) -> bytes:
    """Return a peer's last word."""
    return _message(number, "", "that is all", status)


def _message(number: int, text: str, summary: str, status: str) -> bytes:
    message = {
        "action": "protocolNegotiation",
        "sequenceId": number,
        "candidateProtocols": text,
        "modificationSummary": summary,
        "status": status,
    }
    return json.dumps(message).encode()
