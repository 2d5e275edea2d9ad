"""The first fetch of a daemon does not hold up its calls."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, ipaddress, sys, threading
from importlib.abc import MetaPathFinder

from anp.identity.web.fetcher import Fetcher, FetchPolicy

imported = []

class Noting(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        imported.append((threading.current_thread() is threading.main_thread(), name))

async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(
        b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\n"
        b"content-length: 2\\r\\nconnection: close\\r\\n\\r\\n{}"
    )
    writer.close()

async def main():
    networks = (ipaddress.ip_network("127.0.0.0/8"),)
    fetcher = Fetcher(FetchPolicy(allow=networks, allow_http_loopback=True))
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    # The event loop's own threads need something, too.
    await asyncio.to_thread(int)
    sys.meta_path.insert(0, Noting())
    found = await fetcher.fetch(f"http://127.0.0.1:{port}/", max_size=10)
    assert found.body == b"{}"
    assert len(imported) > 50, imported
    print([name for in_main, name in imported if in_main])

asyncio.run(main())
"""


def test_what_a_first_fetch_needs_is_loaded_beside_the_event_loop() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    assert found.stdout == "[]\n"
