"""Units as names, symbols and descriptions state them, and the exact ways between."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negotiation.schema.plan import Scale
from negotiation.schema.units import (
    Unit,
    asked_units,
    scale_between,
    unit_at,
    unit_of,
)


def unit(words: str) -> Unit:
    found = unit_at(words)
    assert found is not None, words
    assert found[1] == len(words)
    return found[0]


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        ("metres", "fathoms", "1.8288", "1"),
        ("degrees Fahrenheit", "K", "32", "273.15"),
        ("°F", "°C", "98.6", "37"),
        ("kelvin", "Fahrenheit", "0", "-459.67"),
        ("km/h", "m/s", "36", "10"),
        ("mph", "kilometres per hour", "1", "1.609344"),
        ("lbs", "kg", "1", "0.45359237"),
        ("square feet", "m²", "1", "0.09290304"),
        ("acres", "hectares", "1", "0.40468564224"),
        ("kWh", "MJ", "1", "3.6"),
        ("psi", "pounds per square inch", "7", "7"),
        ("MiB", "kilobytes", "1", "1048.576"),
        ("megabits per second", "MB/s", "8", "1"),
        ("US gallons", "litres", "1", "3.785411784"),
        ("litres per 100 km", "ml/m", "5", "0.05"),
        ("years", "months", "2", "24"),
        ("euro cents", "EUR", "8950", "89.5"),
        ("EUR/kg", "euros per gram", "5", "0.005"),
        ("℃", "K", "0", "273.15"),
        ("公里", "米", "1", "1000"),
    ],
)
def test_a_number_is_converted_by_exact_numbers(
    source: str, target: str, value: str, expected: str
) -> None:
    way = scale_between(unit(source), unit(target))
    assert isinstance(way, Scale)
    made = (Fraction(value) * way.times + way.plus) / way.over
    assert made == Fraction(expected)
    back = scale_between(unit(target), unit(source))
    assert isinstance(back, Scale)
    assert (made * back.times + back.plus) / back.over == Fraction(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("kg", "km"),
        ("EUR", "USD"),
        ("months", "days"),
        # The library counts all of these as plain numbers, or as one dimension.
        ("bytes", "degrees"),
        ("Hz", "rpm"),
        ("Hz", "bpm"),
        ("Gy", "Sv"),
        ("lm", "cd"),
        ("litres per 100 km", "km/l"),
    ],
)
def test_other_dimensions_are_refused_by_their_names(one: str, other: str) -> None:
    reason = scale_between(unit(one), unit(other))
    assert isinstance(reason, str)
    assert one in reason
    assert other in reason


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("gallons", "litres"),
        ("tons", "kg"),
        ("miles", "km"),
        ("ounces", "grams"),
        ("oz", "grams"),
        ("pints", "ml"),
        ("calories", "J"),
        ("horsepower", "kW"),
        ("degrees", "°C"),
        ("dollars", "USD"),
        ("cents", "EUR"),
        ("miles per gallon", "km/l"),
    ],
)
def test_a_word_with_several_sizes_is_asked_and_never_chosen(
    word: str, other: str
) -> None:
    for pair in ((word, other), (other, word)):
        reason = scale_between(*map(unit, pair))
        assert isinstance(reason, str)
        assert f"{word} may be" in reason
        assert "have to say which" in reason
    assert scale_between(unit(word), unit(word)) == Scale(1, 0, 1)


@pytest.mark.parametrize(
    "word", ["pin", "a", "item", "in", "M", "PM", "kkm", "Metersx"]
)
def test_ordinary_words_and_parts_of_words_are_no_units(word: str) -> None:
    assert unit_at(word) is None


@pytest.mark.parametrize(
    ("name", "about", "expected"),
    [
        ("temp_c", "", "°C"),
        ("delayMinutes", "", "minutes"),
        ("speed_kilometres_per_hour", "", "km/h"),
        ("priceEUR", "", "EUR"),
        ("depth", "Depth of the harbour in fathoms", "fathoms"),
        ("depth", "Depth (m)", "m"),
        ("depth", "Depth, metres", "metres"),
        ("wait", "Number of minutes until the departure", "minutes"),
        ("t", "The temperature in degrees Celsius, measured in the shade", "°C"),
        ("far", "距离（公里）", "km"),
        ("second_place", "", ""),
        ("rank", "in second place", ""),
        ("found", "Items of the last hour", ""),
        ("found", "Answers within 5 seconds", ""),
        ("found", "Number of item(s)", ""),
        ("grade", "One of A, B or C", ""),
        ("far", "In miles or kilometres", ""),
        ("order_id", "in metres", ""),
        ("mile_count", "", ""),
        ("size_ratio", "in metres", ""),
    ],
)
def test_names_and_descriptions_state_units(
    name: str, about: str, expected: str
) -> None:
    found = unit_of((name,), {"type": "number", "description": about})
    assert found == (unit(expected) if expected else None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Temperature in Celsius", ["Celsius"]),
        ("Temperature in °C", ["°C"]),
        ("温度(摄氏)", ["摄氏"]),
        ("距离以公里为单位", ["公里"]),
        ("Depth in klafters", ["klafters?"]),
        ("Weather in Oslo", ["Oslo?"]),
        ("Price in EUR per night", ["EUR", "night?"]),
        ("Speed in kilometres per hour", ["kilometres per hour"]),
        ("requests per second", ["requests?"]),
        ("Arrivals in 5 minutes as JSON", []),
        ("Temperature in {unit}", []),
        ("Delay as whole minutes", ["minutes"]),
    ],
)
def test_words_ask_for_units_or_for_what_may_be_one(
    text: str, expected: list[str]
) -> None:
    found = asked_units(text)
    assert [word + ("" if one else "?") for word, one in found] == expected


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    asked_units(text)
    unit_of((text,), {"type": "number", "title": text, "description": text})
    found = unit_at(text)
    assert found is None or 0 < found[1] <= len(text)


def test_the_library_is_loaded_only_for_two_different_units() -> None:
    code = (
        "import sys\n"
        "from negotiation.schema.mapping import compare\n"
        "km = {'properties': {'far': {'type': 'number', 'description': 'in km'}}}\n"
        "compare(km, km)\n"
        "assert 'pint' not in sys.modules\n"
        "miles = {'properties': {'far': {'type': 'number', 'title': 'Feet'}}}\n"
        "compare(km, miles)\n"
        "assert 'pint' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
