"""The walk of two conversations, with every operation as bytes on the link."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anp.interaction.operations import Send
from anp.protocols.gbz.reader import read_frame
from anp.protocols.gbz.writer import write_frame
from tests.anp.interaction.test_walk import THOUSANDS, walk
from tests.clauses import clause

MAX = 786_432


def as_bytes(send: Send) -> Send:
    data = write_frame(send.operation, send.ref, max_size=MAX)
    frame = read_frame(data, max_size=MAX)
    return Send(to=send.to, ref=frame.ref, operation=frame.operation)


@clause("GBZ-22", "GBZ-38", "GBZ-57", "GBZ-58", "GBZ-Q10", "GBZ-Q12")
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(20, 120))
# A report that came again, with the state that was there, before an older one.
@example(seed=57, steps=42)
def test_frames_over_a_bad_link_end_the_same_on_both_sides(
    seed: int, steps: int
) -> None:
    walk(seed, steps, as_bytes)


@pytest.mark.slow
@clause("GBZ-Q2", "GBZ-Q12")
@pytest.mark.parametrize("first", THOUSANDS)
def test_five_thousand_conversations_in_frames_find_no_illegal_state(
    first: int,
) -> None:
    seeds = range(5000 + first, 6000 + first)
    assert sum(walk(seed, 40, as_bytes) for seed in seeds) > 10_000
