"""Tells settings that a reload puts into effect from those that need a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

from anp.sidecar.config.settings import Config

LIVE: Final = frozenset(
    {
        "attach",
        "call.max_timeout",
        "call.max_timeout_unlisted",
        "interaction.max_time",
        "interaction.max_time_unlisted",
        "group",
        "limits.max_calls",
        "limits.max_channels",
        "limits.max_connections",
        "log.format",
        "log.level",
        "operation.stop_timeout",
        "peer",
        "policy.peers",
        "need",
    }
)
"Settings that a reload puts into effect; docs/operation.md lists the same."


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes that a new configuration makes in a running daemon."""

    config: Config
    "Settings in effect from now on: the new ones where they are live, else the old."

    applied: tuple[str, ...]
    "Changed settings that take effect now, by dotted name."

    restart: tuple[str, ...]
    "Changed settings that count after the next start."


def is_live(name: str) -> bool:
    """Tell whether a reload puts a setting into effect.

    Args:
        name: Such as `log.level`, or `peer` for the whole array.
    """
    return name in LIVE


def changes(old: Config, new: Config) -> Changes:
    """Compare the configuration in use with the owner's files."""
    changed = [
        name
        for name, was, now in _pairs(old, new)
        if was != now and not (name == "listen.port" and now == 0)
    ]
    applied = [name for name in changed if is_live(name)]
    config = old
    for name in applied:
        section, _, key = name.partition(".")
        wanted = getattr(new, section)
        if key:
            wanted = replace(getattr(config, section), **{key: getattr(wanted, key)})
        config = replace(config, **{section: wanted})
    restart = [name for name in changed if not is_live(name)]
    return Changes(config, tuple(applied), tuple(restart))


def _pairs(old: Config, new: Config) -> Iterator[tuple[str, Any, Any]]:
    """Give every setting by its dotted name, with its old and new value."""
    for section in fields(Config):
        was, now = getattr(old, section.name), getattr(new, section.name)
        if not is_dataclass(was):
            yield section.name, was, now
            continue
        for key in fields(was):
            name = f"{section.name}.{key.name}"
            yield name, getattr(was, key.name), getattr(now, key.name)
