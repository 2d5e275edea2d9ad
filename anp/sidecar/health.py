"""Whether the daemon can do its work: what `/livez` and `/readyz` answer.

Both are open to whoever reaches the local API, also without its token, so they tell
states and nothing else: no names of files, no DIDs, no words of others.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from cache.errors import CacheError

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["Part", "Readiness", "State", "judge", "readiness"]

STORE_TIMEOUT = 2.0
"Seconds within which the store has to answer."


class State(StrEnum):
    """How a part is doing."""

    OK = "ok"
    "It works."

    DEGRADED = "degraded"
    "Some things do not work; calls that do not need them do."

    DOWN = "down"
    "Calls do not work."


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the daemon."""

    name: str
    "Which: `identity`, `store`, `listener`, `sandbox`, `attachments` or `model`."

    state: State
    "How it is doing."

    text: str
    "In words, for people; without secrets."


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether calls can be taken."""

    status: str
    "`ok`, `degraded`, `not ready` or `stopping`."

    parts: tuple[Part, ...]
    "Each part."

    @property
    def ready(self) -> bool:
        """Whether traffic may come; `degraded` is ready."""
        return self.status in {"ok", "degraded"}

    def view(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "status": self.status,
            "parts": {
                part.name: {"state": part.state.value, "text": part.text}
                for part in self.parts
            },
        }


def judge(parts: tuple[Part, ...], *, stopping: bool) -> Readiness:
    """Return what the parts come to. Pure."""
    states = {part.state for part in parts}
    if stopping:
        return Readiness("stopping", parts)
    if State.DOWN in states:
        return Readiness("not ready", parts)
    return Readiness("degraded" if State.DEGRADED in states else "ok", parts)


async def readiness(daemon: Daemon) -> Readiness:
    """Look at every part of a running daemon."""
    parts = (
        Part("identity", State.OK, "the key is loaded"),
        await _store(daemon),
        _listener(daemon),
        _sandbox(daemon),
        _attachments(daemon),
        _model(daemon),
    )
    return judge(parts, stopping=daemon.observer.flights.closed)


async def _store(daemon: Daemon) -> Part:
    try:
        async with asyncio.timeout(STORE_TIMEOUT):
            await asyncio.to_thread(daemon.store.peer, "did:key:-")
    except TimeoutError:
        return Part("store", State.DOWN, f"no answer in {STORE_TIMEOUT:g} s")
    except CacheError:
        # What the disk says may hold paths; the log has it.
        return Part("store", State.DOWN, "it cannot be read; run `anpd doctor`")
    return Part("store", State.OK, "it can be read")


def _listener(daemon: Daemon) -> Part:
    if daemon.links.listening:
        return Part("listener", State.OK, "peers can connect")
    return Part("listener", State.DOWN, "peers cannot connect")


def _sandbox(daemon: Daemon) -> Part:
    level = daemon.sandbox.isolation.level
    if level == "reduced" and daemon.config.sandbox.level == "full":
        text = "isolation is reduced: only code written by rules runs"
        return Part("sandbox", State.DEGRADED, text)
    return Part("sandbox", State.OK, f"isolation is {level}")


def _attachments(daemon: Daemon) -> Part:
    known = [one for _, one in daemon.exposure.attachments.values()]
    sick = sum(not attachment.healthy for attachment in known)
    text = f"{len(known) - sick} of {len(known)} healthy"
    if not sick:
        return Part("attachments", State.OK, text)
    # With one of several away the others still serve.
    state = State.DOWN if sick == len(known) else State.DEGRADED
    return Part("attachments", state, f"{text}; `anpd capabilities list` tells more")


def _model(daemon: Daemon) -> Part:
    if daemon.endpoint is None:
        return Part("model", State.OK, "none is set, and none is needed")
    if daemon.observer.model_answers:
        return Part("model", State.OK, "it answered, or was not asked yet")
    return Part("model", State.DEGRADED, "the last request got no answer")
