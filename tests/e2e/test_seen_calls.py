"""Calls are seen on both sides: the access log, the lists, `tap`, and first sight."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError
from anp.protocols.envelope import ENVELOPE_URI
from anp.sidecar.calls.caller import CallRequest, Mode
from anp.sidecar.config.settings import AccessLogConfig
from anp.sidecar.daemon import Daemon
from anp.sidecar.telemetry.call_entry import CallEntry
from negotiation.need import Need
from tests.e2e.daemons import Anpd
from tests.e2e.house import House, house_in
from tests.e2e.owner import owner_api

SECRET = "the-secret-word"


async def listed(daemon: Daemon, **query: str) -> list[dict[str, Any]]:
    """Return the calls of a daemon's list, the latest first."""
    async with owner_api(daemon) as api:
        answer = await api.get("/v1/calls", params=query)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["calls"]
        return found


async def outcome_of(
    house: House, name: str, arguments: dict[str, Any], **more: Any
) -> str:
    """Make a call, and return its outcome as its caller gets it."""
    request = CallRequest(
        peer=f"{house.provider.url}#{house.provider.did}",
        need=Need(name),
        arguments=arguments,
    )
    try:
        await house.caller.caller.call(replace(request, **more))
    except CallError as exc:
        return exc.kind.value
    return "ok"


async def test_both_sides_log_the_same_calls(tmp_path: Path) -> None:
    async with house_in(tmp_path, documents=True, consensus__use=True) as house:
        caller, provider = house.caller, house.provider
        events: list[CallEntry] = []
        for daemon in (caller, provider):
            add = daemon.observer.on_call

            def seen(entry: CallEntry, add: Any = add) -> None:
                events.append(entry)
                add(entry)

            daemon.observer.on_call = seen
        envelope = {"protocol": ENVELOPE_URI}
        words = {"mode": Mode.NATURAL_LANGUAGE}
        outcomes = [
            # Published, then under the agreement that it left.
            await outcome_of(house, "twice", {"number": 2}),
            await outcome_of(house, "twice", {"number": 3}),
            # Over the envelope, well and badly.
            await outcome_of(house, "twice", {"number": 4}, **envelope),
            # A message that our own side refuses never reaches the peer.
            await outcome_of(house, "twice", {"number": SECRET}),
            # In words, with an answer and with a capability that fails.
            await outcome_of(house, "twice", {"number": 5}, **words),
        ]
        assert outcomes[:3] == ["ok", "ok", "ok"]
        assert outcomes[3] != "ok"
        made = await listed(caller, direction="made")
        served = await listed(provider, direction="served")
        assert [one["outcome"] for one in made] == outcomes[::-1]
        good = [one for one in made if one["outcome"] == "ok"]
        assert [one["outcome"] for one in served[: len(good)]] == ["ok"] * len(good)
        for ours, theirs in zip(good, served, strict=True):
            assert theirs["peer"] == caller.identities.canonical
            assert ours["peer"] == provider.identities.canonical
            assert ours["protocol"] == theirs["protocol"]
            assert ours["uri"] == theirs["uri"]
            assert theirs["capability"] == "twice.twice"
            if ours["source"] != "natural_language":
                assert ours["capability"] == "twice.twice"
            # The whole call takes no less than its part at the provider.
            assert ours["ms"] >= theirs["ms"] * 0.9
        assert [one["source"] for one in served] == [
            *("natural_language", "consensus", "agreement", "published")
        ] or [one["source"] for one in served][:2] == ["natural_language", "consensus"]
        # Nothing of what they carried is in a file.
        for daemon in (caller, provider):
            await daemon.call_log.flush()
            written = b"".join(
                path.read_bytes() for path in (daemon.home.path / "calls").iterdir()
            )
            assert SECRET.encode() not in written
            assert written.count(b"\n") == len(await listed(daemon))
