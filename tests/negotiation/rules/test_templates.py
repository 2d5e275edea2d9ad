"""Words of needs as templates: marked once, then read without a model or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negotiation.mind import Demand
from negotiation.need import Need
from negotiation.rules.templates import (
    Template,
    filled,
    is_wordy,
    read_by,
    templated,
    values_in_words,
)


def demand(words: str, arguments: Any = None, **schemas: Any) -> Demand:
    return Demand(Need(words, **schemas), {} if arguments is None else arguments)


def marked(words: str, *marks: tuple[str, str], known: Any = ()) -> Template:
    made = templated(demand(words), marks, known)
    assert made is not None
    return made[0]


OSLO = marked("temperature in Oslo", ("Oslo", "city"))
TRIP = marked("trains from Oslo to Bergen", ("Oslo", "start"), ("Bergen", "end"))
COPY = marked('copy "a b" to "c"', ("a b", "source"), ('"c"', "target"))
CHEAP = marked("the 5 cheapest hotels", ("5", "count"))
ORDER = marked("state of order AB-123", ("AB-123", "order"))


@pytest.mark.parametrize(
    ("template", "words", "arguments"),
    [
        (OSLO, "temperature in Bergen", {"city": "Bergen"}),
        (OSLO, "temperature in Århus", {"city": "Århus"}),
        (TRIP, "trains from Paris to Lyon", {"start": "Paris", "end": "Lyon"}),
        (COPY, 'copy "not x" to "y z"', {"source": "not x", "target": "y z"}),
        (CHEAP, "the 12 cheapest hotels", {"count": 12}),
        (ORDER, "state of order XY-987", {"order": "XY-987"}),
    ],
)
def test_the_same_words_with_another_value_need_no_model(
    template: Template, words: str, arguments: dict[str, Any]
) -> None:
    found = filled(template, demand(words))
    assert found is not None
    assert found.need.requirement == template.text
    assert found.arguments == arguments


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (OSLO, "temperature in Oslo yesterday"),
        (OSLO, "temperature in Oslo Yesterday"),
        (OSLO, "temperature not in Oslo"),
        (OSLO, "temperature in Not Oslo"),
        (OSLO, "temperature in Oslo, Norway"),
        (OSLO, "temperature in Oslo and Bergen"),
        (OSLO, "temperature in Oslo in Fahrenheit"),
        (OSLO, "temperature in Celsius"),
        (OSLO, "temperature in C"),
        (OSLO, "temperature in English"),
        (OSLO, "temperature in Json"),
        (OSLO, "temperature in May"),
        (OSLO, "temperature in All"),
        (OSLO, "temperature in general"),
        (OSLO, "temperature in oslo"),
        (OSLO, "temperature in New York"),
        (OSLO, "temperature in 7"),
        (OSLO, 'temperature in "Oslo"'),
        (OSLO, "temperature in "),
        (OSLO, "temperature in  Oslo"),
        (OSLO, "temperature in 奥斯陆"),
        (OSLO, "temperature in {city}"),
        (OSLO, "temperature in Oslo\nand then delete it"),
        # A value that holds the words between the places has two readings.
        (TRIP, "trains from Oslo to Bergen to Paris"),
        (TRIP, "trains from Salt to Sea to Bergen"),
        (COPY, 'copy "a" to "b" to "c"'),
        (COPY, 'copy "a" to "b" and "c"'),
        (COPY, 'copy "" to "b"'),
        (COPY, 'copy " " to "b"'),
        (COPY, 'copy "a" to "b" tomorrow'),
        (CHEAP, "the five cheapest hotels"),
        (CHEAP, "the -5 cheapest hotels"),
        (CHEAP, "the 5.5 cheapest hotels"),
        (CHEAP, "the 05 cheapest hotels"),
        (CHEAP, "the 1e9 cheapest hotels"),
        (CHEAP, "the 5 most cheapest hotels"),
        (ORDER, "state of order AB-123 and AB-124"),
        (ORDER, "state of order ALL"),
    ],
)
def test_words_that_may_mean_something_else_are_left_to_the_model(
    template: Template, words: str
) -> None:
    assert filled(template, demand(words)) is None


def test_a_capital_at_the_beginning_of_a_sentence_says_nothing() -> None:
    template = marked("Oslo temperature", ("Oslo", "city"))
    assert template.text == "{city} temperature"
    assert filled(template, demand("Highest temperature")) is None
    assert filled(template, demand("Bergen temperature")) is None


def test_two_templates_that_fit_decide_nothing() -> None:
    other = marked("temperature in Oslo", ("temperature", "kind"))
    assert other.text == "{kind} in Oslo"
    numbered = marked("page 5 of 9 here", ("5", "page"))
    others = marked("page 5 of 9 here", ("9", "pages"))
    words = demand("page 5 of 9 here")
    assert read_by([numbered, others], words) is None
    assert read_by([numbered], words) is not None


def test_what_the_model_learned_widens_a_template_under_its_first_names() -> None:
    made = templated(demand("temperature in New York"), [("New York", "town")], [OSLO])
    assert made is not None
    template, taken = made
    assert template.text == OSLO.text
    assert taken.arguments == {"city": "New York"}
    assert filled(template, demand("temperature in Los Angeles")) is not None
    assert filled(template, demand("temperature in Bergen")) is not None
    assert filled(template, demand("temperature in Oslo Yesterday")) is None


@pytest.mark.parametrize(
    ("words", "marks"),
    [
        ("temperature in Oslo", []),
        # No part of the text, a part of a word, or standing there twice.
        ("temperature in Oslo", [("Bergen", "city")]),
        ("temperature in Oslo", [("Osl", "city")]),
        ("from Oslo to Oslo", [("Oslo", "city")]),
        ("temperature in Oslo", [("", "city")]),
        # What is asked for, and how, is no value.
        ("temperature in Oslo", [("temperature in Oslo", "all")]),
        ("temperature in Celsius", [("Celsius", "unit")]),
        ("hotels, answers as CSV messages", [("CSV", "format")]),
        ("temperature not in Oslo", [("not", "word")]),
        ("trains of yesterday", [("yesterday", "day")]),
        # Two marks that overlap, or stand side by side without a word between.
        ("temperature in New York", [("New York", "a"), ("York", "b")]),
        # The caller wrote a template already.
        ("temperature in {city} of Norway", [("Norway", "land")]),
    ],
)
def test_marks_that_are_no_values_make_no_template(
    words: str, marks: list[tuple[str, str]]
) -> None:
    assert templated(demand(words), marks, []) is None


def test_data_that_has_the_value_already_names_the_argument() -> None:
    made = templated(
        demand("temperature in Oslo", {"place": "Oslo", "days": 3}),
        [("Oslo", "city")],
        [],
    )
    assert made is not None
    template, taken = made
    assert template.text == "temperature in {place}"
    assert taken.arguments == {"place": "Oslo", "days": 3}
    # Data that contradicts the words is not guessed about.
    assert filled(template, demand("temperature in Rome", {"place": "Oslo"})) is None
    other = templated(
        demand("trains from Oslo", {"city": "Rome"}), [("Oslo", "city")], []
    )
    assert other is not None
    assert other[1].arguments == {"city": "Rome", "city_2": "Oslo"}


def test_a_need_with_a_schema_or_a_bare_name_has_no_values_in_words() -> None:
    assert not is_wordy(demand("get_weather"))
    assert not is_wordy(demand("temperature in Oslo", input_schema={}))
    assert not is_wordy(demand("temperature in {city}"))
    assert is_wordy(demand("temperature in Oslo"))


def test_names_numbers_and_quotations_look_like_values() -> None:
    assert values_in_words("temperature in Oslo") == ["Oslo"]
    assert values_in_words('Find "a b" in the 3 newest notes') == ["a b", "3"]
    assert values_in_words("Temperature in Celsius, as JSON. By the URL") == []
    assert values_in_words("issues of GitHub", known="github.list_issues") == []


@given(st.text(max_size=60), st.text(max_size=20))
def test_a_filled_template_gives_its_words_again(before: str, value: str) -> None:
    """Whatever is read, putting the values back gives the sentence that was said."""
    words = f"{before} {value}"
    for template in (OSLO, TRIP, COPY, CHEAP):
        for said in (words, template.text.replace("{city}", value)):
            found = filled(template, demand(said))
            if found is not None:
                assert isinstance(found.arguments, dict)
                back = template.text
                for name, told in found.arguments.items():
                    back = back.replace(f"{{{name}}}", str(told), 1)
                assert back == said.strip()
