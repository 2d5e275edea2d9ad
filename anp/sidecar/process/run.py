"""One daemon from its start to its signal: lock, API, ready file, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from anp.errors import CallError, ConfigError, ErrorKind
from anp.sidecar.api.doors import Doors, serve_api
from anp.sidecar.config.settings import Config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import ApiAddress, Home, write_ready_file
from anp.sidecar.operation import reload_daemon
from anp.sidecar.peers.web_identity import certificate_state
from anp.sidecar.process.memory import keep_freed_memory, set_aside
from anp.sidecar.process.service import ServiceManager
from anp.sidecar.process.signals import Signals
from anp.sidecar.process.stop import finish
from anp.sidecar.telemetry.log_limit import LOG_LIMIT
from anp.version import daemon_version
from anp.wire import messages as wire_messages
from cache.errors import StoreUnavailable
from negotiation import messages as meta_messages

logger = logging.getLogger(__name__)

MAX_THREADS = 64
"Threads for what blocks, such as the store; made when they are needed."


async def run_daemon(
    home: Home,
    config: Config,
    *,
    ready_file: Path | None,
    on_ready: Callable[[str, str, Mapping[str, str]], None],
    until: Callable[[ApiAddress], Awaitable[None]] | None = None,
    load: Callable[[], Config] | None = None,
    on_config: Callable[[Config], None] | None = None,
) -> None:
    """Run the daemon of `home` until SIGINT or SIGTERM, and then end it gracefully.

    Args:
        load: Reads the configuration again, for SIGHUP and `POST /v1/reload`.
        on_config: Told when a reload changed it.
        until: Run the daemon until this returns instead, and leave signals alone.
        ready_file: Gets `url` and `did` as JSON when peers can connect.
        on_ready: The same for people, with URL and DID, and the URLs of
            the A2A face and of the gateway, as `a2a` and `gateway`.

    Raises:
        CallError: The home or the port is in use; or `timeout`, calls were cut off.
        ConfigError: The owner's files are wrong.
    """
    keep_freed_memory()
    home.create()
    manager = ServiceManager()
    signals = Signals(on_end=home.remove_api)
    with home.lock():
        try:
            daemon = Daemon(home, config, load=load, on_config=on_config)
        except StoreUnavailable as exc:
            raise CallError(ErrorKind.LOCAL_RESOURCE, str(exc)) from exc

        # Python would make a handful on a small machine: calls that wait for a store
        # that hangs must leave some to look up names and to read files.
        threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="anpd")
        asyncio.get_running_loop().set_default_executor(threads)
        started = asyncio.Event()

        async def reload() -> None:
            await started.wait()
            manager.reloading()
            try:
                await reload_daemon(daemon)
            finally:
                manager.ready(f"{daemon.url}#{daemon.did}")

        async with contextlib.AsyncExitStack() as stack:
            reporting = asyncio.create_task(LOG_LIMIT.report_regularly())
            stack.callback(reporting.cancel)
            if until is None:
                await stack.enter_async_context(signals.handled(reload))
            async with (
                daemon.running(),
                serve_api(daemon) as doors,
                _a2a_faces(daemon) as faces,
            ):
                address = ApiAddress(
                    str(doors.socket),
                    os.getpid(),
                    daemon.url,
                    daemon.did,
                    doors.url or "",
                    str(doors.token_file),
                )
                home.write_api(address)
                logger.info(
                    "daemon started version=%s pid=%d address=%s home=%s%s",
                    daemon_version(),
                    os.getpid(),
                    f"{daemon.url}#{daemon.did}",
                    home.path,
                    _certificate(config),
                )
                began, cut = time.monotonic(), 0
                stack.callback(
                    lambda: logger.info(
                        "daemon ended pid=%d ran_s=%.0f calls_cut=%d",
                        os.getpid(),
                        time.monotonic() - began,
                        cut,
                    )
                )
                try:
                    if ready_file is not None:
                        write_ready_file(ready_file, url=daemon.url, did=daemon.did)
                    on_ready(daemon.url, daemon.did, faces)
                    manager.ready(f"{daemon.url}#{daemon.did}")
                    started.set()
                    for work in (
                        manager.keep_alive(),
                        _load_rest(doors),
                        _prepare_model(daemon),
                    ):
                        beside = asyncio.create_task(work)
                        beside.add_done_callback(_note_failure)
                        stack.callback(beside.cancel)
                    await (signals.stopped() if until is None else until(address))
                    manager.stopping("finishing calls in flight")
                    await finish(daemon)
                except CallError:
                    cut = daemon.observer.flights.count
                    raise
                finally:
                    home.note_end(cut)
                    home.remove_api()


def _note_failure(beside: asyncio.Task[None]) -> None:
    """Log the error of what is prepared beside; whoever needs it meets it again."""
    if not beside.cancelled() and beside.exception() is not None:
        logger.error("not prepared: %r", str(beside.exception())[:200])


async def _load_rest(doors: Doors) -> None:
    """Load what the first requests, handshakes and negotiations need, beside them."""
    await doors.load()
    for prepare in (wire_messages.prepare, meta_messages.prepare):
        await asyncio.to_thread(prepare)
    set_aside()


async def _prepare_model(daemon: Daemon) -> None:
    """Load what questions to the owner's model need, while nobody waits for it."""
    if daemon.endpoint is not None:
        await daemon.endpoint.prepare()
        set_aside()


def _certificate(config: Config) -> str:
    """Return the end of the certificate for the log, and warn of one that is near."""
    if config.listen.tls_cert is None:
        return ""
    try:
        state = certificate_state(config, time.time())
    except ConfigError as exc:
        # The library of TLS took it, so it serves.
        logger.warning("certificate of the port: its end is not known: %s", exc)
        return ""
    if state.expired is not None:
        logger.warning("certificate of the port: %s; renew it, then reload", state.text)
    return f" certificate={state.text!r}"


@contextlib.asynccontextmanager
async def _a2a_faces(daemon: Daemon) -> AsyncIterator[Mapping[str, str]]:
    """Serve the faces of A2A that the owner wants; yield their URLs by name."""
    config = daemon.config.a2a
    if config.address is None and config.gateway_address is None:
        yield {}
        return
    # Loaded where it is wanted.
    from anp.sidecar.process.a2a_face import serve_a2a, serve_gateway

    async with serve_a2a(daemon) as a2a, serve_gateway(daemon) as gateway:
        urls = {"a2a": a2a, "gateway": gateway}
        yield {name: url for name, url in urls.items() if url is not None}
