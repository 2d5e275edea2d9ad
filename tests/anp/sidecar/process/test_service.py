"""Messages of the daemon to a service manager."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from anp.sidecar.process.run import ServiceManager


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[tuple[socket.socket, dict[str, str]]]:
    """Give the socket of a manager, and the environment that names it."""
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        listener.settimeout(5)
        yield listener, {"NOTIFY_SOCKET": path}


def test_it_hears_of_start_reload_and_stop(
    manager: tuple[socket.socket, dict[str, str]],
) -> None:
    listener, environ = manager
    service = ServiceManager(environ)
    service.ready("ws://127.0.0.1:1/\nSTOPPING=1")
    assert listener.recv(4096) == b"READY=1\nSTATUS=ws://127.0.0.1:1/ STOPPING=1"
    service.reloading()
    first, second = listener.recv(4096).split(b"\n")
    assert first == b"RELOADING=1"
    assert second.startswith(b"MONOTONIC_USEC=")
    service.stopping("bye")
    assert listener.recv(4096) == b"STOPPING=1\nSTATUS=bye"


async def test_the_watchdog_is_told_while_the_loop_turns(
    manager: tuple[socket.socket, dict[str, str]],
) -> None:
    listener, environ = manager
    pid = str(os.getpid())
    service = ServiceManager({**environ, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": pid})
    telling = asyncio.create_task(service.keep_alive())
    for _ in range(3):
        assert await asyncio.to_thread(listener.recv, 4096) == b"WATCHDOG=1"
    telling.cancel()


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "x"},
        {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"},
    ],
)
async def test_without_a_watchdog_nothing_is_done(environ: dict[str, str]) -> None:
    await ServiceManager(environ).keep_alive()


@pytest.mark.parametrize("place", ["", "relative", "/nowhere/at/all", "@anpd-nobody"])
def test_a_manager_that_is_away_costs_nothing(place: str) -> None:
    ServiceManager({"NOTIFY_SOCKET": place}).ready("up")
