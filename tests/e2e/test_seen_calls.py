"""Calls are seen on both sides: the access log, the lists, `tap`, and first sight."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError
from anp.protocols.envelope import ENVELOPE_URI
from anp.sidecar.calls.call import CallRequest, CallResult, Mode
from anp.sidecar.daemon import Daemon
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.telemetry.call_entry import CallEntry
from cache.records.peers import PeerState
from negotiation.need import Need
from tests.e2e.daemons import Anpd
from tests.e2e.forks import fork
from tests.e2e.house import House, house_in
from tests.e2e.owner import owner_api
from tests.e2e.test_gate import Shop, shop_in

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
        await house.caller.caller.call(request._replace(**more))
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
        assert [one["source"] for one in served[:2]] == [
            *("natural_language", "consensus")
        ]
        for daemon, role in ((caller, "requester"), (provider, "provider")):
            await the_envelope_is_listed(daemon, role)
        # Nothing of what they carried is in a file.
        for daemon in (caller, provider):
            await daemon.call_log.flush()
            written = b"".join(
                path.read_bytes() for path in (daemon.home.path / "calls").iterdir()
            )
            assert SECRET.encode() not in written
            assert written.count(b"\n") == len(await listed(daemon))


async def the_envelope_is_listed(daemon: Daemon, role: str) -> None:
    """Check that the one call through the envelope stands in the lists."""
    async with owner_api(daemon) as api:
        found = (await api.get("/v1/protocols")).json()["protocols"]
        (row,) = [one for one in found if ENVELOPE_URI in one["uris"]]
        assert (row["role"], row["uses"], row["origin"]) == (role, 1, "hand-written")
        shown = await api.get(f"/v1/protocols/{row['hash']}")
        assert shown.json()["uris"] == [ENVELOPE_URI]
        text = await api.get(f"/v1/protocols/{row['hash']}/text")
        assert text.status_code == 200
    (call,) = await listed(daemon, protocol=ENVELOPE_URI)
    assert call["protocol"] == row["hash"]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Anpd, Anpd]]:
    """Two fresh daemons with default settings, one of them with one attachment."""
    folder = tmp_path_factory.mktemp("fresh")
    (folder / "seen_shop.py").write_text(
        "def get_product(product_id: str) -> dict[str, str]:\n"
        "    if product_id == 'none':\n"
        "        raise ValueError(product_id)\n"
        "    return {'title': 'Tea'}\n"
    )
    provider = Anpd(folder / "provider", consensus__use="true")
    provider.ok(
        *("attach", "python", "--name", "shop", "--expose", "*"),
        "seen_shop:get_product",
        cwd=folder,
    )
    with provider.up(), Anpd(folder / "caller", consensus__use="true").up() as caller:
        yield caller, provider


@contextlib.contextmanager
def tapped(anpd: Anpd, place: Path, *args: str) -> Iterator[Iterator[str]]:
    """Run `anpd tap` for a block, and give its lines as they come."""
    printed, complained = place.with_suffix(".out"), place.with_suffix(".err")
    with (
        Path(os.devnull).open("rb") as nothing,
        printed.open("wb") as out,
        complained.open("wb") as err,
    ):
        process = fork(
            ["--home", str(anpd.home), "tap", *args],
            env=dict(os.environ),
            streams=(nothing, out, err),
        )
    try:
        next(lines_of(complained))
        yield lines_of(printed)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130


def lines_of(path: Path) -> Iterator[str]:
    """Give the lines of a file that grows."""
    limit = time.monotonic() + 30
    with path.open() as stream:
        while time.monotonic() < limit:
            line = stream.readline()
            if line.endswith("\n"):
                yield line
            else:
                time.sleep(0.02)
    raise AssertionError(f"no line in {path}")


def said(ended: Any) -> list[list[str]]:
    """Return the rows of a list that a command printed, without its head."""
    return [line.split() for line in ended.stdout.splitlines()[1:]]


def test_first_sight_after_one_call(fresh: tuple[Anpd, Anpd]) -> None:
    caller, provider = fresh
    caller.ok("call", provider.address, "get_product", "-d", '{"product_id": "7"}')
    for one, role, direction in (
        (caller, "requester", "made"),
        (provider, "provider", "served"),
    ):
        peer = (provider if one is caller else caller).did
        protocols = one.ok("protocols", "list")
        row = next(row for row in said(protocols) if row[1] == role)
        assert row[2:4] == ["active", "shop.get_product"]
        shown = one.ok("protocols", "show", row[0]).stdout
        assert "shop.get_product" in shown
        assert "latest calls:" in shown
        calls = one.ok("calls", "list")
        (call,) = [row for row in said(calls) if direction in row]
        assert {"ok", "shop.get_product", row[0], "published", peer} <= set(call)
        peers = one.ok("peers", "list")
        assert peer in peers.stdout
        for name, ended in (
            ("protocols list", protocols.stdout),
            ("protocols show", shown),
            ("calls list", calls.stdout),
            ("peers list", peers.stdout),
        ):
            print(f"--- {role}: anpd {name}\n{ended}")


def test_tap_follows_both_directions(fresh: tuple[Anpd, Anpd], tmp_path: Path) -> None:
    caller, provider = fresh
    good = ("call", provider.address, "get_product", "-d", '{"product_id": "7"}')
    bad = ("call", provider.address, "get_product", "-d", '{"product_id": "none"}')
    with (
        tapped(caller, tmp_path / "ours", "--json") as ours,
        tapped(provider, tmp_path / "theirs", "--json") as theirs,
        tapped(provider, tmp_path / "lines") as lines,
    ):
        caller.ok(*good)
        assert caller.run(*bad).code == 10
        made = [json.loads(next(ours)) for _ in range(2)]
        served = [json.loads(next(theirs)) for _ in range(2)]
        told = [next(lines) for _ in range(2)]
    assert [one["outcome"] for one in made] == ["ok", "application_error"]
    assert [one["outcome"] for one in served] == ["ok", "application_error"]
    assert [one["direction"] for one in made + served] == [
        *["made"] * 2,
        *["served"] * 2,
    ]
    assert {one["capability"] for one in made + served} == {"shop.get_product"}
    assert all("shop.get_product  <-  " in line for line in told)
    # The list has what `tap` printed.
    kept = provider.ok("calls", "list", "--served", "--limit", "2", "--json").json()
    assert kept["calls"] == served[::-1]
    failed = provider.ok("calls", "list", "--outcome", "failed", "--json").json()
    assert [one["id"] for one in failed["calls"]] == [served[1]["id"]]
    assert failed["calls"][0]["reason"] == "the capability answered 500"
    for wrong in ("1y", "x"):
        assert provider.run("calls", "list", "--since", wrong).code == 2


async def seen_at(shop: Shop, number: int) -> tuple[str, str | None]:
    """Return outcome and capability of the call number `number` at the provider."""
    async with asyncio.timeout(10):
        # A provider ends a negotiation a moment after its peer knows the end.
        found = await listed(shop.provider, direction="served")
        while len(found) < number:
            await asyncio.sleep(0.02)
            found = await listed(shop.provider, direction="served")
    assert len(found) == number
    return found[0]["outcome"], found[0]["capability"]


async def test_the_provider_sees_what_it_refuses(tmp_path: Path) -> None:
    async with shop_in(tmp_path, expose=("look",), callers=1) as shop:
        caller = shop.callers[0]
        await shop.refused(WayIn.AGREEMENT, "buy")
        assert await seen_at(shop, 1) == ("negotiation_rejected", None)
        made = await listed(caller)
        assert made[0]["outcome"] == "negotiation_rejected"
        assert made[0]["peer"] == shop.provider.identities.canonical
        await shop.refused(WayIn.NATURAL_LANGUAGE, "buy")
        assert await seen_at(shop, 2) == ("application_error", None)
        # The gate refuses what was agreed before; the caller gets the peer's error.
        await shop.call(WayIn.ENVELOPE, "look")
        await shop.provider.policy.rule(caller.did, PeerState.BLOCKED)
        await shop.provider.enforcer.recheck()
        failed = await outcome(shop.call(WayIn.AGREEMENT, "look"))
        assert failed == "identity_refused"
        assert (await seen_at(shop, 4))[0] == "identity_refused"
        ours = await listed(caller, outcome="failed")
        assert ours[0]["outcome"] == "identity_refused"


async def test_the_provider_sees_what_waits_for_its_owner(tmp_path: Path) -> None:
    async with shop_in(tmp_path, approve="always", callers=1) as shop:
        ways: tuple[tuple[WayIn, str | None], ...] = (
            (WayIn.AGREEMENT, None),
            (WayIn.ENVELOPE, "shop.buy"),
            (WayIn.NATURAL_LANGUAGE, "shop.buy"),
        )
        for number, (way, name) in enumerate(ways, start=1):
            assert await outcome(shop.call(way, "buy")) == "approval_pending"
            assert await seen_at(shop, number) == ("approval_pending", name)
            assert (await listed(shop.callers[0]))[0]["outcome"] == "approval_pending"


async def outcome(call: Awaitable[CallResult]) -> str:
    """Return the outcome of a call as its caller gets it."""
    try:
        await call
    except CallError as exc:
        return exc.kind.value
    return "ok"
