"""Several daemons in this process, some of which offer the same function."""

from __future__ import annotations

import asyncio
import random
import string
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from anp.identity.address import parse_peer
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from cache.records.peers import PeerState

WEATHER = '''
from typing import Protocol


def now(city: str) -> dict[str, str]:
    """Tell the weather of a city."""
    return {{"city": city, "by": "{name}"}}


def fail(words: str) -> str:
    """Fail."""
    raise ValueError(words)


class Context(Protocol):
    def reject(self, reason: str) -> None: ...


def choosy(by: str, context: Context) -> dict[str, str]:
    """Do it for whoever is meant alone."""
    if by != "{name}":
        context.reject("{name} is not {{}}".format(by))
    return {{"by": "{name}"}}
'''


@asynccontextmanager
async def neighbours_in(
    folder: Path,
    *names: str,
    caller: str = "caller",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    seconds: float = 90,
) -> AsyncIterator[dict[str, Daemon]]:
    """Run daemons in homes of their own, each but the caller with `weather.now`.

    Args:
        settings: Further settings by dotted name, of each daemon.
        seconds: Time for all.
    """
    found: dict[str, Daemon] = {}
    for name in (caller, *names):
        home = Home(folder / name)
        home.create()
        if name != caller:
            module = f"{name}_" + "".join(random.choices(string.ascii_lowercase, k=8))
            (folder / f"{module}.py").write_text(WEATHER.format(name=name))
            spec = AttachmentSpec(
                kind="python",
                name="weather",
                target=module,
                cwd=folder,
                expose=("*",),
            )
            save_attachment(home.attachments, spec)
        more = (settings or {}).get(name, {})
        config = load_config(
            home,
            home_given=True,
            flags={"listen.port": 0, **more},
            environ={},
            cwd=folder,
        )
        found[name] = Daemon(home, config)
    async with asyncio.timeout(seconds), AsyncExitStack() as stack:
        for daemon in found.values():
            await stack.enter_async_context(daemon.running())
        yield found


def address(daemon: Daemon) -> str:
    """Return how a daemon is called."""
    return f"{daemon.url}#{daemon.did}"


async def introduce(caller: Daemon, **others: Daemon) -> None:
    """Have a daemon know and allow others by name."""
    for name, other in others.items():
        await caller.policy.rule(other.did, PeerState.ALLOWED)
        await asyncio.to_thread(caller.book.add, name, parse_peer(address(other)))
