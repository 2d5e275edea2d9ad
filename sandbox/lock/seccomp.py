"""The filter of system calls, as our own BPF (SANDBOX.md, Seccomp filter).

System calls that a worker needs to compute and to answer on its channel are allowed.
Calls that honest libraries make in passing get an ordinary error; all others end the
process. The tables are data and the program is built without a system call, so that
tests can interpret it for every number and for other architectures.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from dataclasses import dataclass
from enum import Enum, auto

Instruction = tuple[int, int, int, int]
"One BPF instruction: code, jump if true, jump if false, constant."


class SeccompError(Exception):
    """The filter cannot be built or installed here."""


class Verdict(Enum):
    """The filter's reaction to a system call; calls not listed end the process."""

    ALLOW = auto()
    "The call runs."

    NO_EXEC = auto()
    "The call runs unless its third argument contains PROT_EXEC; then EPERM."

    REFUSE = auto()
    "The call fails with EACCES, an ordinary error in the routine."


# The numbers are those of <asm/unistd_64.h> and <asm-generic/unistd.h>. The filter
# tests them in this order, so the most frequent calls come first.
SYSCALLS: dict[str, tuple[Verdict, int | None, int | None]] = {
    "read": (Verdict.ALLOW, 0, 63),
    "write": (Verdict.ALLOW, 1, 64),
    "sendto": (Verdict.ALLOW, 44, 206),
    "recvfrom": (Verdict.ALLOW, 45, 207),
    "futex": (Verdict.ALLOW, 202, 98),
    "clock_gettime": (Verdict.ALLOW, 228, 113),
    "brk": (Verdict.ALLOW, 12, 214),
    "munmap": (Verdict.ALLOW, 11, 215),
    "mremap": (Verdict.ALLOW, 25, 216),
    "madvise": (Verdict.ALLOW, 28, 233),
    "getrandom": (Verdict.ALLOW, 318, 278),
    "gettimeofday": (Verdict.ALLOW, 96, 169),
    "close": (Verdict.ALLOW, 3, 57),
    "rt_sigreturn": (Verdict.ALLOW, 15, 139),
    "rt_sigprocmask": (Verdict.ALLOW, 14, 135),
    "sigaltstack": (Verdict.ALLOW, 131, 132),
    "restart_syscall": (Verdict.ALLOW, 219, 128),
    "sched_yield": (Verdict.ALLOW, 24, 124),
    "getpid": (Verdict.ALLOW, 39, 172),
    "rseq": (Verdict.ALLOW, 334, 293),
    "exit": (Verdict.ALLOW, 60, 93),
    "exit_group": (Verdict.ALLOW, 231, 94),
    "mmap": (Verdict.NO_EXEC, 9, 222),
    "mprotect": (Verdict.NO_EXEC, 10, 226),
    "open": (Verdict.REFUSE, 2, None),
    "openat": (Verdict.REFUSE, 257, 56),
    "openat2": (Verdict.REFUSE, 437, 437),
    "stat": (Verdict.REFUSE, 4, None),
    "fstat": (Verdict.REFUSE, 5, 80),
    "lstat": (Verdict.REFUSE, 6, None),
    "newfstatat": (Verdict.REFUSE, 262, 79),
    "statx": (Verdict.REFUSE, 332, 291),
    "statfs": (Verdict.REFUSE, 137, 43),
    "fstatfs": (Verdict.REFUSE, 138, 44),
    "access": (Verdict.REFUSE, 21, None),
    "faccessat": (Verdict.REFUSE, 269, 48),
    "faccessat2": (Verdict.REFUSE, 439, 439),
    "readlink": (Verdict.REFUSE, 89, None),
    "readlinkat": (Verdict.REFUSE, 267, 78),
    "getcwd": (Verdict.REFUSE, 79, 17),
    "getdents64": (Verdict.REFUSE, 217, 61),
    "ioctl": (Verdict.REFUSE, 16, 29),
    "fcntl": (Verdict.REFUSE, 72, 25),
    "lseek": (Verdict.REFUSE, 8, 62),
    "uname": (Verdict.REFUSE, 63, 160),
    "sysinfo": (Verdict.REFUSE, 99, 179),
    "getuid": (Verdict.REFUSE, 102, 174),
    "geteuid": (Verdict.REFUSE, 107, 175),
    "getgid": (Verdict.REFUSE, 104, 176),
    "getegid": (Verdict.REFUSE, 108, 177),
    "getresuid": (Verdict.REFUSE, 118, 148),
    "getresgid": (Verdict.REFUSE, 120, 150),
    "getppid": (Verdict.REFUSE, 110, 173),
    "getpgid": (Verdict.REFUSE, 121, 155),
    "getsid": (Verdict.REFUSE, 124, 156),
    "gettid": (Verdict.REFUSE, 186, 178),
    "nanosleep": (Verdict.REFUSE, 35, 101),
    "clock_nanosleep": (Verdict.REFUSE, 230, 115),
    "times": (Verdict.REFUSE, 100, 153),
    "getrusage": (Verdict.REFUSE, 98, 165),
    "sched_getaffinity": (Verdict.REFUSE, 204, 123),
    "prlimit64": (Verdict.REFUSE, 302, 261),
    "poll": (Verdict.REFUSE, 7, None),
    "ppoll": (Verdict.REFUSE, 271, 73),
    "rt_sigaction": (Verdict.REFUSE, 13, 134),
}
"Listed calls: verdict, number on x86-64 and on aarch64 (None if it has none)."

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"Architectures of the tables by their name in `uname -m`."

_COLUMN = {"x86_64": 0, "aarch64": 1}

# Numbers with this bit are x32 calls, a second interface to the same kernel.
_X32_BIT = 0x40000000

_PROT_EXEC = 4

# struct seccomp_data: int nr; u32 arch; u64 instruction_pointer; u64 args[6]. Both
# architectures are little-endian, so the low half of an argument comes first.
_AT_NUMBER, _AT_ARCH, _AT_THIRD = 0, 4, 32

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

_KILL_PROCESS, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2


def build(machine: str) -> list[Instruction]:
    """Return the program for an architecture, named as `uname -m` does.

    Raises:
        SeccompError: There is no table for the architecture.
    """
    if machine not in AUDIT_ARCH:
        raise SeccompError(f"no table of system calls for {machine}")
    numbers = [
        (number, verdict)
        for verdict, *columns in SYSCALLS.values()
        if (number := columns[_COLUMN[machine]]) is not None
    ]
    # The ends that every test jumps to, by their distance from the start of the tail.
    kill, allow, refuse, no_exec = 0, 1, 2, 3
    target = {Verdict.ALLOW: allow, Verdict.REFUSE: refuse, Verdict.NO_EXEC: no_exec}
    tail: list[Instruction] = [
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.EACCES),
        (_LOAD, 0, 0, _AT_THIRD),
        (_ANY_BIT, 1, 0, _PROT_EXEC),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]
    count = len(numbers)
    return [
        (_LOAD, 0, 0, _AT_ARCH),
        (_EQUAL, 0, count + 2 + kill, AUDIT_ARCH[machine]),
        (_LOAD, 0, 0, _AT_NUMBER),
        (_AT_LEAST, count + kill, 0, _X32_BIT),
        *(
            (_EQUAL, count - index - 1 + target[verdict], 0, number)
            for index, (number, verdict) in enumerate(numbers)
        ),
        *tail,
    ]


class _Program(ctypes.Structure):
    """The kernel's `struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


@dataclass(frozen=True, slots=True)
class Filter:
    """A program that can be installed without an allocation or a file."""

    program: _Program
    "The structure that the kernel reads."

    memory: ctypes.Array[ctypes.c_char]
    "The instructions; `program` points into it."

    libc: ctypes.CDLL
    "The C library, already loaded."

    def install(self) -> None:
        """Install it on this thread for good; needs PR_SET_NO_NEW_PRIVS.

        Raises:
            SeccompError: The kernel refuses it.
        """
        result = self.libc.prctl(
            _PR_SET_SECCOMP,
            ctypes.c_ulong(_SECCOMP_MODE_FILTER),
            ctypes.byref(self.program),
            ctypes.c_ulong(0),
            ctypes.c_ulong(0),
        )
        if result != 0:
            reason = os.strerror(ctypes.get_errno())
            raise SeccompError(f"the kernel refused the filter: {reason}")


def prepare() -> Filter:
    """Return the filter for this machine.

    Raises:
        SeccompError: The system or its architecture is not supported.
    """
    if sys.platform != "linux":
        raise SeccompError(f"{sys.platform} has no seccomp")
    machine = os.uname().machine
    if sys.maxsize < 1 << 32 or sys.byteorder != "little":
        raise SeccompError(f"no table for a 32-bit or big-endian Python on {machine}")
    code = b"".join(struct.pack("<HBBI", *one) for one in build(machine))
    memory = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(memory))
    return Filter(program, memory, ctypes.CDLL(None, use_errno=True))
