"""The optional packages, by the extra that brings them, and how to install it.

The base of `anpd` has what every agent needs. Commands and settings that need more ask
here first, and name the one line that installs it.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from anp.errors import CallError, ErrorKind

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "a2a": ("a2a", "jwt"),
    "demo": ("mcp", "mcp_server_time"),
    "mcp": ("mcp",),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    "redis": ("redis",),
    "zones": ("tzdata",),
}
"Extras of `pyproject.toml`, with the modules that tell whether they are there."


def is_installed(extra: str) -> bool:
    """Return whether the packages of an extra are here; none of them is imported."""
    return all(_is_there(module) for module in MODULES[extra])


def missing(extra: str) -> str:
    """Return in words that an extra is missing, and its remedy; "" if it is here."""
    if is_installed(extra):
        return ""
    return f"it needs packages that are not installed; run: {install_line(extra)}"


def require(extra: str, command: str) -> None:
    """Check that the packages of an extra are here.

    Args:
        command: The words that need them.

    Raises:
        CallError: `local_resource`, they are not; with the line that installs them.
    """
    if reason := missing(extra):
        raise CallError(ErrorKind.LOCAL_RESOURCE, f"{command}: {reason}")


def install_line(extra: str) -> str:
    """Return the command that adds an extra to the `anpd` that runs."""
    place, is_editable = _source()
    wanted = f"anpd[{extra}]"
    prefix = Path(sys.prefix)
    if is_editable:
        words = [sys.executable, "-m", "pip", "install", "-e", f"{place}[{extra}]"]
        return shlex.join(words)
    if place:
        wanted += f" @ {place}"
    if prefix.parts[-3:-1] == ("pipx", "venvs"):
        return shlex.join(["pipx", "install", "--force", wanted])
    if prefix.parts[-3:-1] == ("uv", "tools"):
        return shlex.join(["uv", "tool", "install", wanted])
    return shlex.join([sys.executable, "-m", "pip", "install", wanted])


def _source() -> tuple[str, bool]:
    """Return where `anpd` was installed from, if not from an index, and if in place."""
    try:
        text = metadata.distribution("anpd").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return "", False
    if text is None:
        return "", False
    found = json.loads(text)
    url = str(found["url"])
    if found.get("dir_info", {}).get("editable"):
        return unquote(urlsplit(url).path), True
    return url, False


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The package around it is missing.
        return False
