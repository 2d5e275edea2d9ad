"""Fair shares: listed peers come first, and nobody takes more than a share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.channel.core.shares import (
    NoPlace,
    Place,
    ShareLimits,
    Shares,
    address_key,
)
from anp.errors import LocalError


@dataclass(eq=False)
class User:
    """A user of a place, silent for as long as a test says."""

    name: str
    silent: float = 0.0


def shares(
    *, total: int = 8, unlisted: int = 6, each: int = 3, patience: float = 1.0
) -> Shares[User]:
    limits = ShareLimits(total=total, unlisted=unlisted, each=each, patience=patience)
    return Shares(limits, silence=lambda user: user.silent)


def fill(
    places: Shares[User], key: str, number: int, *, listed: bool = False, **also: float
) -> list[User]:
    users = [User(f"{key}{n}", **also) for n in range(number)]
    for user in users:
        _, gone = places.take(user, key, listed=listed)
        assert gone is None
    return users


def test_each_key_holds_at_most_its_bound() -> None:
    places = shares()
    fill(places, "a", 3)
    with pytest.raises(NoPlace, match="3 of one peer or address"):
        places.take(User("one more"), "a", listed=False)
    assert places.refused == 1


def test_over_its_bound_a_key_gives_up_its_own_idlest_place() -> None:
    places = shares()
    first, second, _ = fill(places, "a", 3)
    fill(places, "b", 1, silent=50.0)
    first.silent, second.silent = 1.0, 2.0
    _, gone = places.take(User("one more"), "a", listed=False)
    assert gone is second


def test_at_the_patience_a_place_may_be_given_away_and_not_before() -> None:
    places = shares(each=1)
    [user] = fill(places, "a", 1, silent=0.99)
    with pytest.raises(NoPlace):
        places.take(User("next"), "a", listed=False)
    user.silent = 1.0
    assert places.take(User("next"), "a", listed=False)[1] is user


def test_a_newcomer_takes_a_place_of_who_holds_most_even_if_that_one_works() -> None:
    places = shares()
    many = fill(places, "a", 3)
    fill(places, "b", 3)
    _, gone = places.take(User("new"), "c", listed=False)
    assert gone in many or gone is not None
    assert len(places) == 6


def test_shares_that_are_equal_already_are_left_to_who_works() -> None:
    places = shares(each=1)
    for key in "abcdef":
        fill(places, key, 1)
    with pytest.raises(NoPlace, match="6 of unlisted peers"):
        places.take(User("new"), "g", listed=False)


def test_the_rest_is_for_listed_peers() -> None:
    places = shares()
    fill(places, "a", 3)
    fill(places, "b", 3)
    fill(places, "friend", 2, listed=True)
    # All are taken: the third place comes from one that is not listed.
    place, gone = places.take(User("third"), "friend", listed=True)
    assert gone is not None
    assert gone.name[0] in "ab"
    assert place.listed
    assert places.unlisted == 5


def test_strangers_never_displace_listed_peers() -> None:
    places = shares(total=4, unlisted=4, each=4)
    fill(places, "friend", 4, listed=True, silent=1000.0)
    with pytest.raises(NoPlace, match="4 in all"):
        places.take(User("new"), "a", listed=False)
    assert not places.room(listed=False)


def test_a_place_that_was_given_away_can_be_left_again() -> None:
    places = shares(each=1)
    place, _ = places.take(User("a", silent=5.0), "a", listed=False)
    places.take(User("b"), "a", listed=False)
    places.leave(place)
    places.leave(place)
    assert len(places) == 1


@pytest.mark.parametrize(
    ("host", "key"),
    [
        ("127.0.0.2", "127.0.0.2"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("/run/x", "/run/x"),
    ],
)
def test_addresses_are_told_apart_by_who_may_have_them(host: str, key: str) -> None:
    assert address_key(host) == key


@pytest.mark.parametrize(
    "limits", [{"total": 0}, {"unlisted": 9}, {"unlisted": 0}, {"each": 0}]
)
def test_limits_that_shut_somebody_out_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(LocalError):
        shares(**limits)


@dataclass
class Model:
    """What anybody can see of the shares from outside."""

    places: Shares[User]
    held: list[Place[User]] = field(default_factory=list)

    def take(self, key: str, listed: bool) -> None:
        before = Counter((p.listed, p.key) for p in self.held)
        user = User(key)
        try:
            place, gone = self.places.take(user, key, listed=listed)
        except NoPlace:
            # A listed peer within its bound is refused by listed peers alone.
            within = before[True, key] < self.places.limits.each
            if listed and within:
                assert all(p.listed for p in self.held)
            return
        if gone is not None:
            [lost] = [p for p in self.held if p.user is gone]
            self.held.remove(lost)
            assert listed or not lost.listed
        self.held.append(place)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.sampled_from("abcdef"), st.booleans()),
        st.tuples(st.just("leave"), st.integers(0, 20), st.none()),
        st.tuples(st.just("wait"), st.integers(0, 20), st.floats(0, 3)),
    ),
    max_size=60,
)


@given(steps, st.integers(1, 6), st.integers(0, 4), st.integers(1, 4))
def test_no_order_of_events_breaks_a_bound(
    steps: list[tuple[str, str | int, float | bool | None]],
    unlisted: int,
    more: int,
    each: int,
) -> None:
    model = Model(shares(total=unlisted + more, unlisted=unlisted, each=each))
    for what, which, value in steps:
        if what == "take":
            model.take(str(which), bool(value))
        elif model.held:
            place = model.held[int(which) % len(model.held)]
            if what == "leave":
                model.places.leave(place)
                model.held.remove(place)
            else:
                place.user.silent = float(value or 0.0)
        groups = Counter((p.listed, p.key) for p in model.held)
        assert len(model.places) == len(model.held) <= unlisted + more
        assert model.places.unlisted <= unlisted
        assert max(groups.values(), default=0) <= each


@given(st.integers(2, 20), st.integers(1, 5))
def test_a_newcomer_gets_in_where_one_holds_at_least_two_more(
    unlisted: int, each: int
) -> None:
    """However busy an attacker with one address is, another address gets its part."""
    places = shares(total=unlisted, unlisted=unlisted, each=unlisted)
    fill(places, "attacker", unlisted)
    got = 0
    try:
        for _ in range(unlisted):
            places.take(User("good"), "good", listed=False)
            got += 1
    except NoPlace:
        pass
    assert got == unlisted // 2
