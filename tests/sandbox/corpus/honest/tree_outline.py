# kind: recursive dataclass trees with iteration
"""Outlines of documents as trees; indentation in, numbering out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Node:
    title: str
    children: list[Node] = field(default_factory=list)
    parent: Node | None = field(default=None, repr=False)

    def add(self, title: str) -> Node:
        child = Node(title, parent=self)
        self.children.append(child)
        return child

    def __iter__(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, title: str) -> Node:
        for node in self:
            if node.title == title:
                return node
        raise KeyError(title)

    @property
    def path(self) -> list[str]:
        node: Node | None = self
        titles: list[str] = []
        while node is not None:
            titles.append(node.title)
            node = node.parent
        return titles[::-1]

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1

    def numbered(self, prefix: tuple[int, ...] = ()) -> Iterator[str]:
        if prefix:
            yield f"{'.'.join(map(str, prefix)):<6}{self.title}"
        for number, child in enumerate(self.children, start=1):
            yield from child.numbered((*prefix, number))

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {"title": self.title}
        if self.children:
            data["children"] = [child.to_dict() for child in self.children]
        return data


def parse(text: str, indent: int = 2) -> Node:
    root = Node("root")
    stack = [root]
    for number, line in enumerate(text.splitlines(), start=1):
        if not (title := line.strip()):
            continue
        level, rest = divmod(len(line) - len(line.lstrip(" ")), indent)
        if rest or level >= len(stack):
            raise ValueError(f"line {number}: bad indentation")
        del stack[level + 1 :]
        stack.append(stack[-1].add(title))
    return root


def outline(text: str) -> dict[str, Any]:
    root = parse(text)
    return {
        "lines": list(root.numbered()),
        "count": len(root) - 1,
        "deepest": max(root, key=lambda node: node.depth).path[1:],
        "tree": root.to_dict()["children"],
    }


def path_of(text: str, title: str) -> str:
    return " > ".join(parse(text)[title].path[1:])


def shown(text: str) -> str:
    return repr(parse(text))
