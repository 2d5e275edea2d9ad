"""Asks the C library to keep some of the memory that is freed."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["MOST_KEPT", "keep_freed_memory"]

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
