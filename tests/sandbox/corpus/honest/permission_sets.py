# kind: sets, frozensets and role inheritance
"""Permissions from roles; roles inherit from others."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property, reduce
from operator import or_


class RoleError(LookupError):
    """A role is unknown or inherits from itself."""


class Role:
    def __init__(self, name: str, permissions: Iterable[str], parents: Iterable[Role] = ()) -> None:
        self.name = name
        self._own = frozenset(permissions)
        self._parents = tuple(parents)

    @cached_property
    def permissions(self) -> frozenset[str]:
        return reduce(or_, (parent.permissions for parent in self._parents), self._own)

    def __contains__(self, permission: str) -> bool:
        area, _, _ = permission.partition(":")
        return permission in self.permissions or f"{area}:*" in self.permissions

    def __le__(self, other: Role) -> bool:
        return self.permissions <= other.permissions

    def __repr__(self) -> str:
        return f"Role({self.name}, {len(self.permissions)})"


def build(config: dict[str, dict]) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    active: list[str] = []

    def make(name: str) -> Role:
        if name in roles:
            return roles[name]
        if name in active:
            raise RoleError(" -> ".join([*active[active.index(name) :], name]))
        if name not in config:
            raise RoleError(f"unknown role {name}")
        active.append(name)
        try:
            entry = config[name]
            parents = [make(parent) for parent in entry.get("inherits", [])]
            roles[name] = Role(name, entry.get("allow", []), parents)
        finally:
            active.pop()
        return roles[name]

    for name in config:
        make(name)
    return roles


def check(config: dict[str, dict], role: str, wanted: list[str]) -> dict:
    granted = build(config)[role]
    allowed = {permission for permission in wanted if permission in granted}
    denied = set(wanted) - allowed
    return {
        "allowed": sorted(allowed),
        "denied": sorted(denied),
        "all": allowed >= set(wanted),
        "share": str(Fraction(len(allowed), len(wanted) or 1)),
        "role": repr(granted),
    }


def compare(left: list[str], right: list[str]) -> dict[str, list[str]]:
    a, b = set(left), set(right)
    return {
        "both": sorted(a & b),
        "either": sorted(a | b),
        "changed": sorted(a ^ b),
        "removed": sorted(a - b),
        "disjoint": [] if not a.isdisjoint(b) else sorted(a.union(b)),
    }


def hierarchy(config: dict[str, dict]) -> list[list[str]]:
    roles = build(config)
    return [[a, b] for a in roles for b in roles if a != b and roles[a] <= roles[b]]
