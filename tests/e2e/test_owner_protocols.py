"""The owner looks into what was agreed: takes back, tests, clears out."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from anp.identity.dids import did_key
from anp.identity.keys import PrivateKey
from anp.sidecar.daemon import Daemon
from anp.sidecar.halves.protocol import Protocol
from anp.sidecar.library.prune_rules import DAY
from anp.sidecar.offer.capability_calls import CapabilityCalls
from cache.records.records import AgreementState
from cache.rows import Rows
from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.house import House, house_in
from tests.e2e.owner import owner_api
from tests.waiting import until


async def ask(daemon: Daemon, path: str, body: dict[str, Any] | None = None) -> Any:
    """Ask a daemon's local API; post when there is a body."""
    async with owner_api(daemon) as api:
        if body is None:
            answer = await api.get(f"/v1/protocols{path}")
        else:
            answer = await api.post(f"/v1/protocols{path}", json=body)
    return answer.json()


async def agreed(house: House) -> str:
    """Have `twice` negotiated, and return the document's hash."""
    result = await house.result("twice", {"number": 2})
    assert result.output == {"twice": 4}
    assert result.protocol is not None
    return result.protocol


async def refused(house: House, number: int = 3) -> CallError:
    """Call `twice`, which has to be refused."""
    with pytest.raises(CallError) as caught:
        await house.call("twice", number=number)
    return caught.value


# Revoke and approve.


def said_name(said: dict[str, Any]) -> str:
    """Return the one capability that a revocation left open."""
    [one] = said["open"]
    name: str = one["capability"]
    assert name.endswith(".twice")
    return name


@clause("ANP-86")
async def test_what_the_provider_revoked_is_declined_and_not_agreed_anew(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        said = await ask(
            house.provider,
            f"/{digest[:12]}/revoke",
            {"reason": "wrong prices", "text_only": True},
        )
        twice = {"role": "provider", "peer": None, "capability": said_name(said)}
        assert said == {
            "hash": digest,
            "peer": None,
            "revoked": True,
            "channels_closed": 1,
            "closed": [],
            "open": [twice],
        }
        for _ in range(2):
            error = await refused(house)
            assert error.kind is ErrorKind.NEGOTIATION_REJECTED
            assert "took this text back" in error.detail
            assert "wrong prices" not in error.detail
        [listed] = (await ask(house.provider, ""))["protocols"]
        assert listed["state"] == "revoked"
        assert listed["reason"] == "revoked by you for all: wrong prices"
        # Other protocols between the two go on.
        assert await house.call("count", step=1) == {"calls": 1, "step": 1}
        back = await ask(house.provider, f"/{digest[:12]}/approve", {})
        assert back["revocation_ended"] is True
        result = await house.result("twice", {"number": 5})
        assert (result.output, result.source) == ({"twice": 10}, "agreement")


async def test_what_the_caller_revoked_ends_its_calls_with_what_to_do(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        said = await ask(house.caller, f"/{digest}/revoke", {})
        assert said["channels_closed"] == 1
        again = await ask(house.caller, f"/{digest}/revoke", {})
        assert (again["revoked"], again["channels_closed"]) == (False, 0)
        error = await refused(house)
        assert error.kind is ErrorKind.APPROVAL_PENDING
        assert "anpd approvals" in error.detail
        await ask(house.caller, f"/{digest}/approve", {})
        assert (await house.result("twice", {"number": 1})).source == "agreement"


async def test_a_revocation_for_one_peer_leaves_the_others_alone(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        other = did_key(PrivateKey.generate().public_bytes)
        said = await ask(house.provider, f"/{digest}/revoke", {"peer": other})
        only = {"peer": house.caller.identities.canonical, "text_only": True}
        assert (said["revoked"], said["channels_closed"]) == (True, 0)
        assert await house.call("twice", number=1) == {"twice": 2}
        peer = house.caller.identities.canonical
        said = await ask(house.provider, f"/{digest}/revoke", only)
        assert said["channels_closed"] == 1
        assert (await refused(house)).kind is ErrorKind.NEGOTIATION_REJECTED
        store = house.provider.store
        assert store.provider_half(digest, peer) is None
        assert store.provider_half(digest, "did:key:zThird") is not None
        await ask(house.provider, f"/{digest}/approve", {"peer": peer})
        assert await house.call("twice", number=1) == {"twice": 2}
        assert store.provider_half(digest, other) is None


@pytest.mark.parametrize("side", ["caller", "provider"])
async def test_a_revocation_in_the_middle_of_calls_ends_them_at_once(
    side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = CapabilityCalls.call
    called, go = asyncio.Semaphore(0), asyncio.Event()

    async def slow(*args: Any, **options: Any) -> Any:
        called.release()
        await go.wait()
        return await real(*args, **options)

    decoded: list[bytes] = []
    judge, decode = Protocol.judge, Protocol.decode

    async def seen_judge(self: Protocol, kind: Any, data: bytes) -> Any:
        decoded.append(data)
        return await judge(self, kind, data)

    async def seen_decode(self: Protocol, data: bytes) -> Any:
        decoded.append(data)
        return await decode(self, data)

    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        monkeypatch.setattr(CapabilityCalls, "call", slow)
        calls = [asyncio.create_task(refused(house, number)) for number in range(5)]
        for _ in range(5):
            await called.acquire()
        daemon: Daemon = getattr(house, side)
        monkeypatch.setattr(Protocol, "judge", seen_judge)
        monkeypatch.setattr(Protocol, "decode", seen_decode)
        said = await ask(daemon, f"/{digest}/revoke", {})
        assert said["channels_closed"] == 1
        go.set()
        errors = await asyncio.gather(*calls)
        kind = ErrorKind.POLICY if side == "caller" else ErrorKind.PEER_UNREACHABLE
        assert {error.kind for error in errors} == {kind}
        assert all(error.may_have_run for error in errors)
        assert decoded == []
        assert house.caller.binder.requesters.hashes == frozenset()


async def test_revocations_race_with_calls_and_nothing_stays_in_use(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        for turn in range(6):
            daemon = house.provider if turn % 2 else house.caller
            calls = [
                asyncio.create_task(house.call("twice", number=n)) for n in range(8)
            ]
            await asyncio.sleep(0.002 * turn)
            await ask(daemon, f"/{digest}/revoke", {})
            await asyncio.gather(*calls, return_exceptions=True)
            if daemon is house.provider:
                # The calls may have ended before the provider's word has come.
                await until(lambda: digest not in house.caller.binder.requesters.hashes)
            assert digest not in house.caller.binder.requesters.hashes
            assert await refused(house)
            await ask(daemon, f"/{digest}/approve", {})
            assert await house.call("twice", number=turn) == {"twice": 2 * turn}


async def test_one_peer_cannot_be_exempted_from_a_revocation_for_all(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        await ask(house.provider, f"/{digest}/revoke", {})
        peer = house.caller.identities.canonical
        problem = await ask(house.provider, f"/{digest}/approve", {"peer": peer})
        assert problem["kind"] == "usage"
        assert "without --peer" in problem["detail"]


async def test_a_text_nobody_knows_here_can_be_ruled_out_by_its_hash(
    tmp_path: Path,
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with house_in(tmp_path / "one") as house:
        digest = await agreed(house)
    async with house_in(tmp_path / "two") as house:
        assert (await ask(house.provider, f"/{digest[:12]}/revoke", {}))["kind"]
        said = await ask(house.provider, f"/{digest}/revoke", {})
        assert said["revoked"] is True
        assert (await refused(house)).kind is ErrorKind.NEGOTIATION_REJECTED
        shown = await ask(house.provider, f"/{digest[:8]}")
        assert [one["peer"] for one in shown["revocations"]] == [None]
        await ask(house.provider, f"/{digest[:8]}/approve", {})
        assert await agreed(house) == digest


async def test_approve_gives_the_word_that_a_document_waits_for(
    tmp_path: Path,
) -> None:
    async with house_in(
        tmp_path, negotiation__approve="first-use", negotiation__approval_wait=0.2
    ) as house:
        house.caller.agreer.desk._approve = "never"
        error = await refused(house)
        assert error.kind is ErrorKind.APPROVAL_PENDING
        desk = house.provider.agreer.desk
        [waiting] = await desk.negotiations(open_only=True)
        assert waiting.pending is not None
        digest = waiting.pending["hash"]
        said = await ask(house.provider, f"/{digest[:12]}/approve", {})
        assert said["negotiations_accepted"] == [waiting.id]
        assert await agreed(house) == digest


# Test.


async def test_the_kept_cases_run_again_on_both_sides_and_are_shown(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        for daemon in (house.caller, house.provider):
            told = await ask(daemon, f"/{digest}/test", {})
            assert told["passed"] is True
            [run] = told["runs"]
            assert (run["mode"], run["failed"]) == ("offline", 0)
            assert run["cases"] > 0
            [listed] = (await ask(daemon, ""))["protocols"]
            assert listed["last_run"]["at"] == run["at"]
            assert listed["state"] == "active"
        address = f"{house.provider.url}#{house.provider.did}"
        told = await ask(house.caller, f"/{digest}/test", {"peer": address})
        [run] = told["runs"]
        assert (run["mode"], run["passed"]) == ("wire", True)
        theirs = await ask(
            house.provider, f"/{digest}/test", {"peer": house.caller.did}
        )
        assert theirs["kind"] == "usage"
        assert "only who calls" in theirs["detail"]


def break_half(daemon: Daemon, digest: str, old: str, new: str) -> None:
    """Break the half of `daemon` in one line, in its store."""
    store = daemon.store
    [half] = store.halves(digest)
    [agreement] = store.agreements_of(digest)
    document = store.document(digest)
    assert document is not None
    source = half.source.replace(old, new, 1)
    assert source != half.source
    broken = replace(half, source=source, revision=0)
    store.save_agreement(document, broken, agreement)


async def test_a_half_that_is_broken_in_one_line_fails_its_test(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        [half] = house.provider.store.halves(digest)
        break_half(house.provider, digest, "200", "201")
        told = await ask(house.provider, f"/{digest}/test", {})
        assert told["passed"] is False
        run, before = told["runs"]
        assert run["revision"] == half.revision + 1
        assert run["problems"]
        # What strangers are served with is still the one of before.
        assert (before["peer"], before["passed"]) == (None, True)
        shown = await ask(house.provider, f"/{digest}")
        [agreement] = shown["agreements"]
        assert agreement["last_run"]["passed"] is False
        assert agreement["state"] == "active"
        # The half of before is as good as ever.
        theirs = await ask(house.caller, f"/{digest}/test", {})
        assert theirs["passed"] is True


async def test_what_is_revoked_is_not_run(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        await ask(house.caller, f"/{digest}/revoke", {})
        problem = await ask(house.caller, f"/{digest}/test", {})
        assert problem["kind"] == "policy"


# Counts and pages.


async def test_calls_are_counted_by_the_way_they_went(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        for number in range(3):
            await house.call("twice", number=number)
        await house.call("count", step=1)
        with pytest.raises(CallError):
            await house.call("no such thing at all", x=1)
        usage = await ask(house.caller, "/usage")
        assert (usage["negotiated"], usage["agreement"]) == (2, 3)
        assert (usage["failed"], usage["hit_rate"]) == (1, 0.6)
        ours = (await ask(house.caller, f"/{digest}"))["usage"]
        assert (ours["negotiated"], ours["agreement"]) == (1, 3)
        theirs = await ask(house.provider, f"/{digest}")
        assert theirs["usage"]["served"] == 4
        assert theirs["agreements"][0]["uses"] == 4
        # On disk, not only in memory.
        await house.caller.uses.flush()
        assert house.caller.store.usage().negotiated == 2


async def test_many_calls_cost_few_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house_in(tmp_path) as house:
        await agreed(house)
        writes = 0
        for daemon in (house.caller, house.provider):
            database = daemon.store._database
            write = database.write

            def counted(work: Any, write: Any = write, **options: Any) -> Any:
                nonlocal writes
                writes += 1
                return write(work, **options)

            monkeypatch.setattr(database, "write", counted)
        for _ in range(20):
            await asyncio.gather(*(house.call("twice", number=n) for n in range(10)))
        assert writes < 40


async def test_the_list_comes_in_pages(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        for name, arguments in (
            ("twice", {"number": 1}),
            ("count", {"step": 1}),
            ("huge", {"size": 1}),
        ):
            await house.result(name, arguments)
        seen: list[str] = []
        after = ""
        for _ in range(10):
            page = await ask(house.caller, f"?limit=1&after={after}")
            assert len(page["protocols"]) <= 1
            seen += [one["hash"] for one in page["protocols"]]
            after = page["next"]
            if after is None:
                break
        assert after is None
        assert len(seen) == len(set(seen)) == 3
        assert (await ask(house.caller, "?limit=0"))["kind"] == "usage"
        assert (await ask(house.caller, "?state=odd"))["kind"] == "usage"
        none = await ask(house.caller, "?state=failed")
        assert none["protocols"] == []


# Prune.


def age(
    daemon: Daemon,
    digest: str,
    days: float,
    state: AgreementState = AgreementState.ACTIVE,
) -> None:
    """Make what is stored about a document as old as this."""
    store = daemon.store
    [agreement] = store.agreements_of(digest)
    long_ago = agreement.created - days * DAY
    halves = [replace(one, created=long_ago) for one in store.halves(digest)]
    old = replace(agreement, created=long_ago, last_used=None, state=state, tests={})

    def work(cache: Rows) -> None:
        for one in (*halves, old):
            store._shelf.put(cache, one)

    store._database.write(work)


async def test_pruning_takes_what_is_old_and_leaves_what_is_in_use(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        used = await agreed(house)
        failed = (await house.result("count", {"step": 1})).protocol
        young = (await house.result("huge", {"size": 1})).protocol
        assert failed
        assert young
        await house.caller.uses.flush()
        age(house.caller, used, 400)
        age(house.caller, failed, 400, AgreementState.FAILED)
        # Its channel is open, but nothing that failed is spoken on it.
        for bound in house.caller.binder.requesters._open:
            if bound.agreement.hash == failed:
                await bound.channel.close("test")
        await until(lambda: failed not in house.caller.binder.requesters.hashes)
        dry = await ask(house.caller, "/prune", {"dry_run": True})
        assert dry["counts"] == {"agreement": 1, "half": 1, "document": 1}
        assert dry["bytes"] > 0
        assert len(house.caller.store.all_agreements()) == 3
        told = await ask(house.caller, "/prune", {})
        assert {one["hash"] for one in told["removed"]} == {failed}
        assert told["counts"] == dry["counts"]
        assert told["bytes"] == dry["bytes"]
        # The file is smaller, and not only emptier.
        assert (dry["store_before"], dry["store_after"]) == (0, 0)
        assert told["store_before"] > told["store_after"] > 0
        kept = {one.hash for one in house.caller.store.all_agreements()}
        assert kept == {used, young}
        assert house.caller.store.halves(failed) == []
        assert (await house.result("twice", {"number": 4})).source == "agreement"
        assert (await house.result("huge", {"size": 2})).source == "agreement"


async def test_a_pruned_revocation_still_holds(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        await ask(house.provider, f"/{digest}/revoke", {"text_only": True})
        told = await ask(house.provider, "/prune", {"older_than": 0})
        assert told["counts"]["document"] == 1
        assert house.provider.store.halves(digest) == []
        assert (await refused(house)).kind is ErrorKind.NEGOTIATION_REJECTED
        await ask(house.provider, f"/{digest[:12]}/approve", {})
        assert await agreed(house) == digest


async def test_what_is_published_is_never_pruned(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        digest = await agreed(house)
        await house.provider.consensus.publish(
            digest, "urn:x:twice", version="1", summary=""
        )
        await asyncio.gather(*(link.close() for link in house.provider.links._links))
        age(house.provider, digest, 400)
        told = await ask(house.provider, "/prune", {})
        assert told["removed"] == []
        assert (await ask(house.provider, f"/{digest}"))["uris"] == ["urn:x:twice"]


# Over a restart, through the commands.


@pytest.mark.slow
def test_revocations_outlive_a_restart_and_commands_say_when_no_daemon_runs(
    tmp_path: Path,
) -> None:
    (tmp_path / "tool.py").write_text(
        "def twice(number: int) -> dict[str, int]:\n    return {'twice': number * 2}\n"
    )
    provider, caller = Anpd(tmp_path / "p"), Anpd(tmp_path / "c")
    provider.ok("init")
    provider.ok("attach", "python", "tool:twice", "--expose", "*", cwd=tmp_path)
    with caller.up():
        with provider.up():
            call = ["call", provider.address, "twice", "-d", '{"number": 2}', "--json"]
            digest = caller.ok(*call).json()["protocol"]
            words = ("--reason", "\x1b[31mno", "--text-only")
            provider.ok("protocols", "revoke", digest[:10], *words)
            assert caller.run(*call).code == 6
            port = provider.port
        for command in (
            ["list"],
            ["show", digest],
            ["revoke", digest],
            ["approve", digest],
            ["test", digest],
            ["diff", digest, digest],
            ["prune"],
            ["usage"],
        ):
            ended = provider.run("protocols", *command, "--json")
            assert ended.code == 4, command
            assert "start it with: anpd" in ended.stderr
            assert ended.json()["kind"] == "daemon_unreachable"
        with provider.up(port=port):
            assert caller.run(*call).code == 6
            shown = provider.ok("protocols", "show", digest[:10]).stdout
            assert "revoked by you for all: <1b>[31mno" in shown
            listed = provider.ok("protocols", "list", "--state", "revoked").stdout
            assert digest[:12] in listed
            told = provider.ok("protocols", "approve", digest[:10]).stdout
            assert "may be used again" in told
            assert caller.ok(*call).json()["output"] == {"twice": 4}
            assert provider.ok("protocols", "test", digest[:10]).stdout.startswith(
                "passed code for the provider"
            )
            halves = [f"{digest[:10]}:provider", f"{digest[:10]}:provider:1"]
            assert "are the same" in provider.ok("protocols", "diff", *halves).stdout
            assert "nothing unused is older" in provider.ok("protocols", "prune").stdout
        with provider.up(port=port):
            assert caller.ok(*call).json()["output"] == {"twice": 4}
            usage = caller.ok("protocols", "usage", "--json").json()
            assert usage["failed"] == 2
