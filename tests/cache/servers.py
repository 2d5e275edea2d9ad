"""Redis servers to test with: a real one if the machine has it, and one in memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import fakeredis

from cache.parts.keys import end_all_keys
from cache.redis.database import RedisDatabase
from cache.redis.place import RedisPlace
from cache.redis.server import Dial, RedisConnection, RedisTimes

FAST = RedisTimes(connect=1.0, answer=2.0, contention=20.0, retry=0.05)
"Times for a server on this machine, and many who write at once."

START_TIMEOUT = 20.0


def is_wanted() -> bool:
    """Say whether `make test-redis` runs, which needs the real server."""
    return os.environ.get("ANPD_TEST_REDIS") == "1"


def find_server() -> str | None:
    """Return the program of a real server, or None."""
    return shutil.which("redis-server") or shutil.which("valkey-server")


def fake_backend(server: fakeredis.FakeServer) -> RedisDatabase:
    """Return a back end over a server in this process."""

    def dial(place: RedisPlace, times: RedisTimes) -> RedisConnection:
        client = fakeredis.FakeRedis(server=server, protocol=2)
        pool = cast(Any, client.connection_pool)
        return RedisConnection(pool.get_connection())

    chosen: Dial = dial
    place = RedisPlace.parse("redis://localhost/0")
    return RedisDatabase(place, times=FAST, dial=chosen, on_loss=end_all_keys)


class Server:
    """A real server of our own on a free port, which ends with us."""

    def __init__(self, folder: Path, *options: str) -> None:
        """Start it; `options` are those of its command line."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.folder = folder
        self._options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, again after a `kill` with what it kept."""
        program = find_server()
        assert program is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [
            *(program, "--bind", "127.0.0.1", "--port", str(self.port)),
            *("--dir", str(self.folder), "--save", "", "--appendonly", "yes"),
            *("--appendfsync", "always", *self._options),
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        limit = time.monotonic() + START_TIMEOUT
        while not self._answers():
            assert time.monotonic() < limit, (self.folder / "log").read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def backend(self, *, owner: str = "", times: RedisTimes = FAST) -> RedisDatabase:
        """Return a new back end, as one more daemon has it."""
        place = RedisPlace.parse(self.url)
        return RedisDatabase(place, owner=owner, times=times, on_loss=end_all_keys)

    def ask(self, *command: str | bytes) -> Any:
        """Send one command as somebody else."""
        import redis

        with contextlib.closing(redis.Redis(port=self.port)) as client:
            return client.execute_command(*command)  # type: ignore[no-untyped-call]

    def _answers(self) -> bool:
        import redis

        try:
            return bool(self.ask("PING"))
        except redis.AuthenticationError:
            return True
        except redis.RedisError:
            return False


@contextlib.contextmanager
def running(folder: Path, *options: str) -> Iterator[Server]:
    """Run a server for a block."""
    server = Server(folder, *options)
    try:
        yield server
    finally:
        server.kill()
