"""The version of the installed distribution."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def daemon_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("anpd")
    except PackageNotFoundError:
        return "0.0.0"
