# kind: LRU with OrderedDict and a caching provider half
"""A price cache with a size limit and expiry; time comes with the requests."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class Statistics:
    hits: int = 0
    misses: int = 0
    evictions: int = 0

    @property
    def ratio(self) -> float:
        total = self.hits + self.misses
        return self.hits / total if total else 0.0


class Cache(Generic[K, V]):
    def __init__(self, capacity: int, ttl: float) -> None:
        self.capacity = capacity
        self.ttl = ttl
        self.stats = Statistics()
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K, now: float) -> V | None:
        try:
            expires, value = self._entries[key]
        except KeyError:
            self.stats.misses += 1
            return None
        if now >= expires:
            del self._entries[key]
            self.stats.misses += 1
            return None
        self._entries.move_to_end(key)
        self.stats.hits += 1
        return value

    def put(self, key: K, value: V, now: float) -> None:
        self._entries[key] = (now + self.ttl, value)
        self._entries.move_to_end(key)
        while len(self._entries) > self.capacity:
            self._entries.popitem(last=False)
            self.stats.evictions += 1

    def keys(self) -> list[K]:
        return list(self._entries)


def handle_requests(requests: list[dict]):
    cache: Cache[str, float] = Cache(capacity=2, ttl=10.0)
    answers = []
    for request in requests:
        sku, now = request["sku"], request["at"]
        if (price := cache.get(sku, now)) is None:
            price = yield call("price_of", {"sku": sku})
            cache.put(sku, price, now)
        answers.append(f"{sku}={price:.2f}")
    stats = cache.stats
    return {
        "answers": answers,
        "kept": cache.keys(),
        "hits": stats.hits,
        "evictions": stats.evictions,
        "ratio": f"{stats.ratio:.0%}",
    }
