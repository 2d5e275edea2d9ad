"""A half with one fault in its data does not become active."""

from __future__ import annotations

import pytest

from tests.negotiation.faulty.bench import measure, problems_of
from tests.negotiation.faulty.corpus import CORPUS


@pytest.mark.parametrize("role", ["provider", "requester"])
@pytest.mark.parametrize("name", CORPUS)
async def test_the_right_halves_pass(name: str, role: str) -> None:
    pair = CORPUS[name]
    source = pair.provider if role == "provider" else pair.requester
    assert await problems_of(pair, role, source) == ()


async def test_most_halves_with_one_fault_are_found() -> None:
    counts = await measure(60)
    assert counts.rate >= 0.9, "\n".join([*counts.lines(), *counts.missed])
