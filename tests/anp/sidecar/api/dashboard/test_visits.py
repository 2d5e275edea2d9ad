"""Access to the dashboard: codes that count once, cookies that end, foreign pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.sidecar.api.dashboard.visits import (
    CODE_LIFETIME,
    COOKIE_LIFETIME,
    MAX_CODES,
    MAX_COOKIES,
    Visits,
    cookie_counts,
    cookie_name,
)

OWN = {"http://127.0.0.1:8484", "http://localhost:8484"}


def counting() -> Callable[[int], bytes]:
    """Return random bytes that a test can foretell."""
    numbers = iter(range(1, 10_000))
    return lambda size: next(numbers).to_bytes(size, "big")


def test_a_code_counts_once() -> None:
    visits = Visits(counting())
    code = visits.new_code(now=0.0)
    cookie = visits.redeem(code, now=1.0)
    assert cookie is not None
    assert visits.knows(cookie, now=2.0)
    assert visits.redeem(code, now=1.0) is None


def test_a_code_counts_until_its_end_and_not_then() -> None:
    visits = Visits(counting())
    first, second = visits.new_code(now=0.0), visits.new_code(now=0.0)
    assert visits.redeem(first, now=CODE_LIFETIME - 0.001) is not None
    assert visits.redeem(second, now=CODE_LIFETIME) is None


def test_a_cookie_counts_for_twelve_hours_and_not_then() -> None:
    visits = Visits(counting())
    cookie = visits.redeem(visits.new_code(now=0.0), now=0.0)
    assert cookie is not None
    assert COOKIE_LIFETIME == 12 * 3600
    assert visits.knows(cookie, now=COOKIE_LIFETIME - 0.001)
    assert not visits.knows(cookie, now=COOKIE_LIFETIME)


def test_who_signs_out_is_out() -> None:
    visits = Visits(counting())
    cookie = visits.redeem(visits.new_code(now=0.0), now=0.0)
    assert cookie is not None
    visits.leave(cookie)
    assert not visits.knows(cookie, now=0.0)
    visits.leave(cookie)


def test_codes_and_cookies_are_bounded_and_the_oldest_go() -> None:
    visits = Visits(counting())
    codes = [visits.new_code(now=0.0) for _ in range(MAX_CODES + 1)]
    assert visits.redeem(codes[0], now=0.0) is None
    assert visits.redeem(codes[1], now=0.0) is not None
    cookies = [
        visits.redeem(visits.new_code(now=0.0), now=0.0) for _ in range(MAX_COOKIES)
    ]
    late = visits.redeem(visits.new_code(now=0.0), now=0.0)
    assert late is not None
    assert visits.knows(late, now=0.0)
    assert cookies[0] is not None
    assert not visits.knows(cookies[0], now=0.0)


@given(st.text())
def test_no_other_text_is_a_code_or_a_cookie(text: str) -> None:
    visits = Visits(counting())
    visits.new_code(now=0.0)
    assert visits.redeem(text, now=0.0) is None
    assert not visits.knows(text, now=0.0)


@pytest.mark.parametrize(
    ("headers", "counts"),
    [
        ({"x-anpd-page": "1", "sec-fetch-site": "same-origin"}, True),
        ({"x-anpd-page": "1", "origin": "http://127.0.0.1:8484"}, True),
        ({"x-anpd-page": "1", "origin": "http://LOCALHOST:8484"}, True),
        ({"x-anpd-page": "1"}, True),
        # Without our header a foreign page may have sent it.
        ({"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8484"}, False),
        ({}, False),
        # Another port of this machine is the same site, but not we.
        ({"x-anpd-page": "1", "sec-fetch-site": "same-site"}, False),
        ({"x-anpd-page": "1", "origin": "http://127.0.0.1:3000"}, False),
        ({"x-anpd-page": "1", "sec-fetch-site": "cross-site"}, False),
        ({"x-anpd-page": "1", "sec-fetch-site": "none"}, False),
        ({"x-anpd-page": "1", "origin": "null"}, False),
    ],
)
def test_a_cookie_counts_only_for_our_own_pages(
    headers: dict[str, str], counts: bool
) -> None:
    assert cookie_counts(headers, OWN) is counts


def test_two_daemons_of_a_host_have_two_cookies() -> None:
    assert cookie_name(8484) != cookie_name(8485)
