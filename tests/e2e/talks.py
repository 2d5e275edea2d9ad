"""Two daemons in this process of which one gives the other tasks that last."""

from __future__ import annotations

import asyncio
import random
import string
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from anp.channel.channel import Channel
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    TaskChange,
    TaskProgress,
)
from anp.interaction.states import is_terminal
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from anp.sidecar.tasks.delivery.a2a_carrier import A2aCarrier
from anp.sidecar.tasks.known import KnownTask

AGENT = '''
import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Protocol


class Context(Protocol):
    """What this agent uses of a call's context."""


def poem(lines: int) -> Iterator[str]:
    """Write a poem, line by line."""
    for number in range(lines):
        yield f"line {number}\\n"


async def ticks(number: int, pause: float) -> AsyncIterator[int]:
    """Count slowly."""
    for one in range(number):
        await asyncio.sleep(pause)
        yield one


def book(seat: str, context: Context) -> str:
    """Book a seat, when the caller says yes."""
    context.progress(1, 2, "looked at the plan")
    answer = context.ask(f"Is {seat} right?")
    return f"{seat}: {answer}"


def double(number: int) -> dict[str, int]:
    """Double a number."""
    return {"number": number * 2}


def fail(words: str) -> str:
    """Fail."""
    raise ValueError(words)


def wait(file: str, context: Context, picture: bytes = b"") -> str:
    """Wait until the caller gives up; the file says so."""
    open(file, "a").write("began\\n")
    try:
        while True:
            time.sleep(0.02)
            context.progress()
    finally:
        open(file, "a").write("ended\\n")
'''

ASKS = ("x-input-required", "x-auth-required")
"States in which a task waits for its requester."


@dataclass
class Followed:
    """Everything that happened to one task."""

    states: list[str] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    "The parts of the results."

    said: list[str] = field(default_factory=list)
    progress: list[str] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)
    "Pages that were asked for in questions."

    numbers: list[int] = field(default_factory=list)
    end: TaskChange | None = None


@dataclass
class Talks:
    """A daemon that gives tasks and one that does them."""

    caller: Daemon
    provider: Daemon

    @property
    def address(self) -> str:
        return f"{self.provider.url}#{self.provider.did}"

    async def start(self, name: str, /, *, log: str | None = None, **data: Any) -> Any:
        """Start a task with a function of the provider, or another capability."""
        return await self.caller.tasks.start_task(
            self.address,
            capability=name if "." in name else f"agent.{name}",
            parts=[Part.value(data)],
            log=log,
        )

    async def follow(
        self, task: KnownTask, *, after: int = 0, answers: tuple[str, ...] = ()
    ) -> Followed:
        """Watch a task to its end, and answer its questions."""
        seen, left = Followed(), list(answers)
        async for event in self.caller.tasks.watch(task.log, after=after):
            seen.numbers.append(event.number)
            content = event.content
            if isinstance(content, Message) and content.task == task.task.id:
                if content.purpose is MessagePurpose.RESULT:
                    seen.parts += content.parts
                    seen.results += [part.content for part in content.parts]
                elif event.by != task.task.requester:
                    seen.said += [str(part.content) for part in content.parts]
                    seen.urls += filter(None, [content.metadata.get("url")])
            if isinstance(content, TaskProgress) and content.task == task.task.id:
                seen.progress.append(content.text)
            if isinstance(content, TaskChange) and content.task == task.task.id:
                seen.states.append(content.state)
                if content.state in ASKS and left:
                    await self.caller.tasks.send(
                        task.id, [Part.text(left.pop(0))], metadata={}
                    )
                if is_terminal(content.state):
                    seen.end = content
                    return seen
        raise AssertionError("the events ended before the task")


@asynccontextmanager
async def talks_in(
    folder: Path,
    *,
    seconds: float = 90,
    source: str = AGENT,
    attached: AttachmentSpec | None = None,
    more: Sequence[AttachmentSpec] = (),
    provider: Mapping[str, Any] | None = None,
    is_mutual: bool = False,
    **flags: Any,
) -> AsyncIterator[Talks]:
    """Run both in homes of their own.

    Args:
        seconds: Time for all.
        source: The provider's module of functions.
        attached: The provider's agent, where it is no module.
        more: Further attachments of the provider.
        provider: Settings of the provider alone, as `flags`.
        is_mutual: The caller has the provider's agent as well.
        flags: Settings of both by dotted name, with `__` for a dot.
    """
    name = "agent_" + "".join(random.choices(string.ascii_lowercase, k=8))
    (folder / f"{name}.py").write_text(source)
    daemons = []
    for one in ("caller", "provider"):
        home = Home(folder / one)
        home.create()
        own = (provider or {}) if one == "provider" else {}
        settings = {key.replace("__", "."): v for key, v in {**flags, **own}.items()}
        if one == "provider" or is_mutual:
            spec = AttachmentSpec(
                kind="python", name="agent", target=name, cwd=folder, expose=("*",)
            )
            for each in (attached or spec, *more):
                save_attachment(home.attachments, each)
        config = load_config(
            home,
            home_given=True,
            flags={"listen.port": 0, **settings},
            environ={},
            cwd=folder,
        )
        daemons.append(Daemon(home, config))
    async with asyncio.timeout(seconds), AsyncExitStack() as stack:
        for daemon in daemons:
            await stack.enter_async_context(daemon.running())
        yield Talks(*daemons)


def noted_channels(monkeypatch: pytest.MonkeyPatch) -> list[Channel]:
    """Return the channels that carry tasks, as they come."""
    channels: list[Channel] = []

    class Noted(A2aCarrier):
        def __init__(self, sessions: Any, channel: Any, version: Any) -> None:
            channels.append(channel)
            super().__init__(sessions, channel, version)

    monkeypatch.setattr("anp.sidecar.tasks.delivery.without_lines.A2aCarrier", Noted)
    return channels
