"""Counters as ivs: never one twice, whatever is lost, repeated or set back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.replay import (
    BLOCK,
    MAX_COUNTER,
    ReplayWindow,
    SendCounter,
    block_end,
    counter_of,
    first_iv,
)

SALT = b"salt"


def test_an_iv_is_the_salt_and_the_counter() -> None:
    counter = SendCounter(SALT, first=1)
    assert counter.take() == SALT + bytes(7) + b"\x01"
    assert counter_of(counter.take()) == 2
    assert counter_of(first_iv(SALT)) == 0


def test_a_counter_that_is_not_reserved_is_never_taken() -> None:
    counter = SendCounter(SALT, first=BLOCK - 1, end=BLOCK)
    counter.take()
    assert counter.needs_block
    with pytest.raises(LocalError):
        counter.take()
    counter.reserve(3 * BLOCK, 4 * BLOCK)
    assert counter_of(counter.take()) == 3 * BLOCK


def test_a_reservation_never_goes_back() -> None:
    counter = SendCounter(SALT, first=BLOCK, end=BLOCK)
    with pytest.raises(LocalError):
        counter.reserve(BLOCK - 1, 2 * BLOCK)


def test_the_last_counter_of_a_key_is_taken_and_none_after_it() -> None:
    counter = SendCounter(SALT, first=MAX_COUNTER - 1)
    counter.take()
    with pytest.raises(LocalError):
        counter.take()


def test_a_window_refuses_what_came_what_is_too_old_and_what_is_past_the_end() -> None:
    window = ReplayWindow(highest=0)
    window.add(BLOCK)
    window.add(1)
    for counter in (0, 1, BLOCK):
        with pytest.raises(PeerError, match="replay"):
            window.add(counter)
    window.add(BLOCK + 1)
    with pytest.raises(PeerError, match="replay"):
        window.check(1)
    window.check(2)
    window.add(MAX_COUNTER - 1)
    with pytest.raises(PeerError) as refused:
        window.add(MAX_COUNTER)
    assert refused.value.code is ErrorCode.ENCRYPTION_KEY_EXPIRED


@given(
    counters=st.lists(st.integers(0, 3 * BLOCK), max_size=200),
    mark=st.integers(0, BLOCK),
)
def test_a_window_takes_each_counter_once_and_none_up_to_its_mark(
    counters: list[int], mark: int
) -> None:
    window = ReplayWindow(highest=mark)
    taken: set[int] = set()
    for counter in counters:
        highest = max([mark, *taken])
        fits = counter > mark and counter not in taken and counter > highest - BLOCK
        try:
            window.add(counter)
        except PeerError:
            assert not fits
        else:
            assert fits
            taken.add(counter)
        assert window.highest == max([mark, *taken])


@given(st.integers(0, MAX_COUNTER))
def test_a_counter_is_in_one_aligned_block(counter: int) -> None:
    last = block_end(counter)
    assert last - BLOCK < counter <= last
    assert (last + 1) % BLOCK == 0
