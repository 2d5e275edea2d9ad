"""One daemon from its start to its signal: lock, API, ready file, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anp.errors import EXIT_CODES, AnpError, CallError, ConfigError, ErrorKind
from anp.sidecar.api.doors import Doors, serve_api
from anp.sidecar.config.settings import Config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import ApiAddress, Home, write_ready_file
from anp.sidecar.operation import reload_daemon
from anp.sidecar.peers.web_identity import certificate_state
from anp.sidecar.telemetry.log_limit import LOG_LIMIT
from anp.version import daemon_version
from anp.wire import messages as wire_messages
from cache.errors import StoreUnavailable
from negotiation import messages as meta_messages

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

# Stops a daemon: refuses new calls, waits for those under way, closes the links.


LOOK = 0.1
"Seconds between two looks at channels that have nothing more to do."


async def finish(daemon: Daemon) -> None:
    """Take nothing new, and wait for calls in flight up to `operation.stop_timeout`.

    Raises:
        CallError: `timeout`, calls had to be cut off.
    """
    flights = daemon.observer.flights
    limit = daemon.config.operation.stop_timeout
    await daemon.announcer.close()
    flights.closed = True
    daemon.links.stop_listening()
    logger.info("stopping in_flight=%d limit_s=%g", flights.count, limit)
    try:
        async with asyncio.timeout(limit):
            while True:
                # A peer whose channel is closed asks again elsewhere or later; on a
                # busy one its answers go out first.
                daemon.provider.close_idle("the daemon stops")
                # A task that no agent has read yet waits for its reader in the log.
                if flights.count <= daemon.attaching.inbox.unread:
                    break
                try:
                    async with asyncio.timeout(LOOK):
                        await flights.landed()
                except TimeoutError:
                    continue
    except TimeoutError:
        raise CallError(
            ErrorKind.TIMEOUT,
            f"stopped with {flights.count} calls cut off after {limit:g} s; "
            "operation.stop_timeout gives them more",
            may_have_run=True,
        ) from None
    logger.info("stopped calls_cut=0")


# Reacts to signals: stop, stop at once, read the configuration again.


STOP: Final = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """The daemon's one handler of signals (SIDECAR.md, Local API).

    The first SIGINT or SIGTERM asks for a graceful stop; a second one ends the process
    at once, as a kill would, which neither the store nor the workers mind.

    Args:
        on_end: Called before the process ends at once: what clients would trip over.
        end: Ends the process with an exit code.
    """

    def __init__(
        self, *, on_end: Callable[[], None], end: Callable[[int], object] = os._exit
    ) -> None:
        self._on_end = on_end
        self._end = end
        self._stop = asyncio.Event()
        self._wanted = asyncio.Event()

    async def stopped(self) -> None:
        """Wait until a stop is asked for."""
        await self._stop.wait()

    @contextlib.asynccontextmanager
    async def handled(
        self, reload: Callable[[], Awaitable[object]]
    ) -> AsyncIterator[None]:
        """Handle signals for a block.

        Args:
            reload: Called at SIGHUP; its errors are logged.
        """
        loop = asyncio.get_running_loop()
        for number in STOP:
            loop.add_signal_handler(number, self._ask_stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._wanted.set)
        reloading = asyncio.create_task(self._reload(reload))
        try:
            yield
        finally:
            reloading.cancel()
            await asyncio.gather(reloading, return_exceptions=True)
            for number in (*STOP, signal.SIGHUP):
                loop.remove_signal_handler(number)

    def _ask_stop(self, number: signal.Signals) -> None:
        if not self._stop.is_set():
            logger.info("stop asked for signal=%s", number.name)
            self._stop.set()
            return
        logger.warning("ended at once signal=%s: calls were cut off", number.name)
        self._on_end()
        self._end(EXIT_CODES[ErrorKind.INTERRUPTED])

    async def _reload(self, reload: Callable[[], Awaitable[object]]) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await reload()
            except AnpError as exc:
                logger.error("not reloaded reason=%s", exc)
            except Exception:
                # One bad reload must not take the next one away.
                logger.exception("not reloaded")


# Reports the daemon's state to a service manager, if there is one (sd_notify).


class ServiceManager:
    """Tells systemd, or another setter of `NOTIFY_SOCKET`, the state of the daemon."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._watchdog = _watchdog(environ)

    def ready(self, status: str) -> None:
        """Say that peers and local callers are served."""
        self._tell("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        """Say that a reload began; `ready` ends it."""
        usec = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._tell("RELOADING=1", f"MONOTONIC_USEC={usec}")

    def stopping(self, status: str) -> None:
        """Report that the daemon is stopping."""
        self._tell("STOPPING=1", f"STATUS={status}")

    async def keep_alive(self) -> None:
        """Report regularly that the event loop runs, if the manager has a watchdog."""
        while self._watchdog is not None:
            self._tell("WATCHDOG=1")
            await asyncio.sleep(self._watchdog / 2)

    def _tell(self, *lines: str) -> None:
        if self._address is None:
            return
        text = "\n".join(" ".join(line.splitlines()) for line in lines)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(text.encode(), self._address)
        except OSError as exc:
            logger.warning("service manager not told reason=%s", exc.strerror)


def _address(text: str) -> bytes | None:
    if text.startswith("@"):
        return b"\0" + os.fsencode(text[1:])
    return os.fsencode(text) if text.startswith("/") else None


def _watchdog(environ: Mapping[str, str]) -> float | None:
    """Return the seconds within which the manager wants to hear from us, or None."""
    usec, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not usec.isdecimal() or int(usec) == 0:
        return None
    if pid and pid != str(os.getpid()):
        return None
    return int(usec) / 1e6


# Memory: what is freed and kept, and what the garbage collector need not look at.


MOST_KEPT = 16 * 1024 * 1024
"Bytes at the end of the heap that are kept although nobody uses them."

FROM_SYSTEM = 4 * 1024 * 1024
"Bytes from which a block comes from the system and goes back to it when it is freed."

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"Names of the two settings (glibc, malloc.h)."


def keep_freed_memory() -> bool:
    """Keep up to `MOST_KEPT` bytes that were freed, for the next large message.

    Otherwise each copy of a message of a megabyte is made of pages that the system has
    to clear first, which takes several times as long as to encrypt it.

    Returns:
        False: This system has no such setting; nothing was changed.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        # Another C library, such as musl.
        return False
    kept = mallopt(M_TRIM_THRESHOLD, MOST_KEPT)
    return bool(kept and mallopt(M_MMAP_THRESHOLD, FROM_SYSTEM))


def set_aside() -> None:
    """Have the garbage collector look no more at what there is now, such as libraries.

    Otherwise each of its full rounds walks over it, for tens of milliseconds in which
    no call goes on. What becomes garbage in a circle later is never freed, so this is
    for moments in which nearly all there is lasts as long as the daemon.
    """
    gc.collect()
    gc.freeze()


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
