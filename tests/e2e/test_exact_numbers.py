"""Numbers come through two daemons and back as they were written."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from negotiation.strict_json import canonical_json, parse_json
from tests.e2e.house import house_in

ECHO = """
def same(value):
    return {"value": value}
"""

NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)
FIXED = ["0.1", "-0.0", "12345678901234567.89", "1e-400", "9" * 300, "1e30", "5e-324"]


def _lists() -> list[list[str]]:
    """Return lists of numbers as JSON may have them."""
    lists = [FIXED]

    @settings(
        max_examples=40,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(NUMBERS, min_size=1, max_size=30))
    def collect(numbers: list[str]) -> None:
        lists.append(numbers)

    collect()
    return lists


@pytest.mark.parametrize("way", ["agreement", "published", "envelope"])
async def test_numbers_keep_their_value(tmp_path: Path, way: str) -> None:
    """By a negotiated document, a published one, and the message envelope."""
    flags: dict[str, Any] = {}
    if way != "agreement":
        flags = {"consensus__use": True, "documents": way == "published"}
    async with house_in(tmp_path, more={"same": ECHO}, **flags) as house:
        for numbers in _lists():
            sent = parse_json(f"[{','.join(numbers)}]", max_size=100_000)
            result = await house.result("same", {"value": sent})
            back = canonical_json(result.output["value"]).decode()[1:-1].split(",")
            assert [Decimal(text) for text in back] == list(map(Decimal, numbers))
        print(way, result.source, result.protocol)
