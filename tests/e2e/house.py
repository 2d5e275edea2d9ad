"""Two daemons in this process, and calls between them, to see that they are well."""

from __future__ import annotations

import asyncio
import random
import string
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.calls.call import CallRequest, CallResult, Mode
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from negotiation.need import Capability, Need
from tests.e2e.raw_peer import raw_peer

EVIL = ['a"b', "c'd", "e\nf", "__import__('os')._exit(7)", '"""', "{x}\\", "}}#"]
SOURCE = f"""
from typing import TypedDict

Odd = TypedDict("Odd", {{name: int for name in {EVIL!r}}})


def twice(number: int) -> dict[str, int]:
    return {{"twice": number * 2}}


def odd(item: Odd) -> Odd:
    return {{name: value + 1 for name, value in item.items()}}


def huge(size: int) -> dict[str, str]:
    return {{"text": "x" * size}}


calls = []


def count(step: int) -> dict[str, int]:
    calls.append(step)
    return {{"calls": len(calls), "step": step}}


def chat(text: str) -> str:
    return "You said: " + text.splitlines()[-1]
"""


class House:
    """A daemon that provides, and one that calls it and has to be left alone."""

    def __init__(self, caller: Daemon, provider: Daemon) -> None:
        self.caller = caller
        self.provider = provider

    async def call(self, name: str, **arguments: Any) -> Any:
        """Call a function of the provider and return its output."""
        return (await self.result(name, arguments)).output

    async def result(
        self,
        name: str,
        arguments: dict[str, Any],
        mode: Mode = Mode.AUTO,
        *,
        protocol: str | None = None,
    ) -> CallResult:
        """Call a function of the provider and return all that is said of it."""
        request = CallRequest(
            peer=f"{self.provider.url}#{self.provider.did}",
            need=Need(name),
            arguments=arguments,
            mode=mode,
            protocol=protocol,
        )
        return await self.caller.caller.call(request)

    async def others_are_served(self) -> None:
        """Check that a call goes through."""
        number = random.randint(1, 10**6)
        assert await self.call("twice", number=number) == {"twice": 2 * number}

    def peer(self) -> Any:
        """Connect a raw peer to the provider."""
        return raw_peer(self.provider.url, self.provider.did)


def _nothing(peer: str | None = None) -> list[tuple[Capability, str]]:
    return []


def _daemon(home: Home, folder: Path, settings: dict[str, Any]) -> Daemon:
    # Calls negotiate unless a test says otherwise.
    flags = {"listen.port": 0, "consensus.use": False, **settings}
    config = load_config(home, home_given=True, flags=flags, environ={}, cwd=folder)
    return Daemon(home, config)


@asynccontextmanager
async def house_in(
    folder: Path,
    *,
    talks: bool = False,
    documents: bool = False,
    more: Mapping[str, str] | None = None,
    seconds: float = 120,
    **flags: Any,
) -> AsyncIterator[House]:
    """Run both in homes of their own.

    Args:
        talks: Whether `chat` of the provider is conversational.
        more: Further functions of the provider: their sources by name.
        documents: Whether the provider publishes the documents of its capabilities.
        seconds: Time for all.
        flags: Settings of both by dotted name, with `__` for a dot.
    """
    settings = {name.replace("__", "."): value for name, value in flags.items()}
    name = "made_" + "".join(random.choices(string.ascii_lowercase, k=8))
    (folder / f"{name}.py").write_text("\n\n".join([SOURCE, *(more or {}).values()]))
    homes = Home(folder / "caller"), Home(folder / "provider")
    for home in homes:
        home.create()
    for function in ("twice", "odd", "huge", "count", "chat", *(more or {})):
        save_attachment(
            homes[1].attachments,
            AttachmentSpec(
                kind="python",
                name=function,
                target=f"{name}:{function}",
                cwd=folder,
                expose=("*",),
                conversational=("chat",) if function == "chat" and talks else (),
            ),
        )
    caller, provider = (_daemon(home, folder, settings) for home in homes)
    if not documents:
        provider.consensus.published.all = _nothing  # type: ignore[method-assign]
    async with asyncio.timeout(seconds), caller.running(), provider.running():
        yield House(caller, provider)
