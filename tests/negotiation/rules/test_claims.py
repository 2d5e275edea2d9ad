"""What a requirement insists on, and rules alone cannot keep, is refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from negotiation.errors import MindError
from negotiation.mind import Accept, Demand, Offer, Reject
from negotiation.need import Capability, Need
from negotiation.rules.claims import missed_claim
from negotiation.rules.formats import insisted_format
from negotiation.rules.rules import RulesMind, judge_offer, propose

TEXT: dict[str, Any] = {"type": "string"}


def closed(*required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


FORECAST = Capability(
    "sky.forecast",
    "Temperature of the next days in Paris or another city",
    closed(city=TEXT),
    closed("celsius", celsius={"type": "number"}),
    read_only=True,
)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("Forecast. The messages are packed binary structures, big-endian.", "packed"),
        ("Look up a book. The messages are XML documents in UTF-8.", "xml"),
        ("forecast; answer in CSV with columns day and celsius", "csv"),
        ("forecast. Requests and responses are `key=value` lines", "key=value"),
        ("forecast. The request is a fixed layout of 12 bytes.", "fixed layout"),
        ("forecast, reply with key=value lines", "key=value"),
        ("Each message is one line of fields separated by |", "separated by"),
        ("On the wire everything is CSV.", "csv"),
        ("forecast, but not as JSON", "not JSON"),
        ("Requests are lines `city=Oslo`", "lines"),
        ("查询天气,报文为二进制", "二进制"),
    ],
)
async def test_rules_never_propose_json_where_another_format_is_insisted_on(
    words: str, named: str
) -> None:
    """They proposed JSON without a word, and the other side agreed."""
    assert insisted_format(words)
    demand = Demand(Need(words, closed("city", city=TEXT)), {"city": "Oslo"})
    with pytest.raises(MindError, match="insists on messages that are not JSON") as got:
        await RulesMind().propose(demand)
    assert named in str(got.value)
    # Nor do they accept or counter with JSON what a peer asks for in these words.
    verdict = judge_offer(propose(demand), Offer((FORECAST,), ("sky.forecast",)), [])
    assert isinstance(verdict, Reject)
    assert "insists on messages that are not JSON" in verdict.reason


@pytest.mark.parametrize(
    "words",
    [
        "Keep a reading. `frame` is base64 of a packed big-endian structure of 11 "
        "bytes. The answer says the energy kept, in watt-hours.",
        "Add a book. `record` is an XML text such as `<book>`. The answer says how "
        "many authors were kept.",
        "Convert a CSV file to rows",
        "Export the orders as CSV",
        "Size of a file in bytes",
        "csv_to_json",
        "Answer in JSON, not XML",
        "The response has to say how many boxes are packed",
        "Binary search in a list; the answer is the index",
        "Which message is the newest in the YAML file?",
    ],
)
async def test_a_value_in_a_format_is_no_format_of_messages(words: str) -> None:
    assert insisted_format(words) == ""
    await RulesMind().propose(Demand(Need(words), {"text": "x"}))


def test_rules_drop_no_value_that_only_the_words_carry() -> None:
    """`forecast` may be called without a city, and told that of Paris."""
    empty = Demand(Need("forecast for Oslo"), {})
    verdict = judge_offer(propose(empty), Offer((FORECAST,)), [])
    assert isinstance(verdict, Reject)
    assert "no argument carries what the words say (Oslo)" in verdict.reason
    given = Demand(Need("forecast for Oslo"), {"city": "Oslo"})
    assert isinstance(judge_offer(propose(given), Offer((FORECAST,)), []), Accept)
    told = Demand(Need("forecast for Paris, in Celsius"), {})
    assert isinstance(judge_offer(propose(told), Offer((FORECAST,)), []), Accept)


def test_units_and_values_are_claims_of_the_words() -> None:
    assert "fahrenheit is asked for" in missed_claim(
        "forecast in Fahrenheit", FORECAST, {}
    )
    assert "(Oslo)" in missed_claim("forecast for Oslo", FORECAST, {})
    assert missed_claim("forecast for Oslo", FORECAST, closed(city=TEXT)) == ""
    nothing = Capability("sky.now", "The temperature here", {}, {}, read_only=True)
    assert missed_claim("now at Oslo", nothing, {}) == ""
