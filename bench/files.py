"""A file from disk to disk between two daemons against a raw copy over a WebSocket.

`python -m bench.files --size 1024` uploads a file of so many MiB to one daemon, has a
function at another daemon return it, and saves what came back. Raw copies of the same
file go by turns with it, five times each. It prints the seconds of each way, their
throughput and CPU as ratios to the raw copy of the same turn (median, least to most),
and by how much the memory of both daemons grew at most. Only the ratios count.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import threading
import time
import timeit
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from anp.interaction.operations import Acknowledgement, FilePiece
from anp.protocols.gbz.reader import read_frame
from anp.protocols.gbz.writer import write_frame
from anp.sidecar.files.sealed_file import SealedWriter, read_blocks
from anp.wire.envelopes import read_envelope
from anp.wire.keys import SessionKeys
from bench.call import Anpd, LocalApi
from tests.anp.wire.peers import open_envelope, seal

MIB = 1024 * 1024
BLOCK = 256 * 1024
TURNS = 5
"Times that the file goes each way, by turns with the raw copy."

WARM_SIZE = 8 * MIB
"Bytes of the file that goes first, so that everything is imported."

MOST_GROWTH = 32 * MIB
"Bytes by which the memory of each daemon may grow."

FUNCTION = """
from pathlib import Path

def back(book: Path) -> Path:
    return book
"""


class Memory:
    """Watches the resident memory of some processes while a block runs."""

    def __init__(self, **pids: int) -> None:
        self._pids = pids
        self.grown: dict[str, int] = {}
        "Most bytes above those at the beginning, by name."

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at it every 20 ms."""
        before = {name: _resident(pid) for name, pid in self._pids.items()}
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(0.02):
                for name, pid in self._pids.items():
                    grown = _resident(pid) - before[name]
                    self.grown[name] = max(grown, self.grown.get(name, 0))

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _worked(pid: int) -> float:
    """Return the seconds that a process has had of the processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def raw_copy(source: Path, target: Path) -> tuple[float, float]:
    """Copy a file over a WebSocket between two processes.

    Returns:
        The seconds that passed, and those of the processors in both.
    """
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    before = [resource.getrusage(kind) for kind in kinds]
    ours, theirs = multiprocessing.Pipe()
    receiver = multiprocessing.Process(target=_receive, args=(target, theirs))
    receiver.start()
    port = ours.recv()
    started = time.perf_counter()
    asyncio.run(_send(source, port))
    ours.recv()
    took = time.perf_counter() - started
    receiver.join()
    after = [resource.getrusage(kind) for kind in kinds]
    worked = sum(one.ru_utime + one.ru_stime for one in after)
    return took, worked - sum(one.ru_utime + one.ru_stime for one in before)


async def _send(source: Path, port: int) -> None:
    async with connect(f"ws://127.0.0.1:{port}", compression=None) as socket:
        with source.open("rb") as file:
            while data := file.read(BLOCK):
                await socket.send(data)


def _receive(target: Path, told: Any) -> None:
    async def run() -> None:
        done = asyncio.Event()

        async def take(socket: ServerConnection) -> None:
            with target.open("wb") as file:
                async for data in socket:
                    assert isinstance(data, bytes)
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
            done.set()

        async with serve(take, "127.0.0.1", 0, compression=None) as server:
            told.send(next(iter(server.sockets)).getsockname()[1])
            await done.wait()
        told.send(True)

    asyncio.run(run())


def send_file(
    api: LocalApi,
    peer: str,
    source: Path,
    target: Path,
    worked: Callable[[], float] = lambda: 0.0,
) -> dict[str, float]:
    """Send a file there and back.

    Args:
        worked: Returns the seconds that both daemons have had of the processors.

    Returns:
        The seconds of each way, and, as `CPU`, those of the processors for one way
        between the daemons.
    """
    times = {}
    # The daemon ends connections that are idle.
    api.connect()
    started = time.perf_counter()
    with source.open("rb") as file:
        upload = _asked(
            api,
            "POST",
            "/v1/files?name=book",
            file,
            **{
                "content-type": "application/octet-stream",
                "content-length": str(source.stat().st_size),
            },
        )
    times["program to daemon"] = time.perf_counter() - started
    before = worked()
    task = _asked(
        api,
        "POST",
        "/v1/tasks",
        json.dumps(
            {"peer": peer, "capability": "b.back", "parts": [{"file": upload["id"]}]}
        ),
        **{"content-type": "application/json"},
    )
    path = f"/v1/tasks/{task['id']}"
    while not (found := _asked(api, "GET", path))["ended"]:
        time.sleep(0.02)
    if found["state"] != "completed":
        raise RuntimeError(f"the task is {found['state']}: {found['reason']}")
    [message] = found["messages"]
    [part] = message["parts"]
    started = time.perf_counter()
    while True:
        api.request("GET", f"{path}/artifacts/{part['artifact']}")
        answer = api.getresponse()
        if answer.status != 429:
            break
        answer.read()
        # Both daemons need the processors more than we do.
        time.sleep(0.005)
    came = time.time()
    # There as the input, and back as the result.
    times["CPU"] = (worked() - before) / 2
    if answer.status != 200:
        raise RuntimeError(f"no file: {answer.read()!r}")
    hashed = hashlib.sha256()
    started = time.perf_counter()
    with target.open("wb") as file:
        while data := answer.read(BLOCK):
            file.write(data)
            hashed.update(data)
    times["daemon to program"] = time.perf_counter() - started
    times["daemon to daemon"] = came - message["at"]
    if hashed.hexdigest() != upload["sha256"]:
        raise RuntimeError("another file came back")
    return times


def _asked(
    api: LocalApi, method: str, path: str, body: Any = None, **headers: str
) -> Any:
    api.request(method, path, body, headers)
    answer = api.getresponse()
    data = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{path}: {answer.status} {data!r}")
    return json.loads(data)


def layers(folder: Path) -> None:
    """Print the milliseconds that each layer needs for one piece, and their shares."""
    data, key = os.urandom(BLOCK), bytes(32)
    cipher, keys = AESGCM(key), SessionKeys("k" * 16, key[:16], key[:16])
    piece = FilePiece(offset=0, data=data)
    told = Acknowledgement(session="s", ref=2**52, piece=piece)
    frame = write_frame(told, 0, max_size=MIB)
    ids = {"source_did": "did:a:a", "destination_did": "did:b:b", "message_id": "m"}
    now = datetime.now(UTC)
    send = partial(seal, keys, frame, **ids, iv=bytes(12), timestamp=now)
    text = send()
    sealed = read_envelope(text)
    assert sealed is not None
    writer = SealedWriter(folder / "layer", cipher, "mark")
    writer.append(data)
    steps: dict[str, Callable[[], object]] = {
        "disk and AES at rest, read": partial(
            read_blocks, folder / "layer", cipher, "mark", range(1)
        ),
        "GB/Z frame written (JSON, base64)": partial(
            write_frame, told, 0, max_size=MIB
        ),
        "envelope sealed (AES, base64, JSON)": send,
        "envelope read (JSON)": partial(read_envelope, text),
        "envelope opened (base64, AES)": partial(open_envelope, keys, sealed),
        "GB/Z frame read (JSON, base64)": partial(read_frame, frame, max_size=MIB),
        "SHA-256, AES at rest and disk, written": partial(writer.append, data),
        "of these: one base64 each way": lambda: b64decode(b64encode(data)),
        "of these: AES once each way": lambda: cipher.decrypt(
            bytes(12), cipher.encrypt(bytes(12), data, None), None
        ),
    }
    took = {
        name: 1000 * min(timeit.repeat(step, number=20, timer=time.process_time)) / 20
        for name, step in steps.items()
    }
    whole = sum(took[name] for name in list(steps)[:7])
    for name, each in took.items():
        print(f"{name}: {each:.2f} ms a piece, {each / whole:.0%}")


def _spread(values: Sequence[float]) -> str:
    middle = statistics.median(values)
    return f"{middle:.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> int:
    """Measure, and print what was found; 1 if the memory grew by too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="MiB")
    parser.add_argument("--json", action="store_true", help="without binary frames")
    parser.add_argument("--unlisted", action="store_true", help="as a stranger")
    given = parser.parse_args()
    size, unlisted = given.size * MIB, given.unlisted
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        source = folder / "source"
        with source.open("wb") as file:
            for _ in range(0, size, MIB):
                file.write(os.urandom(MIB))
        warm = folder / "warm"
        warm.write_bytes(os.urandom(WARM_SIZE))
        (folder / "made.py").write_text(FUNCTION)
        tree = Path(__file__).parents[1]
        provider, caller = (
            Anpd(tree, folder / name, consensus=True, binary=not given.json)
            for name in ("provider", "caller")
        )
        provider.run("attach", "python", "made:back", "--expose", "*", "--name", "b")
        with provider.up() as (address, _), caller.up() as (own, api):
            # Strangers get a third of the time, so that others have the rest.
            if not unlisted:
                provider.run("peers", "allow", own.rpartition("#")[2])
            send_file(api, address, warm, folder / "warm.back")
            pids = {
                name: int(json.loads((folder / name / "api.json").read_text())["pid"])
                for name in ("caller", "provider")
            }
            memory = Memory(**pids)
            raws, turns = [], []
            for _ in range(TURNS):
                raws.append(raw_copy(source, folder / "raw"))
                with memory.watched():
                    times = send_file(
                        *(api, address, source, folder / "back"),
                        worked=lambda: sum(map(_worked, pids.values())),
                    )
                turns.append(times)
        layers(folder)
    raw, raw_cpu = zip(*raws, strict=True)
    middle = statistics.median(raw)
    rate = size / middle / MIB
    print(f"{size / MIB:g} MiB, raw copy: {_spread(raw)} s, {rate:.0f} MiB/s")
    for name in turns[0]:
        took = [one[name] for one in turns]
        shown = f"{name}: {statistics.median(took):.2f} s"
        if name == "CPU":
            ratios = [a / b for a, b in zip(took, raw_cpu, strict=True)]
            print(f"{shown} between the daemons, {_spread(ratios)} raw copies")
            continue
        ratios = [b / a for a, b in zip(took, raw, strict=True)]
        print(f"{shown}, {_spread(ratios)} of the raw copy's throughput")
    for name, grown in memory.grown.items():
        print(f"memory of the {name}: +{grown / MIB:.1f} MiB")
    return int(max(memory.grown.values()) >= MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
