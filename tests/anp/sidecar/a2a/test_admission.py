"""The door of the A2A face: credentials, limits, and what each caller may use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from anp.sidecar.a2a.door.admission import A2aDoor, CallerPace, NotAdmitted
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.door.tokens import TokenBook
from anp.sidecar.offer.exposure import Exposure
from tests.anp.sidecar.a2a.test_issuer import Source, issuer, public, token
from tests.clauses import clause

Known = Mapping[str, tuple[str, ...] | None]


class Told:
    """Takes what is exposed to each caller."""

    def __init__(self) -> None:
        self.known: Known = {}

    def __call__(self, found: Known) -> None:
        self.known = found


def bearer(text: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}"}


def door(tmp_path: Path, told: Told | None = None, **more: Any) -> A2aDoor:
    book = more.pop("book", None) or TokenBook(tmp_path / "tokens.json")
    return A2aDoor(book, on_change=told or Told(), **more)


@clause("A2A-3", "A2A-21")
async def test_who_has_a_token_is_let_in(tmp_path: Path) -> None:
    book, told = TokenBook(tmp_path / "tokens.json"), Told()
    book.add(A2aCaller(name="ann"), "secret")
    book.add(A2aCaller(name="bob", expose=("odd",)), "other")
    my = door(tmp_path, told, book=book)
    assert (await my.admit(bearer("secret"))).id == "local:ann"
    assert told.known == {"local:ann": None, "local:bob": ("odd",)}
    book.revoke("bob")
    with pytest.raises(NotAdmitted):
        await my.admit(bearer("other"))
    assert told.known == {"local:ann": None}


@clause("A2A-3")
@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ({}, "Bearer"),
        (bearer("wrong"), 'Bearer error="invalid_token"'),
        ({"authorization": "Basic YTpi"}, 'Bearer error="invalid_token"'),
        ({"authorization": "Bearer"}, 'Bearer error="invalid_token"'),
        (bearer("a.b.c"), 'Bearer error="invalid_token"'),
    ],
)
async def test_nobody_else_is(
    tmp_path: Path, headers: dict[str, str], challenge: str
) -> None:
    my = door(tmp_path, issuer=issuer(Source(public("rsa2048"))))
    with pytest.raises(NotAdmitted) as caught:
        await my.admit(headers)
    assert caught.value.status == 401
    assert caught.value.headers["WWW-Authenticate"].startswith(challenge)


async def test_the_card_may_be_read_without_credentials_and_not_with_wrong_ones(
    tmp_path: Path,
) -> None:
    my = door(tmp_path)
    assert await my.find({}) is None
    with pytest.raises(NotAdmitted):
        await my.find(bearer("wrong"))


async def test_tokens_end(tmp_path: Path) -> None:
    now = [1000.0]
    book = TokenBook(tmp_path / "tokens.json", clock=lambda: now[0])
    book.add(A2aCaller(name="ann", expires=1100.0), "secret")
    my = door(tmp_path, book=book)
    assert (await my.admit(bearer("secret"))).name == "ann"
    now[0] = 1100.0
    with pytest.raises(NotAdmitted):
        await my.admit(bearer("secret"))


@clause("A2A-3")
async def test_what_a_caller_began_goes_on_as_long_as_its_token(tmp_path: Path) -> None:
    now = [1000.0]
    book = TokenBook(tmp_path / "tokens.json", clock=lambda: now[0])
    my, opened = door(tmp_path, book=book), door(tmp_path, is_open=True)
    trusting = door(tmp_path, issuer=issuer(Source(public("rsa2048"))))
    book.add(A2aCaller(name="ann", expires=1100.0), "secret")
    ann = await my.admit(bearer("secret"))
    assert my.holds(ann.id, ann.grant)
    # A token of the same name is another one.
    book.add(A2aCaller(name="ann"), "new")
    assert not my.holds(ann.id, ann.grant)
    assert my.holds(ann.id, (await my.admit(bearer("new"))).grant)
    book.add(ann, "secret")
    now[0] = 1100.0
    assert not my.holds(ann.id, ann.grant)
    assert not my.holds(ann.id, "")
    # Those without a token of ours have nothing that could be revoked by itself.
    assert [one.holds("local:everybody", "") for one in (my, opened)] == [False, True]
    assert [one.holds("local:jwt:a", "") for one in (my, trusting)] == [False, True]


async def test_the_last_use_of_a_token_is_written_once_a_minute(tmp_path: Path) -> None:
    now = [1000.0]
    book = TokenBook(tmp_path / "tokens.json", clock=lambda: now[0])
    book.add(A2aCaller(name="ann"), "secret")
    my, seen = door(tmp_path, book=book), TokenBook(tmp_path / "tokens.json")
    assert seen.uses() == {}
    for at, written in ((1000.0, 1000.0), (1050.0, 1000.0), (1061.0, 1061.0)):
        now[0] = at
        await my.admit(bearer("secret"))
        assert seen.uses() == {"ann": written}


@clause("A2A-3", "A2A-9")
async def test_scopes_of_a_signed_token_are_what_its_caller_may_use(
    tmp_path: Path,
) -> None:
    told = Told()
    my = door(tmp_path, told, issuer=issuer(Source(public("rsa2048"))))
    first = await my.admit(bearer(token()))
    assert first.reach.has("shop.get_product")
    assert not first.reach.has("odd.odd")
    assert told.known == {"local:jwt:ann": ("shop.get_product",)}
    # Work that goes on is held to the newest token of its caller.
    await my.admit(bearer(token(scope="odd")))
    assert told.known == {"local:jwt:ann": ("odd.odd", "shop.list")}
    with pytest.raises(NotAdmitted) as caught:
        await my.admit(bearer(token(scope="nothing")))
    assert caught.value.status == 403
    challenge = caught.value.headers["WWW-Authenticate"]
    assert challenge == 'Bearer error="insufficient_scope", scope="shop odd"'


def test_to_callers_that_are_not_known_nothing_is_exposed() -> None:
    exposure = Exposure()
    exposure.set_callers({"local:ann": None, "local:bob": ("odd",)})
    assert list(exposure._rules("local:ann")) == []
    assert list(exposure._rules("local:bob")) == [("odd",)]
    # Such as one whose token was revoked, or one from before a restart.
    assert list(exposure._rules("local:jwt:ann")) == [()]
    assert list(exposure._rules("did:key:z6Mk")) == []


async def test_a_caller_that_sends_too_much_is_told_when_to_come_back(
    tmp_path: Path,
) -> None:
    book = TokenBook(tmp_path / "tokens.json")
    book.add(A2aCaller(name="ann"), "secret")
    my = door(tmp_path, book=book, rate=2)
    for _ in range(4):
        await my.admit(bearer("secret"))
    with pytest.raises(NotAdmitted) as caught:
        await my.admit(bearer("secret"))
    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "1"})


def test_the_pace_of_one_caller_is_not_that_of_another() -> None:
    now = [0.0]
    pace = CallerPace(10.0, clock=lambda: now[0])
    assert [pace.wait("ann") for _ in range(20)] == [0.0] * 20
    assert pace.wait("ann") == pytest.approx(0.1)
    assert pace.wait("bob") == 0.0
    now[0] = 0.1
    assert pace.wait("ann") == 0.0
    assert pace.wait("ann") > 0
    assert [CallerPace(0).wait("ann") for _ in range(100)] == [0.0] * 100
