"""Lets a mind write a half, repeatedly if necessary, until it passes its checks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from negotiation.errors import HalfError
from negotiation.mind import HalfSource, Mind, Side
from negotiation.trial.trial import Findings

__all__ = ["MAX_ATTEMPTS", "prepare_half"]

MAX_ATTEMPTS = 3
"Largest number of attempts for one half (DESIGN.md)."


async def prepare_half(
    document: str,
    side: Side,
    *,
    mind: Mind,
    check: Callable[[HalfSource, str], Awaitable[Findings]],
    attempts: int = MAX_ATTEMPTS,
    findings: tuple[str, ...] = (),
    replaces: str = "",
) -> HalfSource:
    """Let `mind` write a half until it passes `check`, three times at most.

    Args:
        check: Gets the half and the document, and returns its findings. A `HalfError`
            from it counts as a finding too.
        findings: Faults of a half in use, for its repair.
        replaces: The text of that half; the same text again is no repair.

    Returns:
        The half, which says how much of the schemas its check could sample.

    Raises:
        HalfError: The last attempt failed as well, or returned the same text again.
        MindError: The mind failed.
    """
    outcome, before = "findings", replaces
    for _ in range(attempts):
        half = await mind.write_half(document, side, findings=findings)
        # A mind without randomness would only repeat the failure.
        if half.text == before:
            break
        before = half.text
        try:
            found = await check(half, document)
        except HalfError as exc:
            outcome, findings = exc.outcome, (str(exc),)
            continue
        if not found.problems:
            return replace(half, samples=found.samples)
        outcome, findings = "findings", found.problems
    raise HalfError(outcome, "; ".join(findings))
