"""The steps that lock a worker, in their order (SANDBOX.md, Layers 3 to 5).

The fork server prepares a `Lock` once, so that a forked child opens no library and
reads no table; the child then carries out the steps. A step that the kernel does not
offer is reported. A step that worked in the self-test and fails later ends the child.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from sandbox.lock import lockdown as landlock
from sandbox.lock import seccomp

Layer = tuple[str, bool, str]
"Name, true if active, and a description or the reason why it is inactive."

NOBODY = 65534
"User and group of a worker when the fork server is root."

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38

_LANGUAGE: Layer = ("language", True, "RestrictedPython and an allow-list of imports")

_KERNEL_LAYERS = ("process", "rlimits", "no-new-privs", "landlock", "seccomp", "uid")


_LIMITS = {
    "RLIMIT_NOFILE": 8,
    "RLIMIT_FSIZE": 0,
    "RLIMIT_NPROC": 0,
    "RLIMIT_CORE": 0,
    "RLIMIT_MEMLOCK": 0,
    "RLIMIT_MSGQUEUE": 0,
}


class LockDownError(Exception):
    """A layer that this machine offers could not be applied to a worker."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The level of protection of workers, with its layers."""

    level: str
    "`full`, `full-no-landlock` or `reduced` (SANDBOX.md, Layers)."

    layers: tuple[Layer, ...]
    "Each layer: name, true if active, and a description or the reason why not."


def level_of(layers: Collection[Layer]) -> Isolation:
    """Return the level that the layers of a self-test give.

    Without seccomp the level is `reduced`. A missing Landlock alone is a level of its
    own, since seccomp covers it. All other systems, such as macOS, are `reduced`.
    """
    active = {name for name, is_active, _ in layers if is_active}
    level = "reduced"
    if {"process", "rlimits", "no-new-privs", "seccomp"} <= active:
        level = "full" if "landlock" in active else "full-no-landlock"
    return Isolation(level, (_LANGUAGE, *layers))


UNTESTED = level_of([(name, False, "not tested yet") for name in _KERNEL_LAYERS])
"The level to assume before a self-test: `reduced`."


class Lock:
    """The lock of all workers of a fork server, prepared before the first fork.

    Args:
        without: Layers to leave out as if the kernel did not offer them, for tests:
            `seccomp`, `landlock`.
    """

    def __init__(self, *, without: Collection[str] = ()) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fork_server = os.getpid()
        self._fixed = {
            what: (limit, resource.getrlimit(what)[1])
            for name, limit in _LIMITS.items()
            # Not every system has all of these limits.
            if (what := getattr(resource, name, None)) is not None
        }
        self._filter: seccomp.Filter | str
        self._landlock_abi: int | str
        try:
            self._filter = seccomp.prepare()
        except seccomp.SeccompError as exc:
            self._filter = str(exc)
        try:
            self._landlock_abi = landlock.abi_version(self._libc)
        except landlock.LandlockError as exc:
            self._landlock_abi = str(exc)
        if "seccomp" in without:
            self._filter = "left out"
        if "landlock" in without:
            self._landlock_abi = "left out"

    def close(
        self,
        *,
        memory: int,
        cpu_seconds: int,
        required: Collection[str] = (),
        without_filter: bool = False,
    ) -> list[Layer]:
        """Lock this process, a child just forked with its descriptors in place.

        Args:
            memory: Bytes of address space above the present size.
            cpu_seconds: Limit of CPU time; the daemon's deadlines normally come first.
            required: Layers without which locking fails.
            without_filter: Leave out seccomp, so that the self-test sees the others.

        Returns:
            The layers, each with its state.

        Raises:
            LockDownError: A required layer failed, or the fork server has ended.
        """
        layers = [self._process()]
        # Before the limits: processes of root are not counted against NPROC.
        uid = _drop_uid()
        # After the change of user, which resets both settings.
        self._die_with_parent()
        layers.append(self._limit(memory=memory, cpu_seconds=cpu_seconds))
        layers.append(self._no_new_privs())
        layers.append(self._restrict())
        _check([*layers, uid], required)
        # The last step: afterwards the filter would refuse most of the steps above.
        layers.append(self._install("left out" if without_filter else self._filter))
        _check(layers[-1:], required)
        return [*layers, uid]

    def _process(self) -> Layer:
        os.setsid()
        os.chdir("/")
        os.nice(10)
        # When memory runs out, the kernel should end a worker, not the daemon. With a
        # read-only /proc this fails, but it is no part of the protection.
        with suppress(OSError):
            _write("/proc/self/oom_score_adj", b"1000")
        return ("process", True, "own process and session; four descriptors; cwd /")

    def _die_with_parent(self) -> None:
        if sys.platform != "linux":
            return
        # The signal comes when the forking thread ends; the fork server has only one.
        self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._fork_server:
            raise LockDownError("the fork server is gone")

    def _limit(self, *, memory: int, cpu_seconds: int) -> Layer:
        # One second apart, so that the first limit ends it with a telling SIGXCPU.
        limits = {resource.RLIMIT_CPU: (cpu_seconds, cpu_seconds + 1)}
        missing = f"; no memory limit on {sys.platform}"
        if sys.platform == "linux":
            # The inherited address space counts, even if only mapped.
            size = _address_space() + memory
            limits[resource.RLIMIT_AS] = (size, size)
            missing = ""
        for what, (limit, most) in self._fixed.items():
            resource.setrlimit(what, _within((limit, limit), most))
        for what, pair in limits.items():
            resource.setrlimit(what, _within(pair, resource.getrlimit(what)[1]))
        return ("rlimits", True, f"memory, CPU, files, processes{missing}")

    def _no_new_privs(self) -> Layer:
        name = "no-new-privs"
        if sys.platform != "linux":
            return (name, False, f"{sys.platform} has none")
        try:
            self._prctl(_PR_SET_NO_NEW_PRIVS, 1)
            self._prctl(_PR_SET_DUMPABLE, 0)
        except OSError as exc:
            return (name, False, f"the kernel refused: {exc.strerror}")
        return (name, True, "no new privileges; not traceable; ends with its parent")

    def _restrict(self) -> Layer:
        abi = self._landlock_abi
        if isinstance(abi, str):
            return ("landlock", False, abi)
        try:
            landlock.restrict(self._libc, abi)
        except landlock.LandlockError as exc:
            return ("landlock", False, f"the kernel refused: {exc}")
        what = "no file"
        what += ", no TCP" if abi >= 4 else ""
        what += ", no signal or abstract socket to others" if abi >= 6 else ""
        return ("landlock", True, f"{what} (version {abi})")

    def _install(self, prepared: seccomp.Filter | str) -> Layer:
        if isinstance(prepared, str):
            return ("seccomp", False, prepared)
        try:
            prepared.install()
        except seccomp.SeccompError as exc:
            return ("seccomp", False, str(exc))
        return ("seccomp", True, "a system call that no module needs ends the worker")

    def _prctl(self, option: int, value: int) -> None:
        zero = ctypes.c_ulong(0)
        if self._libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _check(layers: Collection[Layer], required: Collection[str]) -> None:
    for name, active, words in layers:
        if name in required and not active:
            raise LockDownError(f"{name}: {words}")


def _drop_uid() -> Layer:
    if os.geteuid() != 0:
        return ("uid", False, "not root: nothing to drop")
    try:
        os.setgroups([])
        # As root these set the real and saved ids too.
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    except OSError as exc:
        # A user namespace may contain no user other than its root.
        return ("uid", False, f"root, but cannot become nobody: {exc.strerror}")
    return ("uid", True, f"nobody ({NOBODY}), in no other group")


def _within(limit: tuple[int, int], most: int) -> tuple[int, int]:
    """Return the limit, reduced to an inherited one, which cannot be raised."""
    if most == resource.RLIM_INFINITY:
        return limit
    return min(limit[0], most), min(limit[1], most)


def _address_space() -> int:
    file = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(file, 100).split()[0]) * resource.getpagesize()
    finally:
        os.close(file)


def _write(path: str, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, data)
    finally:
        os.close(file)


# Landlock through its system calls: no file, no TCP (SANDBOX.md, Layer 5).
#
# It is the second lock beside seccomp: it refuses access to objects that a worker might
# still reach through a system call that the filter allows.


# The numbers are the same on every architecture, as for all calls since Linux 5.1.
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_VERSION_FLAG = 1

# Rights that each version of the interface can refuse (<linux/landlock.h>).
_FILES_1 = (1 << 13) - 1
_REFER_2, _TRUNCATE_3, _IOCTL_DEV_5 = 1 << 13, 1 << 14, 1 << 15
_TCP_4 = 0b11
_SCOPES_6 = 0b11


class LandlockError(Exception):
    """The kernel has no Landlock, or does not allow its use."""


def attributes(abi: int) -> bytes:
    """Return the `struct landlock_ruleset_attr` for all rights that `abi` knows.

    A handled right without a rule is refused, so a set without rules refuses all.
    """
    files = _FILES_1
    files |= _REFER_2 if abi >= 2 else 0
    files |= _TRUNCATE_3 if abi >= 3 else 0
    files |= _IOCTL_DEV_5 if abi >= 5 else 0
    fields = [files]
    if abi >= 4:
        fields.append(_TCP_4)
    if abi >= 6:
        fields.append(_SCOPES_6)
    return struct.pack(f"={len(fields)}Q", *fields)


def abi_version(libc: ctypes.CDLL) -> int:
    """Return the version of the kernel's interface, from 1.

    Raises:
        LandlockError: The kernel has none, or it is switched off.
    """
    if sys.platform != "linux":
        raise LandlockError(f"{sys.platform} has no Landlock")
    return _call(libc, _CREATE_RULESET, None, 0, _VERSION_FLAG)


def restrict(libc: ctypes.CDLL, abi: int) -> None:
    """Refuse this thread all rights that `abi` handles; needs PR_SET_NO_NEW_PRIVS.

    Raises:
        LandlockError: The kernel refused.
    """
    wanted = attributes(abi)
    ruleset = _call(libc, _CREATE_RULESET, wanted, len(wanted), 0)
    try:
        _call(libc, _RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _call(libc: ctypes.CDLL, number: int, *arguments: int | bytes | None) -> int:
    # Each argument takes a whole register: the upper half of an int is undefined.
    words = [
        ctypes.c_char_p(one) if isinstance(one, bytes | None) else ctypes.c_long(one)
        for one in arguments
    ]
    libc.syscall.restype = ctypes.c_long
    result = int(libc.syscall(ctypes.c_long(number), *words))
    if result < 0:
        raise LandlockError(os.strerror(ctypes.get_errno()))
    return result
