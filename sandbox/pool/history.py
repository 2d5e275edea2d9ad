"""Outcomes of the runs of each protocol, for the owner. Pure."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

from sandbox.errors import SandboxError

__all__ = ["History", "Runs"]

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
