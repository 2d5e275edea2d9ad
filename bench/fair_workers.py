"""Calls of good peers while another peer keeps the schema workers busy.

`python -m bench.fair_workers` runs a provider and two good callers in one process, and
an attacker in another one, on another core where there is one. It prints p50 and p99 of
a listed peer's calls and of a new peer's, as ratios to the quiet time, for two attacks:
values that make a `pattern` with nested repetitions go back for ever, and values that
take long to check for whatever reason. The attacker's daemon checks nothing itself. All
come from one address, which is the hardest case for the new peer: it shares what its
address has with the attacker.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from anp.errors import CallError
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.attachments.declaration import DeclaredCapability
from anp.sidecar.calls.call import CallRequest
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from cache.records.peers import PeerState
from negotiation.need import Need

SOURCE = """
def twice(number: int) -> dict[str, int]:
    return {"twice": number * 2}
"""

TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}},
    "required": ["text"],
}
LIST = {
    "type": "object",
    "properties": {"list": {"type": "array", "uniqueItems": True}},
    "required": ["list"],
}
ATTACKS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "pattern": ("bad.text", {"text": "aa"}, {"text": "a" * 60 + "!"}),
    "list": ("bad.list", {"list": []}, {"list": [{"n": n} for n in range(8_000)]}),
}
"Name of the capability, arguments that are well, and those of the attack."

MANY = 8
"Calls of the attacker that are under way at a time."


def _daemon(folder: Path, **flags: Any) -> Daemon:
    home = Home(folder)
    home.create()
    settings = {"listen.port": 0, "consensus.use": False, **flags}
    config = load_config(home, home_given=True, flags=settings, environ={}, cwd=folder)
    return Daemon(home, config)


async def _answering() -> int:
    """Serve an agent that answers every call with nothing; return its port."""
    body = b'{"output": {}}'

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            head += b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
            writer.write(head + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return int(server.sockets[0].getsockname()[1])


@contextlib.asynccontextmanager
async def _provider(folder: Path) -> AsyncIterator[Daemon]:
    home = Home(folder / "provider")
    home.create()
    (folder / "bench_twice.py").write_text(SOURCE)
    save_attachment(
        home.attachments,
        AttachmentSpec(
            kind="python",
            name="good",
            target="bench_twice:twice",
            cwd=folder,
            expose=("*",),
        ),
    )
    save_attachment(
        home.attachments,
        AttachmentSpec(
            kind="callback",
            name="bad",
            url=f"http://127.0.0.1:{await _answering()}/",
            capabilities=(
                DeclaredCapability(name="text", input_schema=TEXT),
                DeclaredCapability(name="list", input_schema=LIST),
            ),
            expose=("*",),
        ),
    )
    daemon = _daemon(folder / "provider", **{"policy.peers": "any"})
    async with daemon.running():
        yield daemon


async def _call(caller: Daemon, peer: str, name: str, given: Any) -> None:
    request = CallRequest(peer=peer, need=Need(name), arguments=given)
    await caller.caller.call(request)


async def attack(peer: str, name: str, folder: Path) -> None:
    """Send what takes long to check, without end."""
    evil = _daemon(folder)
    what, well, bad = ATTACKS[name]

    async def nothing(*_: Any) -> list[str]:
        return []

    async def again() -> None:
        while True:
            with contextlib.suppress(CallError):
                await _call(evil, peer, what, bad)
            await asyncio.sleep(0.01)

    checks: Any = evil.validator
    checks.validate = checks.validate_json = checks.check_schema = nothing
    async with evil.running():
        await _call(evil, peer, what, well)
        print("attacks", flush=True)
        await asyncio.gather(*(again() for _ in range(MANY)))


@contextlib.asynccontextmanager
async def _attacked(peer: str, name: str, folder: Path) -> AsyncIterator[None]:
    command = [sys.executable, "-m", "bench.fair_workers", "--attack", name, peer]
    process = await asyncio.create_subprocess_exec(
        *command,
        str(folder),
        stdout=asyncio.subprocess.PIPE,
        preexec_fn=lambda: _stay_on(1),
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"attacks\n"
        await asyncio.sleep(1)
        yield
    finally:
        process.terminate()
        await process.wait()


def _stay_on(core: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, {cores[core]})


async def _measure(
    caller: Daemon, peer: str, seconds: float
) -> tuple[float, float, int]:
    took: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        await _call(caller, peer, "good.twice", {"number": 4})
        took.append(time.monotonic() - began)
    took.sort()
    return took[len(took) // 2], took[len(took) * 99 // 100], len(took)


async def main(seconds: float) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="anpd-bench-") as place:
        folder = Path(place)
        listed, new = _daemon(folder / "a"), _daemon(folder / "b")
        async with _provider(folder) as provider, listed.running(), new.running():
            peer = f"{provider.url}#{provider.did}"
            provider.store.see_peer(
                listed.did,
                shown_did=listed.did,
                now=time.time(),
                state=PeerState.ALLOWED,
            )
            quiet = {}
            good = {"listed": listed, "new": new}
            for who, caller in good.items():
                await _call(caller, peer, "good.twice", {"number": 4})
                quiet[who] = await _measure(caller, peer, seconds)
                p50, p99, calls = quiet[who]
                _print("quiet", who, p50, p99, calls)
            for at, name in enumerate(ATTACKS):
                async with _attacked(peer, name, folder / f"evil{at}"):
                    for who, caller in good.items():
                        p50, p99, calls = await _measure(caller, peer, seconds)
                        _print(name, who, p50, p99, calls)
                        ratios = p50 / quiet[who][0], p99 / quiet[who][1]
                        print("  ratios: p50 {:.1f}, p99 {:.1f}".format(*ratios))


def _print(name: str, who: str, p50: float, p99: float, calls: int) -> None:
    print(
        f"{name:8} {who:7} p50 {p50 * 1e3:8.1f} ms  p99 {p99 * 1e3:8.1f} ms  "
        f"{calls} calls",
        flush=True,
    )


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    parser = argparse.ArgumentParser(description="Calls while the workers are busy.")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a measurement")
    parser.add_argument("--attack", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.attack:
        asyncio.run(attack(given.attack[1], given.attack[0], Path(given.attack[2])))
    else:
        _stay_on(0)
        asyncio.run(main(given.seconds))
