from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.document.shape import document_hash
from negotiation.errors import HalfError, MindError
from negotiation.messages import Status
from negotiation.mind import Accept, Counter, Demand, HalfSource, Mind, Offer, Reject
from negotiation.need import Capability, Need, need_key
from negotiation.rules.choice import choose
from negotiation.rules.names import unnamed_effects
from negotiation.rules.rules import (
    RulesMind,
    judge_offer,
    judge_reply,
    own_terms,
    propose,
)
from negotiation.transcript import Direction, Turn
from negotiation.trial.acceptance import prepare_half
from negotiation.trial.trial import Findings
from tests.clauses import clause

VECTORS = Path(__file__).parent.parent.parent / "vectors" / "negotiation"
SEED = (VECTORS / "seed_product_full.md").read_text(encoding="utf-8")
SEED_ON_URI = (VECTORS / "seed_product_uri.md").read_text(encoding="utf-8")
NOTHING: tuple[str, ...] = ()
STRING = {"type": "string"}


def obj(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def tool(
    name: str, takes: Any = None, gives: Any = None, *, read_only: bool = False
) -> Capability:
    takes = obj({"zone": STRING}, "zone") if takes is None else takes
    gives = obj({"text": STRING}, "text") if gives is None else gives
    return Capability(name, f"About {name}", takes, gives, read_only=read_only)


CONVERT = tool(
    "time.convert_time",
    obj({"source_timezone": STRING, "time": STRING}, "source_timezone", "time"),
    read_only=True,
)
NOW = tool("time.get_current_time", obj({"timezone": STRING}, "timezone"))
ORDER = tool("shop.place-order", obj({"sku": STRING}, "sku"))
ALL = Offer((CONVERT, NOW, ORDER))


def turn(direction: Direction, candidate: str) -> Turn:
    return Turn(direction, 0, Status.NEGOTIATING, candidate, "", 0.0)


def test_the_rules_mind_is_a_mind() -> None:
    mind: Mind = RulesMind()
    assert mind


@clause("ANP-4")
async def test_a_proposal_states_need_means_and_format() -> None:
    demand = Demand(Need("convert time"), {"time": "12:00", "source_timezone": "UTC"})
    text = await RulesMind().propose(demand)
    document = read_document(text)
    assert document.requirement == "convert time"
    assert document.input_schema == {
        "type": "object",
        "properties": {"source_timezone": STRING, "time": STRING},
        "required": ["source_timezone", "time"],
        "additionalProperties": False,
    }
    assert document.output_schema == {}


def test_equal_tasks_give_equal_bytes_whatever_the_data() -> None:
    need = Need("x", obj({"a": STRING}, "a"), obj({"b": STRING}))
    other = Need(
        "x", dict(reversed(obj({"a": STRING}, "a").items())), need.output_schema
    )
    one, two = propose(Demand(need, {"a": "1"})), propose(Demand(other, {"a": "22"}))
    assert need_key(need) == need_key(other)
    assert document_hash(one) == document_hash(two)


async def test_a_task_whose_schema_is_over_the_limits_cannot_be_proposed() -> None:
    need = Need("x", {"$ref": "http://example.com/"})
    with pytest.raises(MindError, match="not local"):
        await RulesMind().propose(Demand(need, {}))


@pytest.mark.parametrize(
    "requirement",
    [
        "time.convert_time",
        "convert_time",
        "Convert Time",
        "convert-time",
        "please do a ConvertTime now",
        "call `time.convert_time`",
        "请用convert_time转换",
        "convert\ntime",
    ],
)
def test_a_name_in_the_requirement_chooses_the_capability(requirement: str) -> None:
    demand = Demand(Need(requirement), {"time": "12:00", "source_timezone": "UTC"})
    assert judge_offer(propose(demand), ALL, NOTHING) == Accept()


def test_names_are_whole_words_and_the_longest_wins() -> None:
    order, orders = tool("shop.order"), tool("shop.order_list", obj({}))
    offer = Offer((order, orders))
    demand = Demand(Need("order list"), {})
    assert judge_offer(propose(demand), offer, NOTHING) == Accept()
    # The owner is asked about this one, since its name is not the whole requirement.
    demand = Demand(Need("give me the order list"), {})
    assert judge_offer(propose(demand), offer, NOTHING) == Accept()
    chosen = choose(read_document(propose(demand)), offer.capabilities)
    assert chosen == orders
    assert unnamed_effects(demand.need.requirement, [orders.name], offer.capabilities)
    demand = Demand(Need("reorder or preordering"), {"zone": "x"})
    verdict = judge_offer(propose(demand), offer, NOTHING)
    assert isinstance(verdict, Reject)


def test_a_side_effect_that_is_chosen_by_shape_is_not_named() -> None:
    demand = Demand(Need("I want a place in the shop"), {"sku": "P1"})
    assert judge_offer(propose(demand), ALL, NOTHING) == Accept()
    words = demand.need.requirement
    assert unnamed_effects(words, [ORDER.name], ALL.capabilities) == [ORDER.name]
    harmless = replace(ORDER, read_only=True, description="Finds a place in a shop.")
    offer = Offer((CONVERT, NOW, harmless))
    assert judge_offer(propose(demand), offer, NOTHING) == Accept()
    # Words about something else choose nothing, though the data would fit.
    demand = Demand(Need("how tall is the tower"), {"sku": "P1"})
    assert isinstance(judge_offer(propose(demand), offer, NOTHING), Reject)


def test_two_that_fit_by_shape_are_not_chosen_from() -> None:
    one = tool("a.one", obj({"sku": STRING}, "sku"), read_only=True)
    for other in (replace(one, name="b.two"), replace(ORDER, name="b.two")):
        verdict = judge_offer(
            propose(Demand(Need("I want one of it"), {"sku": "P"})),
            Offer((replace(one, name="a.first"), other)),
            NOTHING,
        )
        assert isinstance(verdict, Reject)
        assert "a.first, b.two" in verdict.reason


def test_one_that_needs_nothing_is_not_chosen_by_shape_for_everything() -> None:
    offer = Offer((tool("a.wipe", obj({}), read_only=True),))
    verdict = judge_offer(propose(Demand(Need("x"), {"sku": "P"})), offer, NOTHING)
    assert isinstance(verdict, Reject)


def test_one_name_on_two_attachments_is_unclear() -> None:
    offer = Offer((tool("a.search"), tool("b.search")))
    demand = Demand(Need("search"), {"zone": "x"})
    verdict = judge_offer(propose(demand), offer, NOTHING)
    assert verdict == Reject(
        "the requirement names several capabilities: a.search, b.search; name one"
    )
    demand = Demand(Need("b.search"), {"zone": "x"})
    assert judge_offer(propose(demand), offer, NOTHING) == Accept()


def test_an_action_that_the_document_fixes_names_the_capability() -> None:
    request = (
        '{"type": "object", "properties": {"action": {"const": "placeOrder"}, '
        '"sku": {"type": "string"}}, "required": ["action", "sku"]}'
    )
    response = (
        '{"type": "object", "properties": {"code": {"type": "integer"}, '
        '"data": {"type": "object"}}}'
    )
    text = f"# Need\nbuy\n# Request\n{request}\n# Response\n{response}"
    assert judge_offer(text, ALL, NOTHING) == Accept()


def test_nothing_near_is_refused_with_what_is_offered() -> None:
    verdict = judge_offer(propose(Demand(Need("qqq"), {"z": 1})), ALL, NOTHING)
    assert isinstance(verdict, Reject)
    assert "offered: shop.place-order, time.convert_time" in verdict.reason
    demand = Demand(Need("what is the current weather"), {"z": 1})
    verdict = judge_offer(propose(demand), ALL, NOTHING)
    assert isinstance(verdict, Reject)
    assert "near to it: time.get_current_time" in verdict.reason
    assert judge_offer(propose(demand), Offer(()), NOTHING) == Reject(
        "nothing is offered to you"
    )


@clause("ANP-5", "ANP-30", "ANP-31")
def test_what_cannot_be_mapped_is_countered_once_in_our_own_terms() -> None:
    demand = Demand(Need("convert_time"), {"zone": "UTC"})
    verdict = judge_offer(propose(demand), ALL, NOTHING)
    assert isinstance(verdict, Counter)
    document = read_document(verdict.document)
    assert document.input_schema == CONVERT.input_schema
    assert document.output_schema == CONVERT.output_schema
    assert verdict.summary.startswith("Changes:\n- Request and response now have")
    assert "- /source_timezone: expected string, required" in verdict.summary
    assert "What the provider offers" in verdict.document
    again = judge_offer(propose(demand), ALL, (verdict.document,))
    assert isinstance(again, Reject)
    assert "our own terms were declined" in again.reason
    assert "/source_timezone" in again.reason


def test_our_own_counter_is_served_by_us() -> None:
    gossip = replace(CONVERT, description="like get_current_time or place-order")
    text = own_terms(gossip)
    offer = Offer((gossip, NOW, ORDER))
    assert judge_offer(text, offer, NOTHING) == Accept()


@pytest.mark.parametrize(
    "text",
    [
        "I would like you to convert time for me",
        SEED_ON_URI.replace("获取商品信息", "convert_time"),
        "# Requirement\nconvert time\n# Response\nanything",
    ],
)
@clause("ANP-26")
def test_a_candidate_without_schemas_is_countered_when_it_names_something(
    text: str,
) -> None:
    verdict = judge_offer(text, ALL, NOTHING)
    assert isinstance(verdict, Counter)
    assert verdict.document == own_terms(CONVERT)


def test_prose_means_the_only_harmless_capability_that_it_is_about() -> None:
    text = "convert the time"
    verdict = judge_offer(text, ALL, NOTHING)
    assert isinstance(verdict, Counter)
    assert verdict.document == own_terms(CONVERT)
    offer = Offer((CONVERT, replace(NOW, read_only=True)))
    assert isinstance(judge_offer(text, offer, NOTHING), Reject)
    assert isinstance(judge_offer(text, Offer((ORDER,)), NOTHING), Reject)
    assert isinstance(judge_offer("please help", ALL, NOTHING), Reject)


@clause("ANP-36", "ANP-26")
def test_a_candidate_on_a_uri_we_do_not_hold_is_refused_naming_it() -> None:
    verdict = judge_offer(SEED_ON_URI, Offer((ORDER,)), NOTHING)
    assert isinstance(verdict, Reject)
    assert "which is not held here" in verdict.reason


@clause("ANP-35")
def test_the_seeds_candidate_is_accepted_where_it_fits() -> None:
    fields = dict.fromkeys(
        ("productId", "productName", "productDescription", "currency"), STRING
    )
    gives = obj({**fields, "price": {"type": "number"}}, *fields, "price")
    product = tool("获取商品信息", obj({"product_id": STRING}, "product_id"), gives)
    assert judge_offer(SEED, Offer((product,)), NOTHING) == Accept()
    text = replace(product, output_schema=obj({"text": STRING}, "text"))
    verdict = judge_offer(SEED, Offer((text,)), NOTHING)
    assert isinstance(verdict, Counter)
    # The seed's own example: the owner is asked, since the words are no name.
    described = replace(
        product, name="shop.getProductInfo", description="获取商品信息，按产品编号。"
    )
    assert judge_offer(SEED, Offer((described,)), NOTHING) == Accept()
    words = read_document(SEED).requirement
    assert unnamed_effects(words, [described.name], [described]) == [described.name]
    assert unnamed_effects(words, [product.name], [product]) == []


def test_a_field_of_the_protocol_and_a_value_of_that_name_are_not_mixed_up() -> None:
    product = tool(
        "获取商品信息", obj({"productId": STRING, "action": STRING}, "productId")
    )
    verdict = judge_offer(SEED, Offer((product,)), NOTHING)
    assert isinstance(verdict, Counter)
    assert "/action: expected a value, got a field of that name" in verdict.summary


def test_a_task_without_schemas_accepts_what_its_data_fits() -> None:
    text = own_terms(CONVERT)
    good = Demand(Need("x"), {"sourceTimezone": "UTC", "time": "12:00"})
    assert judge_reply(text, good, NOTHING) == Accept()
    for data in (
        {"time": "12:00"},
        {"time": 12, "source_timezone": "UTC"},
    ):
        demand = Demand(Need("x"), data)
        verdict = judge_reply(text, demand, (propose(demand),))
        assert isinstance(verdict, Reject)


def test_the_data_must_keep_the_limits_of_the_request_format() -> None:
    limited = tool("a.b", obj({"n": {"type": "integer", "minimum": 3}}, "n"))
    text = own_terms(limited)
    assert judge_reply(text, Demand(Need("x"), {"n": 3}), NOTHING) == Accept()
    demand = Demand(Need("x"), {"n": 2})
    verdict = judge_reply(text, demand, (propose(demand),))
    assert isinstance(verdict, Reject)
    assert "less than 3" in verdict.reason


def test_a_tasks_own_schemas_bind_what_it_accepts() -> None:
    need = Need(
        "x", obj({"time": STRING}, "time"), obj({"price": {"type": "number"}}, "price")
    )
    text = own_terms(tool("a.b", obj({"Time": STRING}, "Time")))
    demand = Demand(need, {"time": "x"})
    verdict = judge_reply(text, demand, (propose(demand),))
    assert isinstance(verdict, Reject)
    assert (
        "/price: expected number, required, got nothing of that name" in verdict.reason
    )
    gives = obj({"PRICE": {"type": "integer"}, "more": STRING}, "PRICE", "more")
    text = own_terms(tool("a.b", obj({"Time": STRING}, "Time"), gives))
    assert judge_reply(text, demand, NOTHING) == Accept()


def test_a_requester_asks_once_more_for_what_it_can_read() -> None:
    demand = Demand(Need("x"), {"a": 1})
    verdict = judge_reply("let us talk", demand, NOTHING)
    assert isinstance(verdict, Counter)
    assert verdict.document == propose(demand)
    sent = (verdict.document,)
    assert isinstance(judge_reply("let us talk", demand, sent), Counter)
    assert isinstance(judge_reply("let us talk", demand, sent * 2), Reject)


async def test_what_was_sent_is_read_from_the_transcript() -> None:
    mind = RulesMind()
    demand = Demand(Need("convert_time"), {"zone": "UTC"})
    candidate = propose(demand)
    received = turn(Direction.RECEIVED, candidate)
    first = await mind.judge(candidate, ALL, (received,))
    assert isinstance(first, Counter)
    sent = turn(Direction.SENT, first.document)
    second = await mind.judge(candidate, ALL, (received, sent, received))
    assert isinstance(second, Reject)
    own = turn(Direction.SENT, candidate)
    third = await mind.judge(first.document, demand, (own, sent))
    assert isinstance(third, Reject)


async def _nothing_wrong(half: HalfSource, document: str) -> Findings:
    return Findings((), "full", 1)


async def test_rules_do_not_try_the_same_half_twice() -> None:
    mind = RulesMind()
    demand = Demand(Need("convert_time"), {"time": "1", "source_timezone": "UTC"})
    text = propose(demand)
    half = await mind.write_half(text, ALL)
    assert half.origin == "rules"
    assert half.capabilities == ("time.convert_time",)
    assert (await mind.write_half(text, demand)).capabilities == ()
    for side in (demand, ALL):
        first = await mind.write_half(text, side)
        with pytest.raises(HalfError, match="it broke"):
            await prepare_half(
                text,
                side,
                mind=mind,
                check=_nothing_wrong,
                findings=("it broke",),
                replaces=first.text,
            )
    verdict = await mind.judge(text, ALL, (), findings=("it broke",))
    assert verdict == Reject("our half for this document failed: it broke")


@pytest.mark.parametrize("text", ["", "prose", propose(Demand(Need("qqq"), {"z": 1}))])
async def test_a_half_for_what_does_not_fit_is_a_half_error(text: str) -> None:
    for side in (ALL, Demand(Need("x", obj({"a": STRING}, "a")), {"a": "x"})):
        with pytest.raises(HalfError):
            await RulesMind().write_half(text, side)


def test_two_rules_minds_agree_in_one_round_or_after_one_counter() -> None:
    for capability in (CONVERT, NOW, ORDER):
        properties = capability.input_schema["properties"]  # type: ignore[index] # made above as an object schema
        data = dict.fromkeys(properties, "x")
        demand = Demand(Need(capability.name), data)
        assert judge_offer(propose(demand), ALL, NOTHING) == Accept()


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [SEED, "# Request\n", "convert_time", '{"type": "object"}', "\n", "{", "x"]
        )
        | st.text(max_size=10),
        max_size=8,
    ).map("".join)
)
def test_any_candidate_gets_a_verdict_from_both_sides(text: str) -> None:
    assert isinstance(judge_offer(text, ALL, NOTHING), Accept | Counter | Reject)
    demand = Demand(Need("x"), {"a": 1})
    assert isinstance(judge_reply(text, demand, NOTHING), Accept | Counter | Reject)


def test_a_document_whose_bytes_are_not_json_is_countered() -> None:
    text = render_document("convert_time", CONVERT.input_schema, {})
    verdict = judge_offer(f"# Encoding\nXML\n{text}", ALL, NOTHING)
    assert isinstance(verdict, Counter)
    assert "not JSON" in verdict.summary
