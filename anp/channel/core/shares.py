"""Fair shares of one resource: a number of places, and those who hold them. Pure.

Listed peers come first: a part of the places is theirs alone, and where all are taken a
listed peer gets the place of one that is not listed. All others have one common share,
divided by the key that they are told apart by, mostly their address: nobody holds more
than a bound, and a newcomer gets the place of whoever holds most and does least.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from anp.errors import AnpError, LocalError

T = TypeVar("T")


class NoPlace(AnpError):
    """All places that this user could have are taken, and none of them is idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareLimits:
    """The places of one resource, and who may have how many of them."""

    total: int
    "Places in all."

    unlisted: int
    "Places that all who are not listed may hold together; the rest is for listed ones."

    each: int
    "Places that one key may hold."

    patience: float
    """Seconds of doing nothing after which a place may be given to somebody else: so
    much more than the newcomer's, where the past counts."""

    def __post_init__(self) -> None:
        """Refuse limits by which somebody could never have a place."""
        if not self.each >= 1 or not 1 <= self.unlisted <= self.total:
            raise LocalError(f"no shares can be made of {self}")


@dataclass(frozen=True, slots=True, eq=False)
class Place(Generic[T]):
    """A place that is taken."""

    user: T
    "The user of the place."

    key: str
    "Name that all users have who share one bound, such as an address or a DID."

    listed: bool
    "True for a peer that the owner listed."


class Shares(Generic[T]):
    """Gives the places of one resource to its users.

    Args:
        silence: Returns the seconds for which a user did nothing; 0 while it works.
        debt: Returns the seconds that users of a key had places for nothing of late;
            a newcomer gets the place of one that did nothing for so much longer.
    """

    def __init__(
        self,
        limits: ShareLimits,
        *,
        silence: Callable[[T], float],
        debt: Callable[[str], float] = lambda _: 0.0,
    ) -> None:
        self.limits = limits
        self._silence = silence
        self._debt = debt
        self._places: dict[Place[T], None] = {}
        self._held: Counter[tuple[bool, str]] = Counter()
        self.unlisted = 0
        "Places that are taken by those who are not listed."
        self.refused = 0
        "Users that found no place."
        self.displaced = 0
        "Users that lost their place to another one."

    def __len__(self) -> int:
        """Return how many places are taken."""
        return len(self._places)

    def held(self, key: str) -> int:
        """Return how many places a key holds that is not listed."""
        return self._held[False, key]

    def room(self, *, listed: bool) -> bool:
        """Return True if a newcomer would find a place, taken from another or not."""
        try:
            self._victim("", listed=listed)
        except NoPlace:
            return False
        return True

    def take(self, user: T, key: str, *, listed: bool) -> tuple[Place[T], T | None]:
        """Give a user a place.

        Args:
            key: The bound counts the places of one key; see `Place.key`.

        Returns:
            The place, and the user whose place it was until now: the caller ends that.

        Raises:
            NoPlace: There is none for this user now.
        """
        try:
            victim = self._victim(key, listed=listed)
        except NoPlace:
            self.refused += 1
            raise
        if victim is not None:
            self.displaced += 1
            self.leave(victim)
        place = Place(user, key, listed)
        self._places[place] = None
        self._held[listed, key] += 1
        self.unlisted += not listed
        return place, None if victim is None else victim.user

    def leave(self, place: Place[T]) -> None:
        """Take a place back; harmless when it was given away already."""
        if place not in self._places:
            return
        del self._places[place]
        group = place.listed, place.key
        self._held[group] -= 1
        self.unlisted -= not place.listed
        if not self._held[group]:
            del self._held[group]

    def _victim(self, key: str, *, listed: bool) -> Place[T] | None:
        """Return the place that a newcomer takes over; None: there is a free one."""
        limits = self.limits
        if self._held[listed, key] >= limits.each:
            return self._idlest(
                [p for p in self._places if (p.listed, p.key) == (listed, key)],
                key,
                f"{limits.each} of one peer or address",
            )
        if not listed and self.unlisted >= limits.unlisted:
            return self._heaviest(
                self._of(listed=False), key, f"{limits.unlisted} of unlisted peers"
            )
        if len(self._places) < limits.total:
            return None
        if listed and self.unlisted:
            # Where nobody does nothing, somebody who works has to go.
            return self._choose(self._of(listed=False))
        return self._heaviest(self._of(listed=listed), key, f"{limits.total} in all")

    def _of(self, *, listed: bool) -> list[Place[T]]:
        return [place for place in self._places if place.listed is listed]

    def _heaviest(self, places: list[Place[T]], key: str, what: str) -> Place[T]:
        """Return a place of whoever holds most, or the idlest one of all."""
        if places:
            chosen = self._choose(places)
            group = chosen.listed, chosen.key
            # One less than now is still as many as the newcomer has then.
            if self._held[group] >= self._held[chosen.listed, key] + 2:
                return chosen
        return self._idlest(places, key, what)

    def _choose(self, places: list[Place[T]]) -> Place[T]:
        """Return the idlest place of the key that holds most; the oldest of equals."""
        return max(places, key=lambda p: (self._held[p.listed, p.key], self._idle(p)))

    def _idlest(self, places: list[Place[T]], key: str, what: str) -> Place[T]:
        least = self._debt(key) + self.limits.patience
        idle = [p for p in places if self._idle(p) >= least]
        if not idle:
            raise NoPlace(f"all places are taken: {what}")
        return self._choose(idle)

    def _idle(self, place: Place[T]) -> float:
        return self._debt(place.key) + self._silence(place.user)


def address_key(host: str) -> str:
    """Return the key of an address: itself, or the /64 network of an IPv6 address.

    Whoever has one IPv6 address mostly has its whole /64.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address), 64), strict=False))
    return str(address)
