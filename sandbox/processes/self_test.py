"""A test that the lock works on this machine (SANDBOX.md, Layers).

The fork server runs it once, with workers that have no language layer and attempt
things that a module must not be able to do. A layer counts as active when the kernel
accepted it and the attempts failed as they should: `anpd doctor` prints observations.
"""

from __future__ import annotations

import errno
import mmap
import os
import signal
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Protocol

from sandbox.errors import FrameError
from sandbox.frames import frame_length, pack, unpack
from sandbox.lock.lockdown import Isolation, Layer, level_of

_ALLOWED = "allowed"

Attempts = Mapping[str, Callable[[], None]]


class Run(Protocol):
    """Runs a probe in a locked worker, and waits for its end."""

    def __call__(
        self, probe: Callable[[socket.socket, int], None], *, without_filter: bool
    ) -> tuple[int, bytes]:
        """Return the exit code (minus the signal) and the bytes the probe sent."""
        ...


def _open() -> None:
    # A folder that everybody may list, so that a refusal comes from a layer.
    os.close(os.open("/", os.O_RDONLY))


def _stat() -> None:
    os.stat("/")


def _executable_memory() -> None:
    everything = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    mmap.mmap(-1, 4096, prot=everything).close()


def _tcp() -> None:
    with socket.socket() as sock:
        # A bind affects nobody else; Landlock refuses it like a connect.
        sock.bind(("127.0.0.1", 0))


def _udp() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def _unix() -> None:
    socket.socket(socket.AF_UNIX).close()


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _execute() -> None:
    os.execv("/nonexistent", ["/nonexistent"])


def _signal(target: int) -> Callable[[], None]:
    return lambda: os.kill(target, 0)


def _gentle() -> Attempts:
    """Return the attempts that seccomp answers with an error."""
    return {"open": _open, "stat": _stat, "executable memory": _executable_memory}


def _lethal(parent: int) -> Attempts:
    """Return the attempts that seccomp answers with SIGSYS."""
    return {
        "TCP": _tcp,
        "UDP": _udp,
        "unix socket": _unix,
        "fork": _fork,
        "execve": _execute,
        "signal": _signal(parent),
    }


def self_test(run: Run) -> Isolation:
    """Return the isolation that the layers give on this machine.

    Args:
        run: Runs a probe in a worker of the calling fork server.
    """
    lethal = _lethal(os.getpid())
    _, seen, layers = _probe(run, _gentle())
    filtered = next(active for name, active, _ in layers if name == "seccomp")
    holes = []
    if filtered:
        wanted = {"open": "EACCES", "stat": "EACCES", "executable memory": "EPERM"}
        holes += [name for name in wanted if seen.get(name) != wanted[name]]
        for name, attempt in lethal.items():
            status, _, _ = _probe(run, {name: attempt})
            if status != -signal.SIGSYS:
                holes.append(name)
    # The filter would hide Landlock's refusals, so it is left out here.
    attempts = {"open": _open, "TCP": lethal["TCP"], "signal": lethal["signal"]}
    _, beneath, _ = _probe(run, attempts, without_filter=True)
    return level_of([_judged(layer, holes, beneath) for layer in layers])


def _probe(
    run: Run, attempts: Attempts, *, without_filter: bool = False
) -> tuple[int, dict[str, str], list[Layer]]:
    """Return a worker's exit code, the results of its attempts, and its layers."""

    def serve(channel: socket.socket, max_frame: int) -> None:
        channel.sendall(pack({name: _tried(do) for name, do in attempts.items()}))

    status, data = run(serve, without_filter=without_filter)
    frames = []
    try:
        while data:
            end = 4 + frame_length(data[:4])
            frames.append(unpack(data[4:end]))
            data = data[end:]
    except (FrameError, struct.error) as exc:
        raise RuntimeError(f"a worker of ours sent no frames: {exc}") from exc
    if not frames:
        raise RuntimeError(f"a worker could not be locked, it ended with {status}")
    layers = [(name, active, words) for name, active, words in frames[0]["locked"]]
    return status, frames[1] if len(frames) > 1 else {}, layers


def _tried(attempt: Callable[[], None]) -> str:
    try:
        attempt()
    except OSError as exc:
        return errno.errorcode.get(exc.errno or 0, "an error")
    return _ALLOWED


def _judged(layer: Layer, holes: list[str], beneath: Mapping[str, str]) -> Layer:
    """Return the layer, marked inactive if the attempts contradict it."""
    name, active, _ = layer
    if not active:
        return layer
    if name == "seccomp" and holes:
        return (name, False, f"installed, but not stopped: {', '.join(holes)}")
    if name == "landlock" and beneath.get("open") != "EACCES":
        return (name, False, "installed, but a file could be opened")
    return layer
