"""The logs of sessions in memory; a kill leaves what was written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from cache.errors import LogConflict
from cache.parts.logs import Log, LogChange, LogEvent, LogItem

__all__ = ["MemoryLogs"]


@dataclass
class _Kept:
    head: Log
    events: list[LogEvent] = field(default_factory=list)
    items: dict[str, LogItem] = field(default_factory=dict)


class MemoryLogs:
    """What sessions need of `SealedLogs`."""

    is_shared = False

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        "Logs by their names."

        self._logs: dict[str, _Kept] = {}

    def append_log(self, change: LogChange) -> Log:
        kept = self._logs.get(change.log)
        if kept is None:
            if change.after or any(name in self.names for name in change.names):
                raise LogConflict("another log")
            kept = _Kept(
                Log(
                    id=change.log,
                    created=change.at,
                    updated=change.at,
                    first=1,
                    last=0,
                    size=0,
                    open=True,
                    busy=True,
                    content=b"",
                )
            )
            self._logs[change.log] = kept
            self.names |= dict.fromkeys(change.names, change.log)
        if kept.head.last != change.after:
            raise LogConflict("other events")
        for number, data in enumerate(change.events, start=change.after + 1):
            kept.events.append(LogEvent(number=number, at=change.at, content=data))
        for one in change.items:
            kept.items[one.id] = replace(one, log=change.log)
        kept.head = replace(
            kept.head,
            updated=change.at,
            last=change.after + len(change.events),
            open=change.open,
            busy=change.busy,
            content=kept.head.content if change.content is None else change.content,
        )
        return kept.head

    def log(self, log: str) -> Log | None:
        kept = self._logs.get(log)
        return None if kept is None else kept.head

    def log_named(self, name: str) -> str | None:
        return self.names.get(name)

    def logs(self, *, before: str = "", limit: int = 100) -> list[Log]:
        return [] if before else [one.head for one in self._logs.values()]

    def busy_logs(self, *, after: str = "", limit: int = 100) -> list[str]:
        busy = [name for name, one in self._logs.items() if one.head.busy]
        return [] if after else busy[:limit]

    def log_events(
        self, log: str, *, after: int = 0, limit: int = 100
    ) -> list[LogEvent]:
        return self._logs[log].events[after : after + limit]

    def log_item(self, item: str) -> LogItem | None:
        for kept in self._logs.values():
            if item in kept.items:
                return kept.items[item]
        return None

    def items_of_log(self, log: str, *, after: str = "", limit: int = 100) -> Any:
        return [] if after else list(self._logs[log].items.values())

    def items(self) -> list[LogItem]:
        """Return the records of all tasks."""
        return [one for kept in self._logs.values() for one in kept.items.values()]
