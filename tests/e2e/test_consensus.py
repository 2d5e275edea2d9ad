"""Protocols known by URI between two daemons: no negotiation where none is needed."""

from __future__ import annotations

import asyncio
import random
import string
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.channel.links import LinkTarget
from anp.errors import CallError, ConfigError, ErrorKind
from anp.protocols.envelope import ENVELOPE_TASKS_URI, ENVELOPE_URI
from anp.protocols.gbz import GBZ_URI
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.consensus.entries import SUFFIX, ConsensusEntry, render_entry
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.peers.lists import LIST_PATH, document_path
from anp.wire.meta_protocol import MetaProtocol
from cache.records.records import AgreementState
from negotiation.consensus.listing import Listed, read_listing
from negotiation.consensus.registry import CodeKind
from negotiation.document.shape import document_hash
from negotiation.need import Capability, Need
from negotiation.rules.rules import own_terms
from tests.cache.states import set_state
from tests.clauses import clause
from tests.e2e.house import House, house_in
from tests.e2e.owner import owner_api

URI = "https://protocols.example/twice/1.0"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with house_in(tmp_path, consensus__use=True) as house:
        yield house


async def call(house: House, need: str, **options: Any) -> CallResult:
    """Call `twice` of the provider under some words."""
    request = CallRequest(
        peer=f"{house.provider.url}#{house.provider.did}",
        need=Need(need),
        arguments={"number": 21},
    )
    return await house.caller.caller.call(request._replace(**options))


async def negotiated(house: House) -> CallResult:
    """Have both agree on a protocol for `twice`, as if nothing were published."""
    house.caller.candidates.enabled = False
    result = await call(house, "twice")
    house.caller.candidates.enabled = True
    assert result.source == "negotiated"
    return result


async def get(house: House, path: str, **headers: str) -> httpx.Response:
    """Ask the provider's port as anybody may."""
    base = house.provider.url.replace("ws://", "http://").rstrip("/")
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(base + path, headers=headers)


@clause("ANP-94", "ANP-95")
async def test_a_published_capability_is_called_without_any_negotiation(
    house: House,
) -> None:
    first = await call(house, "twice")
    assert first.output == {"twice": 42}
    assert (first.source, first.uri) == ("consensus", ENVELOPE_URI)
    assert first.negotiation_messages == first.proposals == first.llm_calls == 0
    second = await call(house, "Twice")
    assert second.output == {"twice": 42}
    assert second.source == "consensus"
    assert house.caller.store.negotiations() == []
    assert house.caller.links.open_links == 1


def envelope_of(content: bytes) -> Listed:
    """Return the entry of the envelope in a list."""
    found = read_listing(content).protocols
    return next(one for one in found if one.uri == ENVELOPE_URI)


async def test_the_list_names_each_protocol_with_what_it_reaches(house: House) -> None:
    linked = (await get(house, "/.well-known/anp")).json()["protocols"]
    assert linked == LIST_PATH
    answer = await get(house, linked)
    assert answer.headers["content-type"] == "application/json"
    listed = envelope_of(answer.content)
    assert (listed.uri, listed.generic) == (ENVELOPE_URI, True)
    offered = house.provider.exposure.offered(None)
    assert [one.name for one in listed.capabilities] == [one.name for one in offered]
    assert {one.name: one.input_schema for one in listed.capabilities} == {
        one.name: one.input_schema for one in offered
    }
    text = (await get(house, document_path(listed.hash))).content.decode()
    assert document_hash(text) == listed.hash
    again = await get(house, linked, **{"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (await get(house, document_path("0" * 64))).status_code == 404


async def test_what_is_no_longer_exposed_leaves_the_list(house: House) -> None:
    before = (await get(house, LIST_PATH)).headers["etag"]
    house.provider.exposure.drop("twice")
    await house.provider.consensus.settle()
    after = await get(house, LIST_PATH, **{"If-None-Match": before})
    assert after.status_code == 200
    for listed in read_listing(after.content).protocols:
        assert "twice.twice" not in {one.name for one in listed.capabilities}


@clause("ANP-92", "ANP-93", "ANP-95")
async def test_a_negotiated_protocol_that_is_published_spares_others_the_negotiation(
    house: House, tmp_path: Path
) -> None:
    agreed = await negotiated(house)
    assert agreed.protocol is not None
    desk = house.provider.consensus
    await desk.publish(agreed.protocol, URI, version="1.0", summary="Doubles a number.")
    listed = read_listing((await get(house, LIST_PATH)).content).get(URI)
    assert listed is not None
    assert (listed.hash, listed.summary) == (agreed.protocol, "Doubles a number.")
    # Somebody who never met the provider.
    (tmp_path / "other").mkdir()
    async with house_in(tmp_path / "other", consensus__use=True) as other:
        stranger = House(other.caller, house.provider)
        first = await call(stranger, "twice")
        assert first.output == {"twice": 42}
        assert (first.source, first.uri) == ("consensus", URI)
        assert (first.protocol, first.negotiation_messages) == (agreed.protocol, 0)
        assert other.caller.store.negotiations() == []
        second = await call(stranger, "twice")
        assert (second.source, second.negotiation_messages) == ("agreement", 0)
        # Taken back, the name is gone; what came of it goes on by its hash.
        await desk.unpublish(URI)
        assert read_listing((await get(house, LIST_PATH)).content).get(URI) is None
        third = await call(stranger, "twice")
        assert third.source == "agreement"


async def test_a_published_protocol_outlives_the_daemon(
    house: House, tmp_path: Path
) -> None:
    agreed = await negotiated(house)
    assert agreed.protocol is not None
    desk = house.provider.consensus
    await desk.publish(agreed.protocol, URI, version="1.0", summary="")
    await desk.load()
    await desk.settle()
    known = desk.registry.get(URI)
    assert known is not None
    assert known.hash == agreed.protocol
    assert read_listing((await get(house, LIST_PATH)).content).get(URI) is not None


@clause("ANP-91")
async def test_one_uri_never_names_two_documents(house: House) -> None:
    agreed = await negotiated(house)
    other = await house.call("count", step=1)
    assert other["step"] == 1
    assert agreed.protocol is not None
    desk = house.provider.consensus
    with pytest.raises(CallError, match="every version needs a URI of its own"):
        await desk.publish(agreed.protocol, ENVELOPE_URI, version="1.0", summary="")
    with pytest.raises(CallError, match="cannot name a protocol"):
        await desk.publish(agreed.protocol, "no uri", version="1.0", summary="")
    with pytest.raises(CallError, match="was not published"):
        await desk.unpublish(ENVELOPE_URI)


@clause("ANP-87", "ANP-93")
async def test_what_is_revoked_is_not_selected_and_the_channel_negotiates(
    house: House, tmp_path: Path
) -> None:
    agreed = await negotiated(house)
    assert agreed.protocol is not None
    desk = house.provider.consensus
    await desk.publish(agreed.protocol, URI, version="1.0", summary="")
    (tmp_path / "other").mkdir()
    async with house_in(tmp_path / "other", consensus__use=True) as other:
        stranger = House(other.caller, house.provider)
        lists = other.caller.peer_lists
        target = await other.caller.finder.find(
            f"{house.provider.url}#{house.provider.did}", trust_first_use=False
        )
        assert await lists.listing(target) is not None
        # The list was read before the owner changed its mind.
        set_state(house.provider.store, agreed.protocol, AgreementState.REVOKED)
        desk.registry.remove(ENVELOPE_URI)
        number = len(house.provider.store.negotiations())
        with pytest.raises(CallError) as caught:
            await call(stranger, "twice")
        # The same text is refused in a negotiation too, which did take place.
        assert caught.value.kind is ErrorKind.NEGOTIATION_REJECTED
        assert len(house.provider.store.negotiations()) == number + 1
        assert other.caller.links.open_links == 1


async def test_a_task_that_names_nothing_is_negotiated(house: House) -> None:
    with pytest.raises(CallError) as caught:
        await call(house, "make it larger")
    assert caught.value.kind is ErrorKind.NEGOTIATION_REJECTED


async def test_data_that_does_not_fit_the_published_schema_is_the_callers_error(
    house: House,
) -> None:
    with pytest.raises(CallError) as caught:
        await call(house, "twice", arguments={"number": "many"})
    # Only a negotiation knows if the peer takes it in other terms.
    assert caught.value.kind is ErrorKind.USAGE
    assert 'number has to be an integer, not "many"' in caught.value.detail
    assert len(house.caller.store.negotiations()) == 1


async def test_an_unknown_action_negotiates_once_and_is_remembered(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The provider publishes `twice`, but does not let it be reached this way.
    desk = house.provider.consensus
    await desk.settle()
    gate = house.provider.capability_calls.gate
    real = gate.offered

    def offered(way: WayIn, peer: str | None) -> tuple[Capability, ...]:
        hidden = "twice.twice" if way is WayIn.ENVELOPE else ""
        return tuple(one for one in real(way, peer) if one.name != hidden)

    shown = desk.pages()
    monkeypatch.setattr(desk, "pages", lambda: shown)
    monkeypatch.setattr(gate, "offered", offered)
    first = await call(house, "twice")
    assert (first.output, first.source) == ({"twice": 42}, "negotiated")
    assert "does not serve" in repr(first.timeline)
    second = await call(house, "twice")
    assert (second.source, second.negotiation_messages) == ("agreement", 0)
    assert len(house.caller.store.negotiations()) == 1


async def test_a_protocol_the_caller_names_is_offered_alone(house: House) -> None:
    named = await call(house, "twice.twice", protocol=ENVELOPE_URI)
    assert (named.source, named.uri) == ("consensus", ENVELOPE_URI)
    with pytest.raises(CallError, match="is not known here"):
        await call(house, "twice", protocol="https://protocols.example/none/1.0")


async def test_a_named_protocol_the_peer_does_not_speak_is_negotiated_once(
    house: House,
) -> None:
    desk = house.provider.consensus
    desk.registry.remove(ENVELOPE_URI)
    first = await call(house, "twice", protocol=ENVELOPE_URI)
    assert (first.output, first.source) == ({"twice": 42}, "negotiated")
    second = await call(house, "twice", protocol=ENVELOPE_URI)
    assert (second.source, second.negotiation_messages) == ("agreement", 0)


@clause("ANP-93", "ANP-94")
async def test_a_hash_goes_before_a_uri_and_only_what_was_offered_is_selected(
    house: House,
) -> None:
    agreed = await negotiated(house)
    assert agreed.protocol is not None
    await house.provider.consensus.settle()
    links, did = house.caller.links, house.provider.did
    target = LinkTarget(did, house.provider.url)

    async def answer(digest: str | None, *uris: str) -> tuple[str | None, str | None]:
        meta = MetaProtocol(
            used_protocol_hash=digest, candidate_protocols=uris, extensions=("close",)
        )
        channel = await links.open_channel(target, meta)
        said = channel.peer_meta
        await channel.close("seen")
        return said.used_protocol_hash, said.selected_protocol

    assert await answer(agreed.protocol, ENVELOPE_URI) == (agreed.protocol, None)
    assert await answer("0" * 64, "urn:other:1", ENVELOPE_URI) == (None, ENVELOPE_URI)
    assert await answer("0" * 64, "urn:other:1") == (None, None)
    # A protocol of the daemon's own is known by the hash of its text, too.
    for uri in (GBZ_URI, ENVELOPE_TASKS_URI):
        entry = house.provider.consensus.written(uri)
        assert entry is not None
        digest = entry.protocol.hash
        assert await answer(digest, ENVELOPE_URI) == (digest, None)
    assert await answer(None) == (None, None)


async def test_a_protocol_of_a_bundle_is_spoken_by_both_without_negotiation(
    house: House, tmp_path: Path
) -> None:
    agreed = await negotiated(house)
    assert agreed.protocol is not None
    (tmp_path / "other").mkdir()
    async with house_in(tmp_path / "other", consensus__use=True) as other:
        entry = ConsensusEntry(
            uri=URI, version="1.0", hash=agreed.protocol, bundle="twice.json"
        )
        # The other provider has the same function under the same schemas.
        data = await house.provider.bundles.export(agreed.protocol)
        folder = other.provider.home.consensus
        folder.mkdir()
        (folder / "twice.json").write_bytes(data)
        (folder / f"twice{SUFFIX}").write_bytes(render_entry(entry))
        await other.provider.consensus.load()
        await other.provider.consensus.settle()
        shown = {one.uri: one for one in await other.provider.consensus.shown()}
        assert (shown[URI].code, shown[URI].served) == ("bundle", True)
        result = await call(other, "twice")
        assert (result.output, result.uri) == ({"twice": 42}, URI)
        assert result.negotiation_messages == 0
        (folder / f"twice{SUFFIX}").write_bytes(
            render_entry(replace(entry, hash="0" * 64))
        )
        with pytest.raises(ConfigError, match="is pinned to"):
            await other.provider.consensus.load()


async def test_a_document_by_uri_is_taken_only_under_its_pinned_hash(
    house: House, tmp_path: Path
) -> None:
    text = own_terms(next(c for c in house.provider.exposure.offered(None)))
    name = house.provider.exposure.offered(None)[0].name
    served = {URI: text.encode(), "https://protocols.example/forged/1.0": b"forged"}
    desk = house.provider.consensus

    async def fetch(uri: str, max_size: int) -> bytes:
        return served.pop(uri)

    desk.folder.fetch = fetch
    folder = house.provider.home.consensus
    folder.mkdir()
    for number, uri in enumerate(list(served)):
        entry = ConsensusEntry(uri=uri, version="1.0", hash=document_hash(text))
        (folder / f"{number}{SUFFIX}").write_bytes(render_entry(entry))
    # Apart, or the kept text would serve the second entry as well.
    first, second = sorted(folder.glob(f"*{SUFFIX}"))
    kept = first.read_bytes()
    first.unlink()
    await desk.load()
    assert desk.registry.get("https://protocols.example/forged/1.0") is None
    second.unlink()
    first.write_bytes(kept)
    await desk.load()
    await desk.settle()
    known = desk.registry.get(URI)
    assert known is not None
    assert known.code is CodeKind.GENERATED
    # The half was written by our own mind, and the text is kept for the next start.
    listed = read_listing((await get(house, LIST_PATH)).content).get(URI)
    assert listed is not None
    assert [one.name for one in listed.capabilities] == [name]
    await desk.load()
    assert desk.registry.get(URI) is not None


@clause("ANP-86")
async def test_an_agreement_is_offered_to_another_peer_only_where_policy_allows(
    tmp_path: Path,
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with house_in(tmp_path / "one") as one, house_in(tmp_path / "two") as two:
        for house in (one, two):
            assert (await call(house, "twice")).source == "negotiated"
        # Both providers hold the same text; the caller agreed on it with one only.
        crossed = House(one.caller, two.provider)
        before = len(two.provider.store.negotiations())
        one.caller.binder.shares_agreements = True
        shared = await call(crossed, "twice")
        assert (shared.source, shared.negotiation_messages) == ("agreement", 0)
        again = await call(crossed, "twice")
        assert (again.source, again.negotiation_messages) == ("agreement", 0)
        assert len(two.provider.store.negotiations()) == before
        # Without that word it is negotiated.
        strict = House(two.caller, one.provider)
        assert (await call(strict, "twice")).source == "negotiated"


async def remade(house: House, folder: Path, source: str, **more: Any) -> None:
    """Give the provider's `twice` other code and schemas, as an owner would."""
    name = "remade_" + "".join(random.choices(string.ascii_lowercase, k=8))
    (folder / f"{name}.py").write_text(source)
    spec = AttachmentSpec(
        kind="python",
        name="twice",
        target=f"{name}:twice",
        cwd=folder,
        expose=("*",),
        **more,
    )
    save_attachment(house.provider.home.attachments, spec)
    await house.provider.reload()
    await house.provider.consensus.settle()


@clause("ENV-21")
async def test_a_capability_that_takes_more_by_now_is_read_anew_and_called_once(
    house: House, tmp_path: Path
) -> None:
    arguments = {"number": 21, "by": 3}
    either = """
def twice(number: int, by: int | str = 2) -> dict[str, int]:
    return {"twice": number * int(by)}
"""
    await remade(house, tmp_path, either)
    assert (await call(house, "twice", arguments=arguments)).output == {"twice": 63}
    # The same name, but the number has to come with another kind of value.
    await remade(house, tmp_path, either.replace("int | str = 2", "str"))
    with pytest.raises(CallError) as caught:
        await call(house, "twice", arguments=arguments)
    # Not a word of the capability: its peer takes no such data, and says which.
    assert caught.value.kind is ErrorKind.USAGE
    assert "by has to be a string, not 3" in caught.value.detail
    assert not caught.value.may_have_run
    text = await call(house, "twice", arguments={"number": 21, "by": "3"})
    assert (text.output, text.source) == ({"twice": 63}, "consensus")


@clause("ENV-17")
async def test_a_harmless_capability_that_gives_other_data_by_now_is_called_again(
    house: House, tmp_path: Path
) -> None:
    source = """
def twice(number: int) -> dict[str, {0}]:
    return {{"twice": {0}(number * 2)}}
"""
    await remade(house, tmp_path, source.format("int"), read_only=("twice",))
    assert (await call(house, "twice")).output == {"twice": 42}
    await remade(house, tmp_path, source.format("str"), read_only=("twice",))
    again = await call(house, "twice")
    assert (again.output, again.source) == ({"twice": "42"}, "consensus")
    # One with effects is not: the caller learns that it may have run.
    await remade(house, tmp_path, source.format("float"))
    with pytest.raises(CallError, match="schema that the peer published") as caught:
        await call(house, "twice")
    assert caught.value.may_have_run
    assert (await call(house, "twice")).output == {"twice": 42.0}


@clause("ENV-19")
async def test_what_a_peer_tells_unasked_is_shown_to_the_owner(house: House) -> None:
    await call(house, "twice")
    session = house.caller.binder.requesters.written(house.provider.did, ENVELOPE_URI)
    assert session is not None
    await session.tell("stock_low", {"sku": "P1", "left": 2})
    await session.tell("stock_out", {"sku": "P1"})
    await call(house, "twice")
    async with owner_api(house.provider) as client:
        heard = (await client.get("/v1/heard")).json()["heard"]
        assert [(one["kind"], one["name"]) for one in heard] == [
            ("event", "stock_low"),
            ("event", "stock_out"),
        ]
        assert heard[0]["data"] == {"sku": "P1", "left": 2}
        assert heard[0]["peer_did"] == house.caller.did
        newer = await client.get("/v1/heard", params={"after": heard[0]["number"]})
        assert newer.json()["heard"] == heard[1:]
        for odd in ("-1", "x", "9" * 16, ""):
            assert (await client.get(f"/v1/heard?after={odd}")).status_code == 400


@pytest.mark.slow
@clause("ANP-Q20")
async def test_a_key_kept_under_a_uri_is_found_by_the_hash_and_the_other_way_round(
    tmp_path: Path,
) -> None:
    async with house_in(
        tmp_path, consensus__use=True, channels__resumption=True
    ) as house:
        agreed = await negotiated(house)
        assert agreed.protocol is not None
        await house.provider.consensus.publish(
            agreed.protocol, URI, version="1.0", summary=""
        )
        # Kept under the hash by now; asked for by the URI, for another task.
        await cut(house)
        house.caller.candidates.enabled = True
        by_uri = await call(house, "Twice", protocol=URI)
        assert (by_uri.source, by_uri.uri) == ("consensus", URI)
        assert marks(by_uri)[0] == "key kept"
        # A stranger opens it under the URI, and its next link finds it by the hash.
        (tmp_path / "other").mkdir()
        async with house_in(
            tmp_path / "other", consensus__use=True, channels__resumption=True
        ) as other:
            stranger = House(other.caller, house.provider)
            first = await call(stranger, "twice")
            assert (first.source, first.uri) == ("consensus", URI)
            await cut(stranger)
            second = await call(stranger, "twice")
            assert (second.source, marks(second)[0]) == ("agreement", "key kept")


async def cut(house: House) -> None:
    """Lose every link of the caller, once its keys are on disk."""
    # A channel is kept in a task of its own as soon as it is open.
    await asyncio.sleep(0.3)
    for link in list(house.caller.links._links):
        await link.close()
    while house.caller.links.open_links:  # noqa: ASYNC110 - nobody announces it
        await asyncio.sleep(0.01)


def marks(result: CallResult) -> list[str]:
    """Return what a call said about its way."""
    return [entry.what for entry in result.timeline]
