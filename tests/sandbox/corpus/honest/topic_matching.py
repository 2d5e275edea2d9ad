# kind: subscription trie with wildcards
"""Topics of the notification protocol: 'a/+/c' and 'a/#'."""

from __future__ import annotations

from typing import Iterator


class TopicError(ValueError):
    pass


class _Node:
    __slots__ = ("children", "subscribers")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.subscribers: set[str] = set()


class Subscriptions:
    """Who listens to what."""

    def __init__(self) -> None:
        self._root = _Node()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @staticmethod
    def _levels(pattern: str) -> list[str]:
        levels = pattern.split("/")
        if "#" in levels[:-1]:
            raise TopicError(f"{pattern}: '#' must be last")
        if any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
            raise TopicError(f"{pattern}: a wildcard takes a whole level")
        return levels

    def add(self, who: str, pattern: str) -> None:
        node = self._root
        for level in self._levels(pattern):
            if level not in node.children:
                node.children[level] = _Node()
            node = node.children[level]
        self._count += who not in node.subscribers
        node.subscribers.add(who)

    def remove(self, who: str, pattern: str) -> bool:
        node = self._root
        try:
            for level in self._levels(pattern):
                node = node.children[level]
            node.subscribers.remove(who)
        except KeyError:
            return False
        self._count -= 1
        return True

    def _match(self, node: _Node, levels: list[str]) -> Iterator[str]:
        if wildcard := node.children.get("#"):
            yield from wildcard.subscribers
        if not levels:
            yield from node.subscribers
            return
        head, *tail = levels
        for key in (head, "+"):
            if (child := node.children.get(key)) is not None:
                yield from self._match(child, tail)

    def listeners(self, topic: str) -> list[str]:
        return sorted(set(self._match(self._root, topic.split("/"))))


def deliver(subscriptions: dict[str, list[str]], topics: list[str]) -> dict[str, list[str]]:
    registry = Subscriptions()
    for who, patterns in subscriptions.items():
        for pattern in patterns:
            registry.add(who, pattern)
    return {topic: registry.listeners(topic) for topic in topics}


def after_removal(pairs: list[list[str]], gone: list[list[str]]) -> list:
    registry = Subscriptions()
    for who, pattern in pairs:
        registry.add(who, pattern)
    return [len(registry), [registry.remove(*pair) for pair in gone], len(registry)]
