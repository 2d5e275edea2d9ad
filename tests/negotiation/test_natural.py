"""Questions and answers in words (PT=10)."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from negotiation.natural import (
    arguments_for,
    read_natural_request,
    render_natural_answer,
    render_natural_request,
    text_argument,
)
from negotiation.need import Capability
from negotiation.strict_json import Json
from tests.clauses import clause

SEED_REQUEST = """# 需求
获取商品信息,根据商品ID,返回商品的详细信息。

# 输入
- productId:P12345
- count: 3
"""

PRODUCT = Capability(
    "shop.get_product",
    "",
    {
        "type": "object",
        "properties": {"productId": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["productId"],
    },
    True,
)


@clause("ANP-73")
def test_the_seeds_form_is_read_in_chinese() -> None:
    request = read_natural_request(SEED_REQUEST)
    assert request.requirement.startswith("获取商品信息")
    assert arguments_for(request, PRODUCT) == {"productId": "P12345", "count": 3}


@clause("ANP-73")
def test_a_flat_input_is_written_as_a_list_and_read_again() -> None:
    text = render_natural_request("get_product", {"productId": "P 1", "count": 2})
    assert text == (
        "# Requirement\nget_product\n\n# Input\n- productId: P 1\n- count: 2\n"
    )
    request = read_natural_request(text)
    assert request.requirement == "get_product"
    assert arguments_for(request, PRODUCT) == {"productId": "P 1", "count": 2}


def test_a_deep_input_is_written_as_json_and_read_again() -> None:
    given: dict[str, Json] = {"productId": "P1", "options": {"deep": [1, None]}}
    text = render_natural_request("get_product", given)
    assert "```json" in text
    assert arguments_for(read_natural_request(text), PRODUCT) == given


def test_an_input_without_what_is_required_is_not_guessed() -> None:
    text = "# Requirement\nget_product\n\n# Input\n- count: 3\n"
    assert arguments_for(read_natural_request(text), PRODUCT) is None


def test_a_value_of_a_wrong_type_is_left_for_the_schema_to_refuse() -> None:
    text = "# Input\n- productId: P1\n- count: many\n"
    found = arguments_for(read_natural_request(text), PRODUCT)
    assert found == {"productId": "P1", "count": "many"}


def test_the_answer_says_its_values_under_a_heading() -> None:
    assert render_natural_answer({"a": 1, "b": "x"}) == "# Output\n- a: 1\n- b: x\n"
    assert render_natural_answer("so it is") == "# Output\nso it is\n"


def test_a_whole_text_goes_to_the_one_property_that_can_take_it() -> None:
    def with_properties(schema: dict[str, Json]) -> Capability:
        return Capability("a.b", "", schema, True)

    text: Json = {"type": "string"}
    one = with_properties({"properties": {"q": text}, "required": ["q"]})
    assert text_argument(one) == "q"
    named = with_properties({"properties": {"lang": text, "message": text}})
    assert text_argument(named) == "message"
    more = with_properties(
        {"properties": {"q": text, "n": {"type": "integer"}}, "required": ["q", "n"]}
    )
    assert text_argument(more) is None


@given(st.text(max_size=2000))
def test_any_text_can_be_read(text: str) -> None:
    request = read_natural_request(text)
    assert request.text == text
    arguments_for(request, PRODUCT)


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=20),
        st.one_of(st.booleans(), st.integers(), st.text(max_size=40), st.none()),
        min_size=1,
        max_size=5,
    ),
)
@example({"0": '"'})
def test_what_we_write_we_can_read(values: dict[str, Json]) -> None:
    kinds = {bool: "boolean", int: "integer", str: "string", type(None): "null"}
    capability = Capability(
        "a.b",
        "",
        {
            "type": "object",
            "properties": {
                name: {"type": kinds[type(v)]} for name, v in values.items()
            },
            "required": list(values),
        },
        True,
    )
    text = render_natural_request("do it", values)
    assert arguments_for(read_natural_request(text), capability) == values
