"""Keys that outlive their links: taken up again, refused, and never used twice."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from anp.channel.channel import Channel, ChannelClosed, read_clocks
from anp.channel.core.events import ChannelOpened
from anp.channel.core.traffic import OpenChannel
from anp.channel.links import Links, LinkTarget
from anp.errors import ErrorCode
from anp.wire.frames import Frame, ProtocolType
from anp.wire.messages import make_response
from anp.wire.replay import MAX_COUNTER
from cache.records.records import AgreementRole
from tests.anp.channel.two_links import HASH, META, Party, echo, kept
from tests.clauses import clause
from tests.e2e.proxy import CALLER, PROVIDER, Hold, Proxy
from tests.waiting import until


@pytest.fixture
def parties(tmp_path: Path) -> tuple[Party, Party]:
    return Party(tmp_path / "alice"), Party(tmp_path / "bob")


async def met(alice: Party, bob: Party, *, calls: int = 1) -> None:
    """Have both meet, call and go down again."""
    async with bob.up(), alice.up() as links:
        channel = await links.open_channel(bob.target, META)
        for number in range(calls):
            await echo(channel, b"first %d" % number)
        await kept(alice, bob)


async def resumed(links: Links, bob: Party) -> Channel:
    channel = await links.resume_channel(bob.target, HASH, size=100)
    assert channel is not None
    return channel


async def test_a_key_is_free_again_when_its_link_ends_while_it_is_taken_up(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    async with bob.up(), alice.up() as links:
        reserve = alice.keeper.reserve

        async def slow(opened: ChannelOpened) -> tuple[int, int]:
            block = await reserve(opened)
            for link in list(links._links):
                await link.close()
            await until(lambda: not links._links)
            return block

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(alice.keeper, "reserve", slow)
            assert await links.resume_channel(bob.target, HASH, size=100) is None
        assert not alice.keeper._holders
        await echo(await resumed(links, bob), b"again")


class _Last:
    """Counts of a sender that has used up its key."""

    needs_block = False

    def take(self) -> bytes:
        return bytes(4) + MAX_COUNTER.to_bytes(8, "big")


async def test_a_key_that_ends_while_it_is_taken_up_is_not_resumed(
    parties: tuple[Party, Party],
) -> None:
    """What the peer sent under it meanwhile may end the channel as it opens."""
    alice, bob = parties
    await met(alice, bob)
    async with bob.up(), alice.up() as links:
        record = bob.store.keys_with(AgreementRole.PROVIDER, alice.did, HASH)[0]
        taken = await bob.keeper.find(alice.did, record.id)
        assert taken is not None
        theirs = OpenChannel.resumed(
            taken.kept.reopened(now=time.monotonic(), wall=time.time()),
            taken.kept.keys,
            bob.config,
            first=0,
            end=1024,
            mark=0,
            claimed=0,
            random_bytes=os.urandom,
            now=time.monotonic(),
        )
        theirs._counter = _Last()  # type: ignore[assignment]
        frame = Frame(ProtocolType.APPLICATION, b"x")
        text = theirs.seal(frame, message_id="ab" * 16, now=read_clocks())
        reserve = alice.keeper.reserve

        async def slow(opened: ChannelOpened) -> tuple[int, int]:
            block = await reserve(opened)
            (link,) = links._links
            link._core.receive_text(text, now=read_clocks())
            assert link._core.keys.lookups
            return block

        alice.keeper.reserve = slow  # type: ignore[method-assign]
        assert await links.resume_channel(bob.target, HASH, size=100) is None


@clause("ANP-Q20", "WIRE row 26")
async def test_after_both_restarted_a_call_needs_no_handshake(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    for number in range(3):
        async with bob.up(), alice.up() as links:
            hellos = bob.hellos
            channel = await resumed(links, bob)
            await echo(channel, b"again %d" % number)
            await echo(channel, b"and again")
            assert channel.resumed
            assert channel.peer_meta.used_protocol_hash == HASH
            # Asked once whether the protocol is still served; no hello was sent.
            assert bob.hellos == hellos + 1
            assert links.has_link(bob.did)
    assert len(bob.requests) == 1 + 3 * 2


async def test_a_key_is_not_taken_up_twice_at_a_time(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    async with bob.up(), alice.up() as links:
        await resumed(links, bob)
        assert await links.resume_channel(bob.target, HASH, size=100) is None


async def test_a_long_first_call_is_no_first_frame(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    async with bob.up(), alice.up() as links:
        assert await links.resume_channel(bob.target, HASH, size=60_000) is None
        channel = await resumed(links, bob)
        long = asyncio.create_task(
            channel.send(ProtocolType.APPLICATION, bytes(200_000))
        )
        await asyncio.sleep(0.05)
        assert not bob.requests[1:]
        await channel.send(ProtocolType.APPLICATION, b"short")
        assert (await channel.receive()).frame.data == b"short"
        await long
        assert (await channel.receive()).frame.data == bytes(200_000)


@pytest.mark.parametrize("calls", [1023, 1024, 2500])
async def test_counters_go_on_over_the_blocks(
    parties: tuple[Party, Party], calls: int
) -> None:
    alice, bob = parties
    await met(alice, bob, calls=calls)
    async with bob.up(), alice.up() as links:
        channel = await resumed(links, bob)
        for number in range(1100):
            await echo(channel, b"%d" % number)
    assert len(bob.requests) == calls + 1100


async def refused(alice: Party, bob: Party) -> tuple[ChannelClosed, Channel]:
    """Call under a key that is refused; return its end, and the channel after it."""
    async with bob.up(), alice.up() as links:
        channel = await resumed(links, bob)
        await channel.send(ProtocolType.APPLICATION, b"lost")
        assert await channel.wait_renewal()
        fresh = await channel.renew(META)
        ended = await channel.wait_ended()
        await echo(fresh, b"lost")
        return ended, fresh


async def test_a_provider_that_lost_the_key_proves_that_nothing_ran(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    bob.folder = bob.folder.with_name("new")
    ended, _ = await refused(alice, bob)
    assert ended.unprocessed
    assert bob.requests.count(b"lost") == 1


async def test_a_provider_that_keeps_no_keys_any_more_says_so(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    bob.enabled = False
    bob.config = replace(bob.config, resumption=False)
    ended, _ = await refused(alice, bob)
    assert ended.unprocessed


async def test_a_protocol_that_is_no_longer_served_is_not_resumed(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    bob.serves.clear()
    ended, fresh = await refused(alice, bob)
    assert ended.unprocessed
    assert fresh.peer_meta.used_protocol_hash is None


async def test_another_identity_key_cannot_read_what_was_kept(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    alice.secret = bob.secret
    async with bob.up(), alice.up() as links:
        assert await links.resume_channel(bob.target, HASH, size=100) is None


@pytest.mark.parametrize("shift", [864_001.0, -3600.0])
async def test_an_expired_key_or_a_clock_set_back_means_a_handshake(
    parties: tuple[Party, Party], shift: float
) -> None:
    alice, bob = parties
    await met(alice, bob)
    alice.wall_shift = shift
    async with bob.up(), alice.up() as links:
        assert await links.resume_channel(bob.target, HASH, size=100) is None


async def test_the_clock_of_the_provider_counts_too(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    bob.wall_shift = 864_001.0
    ended, _ = await refused(alice, bob)
    assert ended.unprocessed


async def test_no_key_is_kept_unless_both_want_it(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    bob.meta = replace(META, extensions=("close", "counter"))
    async with bob.up(), alice.up() as links:
        channel = await links.open_channel(bob.target, META)
        await channel.keep(HASH)
        await echo(channel, b"first")
        assert alice.store.keys_with(AgreementRole.REQUESTER, bob.did, HASH) == []


async def test_a_channel_that_is_closed_leaves_no_key(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    async with bob.up(), alice.up() as links:
        channel = await links.open_channel(bob.target, META)
        await echo(channel, b"first")
        await kept(alice, bob)
        await channel.close("done")
        await until(
            lambda: not bob.store.keys_with(AgreementRole.PROVIDER, alice.did, HASH)
        )
    async with bob.up(), alice.up() as links:
        assert await links.resume_channel(bob.target, HASH, size=100) is None


async def replayed(bob: Party, frames: Iterable[str | bytes]) -> list[int]:
    """Send frames on a link of our own; return the codes of what is answered."""
    async with connect(f"ws://127.0.0.1:{bob.port}/", compression=None) as raw:
        answers = []
        for text in frames:
            await raw.send(text)
            answers.append(json.loads(await raw.recv())["code"])
        return answers


async def test_what_was_recorded_is_refused_before_and_after_a_restart(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    with Proxy().running() as proxy:
        async with bob.up(), alice.up() as links:
            proxy.target = f"ws://127.0.0.1:{bob.port}/"
            target = LinkTarget(bob.did, f"ws://127.0.0.1:{proxy.port}/")
            channel = await links.open_channel(target, META)
            await echo(channel, b"first")
            await kept(alice, bob)
        async with bob.up(), alice.up() as links:
            again = await links.resume_channel(target, HASH, size=10)
            assert again is not None
            await echo(again, b"second")
            sent = [seen for seen in proxy.seen if seen.side == CALLER]
            # The first application frame is the first frame of its connection.
            assert [(seen.connection, seen.type) for seen in sent] == [
                *[(0, "sourceHello"), (0, "finished"), (0, "message")],
                (1, "message"),
            ]
            texts = [seen.frame for seen in sent if seen.type == "message"]
            # On another link, while the key is in use on this one.
            assert await replayed(bob, texts) == [403, 403]
            await echo(again, b"third")
        async with bob.up():
            assert await replayed(bob, texts) == [403, 403]
            garbage = json.loads(texts[0])
            garbage["encryptedData"]["ciphertext"] = "AAAA"
            assert await replayed(bob, [json.dumps(garbage)]) == [4001]
    assert bob.requests == [b"first", b"second", b"third"]


async def test_a_caller_that_comes_back_takes_its_key_from_the_dead_link(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    with Proxy().running() as proxy:
        async with bob.up():
            proxy.target = f"ws://127.0.0.1:{bob.port}/"
            target = LinkTarget(bob.did, f"ws://127.0.0.1:{proxy.port}/")
            async with alice.up() as links:
                channel = await links.resume_channel(target, HASH, size=10)
                assert channel is not None
                await echo(channel, b"one")
                proxy.hold(Hold(CALLER, 0))
            # Bob's end of the first link may be up still.
            proxy.hold(None)
            async with alice.up() as links:
                channel = await links.resume_channel(target, HASH, size=10)
                assert channel is not None
                await echo(channel, b"two")
    assert bob.requests[1:] == [b"one", b"two"]


async def test_a_forged_refusal_ends_no_call_that_was_accepted(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    bob.release = asyncio.Event()
    with Proxy().running() as proxy:
        async with bob.up(), alice.up() as links:
            proxy.target = f"ws://127.0.0.1:{bob.port}/"
            target = LinkTarget(bob.did, f"ws://127.0.0.1:{proxy.port}/")
            channel = await links.resume_channel(target, HASH, size=10)
            assert channel is not None
            name = await channel.send(ProtocolType.APPLICATION, b"slow")
            await until(lambda: len(bob.requests) >= 2)
            forged = make_response(
                ErrorCode.INVALID_DECRYPTION_KEY,
                "never heard of it",
                source_did=bob.did,
                destination_did=alice.did,
                original_type="message",
                original_message_id=name,
                message_id="1",
                timestamp=datetime.now(UTC),
            )
            proxy.inject(PROVIDER, forged)
            assert await channel.wait_renewal()
            # The hint costs one handshake, whose signed answer tells the truth.
            await channel.renew(META)
            assert channel.open
            bob.release.set()
            assert (await channel.receive()).frame.data == b"slow"
    assert bob.requests.count(b"slow") == 1


async def test_nothing_of_a_key_can_be_read_on_disk(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    await met(alice, bob)
    async with alice.up():
        [record] = alice.store.keys_with(AgreementRole.REQUESTER, bob.did, HASH)
        taken = await alice.keeper.find_own(bob.did, HASH)
        assert taken is not None
        for secret in (taken.kept.keys.send_key, taken.kept.keys.receive_key):
            for file in alice.folder.iterdir():
                content = file.read_bytes()
                assert secret not in content
                assert secret.hex().encode() not in content
        assert record.sealed
