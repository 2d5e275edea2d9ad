"""A protocol whose code kills its workers: refused, told, and released by the owner."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from anp.errors import CallError
from anp.sidecar.library.views import Library
from cache.records.records import AgreementRole
from tests.e2e.house import House, house_in

SPIN = """
def handle_request(data):
    while True:
        pass
"""


async def protocol_with(house: House, source: str) -> str:
    """Have the provider's half of `twice` replaced, as if a model had written it."""
    await house.call("twice", number=1)
    store = house.provider.store
    [agreement] = [
        one for one in store.all_agreements() if one.role is AgreementRole.PROVIDER
    ]
    [half] = store.halves(agreement.hash)
    document = store.document(agreement.hash)
    assert document is not None
    broken = replace(half, source=source, revision=0, origin="model")
    store.save_agreement(document, broken, agreement)
    # The next call opens a channel anew and loads it.
    await asyncio.gather(*(link.close() for link in house.provider.links._links))
    return agreement.hash


async def test_a_protocol_whose_code_never_ends_is_quarantined_and_released(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with house_in(tmp_path, sandbox__call_timeout=0.2) as house:
        digest = await protocol_with(house, SPIN)
        for _ in range(3):
            with pytest.raises(CallError):
                await house.call("twice", number=2)
        sandbox = house.provider.sandbox
        assert sandbox.quarantined(digest, peer=house.caller.did)
        words = "protocol quarantined"
        told = [r.message for r in caplog.records if words in r.message]
        assert len(told) == 1
        shown = Library(house.provider.store, sandbox).details(digest)
        assert shown.runs.outcomes["timeout"] == 3
        assert "workers were lost" in (shown.quarantined or "")
        # Its hash is declined, so the two negotiate; our rules write a half anew, and
        # that one is not the code that killed.
        assert await house.call("twice", number=2) == {"twice": 4}
        assert await house.call("huge", size=1) == {"text": "x"}
        assert sandbox.release(digest)
        assert sandbox.quarantined(digest) is None
