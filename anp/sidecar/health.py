"""The health of the daemon, as `/readyz` tells it.

It is open to whoever reaches the local API, also without its token, so it tells
states and nothing else: no names of files, no DIDs, no words of others.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from anp.sidecar.daemon import Daemon
from cache.condition import StoreFault

STORE_TIMEOUT = 2.0
"Seconds within which the store has to answer."


class Condition(StrEnum):
    """The condition of a part."""

    OK = "ok"
    "It works."

    DEGRADED = "degraded"
    "Some things do not work; calls that do not need them do."

    DOWN = "down"
    "Calls do not work."


@dataclass(frozen=True, slots=True)
class HealthPart:
    """One part of the daemon."""

    state: Condition
    text: str
    "In words, for people; without secrets."


@dataclass(frozen=True, slots=True)
class Readiness:
    """The readiness of the daemon for calls; `degraded` can take them, too."""

    status: Literal["ok", "degraded", "not ready", "stopping"]
    parts: dict[str, HealthPart]
    "Identity, store, listener, sandbox, attachments and model."

    @property
    def ready(self) -> bool:
        """True when traffic may come; `degraded` is ready."""
        return self.status in {"ok", "degraded"}


def judge(parts: dict[str, HealthPart], *, stopping: bool) -> Readiness:
    """Return what the parts come to. Pure."""
    states = {part.state for part in parts.values()}
    if stopping:
        return Readiness("stopping", parts)
    if Condition.DOWN in states:
        return Readiness("not ready", parts)
    return Readiness("degraded" if Condition.DEGRADED in states else "ok", parts)


async def readiness(daemon: Daemon) -> Readiness:
    """Look at every part of a running daemon."""
    parts = {
        "identity": HealthPart(Condition.OK, "the key is loaded"),
        "store": await _store(daemon),
        "listener": _listener(daemon),
        "sandbox": _sandbox(daemon),
        "attachments": _attachments(daemon),
        "model": _model(daemon),
    }
    found = judge(parts, stopping=daemon.observer.flights.closed)
    daemon.was_ready = found.ready
    return found


async def _store(daemon: Daemon) -> HealthPart:
    try:
        async with asyncio.timeout(STORE_TIMEOUT):
            found = await asyncio.to_thread(daemon.store_watch.look)
    except TimeoutError:
        return HealthPart(Condition.DOWN, f"no answer in {STORE_TIMEOUT:g} s")
    state = Condition.DEGRADED if found.works else Condition.DOWN
    match found.fault:
        # The text of the condition may hold paths; `anpd doctor` shows it.
        case StoreFault.AWAY:
            text = "it cannot be used; calls on open channels go on"
        case StoreFault.FULL:
            text = "it has no room for changes; agreements that it holds are used"
        case StoreFault.DAMAGED:
            text = "it is damaged, or some of its records are"
        case StoreFault.LOW:
            text = "it works, and has little room left"
        case None:
            return HealthPart(Condition.OK, "it takes and gives rows")
    return HealthPart(state, f"{text}; run `anpd doctor`")


def _listener(daemon: Daemon) -> HealthPart:
    if not daemon.links.listening:
        return HealthPart(Condition.DOWN, "peers cannot connect")
    places = daemon.links.admission.occupancy
    taken = (
        f"{places.links} of {places.max_links} connections are taken, "
        f"{places.unlisted} of at most {places.max_unlisted} by unlisted peers"
    )
    if not places.listed_can_connect:
        return HealthPart(Condition.DOWN, f"no more peers can connect: {taken}")
    if not places.unlisted_can_connect:
        text = f"only listed peers can connect: {taken}"
        return HealthPart(Condition.DEGRADED, text)
    return HealthPart(Condition.OK, f"peers can connect: {taken}")


def _sandbox(daemon: Daemon) -> HealthPart:
    level = daemon.sandbox.isolation.level
    if level == "reduced" and daemon.sandbox.config.required_level == "full":
        text = "isolation is reduced: only code written by rules runs"
        return HealthPart(Condition.DEGRADED, text)
    return HealthPart(Condition.OK, f"isolation is {level}")


def _attachments(daemon: Daemon) -> HealthPart:
    known = [one for _, one in daemon.exposure.attachments.values()]
    sick = sum(not attachment.healthy for attachment in known)
    text = f"{len(known) - sick} of {len(known)} healthy"
    if not sick:
        return HealthPart(Condition.OK, text)
    # With one of several away the others still serve.
    state = Condition.DOWN if sick == len(known) else Condition.DEGRADED
    return HealthPart(state, f"{text}; `anpd capabilities list` tells more")


def _model(daemon: Daemon) -> HealthPart:
    if daemon.endpoint is None:
        return HealthPart(Condition.OK, "none is set, and none is needed")
    if daemon.observer.model_answers:
        return HealthPart(Condition.OK, "it answered, or was not asked yet")
    return HealthPart(Condition.DEGRADED, "the last request got no answer")
