"""The owner's queue while negotiations end and are changed under its hands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.sidecar.agreement.queue import OwnerDesk
from anp.sidecar.agreement.rulings import Decision
from anp.sidecar.minds.afterwards import Afterwards
from cache.store import Store
from negotiation.mind import Offer
from tests.cache.samples import NEGOTIATION


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, store: Store, name: str, happens: Callable[[], Any]
) -> None:
    """Let something happen in the event loop while a method of the store runs."""
    loop = asyncio.get_running_loop()
    method = getattr(store, name)

    async def happen() -> None:
        happens()

    def slow(*args: Any, **kwargs: Any) -> Any:
        found = method(*args, **kwargs)
        asyncio.run_coroutine_threadsafe(happen(), loop).result(10)
        return found

    monkeypatch.setattr(store, name, slow)


async def test_a_negotiation_that_ends_while_it_is_looked_for_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path) as store:
        desk = OwnerDesk(
            store, approve="never", approval_wait=1.0, is_listed=lambda _: False
        )
        running = replace(NEGOTIATION, outcome="running", ended=None)
        case = desk.open_case(running, Offer(()))

        def ends() -> None:
            case.record = NEGOTIATION
            desk.close_case(case)

        meanwhile(monkeypatch, store, "negotiation_ids", ends)
        assert await desk.find(NEGOTIATION.id[:6]) == NEGOTIATION
        assert desk.running == {}


async def test_a_decision_undoes_nothing_that_was_recorded_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path) as store:
        desk = OwnerDesk(
            store, approve="never", approval_wait=1.0, is_listed=lambda _: False
        )
        failed = replace(
            NEGOTIATION,
            outcome="rejected",
            hash=None,
            pending={"hash": "ab" * 32, "document": "text", "half": None},
        )
        store.save_negotiation(failed)

        def recorded() -> None:
            afterwards = Afterwards.__new__(Afterwards)
            afterwards._store = store
            afterwards._add(failed.id, 3, ())

        meanwhile(monkeypatch, store, "save_standing", recorded)
        await desk.decide(failed.id, Decision("accept"))
        found = store.negotiation(failed.id)
        assert found is not None
        assert found.decision is not None
        assert found.model_calls == failed.model_calls + 3
