"""Tells what a call waits for at the moment, to whoever began it.

The parts on the way of a call know neither the call nor who asks. So the one that
carries it sets a function in the context, which tasks inherit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

ON_PHASE: ContextVar[Callable[[str], None] | None] = ContextVar(
    "on_phase", default=None
)
"Told what the work at hand waits for, in words; None where nobody asks."


def waits_for(what: str) -> None:
    """Say what the work at hand waits for from now on, in words for people."""
    told = ON_PHASE.get()
    if told is not None:
        told(what)
