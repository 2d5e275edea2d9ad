"""Channels that outlive their keys, with calls in flight all the time."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.house import House, house_in

CALLERS = 4


def renewals(caplog: pytest.LogCaptureFixture) -> int:
    """Return how many channels were renewed by now."""
    return sum(
        record.getMessage().startswith("channel renewed") for record in caplog.records
    )


async def call_until(house: House, done: Any) -> int:
    """Call from several tasks until `done`; return how many calls there were."""
    calls = 0

    async def keep_calling() -> None:
        nonlocal calls
        while not done():
            await house.others_are_served()
            calls += 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CALLERS):
            tasks.create_task(keep_calling())
    return calls


@pytest.mark.slow
@clause("WIRE row 16")
async def test_keys_are_renewed_before_they_end_and_no_call_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="anp")
    async with house_in(tmp_path, channels__key_lifetime=3) as house:
        calls = await call_until(house, lambda: renewals(caplog) >= 3)
    assert calls > CALLERS
    # Not one of them negotiated again, and no key ran out.
    assert sum("agreement declined" in r.getMessage() for r in caplog.records) == 0
    assert sum("the key expired" in r.getMessage() for r in caplog.records) == 0


async def test_keys_are_renewed_when_they_carried_enough(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="anp")
    async with house_in(tmp_path, channels__renew_messages=40) as house:
        calls = await call_until(house, lambda: renewals(caplog) >= 3)
    assert calls >= 3 * 20


async def test_with_kept_keys_renewals_go_on_as_well(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="anp")
    async with house_in(
        tmp_path, channels__renew_messages=60, channels__resumption=True
    ) as house:
        await call_until(house, lambda: renewals(caplog) >= 3)


def peer_entry(**values: str | bool) -> str:
    """Return a `[[peer]]` of a configuration file."""
    lines = (f"{name} = {json.dumps(value)}" for name, value in values.items())
    return "\n[[peer]]\n" + "\n".join(lines) + "\n"


def call_kept(hub: Anpd, peer: str, number: int) -> None:
    """Call who cannot be dialled, as soon as it has come back."""
    limit = time.monotonic() + 60
    while True:
        arguments = (peer, "multiply", "-d", json.dumps({"number": number}), "--json")
        ended = hub.run("call", *arguments)
        if ended.code == 0:
            assert ended.json()["output"] == {"result": number * 7}
            return
        # Nothing else may be wrong with it.
        assert ended.json()["kind"] in {"usage", "peer_unreachable"}, ended.stdout
        assert time.monotonic() < limit, ended.stdout
        time.sleep(0.1)


@pytest.mark.slow
def test_a_daemon_without_an_address_is_called_over_the_link_that_it_keeps(
    tmp_path: Path,
) -> None:
    (tmp_path / "made.py").write_text(
        "def multiply(number: int) -> int:\n    return number * 7\n"
    )
    hub, hidden = Anpd(tmp_path / "hub"), Anpd(tmp_path / "hidden")
    hidden.ok(
        *("attach", "python", "made:multiply", "--expose", "*", "--name", "m"),
        cwd=tmp_path,
    )
    for daemon in (hub, hidden):
        daemon.did = daemon.ok("init", "--json").json()["did"]
    with (hub.home / "anpd.toml").open("a") as file:
        file.write(peer_entry(name="shy", did=hidden.did))
    hub.start()
    port = hub.port
    with (hidden.home / "anpd.toml").open("a") as file:
        file.write(
            peer_entry(name="hub", did=hub.did, url=hub.url, keep_connection=True)
        )
    hidden.start()
    try:
        call_kept(hub, "shy", 3)
        call_kept(hub, hidden.did, 4)
        # After the hub was lost and is back, so is the link.
        hub.kill()
        hub.start(port=port)
        call_kept(hub, "shy", 5)
    finally:
        hub.stop()
        hidden.stop()
    assert "Traceback" not in hub.log() + hidden.log()
