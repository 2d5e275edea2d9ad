"""A warm call between two daemons against a raw WebSocket echo of the same bytes.

`python -m bench.call` measures a call over an agreement, one over the envelope, and one
over an agreement by a caller whose store knows a thousand further peers, all through
the local API of daemons that run as processes of their own. `--against DIR` measures
another checkout in the same run: both take turns, so that what else the machine does
meets both. It prints lower deciles and medians. Only ratios of one run can be compared.
They are ratios of lower deciles: on a busy machine a median measures other processes.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

ROUNDS = 40
CALLS = 8
"Calls of each kind in one round."

WARM = 70
"Calls of each kind before the first round: a channel keeps its last 64 exchanges."

PEERS = 1_000
MOST = 1.1
"A call with that many peers stored may cost so many times one with a single peer."

START_TIMEOUT = 120.0
CALL_TIMEOUT = 120.0

ARGUMENTS = {"number": 21, "text": "same bytes both ways"}

FUNCTION = """
def double(number: int, text: str) -> dict[str, str]:
    return {"text": text, "number": str(number * 2)}
"""

FILL = """
import sys
from pathlib import Path
try:
    from cache.records.peers import PeerRecord, PeerState
    from cache.store import Store
except ImportError:
    # A checkout from before the rooms.
    from cache import PeerRecord, PeerState, Store
with Store(Path(sys.argv[1])) as store:
    for number, did in enumerate(Path(sys.argv[2]).read_text().split()):
        alias = f"did:all:1{number}"
        store.save_peer(PeerRecord(did, PeerState.ALLOWED, 1.0, 1.0, aliases=(alias,)))
"""
"Run by the measured checkout: its own store knows how a peer is kept."


class LocalApi(http.client.HTTPConnection):
    """One kept connection to the local API of a daemon."""

    def __init__(self, path: str, *, need: str) -> None:
        # In blocks as those of the raw copy that files are compared with.
        super().__init__("anpd", timeout=CALL_TIMEOUT, blocksize=256 * 1024)
        self.need = need
        "Name of the field of a call that says what is wanted; it was `task` once."
        self.path = path
        "The socket."
        self.connect()

    def connect(self) -> None:
        """Connect to the socket of the daemon, anew if there is a connection."""
        self.close()
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(CALL_TIMEOUT)
        self.sock.connect(self.path)


class Anpd:
    """A home, and the daemon of a checkout that runs in it."""

    def __init__(
        self, tree: Path, home: Path, *, consensus: bool = False, binary: bool = True
    ) -> None:
        self._tree = tree
        self._home = home
        own = tree / ".venv" / "bin" / "python"
        self.executable = str(own) if own.exists() else sys.executable
        kept = {k: v for k, v in os.environ.items() if not k.startswith("ANPD_")}
        self.environment = {
            **kept,
            "PYTHONPATH": str(tree),
            "ANPD_CONSENSUS__USE": str(consensus).lower(),
            # A checkout from before binary frames does not know the setting.
            **({} if binary else {"ANPD_CHANNELS__BINARY": "false"}),
        }

    def python(self, *arguments: str) -> None:
        """Run the checkout's Python to its end."""
        subprocess.run(
            [self.executable, *arguments],
            cwd=self._home.parent,
            env=self.environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def run(self, *arguments: str) -> None:
        """Run one command on this home."""
        self.python("-m", "anp", "--home", str(self._home), *arguments)

    def remember(self, dids: Iterable[str]) -> None:
        """Allow further peers in the store of this home, while no daemon runs."""
        names = self._home.with_suffix(".peers")
        names.write_text("\n".join(dids))
        self.python("-c", FILL, str(self._home / "store"), str(names))

    @contextmanager
    def up(self) -> Iterator[tuple[str, LocalApi]]:
        """Run the daemon for a block; give its address and its local API."""
        ready = self._home.with_suffix(".ready")
        ready.unlink(missing_ok=True)
        log = self._home.with_suffix(".log")
        with log.open("ab") as output:
            process = subprocess.Popen(
                [
                    *(self.executable, "-m", "anp", "--home", str(self._home), "up"),
                    *("--port", "0", "--ready-file", str(ready)),
                ],
                cwd=self._home.parent,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            limit = time.monotonic() + START_TIMEOUT
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > limit:
                    raise RuntimeError(f"no daemon:\n{log.read_text()}")
                time.sleep(0.05)
            known = json.loads(ready.read_text())
            api = json.loads((self._home / "api.json").read_text())["socket"]
            renamed = (self._tree / "negotiation" / "need.py").exists()
            need = "need" if renamed else "task"
            yield f"{known['url']}#{known['did']}", LocalApi(api, need=need)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


@dataclass
class Measured:
    """One kind of call, and the seconds that each took."""

    name: str
    call: Callable[[], float]
    begin: Callable[[], object] = lambda: None
    "Called before each round, because a daemon ends connections that are idle."

    times: list[float] = field(default_factory=list)

    @property
    def p50(self) -> float:
        """The median, in seconds."""
        return statistics.median(self.times)

    @property
    def p10(self) -> float:
        """The lower decile, in seconds."""
        return statistics.quantiles(self.times, n=10)[0]


def call(api: LocalApi, peer: str, *, source: str | None) -> float:
    """Make one call, and return the seconds it took.

    Args:
        source: The source that its protocol has to have; None takes any.
    """
    body = json.dumps({"peer": peer, api.need: "double", "input": ARGUMENTS})
    started = time.perf_counter()
    api.request("POST", "/v1/calls", body, {"content-type": "application/json"})
    answer = api.getresponse()
    data = answer.read()
    took = time.perf_counter() - started
    found: Any = json.loads(data)
    if answer.status != 200 or found["output"].get("number") != "42":
        raise RuntimeError(f"the call failed: {answer.status} {found}")
    if source is not None and found["source"] != source:
        raise RuntimeError(f"the call went through {found['source']}, not {source}")
    return took


def kinds_of(stack: ExitStack, tree: Path, folder: Path) -> list[Measured]:
    """Start the daemons of one checkout, and return what to measure of it."""
    folder.mkdir()
    (folder / "made.py").write_text(FUNCTION)
    provider = Anpd(tree, folder / "provider")
    provider.run("attach", "python", "made:double", "--expose", "*", "--name", "b")
    address, _ = stack.enter_context(provider.up())
    found: list[Measured] = []
    for name, source, peers in (
        ("agreement", "agreement", 0),
        ("envelope", "consensus", 0),
        (f"agreement, {PEERS:,} peers stored", "agreement", PEERS),
    ):
        home = folder / f"caller{len(found)}"
        caller = Anpd(tree, home, consensus=source == "consensus")
        # Each is started a second time, so that only the peers differ.
        with caller.up() as (_, api):
            call(api, address, source=None)
        caller.remember(f"did:key:z{one}" for one in range(peers))
        _, api = stack.enter_context(caller.up())
        for _ in range(WARM):
            call(api, address, source=None)

        def once(api: LocalApi = api, source: str = source) -> float:
            return call(api, address, source=source)

        found.append(Measured(name, once, api.connect))
    return found


@contextmanager
def echo() -> Iterator[Measured]:
    """Serve an echo in this process, and exchange the same bytes with it."""

    async def answer(connection: ServerConnection) -> None:
        async for message in connection:
            await connection.send(message)

    async def begin() -> tuple[Any, Any]:
        server = await serve(answer, "127.0.0.1", 0, compression=None)
        port = next(iter(server.sockets)).getsockname()[1]
        url = f"ws://127.0.0.1:{port}/"
        return server, await connect(url, compression=None, proxy=None)

    with asyncio.Runner() as runner:
        server, raw = runner.run(begin())
        data = json.dumps({"messageId": "0" * 16, "input": ARGUMENTS})

        async def exchange() -> float:
            started = time.perf_counter()
            await raw.send(data)
            await raw.recv()
            return time.perf_counter() - started

        yield Measured("raw echo of the same bytes", lambda: runner.run(exchange()))
        runner.run(raw.close())
        server.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout")
    against: Path | None = parser.parse_args().against
    trees = {"": Path(__file__).resolve().parents[1]}
    if against is not None:
        trees[f" ({against})"] = against.resolve()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench")))
        raw = stack.enter_context(echo())
        kinds = [
            kinds_of(stack, tree, folder / str(number))
            for number, tree in enumerate(trees.values())
        ]
        turns = [raw, *(one for several in kinds for one in several)]
        for _ in range(ROUNDS):
            # In another order each time: what runs before a call warms or cools for it.
            for one in random.sample(turns, len(turns)):
                one.begin()
                one.times += [one.call() for _ in range(CALLS)]
    count = ROUNDS * CALLS
    print(f"lower decile and median of {count} calls each, in one run")
    print(f"{raw.name}: {raw.p10 * 1e3:.2f} ms, {raw.p50 * 1e3:.2f} ms")
    for suffix, several in zip(trees, kinds, strict=True):
        for one in several:
            print(
                f"call over the {one.name}{suffix}: {one.p10 * 1e3:.2f} ms, "
                f"{one.p50 * 1e3:.2f} ms; {one.p10 / raw.p10:.1f} times the raw echo"
            )
        few, _, many = several
        print(
            f"{PEERS:,} peers stored / one{suffix}: {many.p10 / few.p10:.2f} "
            f"(at most {MOST})"
        )
    if against is not None:
        for ours, theirs in zip(*kinds, strict=True):
            print(f"here / there, {ours.name}: {ours.p10 / theirs.p10:.2f}")


if __name__ == "__main__":
    main()
