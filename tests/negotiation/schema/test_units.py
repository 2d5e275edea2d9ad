"""Units that a text asks for, held against the units that fields tell."""

from __future__ import annotations

from typing import Any

import pytest

from negotiation.schema.units import missed_unit

NUMBER: dict[str, Any] = {"type": "number"}


def gives(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("Temperature in Celsius", gives(temperature_f=NUMBER)),
        ("Temperature in °C", gives(temperature_f=NUMBER)),
        ("温度(摄氏)", gives(temperature_f=NUMBER)),
        ("Distance in kilometres", gives(far={**NUMBER, "description": "in miles"})),
    ],
)
def test_a_unit_that_nothing_tells_beside_another_one_is_missed(
    text: str, schema: Any
) -> None:
    assert "is asked for" in missed_unit(text, schema)


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("Temperature in Celsius", gives(temperature=NUMBER)),
        ("Temperature in Celsius", gives(temp_c=NUMBER, temp_f=NUMBER)),
        ("Departures in the next hour", gives(delay_minutes=NUMBER)),
        ("Route in km", gives(distance_km=NUMBER, climb_ft=NUMBER)),
        ("Weather in Oslo", gives(temperature_f=NUMBER)),
        ("Temperature in Celsius", gives(text={"type": "string"})),
    ],
)
def test_a_unit_that_is_told_or_that_nothing_tells_is_not(
    text: str, schema: Any
) -> None:
    assert missed_unit(text, schema) == ""
