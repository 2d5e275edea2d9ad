"""The comparison of a group's members finds what is wrong."""

from __future__ import annotations

from tests.crowd.ledger import Said, faults

A, B = "did:a", "did:b"


def said() -> dict[str, Said]:
    return {A: Said(numbers={"x": 2}, unknown={"y"}), B: Said(queued={"z"})}


HEARD = {2: (A, "x"), 3: (B, "z")}


def test_all_is_well() -> None:
    assert faults(said(), {A: HEARD, B: HEARD}) == []
    # It was killed before its own copy was stored, and knows the number alone.
    assert faults(said(), {A: {**HEARD, 2: (A, "")}, B: HEARD}) == []


def test_what_is_lost_twice_invented_or_in_another_order_is_found() -> None:
    assert len(faults(said(), {A: HEARD, B: {2: (A, "x")}})) == 1
    both = {**HEARD, 4: (B, "z")}
    assert faults(said(), {A: both, B: both}) == ["'z' came twice"]
    other = {**HEARD, 4: (A, "nobody's")}
    assert faults(said(), {A: other, B: other}) == ['nobody said "nobody\'s"']
    swapped = {2: (B, "z"), 3: (A, "x")}
    assert faults(said(), {A: HEARD, B: swapped})
    assert "'x' of did:a is lost" in faults(said(), {A: {3: (B, "z")}, B: {}})
