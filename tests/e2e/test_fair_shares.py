"""One stranger takes no place of others: sockets, negotiations, channels, messages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from anp.channel.core.events import NeedHelloAnswer
from anp.channel.link import Link
from anp.channel.pipe import PromptConnection
from anp.channel.stranger_work import StrangerWork, current_meter
from anp.protocols.envelope.messages import ENVELOPE_URI
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.calls.acceptor import Acceptor
from anp.sidecar.consensus.written import Heard
from anp.sidecar.health import readiness
from anp.wire.frames import Frame, ProtocolType, encode_frame
from anp.wire.meta_protocol import CAPABILITIES, MetaProtocol
from negotiation.mind import Demand
from negotiation.need import Need
from negotiation.rules.rules import propose
from tests.attacks.kinds.base import open_channel
from tests.e2e.house import House, house_in
from tests.e2e.raw_peer import RawPeer, raw_peer
from tests.waiting import until

STRANGER = ("127.0.0.2", 0)

WORK = 0.01
"Seconds of the event loop that a piece of work takes."


def take_time() -> None:
    """Do a piece of work."""
    time.sleep(WORK)


def said(action: str, **fields: Any) -> bytes:
    """Return a meta message."""
    return json.dumps({"action": action, **fields}).encode()


@contextlib.asynccontextmanager
async def silent_sockets(
    number: int, port: int, *, first: bytes = b"", source: tuple[str, int] = STRANGER
) -> AsyncIterator[None]:
    """Hold connections from another address that say next to nothing."""
    writers: list[asyncio.StreamWriter] = []
    try:
        for _ in range(number):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(
                    "127.0.0.1", port, local_addr=source
                )
                writers.append(writer)
                writer.write(first)
        yield
    finally:
        for writer in writers:
            writer.transport.abort()


async def everybody_gets_in(house: House) -> None:
    """Check that the calling daemon and a peer that nobody knows get a link now."""
    async with asyncio.timeout(5.0):
        await house.others_are_served()
    async with asyncio.timeout(5.0), house.peer() as peer:
        await peer.open()


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@pytest.mark.parametrize("first", [b"", b"GET / HT", UPGRADE])
async def test_silent_sockets_keep_nobody_out(tmp_path: Path, first: bytes) -> None:
    async with house_in(tmp_path) as house:
        provider = house.provider
        async with silent_sockets(300, provider.port, first=first):
            await everybody_gets_in(house)
            occupancy = provider.links.admission.occupancy
            assert occupancy.at_door <= occupancy.max_at_door // 2
            assert (await readiness(provider)).parts["listener"].state == "ok"


@contextlib.asynccontextmanager
async def many_peers(house: House, number: int) -> AsyncIterator[None]:
    """Hold links from another address whose peers proved who they are."""
    url, did = house.provider.url, house.provider.did
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(number):
            with contextlib.suppress(WebSocketException, OSError):
                connection = await connect(
                    url, proxy=None, compression=None, local_addr=STRANGER
                )
                stack.push_async_callback(connection.close)
                await RawPeer(connection, did).open()
        yield


async def test_proved_strangers_keep_nobody_out(tmp_path: Path) -> None:
    async with (
        house_in(tmp_path, limits__max_connections=16) as house,
        many_peers(house, 24),
    ):
        await everybody_gets_in(house)
        occupancy = house.provider.links.admission.occupancy
        assert occupancy.links >= 6
        assert occupancy.unlisted <= 8


async def stall(peer: RawPeer) -> None:
    """Begin a negotiation and say nothing any more."""
    await peer.open(capabilities=CAPABILITIES)
    await peer.send_meta(
        said(
            "protocolNegotiation",
            sequenceId=0,
            candidateProtocols=propose(Demand(Need("twice"), {"number": 1})),
            status="negotiating",
        )
    )


async def test_stalled_negotiations_keep_nobody_waiting(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house, contextlib.AsyncExitStack() as stack:
        url, did = house.provider.url, house.provider.did
        for _ in range(8):
            peer = await stack.enter_async_context(raw_peer(url, did))
            await stall(peer)
            assert (await peer.hear_meta())["status"] == "accepted"
        began = time.monotonic()
        # A new peer at the same address: the worst case of sharing.
        await house.others_are_served()
        assert time.monotonic() - began < 6.0


FUNCTIONS = "\n".join(
    f"def job_{number}(step: int) -> dict[str, int]:\n    return {{'{number}': step}}"
    for number in range(70)
)
SLOW = """
import time
def linger(seconds: float) -> str:
    time.sleep(seconds)
    return "done"
"""


async def agreements_beside_a_long_call(
    folder: Path, number: int, seconds: float, **flags: Any
) -> House:
    """Make calls under many agreements while one long call is under way."""
    name = f"jobs_{time.monotonic_ns()}"
    (folder / f"{name}.py").write_text(FUNCTIONS + SLOW)
    async with house_in(folder, **flags) as house:
        provider = house.provider
        for job in [f"job_{one}" for one in range(number)] + ["linger"]:
            save_attachment(
                provider.home.attachments,
                AttachmentSpec(
                    kind="python",
                    name=job,
                    target=f"{name}:{job}",
                    cwd=folder,
                    expose=("*",),
                ),
            )
        await provider.reload()
        async with asyncio.TaskGroup() as tasks:
            long = tasks.create_task(house.call("linger", seconds=seconds))
            for one in range(number):
                assert await house.call(f"job_{one}", step=one) == {str(one): one}
            # The first of them lost its channel, and opens another one.
            assert await house.call("job_0", step=5) == {"0": 5}
        assert long.result() == {"result": "done"}
        assert provider.links.open_channels <= provider.config.limits.max_channels
        return house


async def test_more_agreements_than_channels_work_beside_a_long_call(
    tmp_path: Path,
) -> None:
    await agreements_beside_a_long_call(tmp_path, 8, 6.0, limits__max_channels=4)


@pytest.mark.slow
async def test_seventy_agreements_with_one_peer(tmp_path: Path) -> None:
    house = await agreements_beside_a_long_call(tmp_path, 70, 25.0)
    assert all(link.faults == 0 for link in house.provider.links._links)


async def test_a_call_waits_for_a_channel_when_all_are_in_use(tmp_path: Path) -> None:
    (tmp_path / "slow_jobs.py").write_text(SLOW)
    async with house_in(tmp_path, limits__max_channels=1) as house:
        provider = house.provider
        save_attachment(
            provider.home.attachments,
            AttachmentSpec(
                kind="python",
                name="linger",
                target="slow_jobs:linger",
                cwd=tmp_path,
                expose=("*",),
            ),
        )
        await provider.reload()
        async with asyncio.TaskGroup() as tasks:
            long = tasks.create_task(house.call("linger", seconds=4.0))
            await asyncio.sleep(2.0)
            assert await house.call("twice", number=1) == {"twice": 2}
        assert long.result() == {"result": "done"}


async def test_idle_channels_close_and_the_next_call_opens_one(tmp_path: Path) -> None:
    async with house_in(tmp_path, channels__idle_timeout=1.0) as house:
        await house.others_are_served()
        assert house.caller.links.open_channels == 1
        await until(lambda: house.caller.links.open_channels == 0)
        await until(lambda: house.provider.links.open_channels == 0)
        await house.others_are_served()
        assert house.caller.links.open_links == 1


async def test_workers_of_idle_agreements_end_and_come_back(tmp_path: Path) -> None:
    async with house_in(tmp_path, sandbox__idle_timeout=1.0) as house:
        await house.others_are_served()
        await until(lambda: house.caller.sandbox.loaded == 0)
        await until(lambda: house.provider.sandbox.loaded == 0)
        # The channel is open still, and its code is loaded anew.
        result = await house.result("twice", {"number": 4})
        assert result.output == {"twice": 8}
        assert result.source == "agreement"


async def test_a_frame_that_is_too_large_ends_its_channel_and_not_its_link(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house, house.peer() as peer:
        await peer.open()
        limit = house.provider.config.limits.max_message
        envelope = peer.sealed(
            encode_frame(Frame(ProtocolType.META, b" " * (limit // 4 * 3)))
        )
        text = json.dumps(envelope)
        assert limit < len(text) < 2 * limit
        await peer.say(text)
        closed = await peer.hear_meta()
        assert closed["action"] == "channelClose"
        assert f"limit {limit}" in closed["reason"]
        # The link is as good as before.
        await peer.open()


async def test_a_message_of_more_than_twice_the_limit_ends_the_link(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house, house.peer() as peer:
        await peer.open()
        limit = house.provider.config.limits.max_message
        await peer.say("x" * (2 * limit + 1))
        with pytest.raises(ConnectionClosed) as caught:
            await peer.hear()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1009
        await house.others_are_served()


def counts_of(house: House, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return the microseconds that the provider counts from now on, by address."""
    counts: Counter[str] = Counter()
    work = house.provider.links.admission.work

    def note(counting: Callable[[StrangerWork, str, float], None]) -> Any:
        def noted(self: StrangerWork, key: str, seconds: float) -> None:
            if self is work:
                counts[key] += int(seconds * 1e6)
            counting(self, key, seconds)

        return noted

    # A message that waited is taken by a task, another one as it is read.
    for counting in (StrangerWork.worked, StrangerWork.charge):
        monkeypatch.setattr(StrangerWork, counting.__name__, note(counting))
    return counts


@pytest.mark.parametrize(
    ("pause", "is_prompt"),
    [(0.0, True), (0.03, True), (0.03, False)],
    ids=["together", "one by one", "by the library's queue"],
)
async def test_the_work_behind_a_message_of_a_stranger_counts_for_its_address(
    pause: float, is_prompt: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Heard, "said", lambda *said: take_time())
    if not is_prompt:
        monkeypatch.setattr(PromptConnection, "_is_prompt", False)
    async with house_in(tmp_path) as house:
        counts = counts_of(house, monkeypatch)
        async with stranger_at(house) as peer:
            await open_channel(peer, uris=(ENVELOPE_URI,))
            before = counts[STRANGER[0]]
            for _ in range(20):
                await peer.send_frame(ProtocolType.APPLICATION, event_of(peer))
                await asyncio.sleep(pause)
            # The messages alone take a tenth of that.
            least = 20 * WORK * 1e6
            await until(lambda: counts[STRANGER[0]] - before >= least)


async def test_all_that_a_link_does_in_a_handshake_of_a_stranger_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is done in the stranger's turn, or by a task whose time is measured."""
    counted: list[bool] = []
    pump = Link._pump

    def noted(self: Link) -> None:
        if self._guest is not None and self.alive:
            in_turn = self._guest.admission.work._running
            counted.append(in_turn or current_meter.get() is self._guest)
        pump(self)

    monkeypatch.setattr(Link, "_pump", noted)
    async with house_in(tmp_path) as house, stranger_at(house) as peer:
        await open_channel(peer)
    assert counted
    assert all(counted)


async def test_the_work_behind_a_hello_of_a_stranger_counts_for_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Acceptor.answer_hello

    async def slow(self: Acceptor, hello: NeedHelloAnswer) -> MetaProtocol:
        take_time()
        return await answer(self, hello)

    monkeypatch.setattr(Acceptor, "answer_hello", slow)
    async with house_in(tmp_path) as house:
        counts = counts_of(house, monkeypatch)
        async with stranger_at(house) as peer:
            await open_channel(peer)
            # All else of a handshake takes a fifth of that.
            assert counts[STRANGER[0]] >= WORK * 1e6


@contextlib.asynccontextmanager
async def stranger_at(house: House) -> AsyncIterator[RawPeer]:
    """Connect to the provider from another address."""
    async with connect(
        house.provider.url, proxy=None, compression=None, local_addr=STRANGER
    ) as connection:
        yield RawPeer(connection, house.provider.did)


def event_of(peer: RawPeer) -> bytes:
    """Return an event of the envelope protocol."""
    message = {
        "protocol_version": "1.0",
        "message_id": str(uuid.uuid4()),
        "timestamp": datetime.now(UTC).isoformat(),
        "sender_id": peer.identity.did,
        "receiver_id": "broadcast",
        "message_type": "event",
        "payload": {"event_name": "e", "event_data": {}},
    }
    return json.dumps(message).encode()
