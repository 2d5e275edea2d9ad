"""Quarantine: a protocol whose code keeps killing its workers is not used. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

__all__ = ["KILLS", "Quarantine", "QuarantineConfig"]

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
