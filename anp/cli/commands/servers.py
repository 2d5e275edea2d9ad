"""mcp and run: the daemon as a server for MCP clients, and beside a command."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from click import Context

from anp.cli.client import home_of, load_settings
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.options import Host, Port
from anp.cli.output import Settings, progress
from anp.errors import CallError, ErrorKind
from anp.extras import require

if TYPE_CHECKING:
    from collections.abc import Callable

    from anp.sidecar.home.home import ApiAddress, Home
    from anp.sidecar.mcp.local_api import LocalApi

TELL_TIME = 5.0
"Seconds after the client has left for what is still to be said about its peers."

FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
"Signals that a command beside the daemon gets when we get them."


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.command("mcp")(serve_mcp)
    app.command("run", context_settings={"ignore_unknown_options": True})(run)


def serve_mcp(
    context: Context,
    peer: Annotated[
        list[str] | None,
        Option(help="Make a tool of each capability that this peer publishes."),
    ] = None,
) -> None:
    """Serve MCP on stdio, for the configuration of an MCP client."""
    require("mcp", "anpd mcp")
    home, _ = home_of(context.obj)
    # Before the client is told that there is a server.
    address = home.read_api()
    asyncio.run(_serve_mcp(address, tuple(peer or ())))


async def _serve_mcp(address: ApiAddress, peers: tuple[str, ...]) -> None:
    from pathlib import Path

    from mcp.server.stdio import stdio_server

    from anp.sidecar.mcp.local_api import LocalApi
    from anp.sidecar.mcp.server import make_server

    async with LocalApi(Path(address.socket)) as api:
        # Beside the server: a peer that is down must not hold up the client.
        telling = asyncio.create_task(_tell_of_missing(api, peers))
        try:
            async with stdio_server() as (read, write):
                server = make_server(api, peers=peers)
                await server.run(read, write, server.create_initialization_options())
            await asyncio.wait({telling}, timeout=TELL_TIME)
        finally:
            telling.cancel()


async def _tell_of_missing(api: LocalApi, peers: tuple[str, ...]) -> None:
    """Say which peers give no tools of their own; stdout belongs to MCP."""
    from anp.sidecar.mcp.local_api import ApiProblem

    for peer in peers:
        reason = "it publishes no capabilities, or does not answer"
        try:
            offers = await api.get("/v1/peers/offers", peer=peer, fresh="1")
            if offers["publishes"]:
                continue
        except ApiProblem as exc:
            reason = str(exc)
        progress(f"anpd: no tools for --peer {peer}: {reason}")


def run(
    context: Context,
    command: Annotated[list[str], Argument(help="-- CMD ARGS…")],
    host: Host = None,
    port: Port = None,
) -> int:
    """Run a command with a daemon beside it, and end both together.

    The command finds ANPD_HOME, ANPD_SOCKET, ANPD_DID and ANPD_ADDRESS in its
    environment. A daemon that runs in this home already is used, and left running.
    """
    from anp.cli.logs import limit_lines
    from sandbox.processes.launch import launch_ahead

    limit_lines()
    settings: Settings = context.obj
    home, _ = home_of(settings)
    if home.is_running():
        return asyncio.run(_beside(command, home, home.read_api()))
    # They load their libraries while this process loads its own.
    launch_ahead()
    from anp.sidecar.process.run import run_daemon

    config = load_settings(settings, {"listen.host": host, "listen.port": port})
    codes: list[int] = []

    async def until(address: ApiAddress) -> None:
        codes.append(await _beside(command, home, address))

    def ready(url: str, did: str, faces: Mapping[str, str]) -> None:
        progress(f"anpd: {url}#{did}")
        for name, url_of in faces.items():
            progress(f"anpd: {name} at {url_of}")

    asyncio.run(run_daemon(home, config, ready_file=None, on_ready=ready, until=until))
    return codes[0]


async def _beside(command: list[str], home: Home, address: ApiAddress) -> int:
    """Run a command to its end, pass signals on, and return its exit code."""
    environment = {
        **os.environ,
        "ANPD_HOME": str(home.path),
        "ANPD_SOCKET": address.socket,
        "ANPD_DID": address.did,
        "ANPD_ADDRESS": f"{address.url}#{address.did}",
    }
    if address.api_url:
        environment["ANPD_API_URL"] = address.api_url
        environment["ANPD_TOKEN_FILE"] = address.token_file
    signals = _Forwarded()
    loop = asyncio.get_running_loop()
    numbers = [getattr(signal, name) for name in FORWARDED]
    # Before the command starts: it may be told to end as soon as it runs.
    for number in numbers:
        loop.add_signal_handler(number, signals.take, number)
    # From a terminal the whole group gets it, the command too; a second one from us
    # would count as an impatient user's.
    on_terminal = sys.stdin is not None and sys.stdin.isatty()
    interrupt: Callable[[int], None] = _nothing if on_terminal else signals.take
    loop.add_signal_handler(signal.SIGINT, interrupt, signal.SIGINT)
    child: asyncio.subprocess.Process | None = None
    try:
        child = await asyncio.create_subprocess_exec(*command, env=environment)
        signals.pass_to(child)
        code = await child.wait()
    except OSError as exc:
        raise CallError(
            ErrorKind.USAGE, f"cannot start {command[0]}: {exc.strerror}"
        ) from exc
    finally:
        for number in (*numbers, signal.SIGINT):
            loop.remove_signal_handler(number)
        if child is not None and child.returncode is None:
            child.kill()
            await child.wait()
    # As a shell says it: the command was ended by a signal.
    return code if code >= 0 else 128 - code


class _Forwarded:
    """Passes signals on to the command, also those that come while it starts."""

    def __init__(self) -> None:
        self._child: asyncio.subprocess.Process | None = None
        self._early: list[int] = []

    def take(self, number: int) -> None:
        if self._child is None:
            self._early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(number)

    def pass_to(self, child: asyncio.subprocess.Process) -> None:
        self._child = child
        for number in self._early:
            self.take(number)


def _nothing(_: int) -> None:
    """Let the command itself act on Ctrl-C."""
