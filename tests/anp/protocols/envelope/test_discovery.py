"""Lists of capabilities, page by page."""

from __future__ import annotations

from typing import Any

import pytest

from anp.protocols.envelope.discovery import describe, read_page
from negotiation.need import Capability
from tests.clauses import clause

MANY = [
    Capability(f"a.c{number:03}", "x" * 50, {"type": "object"}, True)
    for number in range(100)
]


def walk(max_size: int) -> list[list[dict[str, Any]]]:
    pages, offset = [], 0
    while True:
        result = describe(MANY, {"offset": offset}, max_size=max_size)
        entries, following = read_page(result, offset)
        pages.append(entries)
        if following is None:
            return pages
        offset = following


@clause("ENV-25", "ENV-Q15")
@pytest.mark.parametrize("max_size", [200, 1000, 5000, 100_000])
def test_pages_give_the_whole_list_whatever_fits(max_size: int) -> None:
    pages = walk(max_size)
    names = [entry["name"] for page in pages for entry in page]
    assert names == [capability.name for capability in MANY]
    assert (len(pages) == 1) == (max_size == 100_000)


def test_names_choose_and_unknown_ones_are_left_out() -> None:
    result = describe(MANY, {"names": ["a.c007", "b.none"]}, max_size=10_000)
    assert [entry["name"] for entry in result["capabilities"]] == ["a.c007"]


def test_an_offset_behind_the_end_is_an_empty_page() -> None:
    assert describe(MANY, {"offset": 1000}, max_size=1000) == {"capabilities": []}


def test_what_is_too_large_for_any_page_keeps_its_name() -> None:
    schema = {"type": "object", "description": "y" * 10_000}
    large = Capability("a.large", "words", schema, True)
    result = describe([large, MANY[0]], {}, max_size=1000)
    assert result["capabilities"][0] == {"name": "a.large", "description": "words"}
    assert result["capabilities"][1]["name"] == "a.c000"


@pytest.mark.parametrize(
    "result",
    [
        None,
        [],
        {},
        {"capabilities": 1},
        {"capabilities": [1]},
        {"capabilities": [{"name": 1}]},
        {"capabilities": [{"name": "x" * 257}]},
        {"capabilities": [], "next": 5},
        {"capabilities": [], "next": 4},
        {"capabilities": [], "next": True},
        {"capabilities": [], "next": 6.0},
        {"capabilities": [], "next": 2**31 + 1},
    ],
)
def test_a_page_that_leads_nowhere_is_refused(result: Any) -> None:
    with pytest.raises(ValueError):
        read_page(result, 5)
