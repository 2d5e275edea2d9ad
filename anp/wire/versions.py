"""Which version two sides use, when each names the highest it speaks (ANP-80)."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["common_version", "highest_version", "read_version"]

_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)


def read_version(text: str) -> tuple[int, int] | None:
    """Return major and minor number, or None for a text that is no version."""
    match = _VERSION.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None


def highest_version(versions: Sequence[str]) -> str:
    """Return the highest of our own versions; there has to be one."""
    return max(versions, key=_rank)


def common_version(ours: Sequence[str], theirs: str) -> str | None:
    """Return the highest version that both sides speak, or None (ANP-Q15).

    Args:
        ours: Every version we speak.
        theirs: The highest version the peer speaks. It speaks the lower minor
            versions of that major version too; of other major versions one text
            says nothing, so nothing is assumed of them.
    """
    limit = read_version(theirs)
    if limit is None:
        return None
    common = [v for v in ours if _rank(v)[0] == limit[0] and _rank(v) <= limit]
    return max(common, key=_rank, default=None)


def _rank(version: str) -> tuple[int, int]:
    # What we speak is a constant of ours, so a malformed one is lower than all.
    return read_version(version) or (-1, -1)
