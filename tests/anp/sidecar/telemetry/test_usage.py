"""Counting calls: many in one write, and none lost when a write fails."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from anp.sidecar.telemetry.usage import UseCounter, Way
from cache.errors import StoreUnavailable
from cache.store import Store
from tests.cache.samples import DOCUMENT, PROVIDER_AGREEMENT, PROVIDER_HALF


async def test_counts_are_written_together_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path / "s") as store:
        agreement = store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
        written = asyncio.Event()
        real, loop, times = store.add_usage, asyncio.get_running_loop(), 0

        def seen(*args: Any) -> None:
            nonlocal times
            real(*args)
            times += 1
            loop.call_soon_threadsafe(written.set)

        monkeypatch.setattr(store, "add_usage", seen)
        uses = UseCounter(store, interval=0.01)
        for _ in range(500):
            uses.count(Way.SERVED, DOCUMENT.hash, agreement)
            uses.count(Way.FAILED, None)
        async with asyncio.timeout(10):
            await written.wait()
        await uses.close()
        assert times == 1
        assert (store.usage().served, store.usage().failed) == (500, 500)
        assert store.usage(DOCUMENT.hash).served == 500
        [stored] = store.agreements_of(DOCUMENT.hash)
        assert stored.uses == 500
        assert stored.last_used is not None


async def test_a_write_that_fails_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path / "s") as store:
        agreement = store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
        uses = UseCounter(store, interval=1000)
        real = store.add_usage

        def full(*_: Any) -> None:
            raise StoreUnavailable("no space left")

        uses.count(Way.SERVED, DOCUMENT.hash, agreement)
        monkeypatch.setattr(store, "add_usage", full)
        await uses.flush()
        uses.count(Way.SERVED, DOCUMENT.hash, agreement)
        monkeypatch.setattr(store, "add_usage", real)
        await uses.close()
        assert store.usage(DOCUMENT.hash).served == 2
        assert store.agreements_of(DOCUMENT.hash)[0].uses == 2
