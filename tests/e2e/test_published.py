"""Calls by the name of a capability: its published document, without negotiation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from tests.e2e.house import house_in


async def test_a_named_capability_is_called_by_its_published_document(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path, consensus__use=True, documents=True) as house:
        first = await house.result("twice", {"number": 4})
        assert first.output == {"twice": 8}
        assert (first.source, first.negotiation_messages) == ("published", 0)
        names = ["twice", "twice.twice", "Twice"]
        for name in names:
            again = await house.result(name, {"number": 5})
            assert (again.source, again.protocol) == ("agreement", first.protocol)
        for daemon in (house.caller, house.provider):
            assert len(daemon.store.halves(str(first.protocol))) == 1
            assert daemon.store.document(str(first.protocol)) is not None


async def test_data_that_a_capability_surely_does_not_take_is_named(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path, consensus__use=True, documents=True) as house:
        cases: list[tuple[dict[str, Any], str]] = [
            ({}, "number"),
            ({"number": "x"}, "integer"),
            ({"number": 1, "more": 2}, "more"),
        ]
        for arguments, told in cases:
            with pytest.raises(CallError, match=told) as caught:
                await house.result("twice", arguments)
            assert caught.value.kind is ErrorKind.USAGE
        assert (await house.result("twice", {"number": 1})).output == {"twice": 2}
        with pytest.raises(CallError) as caught:
            await house.result("twice", {})
        assert caught.value.kind is ErrorKind.USAGE


async def test_data_in_other_words_is_negotiated(tmp_path: Path) -> None:
    async with house_in(tmp_path, consensus__use=True, documents=True) as house:
        with pytest.raises(CallError, match="number") as caught:
            await house.result("twice", {"zahl": 4})
        # Rules have no words for it; the model of a side that has one would.
        assert caught.value.kind is ErrorKind.USAGE
        assert len(house.caller.store.negotiations()) == 1


async def test_a_negotiated_result_names_the_capability_that_ran(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        for source in ("negotiated", "agreement"):
            result = await house.result("twice", {"number": 4})
            assert (result.source, result.capability) == (source, "twice.twice")
