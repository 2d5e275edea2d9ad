"""Outcomes of the runs of each protocol, and quarantine for code that kills. Pure."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

from sandbox.errors import SandboxError

MAX_FAILURES = 5
"Failure reports that are kept for a protocol."

MAX_LOG = 4_000
"Characters of a protocol's log that are kept."

MAX_PROTOCOLS = 1_000
"Protocols that are remembered; the longest unused are dropped first."


@dataclass(slots=True)
class Runs:
    """The runs of one protocol since the daemon started."""

    outcomes: Counter[str] = field(default_factory=Counter)
    "Number of runs by outcome; `ok` for a value."

    failures: deque[dict[str, Any]] = field(
        default_factory=lambda: deque(maxlen=MAX_FAILURES)
    )
    "The latest failure reports, oldest first."

    log: str = ""
    "The end of the text that its code printed and logged."


class History:
    """Counts outcomes and keeps the latest reports of a limited number of protocols."""

    def __init__(self) -> None:
        self._protocols: OrderedDict[str, Runs] = OrderedDict()
        self.outcomes: Counter[str] = Counter()
        "Outcomes of all protocols, including the dropped ones."

    def succeeded(self, protocol: str) -> None:
        """Count a run that returned a value."""
        self._runs(protocol).outcomes["ok"] += 1
        self.outcomes["ok"] += 1

    def failed(self, protocol: str, error: SandboxError) -> None:
        """Count a failed run, and keep its report."""
        runs = self._runs(protocol)
        runs.outcomes[error.outcome] += 1
        runs.failures.append(error.report())
        self.outcomes[error.outcome] += 1

    def logged(self, protocol: str, text: str) -> None:
        """Keep the end of the text that a protocol's code printed."""
        runs = self._runs(protocol)
        runs.log = (runs.log + text)[-MAX_LOG:]

    def of(self, protocol: str) -> Runs:
        """Return the runs of a protocol; empty if there are none."""
        return self._protocols.get(protocol) or Runs()

    def _runs(self, protocol: str) -> Runs:
        runs = self._protocols.get(protocol)
        if runs is None:
            runs = self._protocols[protocol] = Runs()
            if len(self._protocols) > MAX_PROTOCOLS:
                self._protocols.popitem(last=False)
        else:
            self._protocols.move_to_end(protocol)
        return runs


KILLS = frozenset({"timeout", "memory", "forbidden_syscall", "crashed", "bad_frame"})
"Outcomes in which a worker is lost."


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineConfig:
    """Limits of the quarantine."""

    kills: int = 3
    "Kills within the window that start a quarantine."

    window: float = 600.0
    "Seconds in which kills are counted together."

    duration: float = 3600.0
    "Seconds that it lasts, unless the owner ends it earlier."

    max_remembered: int = 10_000
    "Pairs of code and peer that are remembered; the oldest are dropped first."


class Quarantine:
    """Counts kills by code and peer (SANDBOX.md, Worker model and Layer 3).

    One text of a protocol's code is quarantined, so a repaired text starts afresh.
    One peer can cause a quarantine only for itself, since its inputs may be the cause;
    kills from two peers quarantine the code for all. `now` is seconds on one monotonic
    clock.
    """

    def __init__(self, config: QuarantineConfig | None = None) -> None:
        self._config = config or QuarantineConfig()
        self._kills: dict[tuple[str, str, str], deque[float]] = {}
        self._until: dict[tuple[str, str, str | None], tuple[float, str]] = {}

    def killed(
        self, protocol: str, code: str, peer: str, outcome: str, *, now: float
    ) -> str | None:
        """Count a kill; return the reason of the quarantine that it starts, or None.

        Args:
            code: Identifies the text.
            outcome: The outcome with which the worker ended.
        """
        config = self._config
        times = self._kills.pop((protocol, code, peer), None)
        times = deque(maxlen=config.kills) if times is None else times
        times.append(now)
        self._kills[protocol, code, peer] = times
        while len(self._kills) > config.max_remembered:
            del self._kills[next(iter(self._kills))]
        since = now - config.window
        counts = {
            whose: sum(moment > since for moment in moments)
            for (of, text, whose), moments in self._kills.items()
            if (of, text) == (protocol, code)
        }
        peers = [whose for whose, count in counts.items() if count]
        if sum(counts.values()) < config.kills:
            return None
        whom = None if len(peers) > 1 else peer
        if (protocol, code, whom) in self._until:
            return None
        reason = (
            f"{sum(counts.values())} workers were lost within {config.window:g} s, "
            f"the last one by {outcome}"
        )
        self._until[protocol, code, whom] = (now + config.duration, reason)
        return reason

    @property
    def is_empty(self) -> bool:
        """True if there certainly is no reason for anything."""
        return not self._until

    def reason(
        self,
        protocol: str,
        *,
        code: str | None = None,
        peer: str | None = None,
        now: float,
    ) -> str | None:
        """Return why `peer` may not use the code now, or None.

        Args:
            code: None includes any code of the protocol.
            peer: None stands for any peer.
        """
        for key in [key for key, (until, _) in self._until.items() if until <= now]:
            del self._until[key]
        for (of, text, whom), (_, reason) in self._until.items():
            if (
                of == protocol
                and code in {None, text}
                and (peer is None or whom in {None, peer})
            ):
                return reason
        return None

    def release(self, protocol: str) -> bool:
        """End it for all code of a protocol and forget the kills; False if none."""
        for key in [key for key in self._kills if key[0] == protocol]:
            del self._kills[key]
        ended = [key for key in self._until if key[0] == protocol]
        for one in ended:
            del self._until[one]
        return bool(ended)
