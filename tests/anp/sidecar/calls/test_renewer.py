"""Renewal of channels, also towards peers that have none of our extensions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from anp.channel.channel import Channel
from anp.errors import CallError, ErrorKind
from anp.sidecar.calls.renewer import Renewer
from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import MetaProtocol
from tests.anp.channel.two_links import HASH, META, Party, echo
from tests.clauses import clause
from tests.waiting import until


class Calls:
    """Stands in for a bound channel: it is idle when the test says so."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.idle = asyncio.Event()

    async def wait_idle(self) -> None:
        await self.idle.wait()


@pytest.fixture
def parties(tmp_path: Path) -> tuple[Party, Party]:
    return Party(tmp_path / "alice"), Party(tmp_path / "bob")


@clause("WIRE row 16", "WIRE row 23")
async def test_towards_the_sdk_the_old_key_is_left_before_a_new_one_is_made(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    # As the official SDK answers: no extensions, and nothing confirmed.
    bob.meta = MetaProtocol()
    bob.serves.clear()
    bob.release = asyncio.Event()
    async with bob.up(), alice.up() as links:
        channel = await links.open_channel(bob.target, META)
        calls, followed = Calls(channel), list[Channel]()
        Renewer().watch(calls, HASH, followed.append)
        await channel.send(ProtocolType.APPLICATION, b"in flight")
        await until(lambda: bob.requests == [b"in flight"])
        channel.renewal_due()
        await until(lambda: channel.retired)
        # It sends under its newest key only: with a second one now, this answer would
        # go out under a key that the call does not wait on.
        assert bob.hellos == 1
        bob.release.set()
        assert (await channel.receive()).frame.data == b"in flight"
        calls.idle.set()
        await channel.wait_ended()
        assert (bob.hellos, followed) == (1, [])
        # The next call opens the next channel.
        await echo(await links.open_channel(bob.target, META), b"next")
        assert bob.hellos == 2


@clause("WIRE row 16")
async def test_with_our_extensions_the_new_key_is_there_while_calls_are_in_flight(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    bob.release = asyncio.Event()
    async with bob.up(), alice.up() as links:
        channel = await links.open_channel(bob.target, META)
        calls, followed = Calls(channel), list[Channel]()
        Renewer().watch(calls, HASH, followed.append)
        await channel.send(ProtocolType.APPLICATION, b"in flight")
        await until(lambda: bob.requests == [b"in flight"])
        channel.renewal_due()
        await until(lambda: bool(followed))
        assert followed[0].id != channel.id
        assert followed[0].peer_meta.used_protocol_hash == HASH
        bob.release.set()
        assert (await channel.receive()).frame.data == b"in flight"
        await echo(followed[0], b"new key")
        calls.idle.set()
        await channel.wait_ended()


async def test_a_renewal_that_is_declined_leaves_the_next_call_to_negotiate(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    async with bob.up(), alice.up() as links:
        channel = await links.open_channel(bob.target, META)
        calls, followed = Calls(channel), list[Channel]()
        Renewer().watch(calls, HASH, followed.append)
        bob.serves.clear()
        channel.renewal_due()
        calls.idle.set()
        await channel.wait_ended()
        assert followed == []
        fresh = await links.open_channel(bob.target, replace(META))
        assert fresh.peer_meta.used_protocol_hash is None


@clause("WIRE row 16")
@pytest.mark.parametrize("longest_call", [0.0, 1e9])
async def test_a_key_that_cannot_be_renewed_takes_no_call_that_could_outlive_it(
    parties: tuple[Party, Party], longest_call: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = parties
    async with bob.up(), alice.up() as links:
        channel = await links.open_channel(bob.target, META)
        tried = asyncio.Event()

        async def refused(meta: MetaProtocol) -> Channel:
            tried.set()
            raise CallError(ErrorKind.IDENTITY_REFUSED, "the peer refused us")

        monkeypatch.setattr(channel, "renew", refused)
        renewer = Renewer(longest_call=longest_call)
        renewer.watch(Calls(channel), HASH, list[Channel]().append)
        channel.renewal_due()
        await tried.wait()
        await asyncio.sleep(0)
        assert channel.retired is (longest_call > 0)
        # Calls in flight go on under it.
        await echo(channel, b"in flight")
