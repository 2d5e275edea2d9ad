"""The entries of a registry, by a scripted clock: quotas, pages, and their end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anp.sidecar.attachments import ToolError
from anp.sidecar.discovery.announcement import Announcement
from anp.sidecar.discovery.registry import (
    MAX_BYTES,
    MAX_BYTES_UNLISTED,
    MAX_CHANGES,
    MAX_OF_SHARE,
    PAGE,
    PERIOD,
    Entries,
)
from sandbox.pool.shares import Rank, Share
from tests.clauses import clause

NOW = 1_000_000
LISTED = Share(Rank.LISTED, "did:web:listed.example")
PLACE = Share(Rank.COMMON, "192.0.2.1")


def one(name: str, *, issued: int = NOW, lifetime: int = 3_600) -> Announcement:
    return Announcement(
        f"did:web:{name}.example",
        "wss://x.example/",
        name,
        "1",
        {"weather.now": "0" * 64},
        issued,
        issued + lifetime,
        {},
        1_000,
    )


def entries(most: int = 1_000, unlisted: int = 100) -> Entries:
    return Entries(max_entries=most, max_unlisted=unlisted)


def names(kept: Entries, now: float = NOW) -> list[str]:
    return [found.name for found in kept.find("now", now=now)[0]]


@clause("ENV-25")
def test_each_peer_has_one_entry_until_it_expires_or_is_withdrawn() -> None:
    kept = entries()
    kept.put(one("a"), LISTED, now=NOW)
    kept.put(one("a", issued=NOW + 5), LISTED, now=NOW + 5)
    assert len(kept) == 1
    with pytest.raises(ToolError, match="a newer announcement"):
        kept.put(one("a", issued=NOW + 4), LISTED, now=NOW + 6)
    assert names(kept, NOW + 3_604) == ["a"]
    assert names(kept, NOW + 3_605) == []
    kept.put(one("a", issued=NOW + 10), LISTED, now=NOW + 10)
    assert kept.drop("did:web:a.example", now=NOW)
    assert not kept.drop("did:web:a.example", now=NOW)


@clause("ENV-25")
def test_strangers_have_little_room_and_come_last() -> None:
    kept = entries(most=MAX_OF_SHARE + 3, unlisted=MAX_OF_SHARE + 1)
    for number in range(MAX_OF_SHARE):
        kept.put(one(f"a{number:02}"), PLACE, now=NOW)
    with pytest.raises(ToolError, match="no room"):
        kept.put(one("b"), PLACE, now=NOW)
    kept.put(one("b"), Share(Rank.COMMON, "192.0.2.2"), now=NOW)
    with pytest.raises(ToolError, match="no room"):
        kept.put(one("c"), Share(Rank.COMMON, "192.0.2.3"), now=NOW)
    kept.put(one("z"), LISTED, now=NOW)
    assert names(kept)[0] == "z"
    kept.put(one("y"), LISTED, now=NOW)
    with pytest.raises(ToolError, match="no room"):
        kept.put(one("x"), LISTED, now=NOW)
    kept.put(one("a00", issued=NOW + 1), PLACE, now=NOW + 1)
    assert kept.drop("did:web:a01.example", now=NOW)
    kept.put(one("c"), PLACE, now=NOW)


@clause("ENV-25")
def test_a_peer_that_changes_too_often_is_refused_for_a_while() -> None:
    kept = entries()
    for number in range(MAX_CHANGES):
        kept.put(one("a", issued=NOW + number), LISTED, now=NOW)
    with pytest.raises(ToolError, match="429"):
        kept.put(one("a", issued=NOW + 99), LISTED, now=NOW)
    kept.put(one("b"), LISTED, now=NOW)
    kept.put(one("a", issued=NOW + 99), LISTED, now=NOW + PERIOD)


@clause("ENV-25")
def test_entries_are_read_in_pages() -> None:
    kept = entries()
    for number in range(2 * PAGE + 1):
        kept.put(one(f"n{number:03}"), LISTED, now=NOW)
    seen: list[str] = []
    after: str | None = ""
    pages = 0
    while after is not None:
        page, after = kept.find("weather.now", after=after, now=NOW)
        seen += [found.name for found in page]
        pages += 1
    assert pages == 3
    assert seen == [f"n{number:03}" for number in range(2 * PAGE + 1)]
    assert kept.find("other", now=NOW) == ([], None)
    assert kept.find("", now=NOW) == ([], None)


@clause("ENV-25")
def test_the_bytes_of_all_entries_are_bounded() -> None:
    kept = entries()
    large = MAX_BYTES_UNLISTED // 4
    shares = [Share(Rank.COMMON, f"192.0.2.{number}") for number in range(5)]
    for number, share in enumerate(shares[:4]):
        kept.put(replace(one(f"a{number}"), size=large), share, now=NOW)
    with pytest.raises(ToolError, match="no room"):
        kept.put(one("b"), shares[4], now=NOW)
    assert kept.drop("did:web:a0.example", now=NOW)
    kept.put(one("b"), shares[4], now=NOW)
    rest = MAX_BYTES - 3 * large - 1_000
    kept.put(replace(one("c"), size=rest), LISTED, now=NOW)
    with pytest.raises(ToolError, match="no room"):
        kept.put(one("d"), LISTED, now=NOW)
