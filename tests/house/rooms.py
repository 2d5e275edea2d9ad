"""The rooms whose import order no contract holds.

A room is in order when import-linter has a `layers` contract with it as a container and
`exhaustive = true`, so that a new module has to be given its place.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.house.limits import MAX_FLAT_FILES
from tests.house.sources import Source

ALWAYS = ("anp", "anp.sidecar", "negotiation", "sandbox", "cache")
"Rooms that need an order whatever their size."


def rooms_of(sources: Sequence[Source]) -> list[str]:
    """Return the rooms that need an order, as dotted names.

    These are the packages themselves, and each folder of `anp` that has more files than
    may stand flat, those in folders below it included.
    """
    counts: Counter[str] = Counter()
    for one in sources:
        if one.is_ordinary and one.package == "anp":
            counts.update(".".join(folder.parts) for folder in one.path.parents)
    large = {name for name, count in counts.items() if name and count > MAX_FLAT_FILES}
    modules = {one.module for one in sources}
    return sorted(large | {name for name in ALWAYS if name in modules})


def contracts_of(tree: Path) -> list[dict[str, Any]]:
    """Return the import contracts of the checkout `tree`."""
    data = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
    tool = data.get("tool", {}).get("importlinter", {})
    contracts: list[dict[str, Any]] = tool.get("contracts", [])
    return contracts


def ordered_rooms(contracts: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the rooms that are in order, each with its exceptions.

    Exceptions are the modules without a place and the imports that are let through.
    """
    found: dict[str, list[str]] = {}
    for one in contracts:
        if one.get("type") == "layers" and str(one.get("exhaustive")).lower() == "true":
            exceptions = [
                *(f"{name} has no place" for name in one.get("exhaustive_ignores", ())),
                *(f"{line} is let through" for line in one.get("ignore_imports", ())),
            ]
            for name in one.get("containers", ()):
                found.setdefault(name, []).extend(exceptions)
    return found
