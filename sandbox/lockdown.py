"""The steps that lock a worker, in their order (SANDBOX.md, Layers 3 to 5).

Limits and the parent's death are built. The kernel lock-down is the next issue: its
steps are here, empty, and report themselves inactive, so that isolation is `reduced`
and only halves written by rules run.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from dataclasses import dataclass

__all__ = ["LAYERS", "Isolation", "isolation", "lock_down"]

_PR_SET_PDEATHSIG = 1

LAYERS: tuple[tuple[str, bool, str], ...] = (
    ("language", True, "RestrictedPython and an allow-list of imports"),
    ("process", True, "own process, session and environment; /dev/null; cwd /"),
    ("rlimits", True, "memory, CPU, files, processes"),
    ("no-new-privs", False, "comes with the kernel lock-down"),
    ("landlock", False, "comes with the kernel lock-down"),
    ("seccomp", False, "comes with the kernel lock-down"),
    ("uid", False, "comes with the kernel lock-down"),
)
"Each layer: name, whether it is active, and what it is or why it is not."


@dataclass(frozen=True, slots=True)
class Isolation:
    """How well workers are locked."""

    level: str
    "`full` or `reduced`."

    layers: tuple[tuple[str, bool, str], ...]
    "As in `LAYERS`."


def isolation() -> Isolation:
    """Return what the layers of this build amount to."""
    active = {name for name, is_active, _ in LAYERS if is_active}
    return Isolation("full" if "seccomp" in active else "reduced", LAYERS)


def lock_down(*, memory: int, cpu_seconds: int) -> None:
    """Lock this process, a worker that has just been forked.

    Args:
        memory: Bytes of address space above what the fork server has now.
        cpu_seconds: A backstop behind the daemon's deadlines.
    """
    os.setsid()
    os.chdir("/")
    # Of the thread that forked; the fork server has one only.
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.nice(10)
    size = _address_space() + memory
    for what, limit in (
        (resource.RLIMIT_AS, size),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_NOFILE, 8),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        resource.setrlimit(what, (limit, limit))
    _drop_uid()
    _no_new_privs()
    _landlock()
    _seccomp()


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _drop_uid() -> None:
    """Become nobody when root: the next issue."""


def _no_new_privs() -> None:
    """Set PR_SET_NO_NEW_PRIVS: the next issue."""


def _landlock() -> None:
    """Allow nothing in files and network: the next issue."""


def _seccomp() -> None:
    """Install the filter of system calls, the last step: the next issue."""
