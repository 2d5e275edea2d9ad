"""Runs every client against the A2A face of a daemon, and makes a table of it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.door.tokens import token_book
from anp.sidecar.process.a2a_face import serve_a2a
from tests.a2a.clients.steps import METHODS, PASS, PUSH_TOKEN
from tests.documents import ROOT
from tests.e2e.house import house_in
from tests.e2e.push_receiver import Receiver, receiver
from tests.e2e.test_a2a_face import ASK, SLOW, STREAM
from tests.waiting import until

TOKEN = "a token of a client"

SECONDS = 180
"Longest time of one client."

PUSH_SECONDS = 20
"Longest time until the notifications of a task have come."

HALF = """
def half(number: float) -> dict[str, float]:
    return {"half": number / 2}
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A client as a program."""

    module: str
    "Its module in this folder, or a file of JavaScript."

    form: str
    "Its last argument."

    environment: str = ""
    "Folder of `.venvs` with what it needs; empty for our own environment."

    def missing(self) -> str | None:
        """Return what is not there to run it, or None."""
        if self.module.endswith(".cjs") and shutil.which("node") is None:
            return "node is not installed"
        if self.environment and not self._folder.exists():
            return f"needs an environment: make {self.environment}-env"
        return None

    @property
    def _folder(self) -> Path:
        return ROOT / ".venvs" / self.environment

    def _command(self) -> list[str]:
        if self.module.endswith(".cjs"):
            return ["node", str(Path(__file__).parent / self.module)]
        own = str(self._folder / "bin" / "python")
        python = own if self.environment else sys.executable
        return [python, "-m", f"tests.a2a.clients.{self.module}"]

    async def run(self, url: str) -> dict[str, str]:
        """Return what became of each method."""
        async with receiver(PUSH_TOKEN) as at:
            await at.trust(url)
            found = await self._run(url, at.url)
            if found.get("push") == PASS:
                found["push"] = await _pushed(at)
        return found

    async def _run(self, url: str, push: str) -> dict[str, str]:
        environ = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
        async with asyncio.timeout(SECONDS):
            process = await asyncio.create_subprocess_exec(
                *(*self._command(), url, TOKEN, self.form),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=ROOT,
                env={**environ, "A2A_JS": str(self._folder), "A2A_PUSH": push},
            )
            out, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()[-2000:]
        found: dict[str, str] = json.loads(out)
        if any(_failed(one) for one in found.values()):
            print(errors.decode()[-8000:], file=sys.stderr)
        return found


CLIENTS = {
    "a2a-sdk 1.3 (Python), 1.0": Program("current", "1.0"),
    "a2a-sdk 1.3 (Python), 1.0 HTTP+JSON": Program("current", "1.0 HTTP+JSON"),
    "a2a-sdk 1.3 (Python), 0.3": Program("current", "0.3"),
    "a2a-sdk 0.3.26 (Python)": Program("old", "0.3", "a2a-0.3"),
    "strands-agents 1.62 (Python)": Program("framework", "0.3", "a2a-framework"),
    "google-adk 2.13 (Python)": Program("adk", "1.0", "a2a-adk"),
    "@a2a-js/sdk 1.3 (JavaScript), 1.0": Program("node.cjs", "1.0", "a2a-js"),
    "@a2a-js/sdk 1.3 (JavaScript), 1.0 HTTP+JSON": Program(
        "node.cjs", "1.0 HTTP+JSON", "a2a-js"
    ),
    "@a2a-js/sdk 1.3 (JavaScript), 0.3": Program("node.cjs", "0.3", "a2a-js"),
    "@a2a-js/sdk 0.3.14 (JavaScript)": Program("node.cjs", "old", "a2a-js"),
}
"The clients, by the names in the table."


@asynccontextmanager
async def face_with_token(folder: Path) -> AsyncIterator[str]:
    """Serve the face of a daemon that has what the clients call; yields its URL."""
    more = {"story": STREAM, "order": ASK, "slow": SLOW, "half": HALF}
    flags: dict[str, Any] = {
        "a2a__listen": "127.0.0.1:0",
        "a2a__name": "shop",
        # The receivers of push notifications are on this machine.
        "fetch__allow": ["127.0.0.0/8"],
        "fetch__allow_http_loopback": True,
    }
    async with (
        house_in(folder, talks=True, more=more, seconds=900, **flags) as house,
        serve_a2a(house.provider) as url,
    ):
        assert url is not None
        token_book(house.provider.home).add(A2aCaller(name="client"), TOKEN)
        yield url


def table(found: dict[str, dict[str, str]]) -> str:
    """Return a table in Markdown: clients, methods, and why something is missing."""
    notes: list[str] = []

    def cell(text: str) -> str:
        if text in {"pass", ""}:
            return text
        if text not in notes:
            notes.append(text)
        mark = "fails" if _failed(text) else "–"
        return f"{mark} ({notes.index(text) + 1})"

    rows = [
        [name, *(cell(ended.get(method, "")) for method in METHODS)]
        for name, ended in found.items()
    ]
    head = [["client", *METHODS], ["---"] * (len(METHODS) + 1)]
    lines = [f"| {' | '.join(row)} |" for row in (*head, *rows)]
    told = [one.removeprefix("- ") for one in notes]
    numbered = [f"{number}. {one}" for number, one in enumerate(told, 1)]
    return "\n".join([*lines, "", *numbered])


async def _pushed(at: Receiver) -> str:
    """Return what became of the notifications of a task that was completed."""
    try:
        async with asyncio.timeout(PUSH_SECONDS):
            await until(lambda: "completed" in json.dumps(at.came).lower())
    except TimeoutError:
        return f"{len(at.came)} came; not believed: {at.problems}"
    return PASS if not at.problems else f"not believed: {at.problems}"


def _failed(text: str) -> bool:
    return text != "pass" and not text.startswith("- ")
