"""The pace at which one member may speak; see `Rate`."""

from __future__ import annotations

from anp.interaction.errors import InteractionError, InteractionFault

BURST = 0.25
"Share of a minute's messages that may come at once."


class Rate:
    """A bucket of messages that fills again with time."""

    def __init__(self, per_minute: int) -> None:
        """Begin with a full bucket."""
        self._most = max(1.0, per_minute * BURST)
        self._per_second = per_minute / 60.0
        self._left = self._most
        self._at: float | None = None

    def check(self, now: float) -> None:
        """Take one message; InteractionError if there is none left.

        Args:
            now: Monotonic seconds.
        """
        if self._at is not None:
            earned = max(0.0, now - self._at) * self._per_second
            self._left = min(self._most, self._left + earned)
        self._at = now
        if self._left < 1.0:
            wait = (1.0 - self._left) / self._per_second
            raise InteractionError(
                InteractionFault.TOO_MANY, f"too fast; go on in {wait:.1f} s"
            )
        self._left -= 1.0
