"""Bounds on rows that peers cause: those of one peer never push out another's.

A DID costs nothing, so all peers about whom the owner decided nothing count as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cache.parts.shelf import Shelf
from cache.records.peers import AliasRecord, PeerRecord, PeerState
from cache.records.records import AgreementRecord, AgreementRole, HalfRecord
from cache.rows import Rows

STRANGERS: Final = ""
"Stands for all peers about whom the owner decided nothing."

GIVEN_BACK: Final = 32
"One part of so many goes beyond the bound, so that a flood rarely pays for a look."

NEGOTIATED: Final = frozenset({"rules", "model"})
"Origins of code that can be written again."


@dataclass(frozen=True, slots=True)
class Sized:
    """A row that may have to go."""

    key: str
    size: int
    whose: str
    "The user that it counts for."


def is_stranger(record: PeerRecord) -> bool:
    """True for a peer about whom the owner decided nothing."""
    said_nothing = record.state in {PeerState.UNKNOWN, PeerState.WAITING}
    return said_nothing and not record.names


def surplus(rows: Iterable[Sized], *, count: int, size: int) -> list[str]:
    """Return the keys of rows that go so that the others keep to both bounds.

    The oldest rows of whoever has most go first, and a few more than needed.

    Args:
        rows: Oldest first.
        count: Rows that may stay.
        size: Bytes that may stay.
    """
    groups: dict[str, list[Sized]] = {}
    for row in rows:
        groups.setdefault(row.whose, []).append(row)
    counts = {whose: len(group) for whose, group in groups.items()}
    sizes = {whose: sum(row.size for row in group) for whose, group in groups.items()}
    if sum(counts.values()) <= count and sum(sizes.values()) <= size:
        return []
    for group in groups.values():
        group.reverse()
    count, size = count - count // GIVEN_BACK, size - size // GIVEN_BACK
    gone: list[str] = []
    while sum(sizes.values()) > size or sum(counts.values()) > count:
        by_size = sum(sizes.values()) > size
        most = sizes if by_size else counts
        whose = max(most, key=lambda one: most[one])
        row = groups[whose].pop()
        counts[whose] -= 1
        sizes[whose] -= row.size
        gone.append(row.key)
    return gone


def user_of(shelf: Shelf, cache: Rows, did: str) -> str:
    """Return `did`, or `STRANGERS` if the owner decided nothing about it.

    Args:
        did: Any DID of the peer.
    """
    alias = shelf.get(cache, AliasRecord, f"alias/{did}")
    did = did if alias is None else alias.did
    known = shelf.get(cache, PeerRecord, f"peer/{did}")
    return STRANGERS if known is None or is_stranger(known) else did


def trim_agreements(
    shelf: Shelf,
    cache: Rows,
    added: AgreementRecord,
    *,
    most: int,
    spare: Collection[str],
) -> None:
    """Drop the longest unused agreements that peers called for, over a bound.

    The bound is one for each peer of the owner's, and one for all others. What was
    agreed goes with its text and our code, if nothing else uses them.

    Args:
        added: The agreement that was just stored; it stays.
        most: Agreements that one user may have.
        spare: Hashes of texts that stay with their code, such as published ones.
    """
    area = "agreement/provider/"
    rows = [key.split("/") for key in cache.keys(area)]
    if len(rows) <= most:
        return
    whose = user_of(shelf, cache, added.peer_did)
    dids = {parts[3] for parts in rows}
    users = {did: user_of(shelf, cache, did) for did in dids}
    own = ["/".join(parts) for parts in rows if users[parts[3]] == whose]
    if len(own) <= most:
        return
    found = [shelf.get(cache, AgreementRecord, key) for key in own]
    known = [(key, one) for key, one in zip(own, found, strict=True) if one != added]
    known.sort(key=lambda pair: _last_use(pair[1]))
    for key, record in known[: len(own) - most + most // GIVEN_BACK]:
        cache.delete(key)
        if record is not None and record.hash not in spare:
            _drop_unused(shelf, cache, record)


def _last_use(record: AgreementRecord | None) -> float:
    return 0.0 if record is None else max(record.created, record.last_used or 0.0)


def _drop_unused(shelf: Shelf, cache: Rows, gone: AgreementRecord) -> None:
    """Drop the code of a dropped agreement, and its text, unless others use them."""
    digest = gone.hash
    asked = cache.keys(f"agreement/{AgreementRole.REQUESTER}/")
    if any(key.endswith(f"/{digest}") for key in asked):
        return
    if cache.keys(f"agreement/provider/{digest}/") or cache.keys(
        f"revocation/{digest}/"
    ):
        return
    halves: Sequence[HalfRecord] = shelf.scan(cache, HalfRecord, f"half/{digest}/")
    if len(halves) < len(cache.keys(f"half/{digest}/")) or any(
        half.origin not in NEGOTIATED for half in halves
    ):
        return
    for area in (f"half/{digest}/", f"document/{digest}", f"usage/{digest}"):
        for key in cache.keys(area):
            cache.delete(key)
