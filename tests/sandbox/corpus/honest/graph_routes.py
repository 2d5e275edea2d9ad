# kind: graph search: shortest paths, topological order, components
"""Routes and dependency orders over graphs given as edge lists."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from math import inf


class NoRoute(LookupError):
    def __init__(self, start: str, goal: str) -> None:
        super().__init__(f"no route from {start} to {goal}")


class CycleError(ValueError):
    def __init__(self, nodes: list[str]) -> None:
        super().__init__("cycle among " + ", ".join(nodes))
        self.nodes = nodes


def shortest_route(edges: list[list], start: str, goal: str) -> dict:
    graph: dict[str, dict[str, float]] = defaultdict(dict)
    for a, b, cost in edges:
        graph[a][b] = min(cost, graph[a].get(b, inf))
        graph[b][a] = min(cost, graph[b].get(a, inf))
    distances = {start: 0.0}
    previous: dict[str, str] = {}
    queue = [(0.0, start)]
    while queue:
        distance, node = heapq.heappop(queue)
        if node == goal:
            break
        if distance > distances[node]:
            continue
        for neighbour, cost in graph[node].items():
            candidate = distance + cost
            if candidate < distances.get(neighbour, inf):
                distances[neighbour] = candidate
                previous[neighbour] = node
                heapq.heappush(queue, (candidate, neighbour))
    else:
        raise NoRoute(start, goal)
    path = [goal]
    while path[-1] != start:
        path.append(previous[path[-1]])
    return {"cost": distances[goal], "path": path[::-1]}


def build_order(dependencies: dict[str, list[str]]) -> list[str]:
    waiting = {name: set(needs) for name, needs in dependencies.items()}
    for needs in dependencies.values():
        for need in needs:
            waiting.setdefault(need, set())
    order: list[str] = []
    while ready := sorted(name for name, needs in waiting.items() if not needs):
        order.extend(ready)
        for name in ready:
            del waiting[name]
        for needs in waiting.values():
            needs.difference_update(ready)
    if waiting:
        raise CycleError(sorted(waiting))
    return order


def components(edges: list[list[str]]) -> list[list[str]]:
    neighbours: defaultdict[str, set[str]] = defaultdict(set)
    for a, b in edges:
        neighbours[a].add(b)
        neighbours[b].add(a)
    seen: set[str] = set()
    groups = []
    for node in sorted(neighbours):
        if node in seen:
            continue
        queue, group = deque([node]), []
        seen.add(node)
        while queue:
            current = queue.popleft()
            group.append(current)
            for other in sorted(neighbours[current] - seen):
                seen.add(other)
                queue.append(other)
        groups.append(group)
    return groups
