"""Protocols that are carried from daemon to daemon in bundles."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.channel.channel import Channel
from anp.errors import CallError, ErrorKind
from anp.sidecar.bound import provider
from anp.sidecar.bundles.format import (
    MAX_BUNDLE,
    Bundle,
    BundledCapability,
    read_bundle,
)
from anp.sidecar.bundles.format import render_bundle as render
from anp.sidecar.library.views import Library
from anp.sidecar.offer.capability_calls import CapabilityCalls
from cache.records.records import AgreementRecord, AgreementRole, AgreementState
from negotiation.need import Role as Side
from tests.cache.states import set_state
from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.house import House, house_in
from tests.e2e.owner import owner_api
from tests.waiting import until

LYING = """
import json

def handle_request(data):
    request = json.loads(data)
    if request["messageId"] == "never":
        yield call("twice.twice", {"number": request["input"]["number"]})
    status = {"code": 200, "message": "OK"}
    answer = {"messageId": request["messageId"], "status": status}
    return json.dumps({**answer, "output": {"twice": 7}}).encode()
"""
"A half that answers without asking its capability."


def other_text(bundle: Bundle) -> Bundle:
    """Return a bundle whose provider half does the same with another text."""
    [half] = bundle.halves
    return replace(
        bundle, halves=(replace(half, source=f"# carried over\n{half.source}"),)
    )


async def exported(house: House) -> tuple[bytes, bytes]:
    """Have `twice` negotiated, and return the caller's and the provider's bundle."""
    assert await house.call("twice", number=1) == {"twice": 2}
    [agreement] = house.caller.store.all_agreements()
    return (
        await house.caller.bundles.export(agreement.hash[:12]),
        await house.provider.bundles.export(agreement.hash),
    )


def same(one: object, other: object) -> bool:
    """Compare large values; pytest would work on the difference for minutes."""
    return one == other


def provided(house: House) -> list[AgreementRecord]:
    """Return the provider's agreements."""
    return [
        one
        for one in house.provider.store.all_agreements()
        if one.role is AgreementRole.PROVIDER
    ]


async def reconnect(house: House) -> None:
    """End the links, so that the next call opens a channel."""
    await asyncio.gather(*(link.close() for link in house.provider.links._links))


@clause("ANP-84", "ANP-86")
async def test_daemons_that_never_met_need_no_negotiation(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with house_in(tmp_path / "one") as met:
        ours, theirs = await exported(met)
    async with house_in(tmp_path / "two") as new:
        caller, provider = new.caller.bundles, new.provider.bundles
        [one] = await caller.take_in(ours, peer_did=new.provider.did)
        [two] = await provider.take_in(theirs)
        assert (one.half.origin, two.half.origin) == ("imported", "imported")
        assert two.agreements == ()
        result = await new.result("twice", {"number": 21})
        assert result.output == {"twice": 42}
        assert (result.source, result.negotiation_messages) == ("agreement", 0)
        assert new.caller.store.negotiations() == []
        assert new.provider.store.negotiations() == []
        for daemon in (new.caller, new.provider):
            library = Library(daemon.store, daemon.sandbox)
            [listed], _ = library.page()
            assert listed.origin == "imported"
            shown = library.details(listed.hash)
            assert [half.origin for half in shown.code] == ["imported"]
        # Nothing about the transport came along: the bundles are as they were.
        assert await caller.export(one.half.hash) != ours
        again = read_bundle(await caller.export(one.half.hash))
        assert again.half(Side.REQUESTER) is not None
        assert same(again.text, read_bundle(ours).text)


async def test_an_export_gives_the_same_bytes_while_nothing_changes(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        ours, theirs = await exported(house)
        assert same(await exported(house), (ours, theirs))
        assert house.caller.did.encode() not in ours
        digest = read_bundle(ours).hash
        named = await house.caller.bundles.export(digest, with_did=True)
        assert read_bundle(named).did == house.caller.identities.canonical
        bare = await house.caller.bundles.export(digest, with_tests=False)
        [half] = read_bundle(bare).halves
        assert half.tests == {}
        [provided_half] = read_bundle(theirs).halves
        assert [one.name for one in provided_half.capabilities] == ["twice.twice"]
        assert read_bundle(theirs).need is None
        with pytest.raises(CallError, match="no active code for the provider"):
            await house.caller.bundles.export(digest, role=Side.PROVIDER)


async def test_an_imported_half_takes_over_from_the_next_channel_on(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        _, theirs = await exported(house)
        bundle = other_text(read_bundle(theirs))
        [taken] = await house.provider.bundles.take_in(render(bundle))
        assert (taken.half.revision, taken.replaced) == (2, (1,))
        [agreement] = provided(house)
        assert agreement.revision == 2
        store = house.provider.store
        # Also for those who have no revision of their own.
        stranger = store.provider_half(bundle.hash, "did:key:zStranger")
        assert stranger is not None
        assert stranger.source.startswith("# carried over")
        first = store.half(bundle.hash, AgreementRole.PROVIDER, 1)
        assert first is not None
        assert first.state is AgreementState.STALE
        await reconnect(house)
        result = await house.result("twice", {"number": 4})
        assert (result.output, result.negotiation_messages) == ({"twice": 8}, 0)
        library = Library(store, house.provider.sandbox)
        runs = library.details(bundle.hash).runs
        assert runs.outcomes["ok"] >= 1


def channels(house: House) -> list[Channel]:
    """Return the channels that the provider serves."""
    return list(house.provider.provider._served)


@clause("ANP-86")
@pytest.mark.parametrize("role", list(Side))
async def test_a_channel_on_a_replaced_half_closes_after_its_calls_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: Side
) -> None:
    async with house_in(tmp_path) as house:
        ours, theirs = await exported(house)
        [channel] = channels(house)
        real, going_on = CapabilityCalls.call, asyncio.Event()
        called = asyncio.Event()

        async def slow(*args: Any, **named: Any) -> Any:
            called.set()
            await going_on.wait()
            return await real(*args, **named)

        monkeypatch.setattr(CapabilityCalls, "call", slow)
        before = asyncio.create_task(house.result("twice", {"number": 4}))
        await called.wait()
        mine = role is Side.PROVIDER
        daemon = house.provider if mine else house.caller
        bundle = other_text(read_bundle(theirs if mine else ours))
        [taken] = await daemon.bundles.take_in(render(bundle))
        assert taken.half.revision == 2
        await asyncio.sleep(0.05)
        assert channel.open, "a call is in flight on it"
        going_on.set()
        result = await before
        assert (result.output, result.source) == ({"twice": 8}, "agreement")
        async with asyncio.timeout(20):
            ended = await channel.wait_ended()
        assert "another revision" in ended.detail
        # A call that crosses the news of the end would end with it.
        await until(lambda: not house.caller.binder.requesters.hashes)
        again = await house.result("twice", {"number": 5})
        assert (again.output, again.negotiation_messages) == ({"twice": 10}, 0)
        [newer] = channels(house)
        assert newer is not channel


async def test_an_import_leaves_channels_alone_that_it_does_not_concern(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        _, theirs = await exported(house)
        [channel] = channels(house)
        bundles = house.provider.bundles
        await bundles.take_in(
            render(other_text(read_bundle(theirs))), peer_did="did:key:zOther"
        )
        assert await house.call("twice", number=4) == {"twice": 8}
        assert channels(house) == [channel]
        assert channel.open


async def test_a_peer_that_never_pauses_comes_to_the_new_half_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "MAX_DRAIN", 0.1)
    async with house_in(tmp_path) as house:
        _, theirs = await exported(house)
        [channel] = channels(house)
        called = asyncio.Event()

        async def endless(*args: Any, **named: Any) -> Any:
            called.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(CapabilityCalls, "call", endless)
        calling = asyncio.create_task(house.call("twice", number=4))
        await called.wait()
        await house.provider.bundles.take_in(render(other_text(read_bundle(theirs))))
        async with asyncio.timeout(20):
            await channel.wait_ended()
        with pytest.raises(CallError) as caught:
            await calling
        assert caught.value.may_have_run


async def test_an_import_for_one_peer_leaves_the_others_alone(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        _, theirs = await exported(house)
        bundle = other_text(read_bundle(theirs))
        other = "did:key:zOther"
        bundles = house.provider.bundles
        [taken] = await bundles.take_in(render(bundle), peer_did=other)
        assert [one.peer_did for one in taken.agreements] == [other]
        assert taken.replaced == ()
        store = house.provider.store
        for peer, revision in ((other, 2), (house.caller.did, 1), ("did:key:zX", 1)):
            half = store.provider_half(bundle.hash, peer)
            assert half is not None
            assert half.revision == revision
        with pytest.raises(CallError, match="--peer"):
            await bundles.export(bundle.hash)
        ours = read_bundle(await bundles.export(bundle.hash, peer_did=other))
        assert ours.halves[0].source == bundle.halves[0].source


def lying(bundle: Bundle) -> Bundle:
    """The half does not do what it is for."""
    return bundle.with_source(Side.PROVIDER, LYING)


def elsewhere(name: str) -> Callable[[Bundle], Bundle]:
    """The half calls another capability."""

    def change(bundle: Bundle) -> Bundle:
        half = bundle.halves[0]
        [capability] = half.capabilities
        renamed = replace(capability, name=name)
        return replace(bundle, halves=(replace(half, capabilities=(renamed,)),))

    return change


def other_schema(bundle: Bundle) -> Bundle:
    """The capability takes something else than here."""
    half = bundle.halves[0]
    capability = BundledCapability("twice.twice", {"type": "object"}, True)
    return replace(bundle, halves=(replace(half, capabilities=(capability,)),))


def outside(bundle: Bundle) -> Bundle:
    """The half wants what no half gets, and says that rules wrote it."""
    half = bundle.halves[0]
    wanting = replace(half, source=f"import os\n{half.source}", origin="rules")
    return replace(bundle, halves=(wanting,))


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lying, ErrorKind.GENERATED_CODE, "provider's code failed its checks"),
        (outside, ErrorKind.GENERATED_CODE, "os may not be imported"),
        (elsewhere("gone.gone"), ErrorKind.POLICY, "gone.gone is not attached"),
        (other_schema, ErrorKind.POLICY, "twice.twice has other schemas here"),
    ],
)
async def test_what_cannot_serve_here_is_refused_whole(
    tmp_path: Path, change: Callable[[Bundle], Bundle], kind: ErrorKind, words: str
) -> None:
    async with house_in(tmp_path) as house:
        _, theirs = await exported(house)
        with pytest.raises(CallError, match=words) as caught:
            await house.provider.bundles.take_in(render(change(read_bundle(theirs))))
        assert caught.value.kind is kind
        assert "\n" not in caught.value.detail
        assert len(house.provider.store.halves(read_bundle(theirs).hash)) == 1
        assert [one.revision for one in provided(house)] == [1]


async def test_a_requester_half_needs_somebody_to_call(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with house_in(tmp_path / "one") as met:
        ours, theirs = await exported(met)
        both = replace(
            read_bundle(ours),
            halves=read_bundle(theirs).halves + read_bundle(ours).halves,
        )
        # Where there is an agreement, it is the one that moves.
        [taken] = await met.caller.bundles.take_in(ours)
        assert [one.peer_did for one in taken.agreements] == [met.provider.did]
        assert taken.half.revision == 2
    async with house_in(tmp_path / "two") as new:
        bundles = new.caller.bundles
        with pytest.raises(CallError, match="name with --peer the peer"):
            await bundles.take_in(ours)
        with pytest.raises(CallError, match="the bundle has no code for the provider"):
            await bundles.take_in(ours, role=Side.PROVIDER)
        with pytest.raises(CallError, match="names no need"):
            await bundles.take_in(
                render(replace(read_bundle(ours), need=None)),
                peer_did=new.provider.did,
            )
        with pytest.raises(CallError, match="--role requester"):
            await bundles.take_in(render(both), peer_did=new.provider.did)
        assert new.caller.store.halves(both.hash) == []
        [one] = await bundles.take_in(
            render(both), role=Side.REQUESTER, peer_did=new.provider.did
        )
        assert one.half.role is AgreementRole.REQUESTER


async def test_what_the_owner_revoked_does_not_come_back(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        _, theirs = await exported(house)
        set_state(
            house.provider.store, read_bundle(theirs).hash, AgreementState.REVOKED
        )
        with pytest.raises(CallError, match="was revoked by you"):
            await house.provider.bundles.take_in(theirs)


def wrong(value: Any) -> Any:
    """Change every number that a capability is taken to answer."""
    if isinstance(value, dict):
        return {name: wrong(one) for name, one in value.items()}
    if isinstance(value, list):
        return [wrong(one) for one in value]
    return value + 1 if type(value) is int else value


async def test_the_test_cases_of_a_bundle_are_run_again(tmp_path: Path) -> None:
    async with house_in(tmp_path, negotiation__test_cases=True) as house:
        ours, theirs = await exported(house)
        [half] = read_bundle(theirs).halves
        assert half.tests["cases"]["text"]
        await house.caller.bundles.take_in(ours)
        [taken] = await house.provider.bundles.take_in(theirs)
        [agreement] = taken.agreements
        cases = agreement.tests["cases"]
        assert cases["mode"] == "offline"
        assert cases["results"]
        assert all(result["passed"] for result in cases["results"])
        assert same(cases["fixtures"], half.tests["cases"]["fixtures"])
        # What the bundle said is kept beside it, and goes no further.
        assert same(agreement.tests["imported"]["tests"], half.tests)
        again = read_bundle(await house.provider.bundles.export(agreement.hash))
        assert "imported" not in again.halves[0].tests
        changed = {
            **half.tests["cases"],
            "fixtures": wrong(half.tests["cases"]["fixtures"]),
        }
        spoilt = replace(half, tests={**half.tests, "cases": changed})
        with pytest.raises(CallError, match="test case") as caught:
            await house.provider.bundles.take_in(
                render(replace(read_bundle(theirs), halves=(spoilt,)))
            )
        assert caught.value.kind is ErrorKind.GENERATED_CODE


async def test_the_local_api_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        ours, _ = await exported(house)
        async with owner_api(house.caller) as api:
            path = "/v1/protocols/import"
            json_type = {"content-type": "application/json"}
            for data, query, status, words in (
                (b" " * (MAX_BUNDLE + 1), "", 413, "at most"),
                (b"{}", "", 400, "export"),
                (ours[:-1], "", 400, "blanks"),
                (ours, "?role=boss", 400, "requester, provider"),
                (ours, "?peer=nobody", 404, "nobody"),
            ):
                refused = await api.post(path + query, content=data, headers=json_type)
                assert refused.status_code == status
                assert words in refused.json()["detail"]
            digest = read_bundle(ours).hash
            found = await api.get(f"/v1/protocols/{digest}/export")
            assert same(found.content, ours)
            missing = await api.get("/v1/protocols/0000/export")
            assert missing.status_code == 404
            # A hash is no place to import to, and a document is still found.
            assert (await api.get(f"/v1/protocols/{digest}")).status_code == 200


def attach(daemon: Anpd, folder: Path) -> None:
    """Give a daemon a capability, in a folder of its own."""
    folder.mkdir()
    (folder / "shop.py").write_text(
        'def add_two(number: int) -> dict[str, int]:\n    return {"sum": number + 2}\n'
    )
    daemon.ok("attach", "python", "shop:add_two", "--expose", "*", cwd=folder)


@pytest.mark.slow
def test_the_commands_carry_a_protocol_to_daemons_that_never_met(
    tmp_path: Path,
) -> None:
    first, second = Anpd(tmp_path / "first"), Anpd(tmp_path / "second")
    third, fourth = Anpd(tmp_path / "third"), Anpd(tmp_path / "fourth")
    for daemon in (second, fourth):
        daemon.ok("init")
        attach(daemon, tmp_path / f"code-{daemon.home.name}")
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    with first.up(), second.up():
        first.ok("call", second.address, "add_two", "-d", '{"number": 1}')
        [agreed] = first.ok("protocols", "list", "--json").json()["protocols"]
        first.ok(
            "protocols",
            "export",
            agreed["hash"][:12],
            "-o",
            str(ours),
            "--without-tests",
        )
        theirs.write_text(second.ok("protocols", "export", agreed["hash"]).stdout)
    with third.up(), fourth.up():
        told = third.ok("protocols", "import", str(ours), "--peer", fourth.address)
        assert "code for the requester, revision 1" in told.stdout
        found = fourth.ok("protocols", "import", str(theirs), "--json").json()
        assert found["hash"] == agreed["hash"]
        called = third.ok("call", fourth.address, "add_two", "-d", '{"number": 5}')
        assert "agreement" in called.stderr
        assert "negotiation_messages=0" in called.stderr
        listed = fourth.ok("protocols", "list").stdout
        assert "imported" in listed
        assert "any" in listed
        data = bytearray(theirs.read_bytes())
        data[len(data) // 2] ^= 1
        theirs.write_bytes(bytes(data))
        refused = fourth.run("protocols", "import", str(theirs))
        assert refused.code == 2
        assert refused.stderr.count("\n") == 1
