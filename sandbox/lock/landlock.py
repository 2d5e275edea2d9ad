"""Landlock through its system calls: no file, no TCP (SANDBOX.md, Layer 5).

It is the second lock beside seccomp: it refuses access to objects that a worker might
still reach through a system call that the filter allows.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

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
