"""A daemon that goes away with a request in hand: every face says what is known."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anp.cli.app import run
from anp.sidecar.home.home import ApiAddress, Home
from anp.sidecar.mcp.local_api import ApiProblem, LocalApi

CLIENT = Path(__file__).parents[3] / "clients" / "python" / "anpd_client.py"


def python_client() -> Any:
    spec = importlib.util.spec_from_file_location("anpd_client", CLIENT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["anpd_client"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=[True, False], ids=["took the request", "was not there"])
def lost(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, bool]]:
    """Give the socket of a daemon that dies, and if it had taken the request."""
    path = tmp_path / "api.sock"
    taken = bool(request.param)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        if taken:
            server.listen()

            def serve() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        peer, _ = server.accept()
                        with peer:
                            peer.recv(1 << 16)

            threading.Thread(target=serve, daemon=True).start()
        yield path, taken
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def test_the_python_client_knows_if_a_call_may_have_run(
    lost: tuple[Path, bool],
) -> None:
    path, taken = lost
    module = python_client()
    for act in ("call", "start"):
        with pytest.raises(module.AnpdError) as caught:
            getattr(module.Anpd(socket_path=path), act)("shop", "sell", {})
        assert caught.value.kind == "daemon_unreachable"
        assert caught.value.may_have_run is taken
    # A call that was begun before may have run in either case.
    with pytest.raises(module.AnpdError) as waited:
        module.Anpd(socket_path=path).wait("c1")
    assert waited.value.may_have_run


async def test_the_mcp_face_knows_if_a_call_may_have_run(
    lost: tuple[Path, bool],
) -> None:
    path, taken = lost

    async def ignore(event: dict[str, Any]) -> None:
        """Nobody watches."""

    async with asyncio.timeout(10), LocalApi(path) as api:
        with pytest.raises(ApiProblem) as caught:
            await api.call({}, ignore)
    assert caught.value.body.get("may_have_run", False) is taken


def test_the_command_line_knows_if_a_call_may_have_run(
    lost: tuple[Path, bool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, taken = lost
    home = Home(tmp_path / "home")
    home.create()
    with home.lock():
        home.write_api(ApiAddress(str(path), 1, "ws://127.0.0.1:1/", "did:key:z"))
        code = run(["--home", str(home.path), "call", "x", "y", "--json"])
    out, err = capsys.readouterr()
    assert code == 4
    assert json.loads(out).get("may_have_run", False) is taken
    assert ("(it may have run)" in err) is taken
