"""Conversions: what is proved before a half is written, and what the half then does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negotiation.llm.links.conversions import How, LinkError, convert
from negotiation.llm.links.plans import shown_root
from negotiation.llm.links.source import Source
from negotiation.llm.links.spots import Root, Spot, spots_of
from negotiation.llm.links.trees import Leaf, Node, ValueLink, build_tree
from negotiation.llm.links.uses import example_texts
from negotiation.schema.terms import Drop, MappingProof
from tests.negotiation.formats import strict
from tests.negotiation.inprocess import InProcessHalf, findings

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
WHOLE: dict[str, Any] = {"type": "integer"}
DAY: dict[str, Any] = {"type": "string", "format": "date"}
MOMENT: dict[str, Any] = {"type": "string", "format": "date-time"}
FLAG: dict[str, Any] = {"type": "boolean"}


def made(
    how: str,
    args: list[str],
    source: Any,
    target: Any,
    *,
    proof: MappingProof = MappingProof.FULL,
) -> Node:
    spot = Spot("x", ("v",), source, True)
    sources = () if how == "constant" else (spot,)
    found = convert(How(how), sources, args, target, drop=Drop.ALL, proof=proof)
    return Leaf(found, found.unsure)


def run(node: Node, value: Any) -> Any:
    source = Source()
    source.function("make(x)", [f"return {source.builder(node, {'x': 'x'})}"])
    half = InProcessHalf(source.text("A test."))
    return half.space["make"](value)


GOOD: list[tuple[str, list[str], Any, Any, Any, Any]] = [
    ("copy", [], WHOLE, NUMBER, 5, 5),
    ("constant", ["km"], True, {"enum": ["km", "mi"]}, None, "km"),
    ("constant", ["3"], True, TEXT, None, "3"),
    ("constant", ["3"], True, WHOLE, None, 3),
    ("constant", ['{"a": [1]}'], True, True, None, {"a": [1]}),
    ("scale", ["9/5", "32"], NUMBER, NUMBER, 21.5, 70.7),
    ("scale", ["5/9", "-160/9"], NUMBER, NUMBER, 70.7, 21.5),
    ("scale", ["0.001", "0"], WHOLE, NUMBER, 1234, 1.234),
    ("scale", ["100", "0"], NUMBER, WHOLE, 19.99, 1999),
    ("scale", ["1000", "0"], WHOLE, WHOLE, 9007199254740993, 9007199254740993000),
    ("text", [], NUMBER, TEXT, 1.5, "1.5"),
    ("text", [], FLAG, {"enum": ["true", "false"]}, True, "true"),
    ("number", [], {**TEXT, "pattern": "^[0-9]+$"}, WHOLE, "12", 12),
    ("number", [], {"enum": ["1.5", "2"]}, NUMBER, "1.5", 1.5),
    ("date", ["date", "unix-seconds"], DAY, WHOLE, "1970-01-02", 86400),
    ("date", ["unix-milliseconds", "date"], WHOLE, DAY, 86400000, "1970-01-02"),
    ("date", ["date-time", "date"], MOMENT, DAY, "2024-02-29T12:30:00Z", "2024-02-29"),
    ("date", ["unix-seconds", "date-time"], WHOLE, MOMENT, 0, "1970-01-01T00:00:00Z"),
    ("date", ["date", "%d.%m.%Y"], DAY, TEXT, "2024-02-29", "29.02.2024"),
    ("date", ["date", "%Y年%m月%d日"], DAY, TEXT, "2024-02-29", "2024年02月29日"),
    ("values", ["a", "1", "b", "2"], {"enum": ["a", "b"]}, WHOLE, "b", 2),
    ("values", ["1", "true", "0"], {"enum": [0, 1]}, TEXT, 0, "0"),
    ("values", ["true", "on", "false", "off"], FLAG, TEXT, False, "off"),
    ("split", [" ", "-1"], TEXT, TEXT, "Ada King Lovelace", "Lovelace"),
    ("list", [], TEXT, {"type": "array", "items": TEXT}, "a", ["a"]),
    ("first", [], {"type": "array", "items": TEXT, "minItems": 1}, TEXT, ["a"], "a"),
    ("count", [], {"type": "array"}, WHOLE, [1, 2], 2),
    ("python", ["a.upper()"], TEXT, TEXT, "ab", "AB"),
    ("constant", ['["a"]'], TEXT, {"type": "array", "items": TEXT}, "", ["a"]),
]


@pytest.mark.parametrize(("how", "args", "source", "target", "value", "gives"), GOOD)
def test_a_conversion_gives_its_value(
    how: str, args: list[str], source: Any, target: Any, value: Any, gives: Any
) -> None:
    found = run(made(how, args, source, target), {"v": value})
    assert json.dumps(found) == json.dumps(gives)
    assert findings(target, found) == []


BAD: list[tuple[str, list[str], Any, Any]] = [
    ("copy", [], TEXT, WHOLE),
    ("copy", ["x"], TEXT, TEXT),
    ("constant", ["kg"], True, {"enum": ["km", "mi"]}),
    ("scale", ["2"], NUMBER, NUMBER),
    ("scale", ["0", "1"], NUMBER, NUMBER),
    ("scale", ["2", "0"], TEXT, NUMBER),
    ("scale", ["__import__('os')", "0"], NUMBER, NUMBER),
    ("scale", ["2", "0"], {**NUMBER, "maximum": 10}, {**NUMBER, "maximum": 19}),
    ("scale", ["2", "0"], {**WHOLE, "maximum": 10**400}, {**NUMBER, "maximum": 19}),
    ("scale", ["-1", "0"], {**NUMBER, "minimum": 0}, {**NUMBER, "minimum": 0}),
    ("number", [], TEXT, NUMBER),
    ("date", ["date-time", "date"], DAY, DAY),
    ("date", ["%d); import os", "date"], DAY, DAY),
    ("date", ["date", "date-time"], DAY, DAY),
    ("values", ["a", "1"], {"enum": ["a", "b"]}, WHOLE),
    ("values", ["a", "1"], TEXT, WHOLE),
    ("values", ["c", "1", "9"], {"enum": ["a", "b"]}, WHOLE),
    ("split", ["", "0"], TEXT, TEXT),
    ("split", [" ", "1"], TEXT, TEXT),
    ("count", [], TEXT, WHOLE),
    ("python", ["a\nimport os"], TEXT, TEXT),
    ("python", ["a; b"], TEXT, TEXT),
    ("python", ["a", "one", "two"], TEXT, TEXT),
    ("python", ["a" * 801], TEXT, TEXT),
    ("join", ["-"], TEXT, TEXT),
]


def test_the_first_of_a_message_s_list_has_to_be_there() -> None:
    spot = Spot("request", ("v",), {"type": "array", "items": TEXT}, True)
    with pytest.raises(LinkError, match="may be empty"):
        convert(How.FIRST, (spot,), [], TEXT, drop=Drop.ALL, proof=MappingProof.FULL)


@pytest.mark.parametrize(("how", "args", "source", "target"), BAD)
def test_what_is_not_proved_is_refused(
    how: str, args: list[str], source: Any, target: Any
) -> None:
    with pytest.raises(LinkError):
        made(how, args, source, target)


@pytest.mark.parametrize(
    ("how", "args", "source", "example"),
    [
        ("date", ["date", "unix-seconds"], TEXT, "2031-05-17"),
        ("date", ["%d.%m.%Y", "unix-seconds"], TEXT, "17.05.2031"),
        ("date", ["date", "unix-seconds"], DAY, None),
        ("python", ["int(a, 16)", "ff"], TEXT, "ff"),
        ("python", ["int(a, 16)"], TEXT, None),
        # No text of that schema, so nothing that the check could use.
        ("python", ["int(a, 16)", "ff"], {**TEXT, "maxLength": 1}, None),
        ("python", ["a + 1", "5"], WHOLE, None),
    ],
)
def test_a_text_in_a_form_of_its_own_comes_with_an_example(
    how: str, args: list[str], source: Any, example: str | None
) -> None:
    texts = example_texts(made(how, args, source, WHOLE))
    assert texts == ({} if example is None else {"x:/v": example})


@settings(deadline=None, max_examples=200)
@given(
    st.fractions(min_value=-50, max_value=50, max_denominator=20).filter(bool),
    st.fractions(min_value=-50, max_value=50, max_denominator=20),
    st.integers(-1000, 1000),
    st.integers(0, 1000),
    st.booleans(),
    st.floats(0, 1),
)
def test_a_scaled_value_keeps_the_limits_that_were_proved(
    factor: Any, offset: Any, low: int, width: int, whole: bool, place: float
) -> None:
    source = {"type": "integer", "minimum": low, "maximum": low + width}
    ends = sorted([low * factor + offset, (low + width) * factor + offset])
    kind = "integer" if whole else "number"
    target = {
        "type": kind,
        "minimum": float(ends[0]) - 1,
        "maximum": float(ends[1]) + 1,
    }
    node = made("scale", [str(factor), str(offset)], source, target)
    found = run(node, {"v": low + int(width * place)})
    assert findings(target, found) == []


def tree(target: Any, links: list[ValueLink], source: Any) -> Any:
    return build_tree(target, links, [Root("x", source)], drop=Drop.ALL)


def place(source: Any, name: str) -> Spot:
    spot = shown_root("x", source).find(f"x:{name}")
    assert spot is not None
    return spot


def test_an_optional_source_is_no_required_value() -> None:
    source = {"type": "object", "properties": {"a": TEXT}}
    link = ValueLink(("b",), How.COPY, (place(source, "/a"),), ())
    assert isinstance(tree(strict(b=TEXT), [link], source), list)
    optional = {"type": "object", "properties": {"b": TEXT}}
    node = tree(optional, [link], source)
    assert run(node, {"a": "1"}) == {"b": "1"}
    assert run(node, {}) == {}


def test_a_default_stands_in_for_an_optional_source() -> None:
    source = {"type": "object", "properties": {"a": TEXT}}
    link = ValueLink(("b",), How.COPY, (place(source, "/a"),), ())
    node = tree(strict(b={**TEXT, "default": "-"}), [link], source)
    assert run(node, {}) == {"b": "-"}
    assert run(node, {"a": "1"}) == {"b": "1"}


def test_null_is_left_out_where_it_is_no_value() -> None:
    source = strict(a={"type": ["string", "null"]})
    link = ValueLink(("b",), How.COPY, (place(source, "/a"),), ())
    node = tree({"type": "object", "properties": {"b": TEXT}}, [link], source)
    assert run(node, {"a": None}) == {}
    assert run(node, {"a": "1"}) == {"b": "1"}


def test_lists_in_lists_are_walked_side_by_side() -> None:
    inner = {"type": "array", "items": strict(n=TEXT, c=WHOLE)}
    source = strict(q=TEXT, xs={"type": "array", "items": strict(t=TEXT, ys=inner)})
    lines = {"type": "array", "items": strict(name=TEXT, euro=NUMBER, shop=TEXT)}
    target = strict(rows={"type": "array", "items": strict(title=TEXT, lines=lines)})
    row, line = ("rows", "*"), ("rows", "*", "lines", "*")
    links = [
        ValueLink((*row, "title"), How.COPY, (place(source, "/xs/*/t"),), ()),
        ValueLink((*line, "name"), How.COPY, (place(source, "/xs/*/ys/*/n"),), ()),
        ValueLink(
            (*line, "euro"), How.SCALE, (place(source, "/xs/*/ys/*/c"),), ("1/100", "0")
        ),
        ValueLink((*line, "shop"), How.COPY, (place(source, "/q"),), ()),
    ]
    value = {"q": "s", "xs": [{"t": "T", "ys": [{"n": "a", "c": 150}]}]}
    found = run(tree(target, links, source), value)
    row_made = {"title": "T", "lines": [{"name": "a", "euro": 1.5, "shop": "s"}]}
    assert found == {"rows": [row_made]}


def test_items_of_two_lists_are_not_mixed() -> None:
    texts = {"type": "array", "items": TEXT}
    source = strict(a=texts, b=texts)
    target = strict(rows={"type": "array", "items": strict(x=TEXT, y=TEXT)})
    links = [
        ValueLink(("rows", "*", "x"), How.COPY, (place(source, "/a/*"),), ()),
        ValueLink(("rows", "*", "y"), How.COPY, (place(source, "/b/*"),), ()),
    ]
    reasons = tree(target, links, source)
    assert isinstance(reasons, list)
    assert "from no list, or from several" in reasons[0]


def test_names_of_others_enter_source_as_literals_only() -> None:
    evil = "x'] or __import__('os').system('true') #\n\"\"\""
    source = strict(**{evil: TEXT})
    link = ValueLink(
        (evil,), How.COPY, spots_of(Root("x", source), whole=False)[:1], ()
    )
    node = tree(strict(**{evil: TEXT}), [link], source)
    assert run(node, {evil: "1"}) == {evil: "1"}
