"""Encrypted frames against a raw WebSocket echo of the same bytes.

    python -m bench.frames [--rounds N] [--no-binary]

Two ends in one process send a payload to and fro over a WebSocket of this machine, and
the CPU of the process is counted: bare, through two link cores (`core`: as the library
reads and writes messages, `core, prompt`: as links have it do that), and through two
whole links (`link`); with JSON envelopes, and with binary ones. All forms take
turns in each round. Printed is the CPU of two raw echoes over ours, so 1.00 is as cheap
as no protocol at all; median, and least to most of the rounds. One raw echo reads as
the library does, which is slow; the other as links have it do that, so that what our
reader saves does not hide what our frames cost. The last line is a handshake between
two cores over one of the official SDK, which runs in an environment of its own. Only
ratios of one run can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import (
    ChannelOpened,
    FrameReceived,
    NeedHelloAnswer,
    NeedPeerKeyCheck,
)
from anp.channel.core.limits import LinkConfig, LinksConfig
from anp.channel.core.link_core import LinkCore
from anp.channel.links import Links, LinkTarget
from anp.channel.pipe import Pipe, PromptConnection
from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.identity.resolver import ChainResolver
from anp.sidecar.process.run import keep_freed_memory
from anp.wire.envelopes import is_binary
from anp.wire.frames import Frame, ProtocolType, frame_of
from anp.wire.keys import EphemeralKey
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment, moment_of
from anp.wire.replay import HelloMemory

SIZES: Final = {"1 KiB": (1024, 200), "64 KiB": (64 * 1024, 40), "1 MiB": (2**20, 6)}
"Bytes of the payload, and echoes of it in one round."

HANDSHAKES: Final = 20
MOST: Final = 16 * 1024 * 1024
META: Final = MetaProtocol(
    used_protocol_hash="ab" * 32,
    extensions=("close", "counter", "maxMessage"),
    max_message=MOST,
)
APPLICATION: Final = ProtocolType.APPLICATION
CONFIG: Final = LinkConfig()
"A daemon makes its own once, too."

BINARY: Final = replace(META, extensions=("binary", *META.extensions))

Echo = Callable[[bytes], Awaitable[bytes]]


def _now() -> Moment:
    return moment_of((time.monotonic(), time.time_ns()))


class End:
    """One side: its identity, a core of its own, and the links."""

    def __init__(self, meta: MetaProtocol) -> None:
        self.meta = meta
        self.identities = Identities.of_method(PrivateKey.generate(), "did:all")
        self.core = self.fresh_core()
        self.channel_id = ""

    @property
    def did(self) -> str:
        return self.identities.primary.did

    def fresh_core(self) -> LinkCore:
        return LinkCore(
            CONFIG,
            identity_for=self.identities.for_did,
            hellos=HelloMemory(),
            random_bytes=os.urandom,
            make_key=EphemeralKey.of_system,
            now=time.monotonic(),
        )

    def links(self) -> Links:
        return Links(
            LinksConfig(),
            identities=self.identities,
            resolver=ChainResolver(),
            acceptor=self,
            # What a stranger sends waits for its turn; that is not measured here.
            is_listed=lambda did: True,
        )

    def take(self, text: str | bytes) -> list[Frame]:
        """Give the core what came; return the frames in it."""
        self.core.receive_text(text, now=_now())
        return self.act()

    def act(self) -> list[Frame]:
        """Answer what the core asks; return the frames that it gives."""
        frames = []
        while (event := self.core.next_event()) is not None:
            if isinstance(event, FrameReceived):
                frames.append(event.frame)
                continue
            match event:
                case NeedPeerKeyCheck(session_id=session):
                    self.core.key_checked(session, None, now=_now())
                case NeedHelloAnswer(session_id=session):
                    self.core.answer_hello(session, self.meta, now=_now())
                case ChannelOpened(channel_id=opened):
                    self.channel_id = opened
        return frames

    def say(self, data: bytes) -> list[bytes]:
        """Return the messages that carry a payload."""
        frame = frame_of((APPLICATION, data))
        self.core.send_frame(self.channel_id, frame, now=_now())
        return cast("list[bytes]", self.core.messages_to_send())

    async def answer_hello(self, hello: NeedHelloAnswer) -> MetaProtocol:
        """Accept everybody."""
        return self.meta

    async def serve_channel(self, channel: Channel) -> None:
        """Return what comes."""
        with contextlib.suppress(ChannelClosed):
            while True:
                event = await channel.receive()
                await channel.send(APPLICATION, event.frame.data)


def shake_hands(one: End, two: End) -> None:
    """Open a channel between the cores of two ends."""
    one.core.open_channel(one.identities.primary, two.did, one.meta, now=_now())
    sides = one, two
    while texts := sides[0].core.messages_to_send():
        for text in texts:
            sides[1].take(text)
        sides = sides[1], sides[0]
    assert one.channel_id == two.channel_id != ""


def _port(server: Server) -> int:
    return int(next(iter(server.sockets)).getsockname()[1])


@contextlib.asynccontextmanager
async def raw() -> AsyncIterator[Echo]:
    """Give an echo without any protocol."""

    async def back(socket: ServerConnection) -> None:
        async for data in socket:
            await socket.send(data)

    async with (
        serve(back, "127.0.0.1", 0, compression=None, max_size=None) as server,
        connect(
            f"ws://127.0.0.1:{_port(server)}", compression=None, max_size=None
        ) as socket,
    ):

        async def echo(data: bytes) -> bytes:
            await socket.send(data)
            answer = await socket.recv()
            assert isinstance(answer, bytes)
            return answer

        yield echo


@contextlib.asynccontextmanager
async def cores(meta: MetaProtocol) -> AsyncIterator[Echo]:
    """Give an echo through two cores."""
    one, two = End(meta), End(meta)
    shake_hands(one, two)

    async def back(socket: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                for frame in two.take(await socket.recv(decode=False)):
                    for message in two.say(frame.data):
                        await socket.send(message, text=not is_binary(message))

    async with (
        serve(back, "127.0.0.1", 0, compression=None, max_size=None) as server,
        connect(
            f"ws://127.0.0.1:{_port(server)}", compression=None, max_size=None
        ) as socket,
    ):

        async def echo(data: bytes) -> bytes:
            for message in one.say(data):
                await socket.send(message, text=not is_binary(message))
            [frame] = one.take(await socket.recv(decode=False))
            return frame.data

        yield echo


class _Served(PromptConnection, ServerConnection):
    """The server's end of the connection that links use."""


class _Dialled(PromptConnection, ClientConnection):
    """The client's end of it."""


async def _taking(socket: PromptConnection, take: Callable[[bytes], None]) -> None:
    """Give what comes to `take`, as a link does, until the connection ends."""

    def taken(message: bytes) -> bool:
        take(message)
        return True

    socket.take = taken
    with contextlib.suppress(ConnectionClosed):
        while True:
            taken(await socket.recv(decode=False))


@contextlib.asynccontextmanager
async def prompt_raw() -> AsyncIterator[Echo]:
    """Give an echo without any protocol, over the connection that links use."""
    async with _prompt(lambda data: [data], lambda data: data) as say:

        async def echo(data: bytes) -> bytes:
            return await say([data])

        yield echo


@contextlib.asynccontextmanager
async def prompt_cores(meta: MetaProtocol) -> AsyncIterator[Echo]:
    """Give an echo through two cores, over the connection that links use."""
    one, two = End(meta), End(meta)
    shake_hands(one, two)

    def back(message: bytes) -> list[bytes]:
        return [one for frame in two.take(message) for one in two.say(frame.data)]

    def answered(message: bytes) -> bytes:
        [frame] = one.take(message)
        return frame.data

    async with _prompt(back, answered) as say:

        async def echo(data: bytes) -> bytes:
            return await say(one.say(data))

        yield echo


@contextlib.asynccontextmanager
async def _prompt(
    back: Callable[[bytes], list[bytes]], answered: Callable[[bytes], bytes]
) -> AsyncIterator[Callable[[list[bytes]], Awaitable[bytes]]]:
    """Give a way to send messages over the connection of links and await one answer.

    Args:
        back: Returns the messages with which the other end answers one.
        answered: Returns the payload of the answer.
    """
    answers: list[asyncio.Future[bytes]] = []

    async def serves(socket: ServerConnection) -> None:
        assert isinstance(socket, _Served)
        pipe = Pipe(socket)

        def take(message: bytes) -> None:
            for answer in back(message):
                pipe.put(answer)

        await _taking(socket, take)

    def arrived(message: bytes) -> None:
        answers.pop().set_result(answered(message))

    options: dict[str, Any] = {"compression": None, "max_size": 2 * MOST}
    async with (
        serve(serves, "127.0.0.1", 0, create_connection=_Served, **options) as server,
        connect(
            f"ws://127.0.0.1:{_port(server)}", create_connection=_Dialled, **options
        ) as socket,
        asyncio.TaskGroup() as tasks,
    ):
        assert isinstance(socket, _Dialled)
        pipe = Pipe(socket)
        reader = tasks.create_task(_taking(socket, arrived))

        async def say(messages: list[bytes]) -> bytes:
            answers.append(asyncio.get_running_loop().create_future())
            for message in messages:
                pipe.put(message)
            return await answers[-1]

        yield say
        reader.cancel()


@contextlib.asynccontextmanager
async def links(meta: MetaProtocol) -> AsyncIterator[Echo]:
    """Give an echo through two whole links."""
    one, two = End(meta), End(meta)
    ours, theirs = one.links(), two.links()
    port = await theirs.listen("127.0.0.1", 0, dict)
    try:
        target = LinkTarget(two.did, f"ws://127.0.0.1:{port}/")
        channel = await ours.open_channel(target, one.meta)

        async def echo(data: bytes) -> bytes:
            await channel.send(APPLICATION, data)
            return (await channel.receive()).frame.data

        yield echo
    finally:
        await ours.close()
        await theirs.close()


async def _cpu(echo: Echo, data: bytes, times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        assert len(await echo(data)) == len(data)
    return (time.process_time() - started) / times


async def measure(rounds: int, *, has_binary: bool) -> None:
    """Print the ratios of the frames."""
    async with contextlib.AsyncExitStack() as stack:
        forms = {
            "raw": await stack.enter_async_context(raw()),
            "raw, prompt": await stack.enter_async_context(prompt_raw()),
            "JSON, core": await stack.enter_async_context(cores(META)),
            "JSON, core, prompt": await stack.enter_async_context(prompt_cores(META)),
            "JSON, link": await stack.enter_async_context(links(META)),
        }
        if has_binary:
            forms |= {
                "binary, core": await stack.enter_async_context(cores(BINARY)),
                "binary, core, prompt": await stack.enter_async_context(
                    prompt_cores(BINARY)
                ),
                "binary, link": await stack.enter_async_context(links(BINARY)),
            }
        for size, (length, times) in SIZES.items():
            data = os.urandom(length)
            took: dict[str, list[float]] = {name: [] for name in forms}
            for number in range(rounds + 1):
                for name, echo in forms.items():
                    each = await _cpu(echo, data, times)
                    if number:
                        took[name].append(each)
            raws = {name: took.pop(name) for name in ("raw", "raw, prompt")}
            middles = [1e6 * statistics.median(one) for one in raws.values()]
            print(f"{size}: raw echo {middles[0]:.0f} µs of CPU,", end=" ")
            print(f"with our reader {middles[1]:.0f}")
            for name, ours in took.items():
                both = (
                    _spread([a / b for a, b in zip(bare, ours, strict=True)])
                    for bare in raws.values()
                )
                print(f"  {name:20} {'   with our reader '.join(both)}")


def _spread(values: list[float]) -> str:
    middle = statistics.median(values)
    return f"{middle:.2f} ({min(values):.2f} to {max(values):.2f})"


def handshakes(rounds: int) -> None:
    """Print the CPU of a handshake, and its ratio to that of the official SDK."""
    ours = []
    one, two = End(META), End(META)
    for number in range(rounds + 1):
        started = time.process_time()
        for _ in range(HANDSHAKES):
            one.core, two.core = one.fresh_core(), two.fresh_core()
            shake_hands(one, two)
        if number:
            ours.append((time.process_time() - started) / HANDSHAKES)
    tree = Path(__file__).parents[1]
    sdk = tree / ".venvs" / "sdk" / "bin" / "python"
    print(f"handshake, both cores: {1e6 * statistics.median(ours):.0f} µs of CPU")
    if not sdk.exists():
        print("  the official SDK is not installed (make sdk-env)")
        return
    with tempfile.TemporaryDirectory() as folder:
        # Outside the project: both packages are called `anp`.
        script = Path(__file__).with_name("sdk_handshake.py")
        told = subprocess.run(
            [sdk, "-P", script, str(rounds), str(HANDSHAKES)],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
    theirs = [float(line) for line in told.stdout.split()]
    ratios = [a / statistics.median(theirs) for a in ours]
    print(f"  of the official SDK's {1e6 * statistics.median(theirs):.0f} µs")
    print(f"  {'ratio':20} {_spread(ratios)}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-binary", action="store_true")
    given = parser.parse_args()
    # As a daemon does; it is good for the raw echo too.
    keep_freed_memory()
    asyncio.run(measure(given.rounds, has_binary=not given.no_binary))
    handshakes(given.rounds)


if __name__ == "__main__":
    main()
