"""The function that both agents call in a child process."""

from __future__ import annotations


def twice(number: int) -> dict[str, int]:
    """Return twice a number."""
    return {"twice": number * 2}
