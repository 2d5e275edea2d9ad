"""Memory: what is freed and kept, and what the garbage collector need not look at."""

from __future__ import annotations

import ctypes
import gc
import sys

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
