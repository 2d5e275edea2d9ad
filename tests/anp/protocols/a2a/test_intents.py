"""Intents and slots (seed 004)."""

from __future__ import annotations

from typing import Any

import pytest

from anp.protocols.a2a.intents import (
    Intent,
    intent_of,
    plain_schema,
    read_intents,
    slot_values,
)
from anp.protocols.a2a.words import A2aError
from tests.clauses import clause

SCHEMA = {
    "type": "object",
    "properties": {
        "num1": {"type": "int"},
        "rate": {"type": "double"},
        "sure": {"type": "bool"},
        "tags": {"type": "list", "items": {"type": "int"}},
        "more": {"type": "map"},
        "name": {"type": "str"},
    },
    "required": ["num1"],
}


def intents(*slots: dict[str, Any], intent: Any = "add") -> dict[str, Any]:
    return {"intentInfos": [{"intent": intent, "slots": list(slots)}], "other": [1]}


def slot(name: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "value": value, **more}


@clause("INT-6", "INT-7", "INT-8", "INT-9", "INT-10", "INT-11", "INT-Q2")
def test_intents_are_read() -> None:
    found = read_intents(intents(slot("num1", "一百", normValue="100"), slot("n", "x")))
    assert found == (Intent("add", (("num1", "100"), ("n", "x"))),)
    assert read_intents({"intentInfos": [{"intent": "add"}]}) == (Intent("add"),)
    assert read_intents({}) == ()
    assert read_intents({"intentInfos": []}) == ()
    # An empty normalised value is none (INT-Q3).
    assert read_intents(intents(slot("a", "1", normValue="")))[0].slots == (("a", "1"),)


@clause("INT-7", "INT-9", "INT-10")
@pytest.mark.parametrize(
    "metadata",
    [
        {"intentInfos": {}},
        {"intentInfos": ["add"]},
        {"intentInfos": [{}]},
        intents(intent=7),
        intents(slot("num1", 101)),
        intents({"name": "num1"}),
        intents({"value": "1"}),
        intents(slot("num1", "1", normValue=1)),
    ],
)
def test_other_intents_are_refused(metadata: dict[str, Any]) -> None:
    with pytest.raises(A2aError) as caught:
        read_intents(metadata)
    assert "intentInfos" in caught.value.text


@clause("INT-Q3", "INT-Q5")
@pytest.mark.parametrize(
    ("name", "texts", "value"),
    [
        ("num1", ["9007199254740993"], 9007199254740993),
        ("num1", ["-7"], -7),
        ("rate", ["0.1"], 0.1),
        ("rate", ["12"], 12),
        ("sure", ["true"], True),
        ("tags", ["[1,2]"], [1, 2]),
        ("tags", ["1", "2"], [1, 2]),
        ("more", ['{"a": 1}'], {"a": 1}),
        ("name", ["007"], "007"),
    ],
)
def test_slots_become_values(name: str, texts: list[str], value: Any) -> None:
    found = slot_values(Intent("add", tuple((name, one) for one in texts)), SCHEMA)
    assert found.arguments == {name: value}
    assert not found.wrong


@clause("INT-Q3", "INT-Q5")
@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("num1", ["1.0"]),
        ("num1", ["1e3"]),
        ("num1", ["0x1"]),
        ("rate", ["NaN"]),
        ("rate", ["1e999"]),
        ("sure", ["yes"]),
        ("tags", ["{}"]),
        ("tags", ["1", "x"]),
        ("more", ["[]"]),
    ],
)
def test_slots_of_another_type_are_named(name: str, texts: list[str]) -> None:
    found = slot_values(Intent("add", tuple((name, one) for one in texts)), SCHEMA)
    assert found.wrong == (name,)


@clause("INT-Q5")
def test_a_slot_that_takes_one_value_may_not_be_given_twice() -> None:
    with pytest.raises(A2aError, match="'num1' takes one value and is given 2 times"):
        slot_values(Intent("add", (("num1", "1"), ("num1", "2"))), SCHEMA)


@clause("INT-Q5")
def test_missing_and_unknown_slots_are_named() -> None:
    found = slot_values(Intent("add", (("other", "1"),)), SCHEMA)
    assert (found.missing, found.unknown) == (("num1",), ("other",))


@clause("INT-5", "INT-Q1")
def test_foreign_names_of_types_are_read() -> None:
    plain = plain_schema(SCHEMA)
    assert plain is not None
    kinds = {name: one["type"] for name, one in plain["properties"].items()}
    assert kinds == {
        "num1": "integer",
        "rate": "number",
        "sure": "boolean",
        "tags": "array",
        "more": "object",
        "name": "string",
    }
    assert plain_schema({"properties": {"a": {"type": "uint128"}}}) is None
    # Values are no schemas.
    assert plain_schema({"default": {"type": "int"}}) == {"default": {"type": "int"}}


@clause("INT-7", "INT-8")
def test_what_is_written_is_read() -> None:
    arguments = {
        "num1": 2**60 + 1,
        "rate": 0.1,
        "sure": False,
        "tags": [1],
        "name": "x",
    }
    written = intent_of("add", arguments)
    (found,) = read_intents({"intentInfos": [written]})
    assert slot_values(found, SCHEMA).arguments == arguments
