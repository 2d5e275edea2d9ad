# kind: heaps and priority queues
"""Job scheduling by priority and due time, stable for equal keys."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field


@dataclass(order=True)
class _Entry:
    priority: int
    due: float
    number: int
    name: str = field(compare=False)
    cancelled: bool = field(default=False, compare=False)


class JobQueue:
    """A heap with lazy removal."""

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._by_name: dict[str, _Entry] = {}
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._by_name)

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def push(self, name: str, priority: int = 5, due: float = 0.0) -> None:
        if name in self:
            self.cancel(name)
        entry = _Entry(priority, due, next(self._numbers), name)
        self._by_name[name] = entry
        heapq.heappush(self._heap, entry)

    def cancel(self, name: str) -> None:
        self._by_name.pop(name).cancelled = True

    def pop(self) -> str:
        while self._heap:
            entry = heapq.heappop(self._heap)
            if not entry.cancelled:
                del self._by_name[entry.name]
                return entry.name
        raise IndexError("the queue is empty")


def run(commands: list[list]) -> list[str]:
    queue, done = JobQueue(), []
    for verb, *args in commands:
        if verb == "pop":
            done.append(queue.pop())
        else:
            getattr(queue, verb)(*args)
    while queue:
        done.append(queue.pop())
    return done


def top(scores: dict[str, int], n: int) -> list[list]:
    best = heapq.nlargest(n, scores.items(), key=lambda item: (item[1], item[0]))
    return [list(pair) for pair in best]


def merge_logs(logs: list[list[list]]) -> list[str]:
    return [text for _, text in heapq.merge(*logs, key=lambda entry: entry[0])]
