"""The progress of a call in numbers, as clients of MCP want them."""

from __future__ import annotations

from typing import Any


class ProgressCount:
    """Turns the events of a call into numbers that only grow, as MCP wants them.

    Each step of our own is one; a tool's progress counts on from there.
    """

    def __init__(self) -> None:
        self._steps = 0.0
        self._last = 0.0
        self._by_tool = False

    def take(self, data: dict[str, Any]) -> tuple[float, float | None]:
        """Return progress and total after an event with these data."""
        done, total = data.get("progress"), data.get("total")
        whole = None
        if isinstance(done, int | float):
            self._by_tool = True
            value = self._steps + done
            whole = self._steps + total if isinstance(total, int | float) else None
        elif self._by_tool:
            # Only a sign of work between two reports.
            value = self._last
        else:
            value = self._steps = self._steps + 1
        self._last = max(value, self._last + 0.001)
        return self._last, whole
