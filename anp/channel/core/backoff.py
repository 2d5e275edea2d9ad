"""How long to wait before something is tried again. Pure."""

from __future__ import annotations

__all__ = ["next_wait"]


def next_wait(tries: int, *, least: float, most: float, draw: float) -> float:
    """Return the seconds to wait before the next try.

    They double from try to try, and a random half of them keeps the daemons that lost
    the same peer at the same moment from coming back at the same moment.

    Args:
        tries: Tries so far that failed, from 0.
        least: Longest first wait, in seconds.
        most: Longest wait of all, in seconds.
        draw: A random number from 0 to 1.
    """
    longest = min(most, least * 2.0 ** min(tries, 64))
    return longest * (0.5 + 0.5 * draw)
