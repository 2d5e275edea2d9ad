"""What a requirement insists on, and rules alone cannot keep, is refused in words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from negotiation.document.reader import read_document
from negotiation.errors import MindError
from negotiation.mind import Accept, Counter, Demand, Offer, Reject
from negotiation.need import Capability, Need
from negotiation.rules.claims import missed_claim
from negotiation.rules.formats import insisted_format
from negotiation.rules.halves import write_half
from negotiation.rules.plan_run import plan_of
from negotiation.rules.rules import (
    RulesMind,
    judge_offer,
    judge_reply,
    own_terms,
    propose,
)
from negotiation.schema.mapping import compare
from negotiation.schema.plan import Mismatch, Plan
from tests.negotiation.inprocess import InProcessHalf

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


def missed(words: str, capability: Capability, given: Any = None, **more: Any) -> str:
    found = missed_claim(words, capability, given or {}, more.pop("wanted", {}), **more)
    return "" if found is None else found.reason


def test_units_and_values_are_claims_of_the_words() -> None:
    told = missed("forecast in Fahrenheit", FORECAST)
    assert "Fahrenheit is asked for, and celsius is in celsius" in told
    assert "(Oslo)" in missed("forecast for Oslo", FORECAST)
    assert missed("forecast for Oslo", FORECAST, closed(city=TEXT)) == ""
    nothing = Capability("sky.now", "The temperature here", {}, {}, read_only=True)
    assert missed("now at Oslo", nothing) == ""


DEPTH = Capability(
    "harbour.depth",
    "Depth of a harbour",
    closed("harbour", harbour=TEXT),
    closed("depth", depth={"type": "number", "description": "Depth in metres"}),
    read_only=True,
)


def plain(**number: Any) -> Capability:
    """The same without a word about the unit."""
    gives = closed("depth", depth={"type": "number", **number})
    return replace(DEPTH, output_schema=gives)


def asked(words: str, harbour: str = "Oslo", output: Any = None) -> Demand:
    return Demand(Need(words, None, output), {"harbour": harbour})


@pytest.mark.parametrize(
    ("words", "capability", "named"),
    [
        ("Depth of a harbour in fathoms", DEPTH, "fathoms is asked for, and depth is"),
        ("Depth of a harbour in kelvin", DEPTH, "neither side states it"),
        ("Depth of a harbour in fathoms", plain(), "neither side states it"),
        ("Depth of a harbour in miles", DEPTH, "miles is asked for, and depth is"),
        ("Depth of a harbour in EUR", plain(), "neither side states it"),
    ],
)
def test_rules_do_not_agree_on_a_unit_that_no_field_states(
    words: str, capability: Capability, named: str
) -> None:
    """A depth in fathoms was answered in metres, with exit code 0."""
    verdict = judge_offer(propose(asked(words)), Offer((capability,)), [])
    reply = verdict
    if isinstance(verdict, Counter):
        # The data might say it, which only the requester knows.
        reply = judge_reply(verdict.document, asked(words), [])
    assert isinstance(reply, Reject)
    assert named in reply.reason


def test_a_word_that_is_no_unit_has_to_be_known_to_somebody() -> None:
    words = "Depth of a harbour in klafters"
    bare = replace(DEPTH, input_schema={})
    verdict = judge_offer(propose(Demand(Need(words), {})), Offer((bare,)), [])
    assert isinstance(verdict, Reject)
    assert "'klafters', which is no known unit" in verdict.reason
    # A word of the provider's description, of a listed value, or of the call's data.
    told = replace(DEPTH, description="Depth of a harbour, in klafter")
    assert missed(words, told) == ""
    gives = closed("depth", depth={"type": "number"}, by={"enum": ["Klafter"]})
    assert missed(words, replace(DEPTH, output_schema=gives)) == ""
    assert missed(words, plain(), data={"by": "klafters"}) == ""
    assert missed("Depth of a harbour in {by}", plain()) == ""
    # Neither a city in the data nor an idiom is a unit.
    for fine in ("Depth of a harbour in Oslo", "Depth of a harbour in total"):
        offered = judge_offer(propose(asked(fine)), Offer((plain(),)), [])
        assert not isinstance(offered, Reject)
        if isinstance(offered, Counter):
            assert judge_reply(offered.document, asked(fine), []) == Accept()
            again = judge_reply(offered.document, asked(fine, "Bergen"), [])
            assert isinstance(again, Reject)
            assert "'Oslo'" in again.reason


def test_a_text_may_say_its_unit_itself() -> None:
    words = "Depth of a harbour in fathoms"
    assert missed(words, replace(DEPTH, output_schema=closed(text=TEXT))) == ""


def test_a_unit_that_only_one_side_states_is_told() -> None:
    wanted = closed("depth", depth={"type": "number"})
    demand = asked("harbour.depth", output=wanted)
    verdict = judge_offer(propose(demand), Offer((DEPTH,)), [])
    assert isinstance(verdict, Counter)
    assert "/depth is in metres here" in verdict.summary
    assert judge_reply(verdict.document, demand, []) == Accept()
    half = write_half(read_document(verdict.document), demand)
    assert half.notes == (
        "/depth is given as it is: it is in metres by the word of the peer, and the "
        "need states no unit",
    )
    # Whoever cannot take these terms is served by the first ones.
    ours = own_terms(DEPTH)
    assert judge_offer(propose(demand), Offer((DEPTH,)), [ours]) == Accept()
    same = asked("harbour.depth", output=DEPTH.output_schema)
    assert judge_offer(propose(same), Offer((DEPTH,)), []) == Accept()
    assert write_half(read_document(propose(same)), same).notes == ()


async def test_units_of_both_sides_are_converted_in_the_half() -> None:
    wanted = closed("depth", depth={"type": "number", "description": "in fathoms"})
    demand = asked("harbour.depth", output=wanted)
    document = read_document(propose(demand))
    assert judge_offer(document.text, Offer((DEPTH,)), []) == Accept()
    half = write_half(document, Offer((DEPTH,)))
    # 1 fathom is 1.8288 m, exactly.
    assert "scaled(value['depth'], 625, 0, 1143)" in half.text
    assert plan_of(document, [Offer((DEPTH,))], half.text) is None
    request = await InProcessHalf(write_half(document, demand).text).encode_request(
        "1", {"harbour": "Oslo"}
    )

    async def metres(name: str, arguments: Any) -> Any:
        return {"depth": 18.288}

    answer = await InProcessHalf(half.text).handle_request(request, metres)
    assert json.loads(answer)["output"] == {"depth": 10}


@pytest.mark.parametrize(
    ("about", "named"),
    [
        ("in kilograms", "a number in kilograms, got a number in metres"),
        ("in miles", "miles may be mile, nautical mile"),
    ],
)
def test_units_that_cannot_be_converted_are_refused_by_name(
    about: str, named: str
) -> None:
    wanted = closed("depth", depth={"type": "number", "description": about})
    demand = asked("harbour.depth", output=wanted)
    ours = own_terms(DEPTH)
    verdict = judge_offer(propose(demand), Offer((DEPTH,)), [ours])
    assert isinstance(verdict, Reject)
    assert named in verdict.reason


def test_whole_numbers_are_not_rounded_into_another_unit() -> None:
    hours = {"type": "integer", "description": "in hours"}
    minutes = {"type": "integer", "description": "in minutes"}
    assert isinstance(compare(hours, minutes), Plan)
    assert compare(hours, minutes).apply(2) == 120  # type: ignore[union-attr]  # above
    assert isinstance(compare(minutes, hours), Mismatch)
