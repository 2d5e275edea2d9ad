"""Tries a half in a worker before it may be used, whoever wrote it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator

from anp.sidecar.halves.loaded import LoadedHalf, load_half
from cache.records.records import hash_text
from negotiation.document import read_document
from negotiation.mind import HalfSource, Side
from negotiation.trial.acceptance import Findings, Validator, check_half
from sandbox.pool.pool import Sandbox

__all__ = ["check_in_worker", "on_trial"]


@contextlib.asynccontextmanager
async def on_trial(
    sandbox: Sandbox, half: HalfSource, text: str, *, name: str, deadline: float
) -> AsyncIterator[LoadedHalf]:
    """Load a half into a worker for a trial, and unload it afterwards.

    Args:
        text: The document.
        name: On whose behalf; trials of one name share a quarantine.
        deadline: Seconds of its own time that each call of the half may take.

    Raises:
        HalfError: The source was refused or did not load.
    """
    key = f"trial:{name}:{secrets.token_hex(4)}"
    try:
        yield await load_half(
            sandbox,
            key,
            half.text,
            origin=half.origin,
            # Apart from its use: a failed attempt must not quarantine the next.
            protocol=f"trial:{hash_text(text)}",
            peer=name,
            deadline=deadline,
        )
    finally:
        await sandbox.unload(key)


async def check_in_worker(
    half: HalfSource,
    text: str,
    side: Side,
    *,
    sandbox: Sandbox,
    validator: Validator,
    name: str,
    deadline: float,
) -> Findings:
    """Try a half in a worker of its own; see `check_half` and `on_trial`."""
    async with on_trial(sandbox, half, text, name=name, deadline=deadline) as runner:
        return await check_half(
            half, read_document(text), side, runner=runner, validator=validator
        )
