"""Several capabilities in a row, chosen and written by rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from negotiation.mind import Demand, Offer
from negotiation.need import Capability, Need
from negotiation.rules.choice import ChainStep, find_chain
from negotiation.rules.names import mentioned
from negotiation.rules.rules import RulesMind
from tests.negotiation.formats import strict
from tests.negotiation.llm.scripted import Rejected, Tool, failing, meet

TEXT: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
FIND = Capability(
    "sales.find_customer",
    "Find a customer",
    strict(company=TEXT),
    strict(customer_id=INTEGER, city=TEXT),
    read_only=True,
)
LIST = Capability(
    "sales.open_invoices",
    "Unpaid invoices",
    {
        "type": "object",
        "properties": {
            "customer_id": {**INTEGER, "description": "Of the customer"},
            "since": TEXT,
        },
        "required": ["customer_id"],
        "additionalProperties": False,
    },
    strict(invoices={"type": "array", "items": TEXT}),
    read_only=True,
)
OFFER = Offer((FIND, LIST))
NAMED = "By find_customer, then open_invoices"
TOOLS: dict[str, Tool] = {
    "sales.find_customer": lambda given: {"customer_id": 7, "city": "Oslo"},
    "sales.open_invoices": lambda given: {"invoices": [f"{given['customer_id']}-1"]},
}


def test_a_chain_takes_what_no_earlier_step_gives() -> None:
    chain = find_chain(NAMED, OFFER.capabilities)
    assert chain is not None
    assert chain.steps == (
        ChainStep("sales.find_customer", ("company",), ()),
        ChainStep("sales.open_invoices", ("since",), (("customer_id", 0),)),
    )
    takes: Any = chain.whole.input_schema
    assert takes["required"] == ["company"]
    assert sorted(takes["properties"]) == ["company", "since"]
    assert chain.whole.output_schema == LIST.output_schema


@pytest.mark.parametrize(
    "capabilities",
    [
        (replace(FIND, read_only=False), LIST),
        (FIND, replace(LIST, read_only=False)),
        # Another schema under the same name.
        (replace(FIND, output_schema=strict(customer_id=TEXT)), LIST),
        # Given, but not always.
        (
            replace(
                FIND,
                output_schema={
                    "type": "object",
                    "properties": {"customer_id": INTEGER},
                },
            ),
            LIST,
        ),
        (FIND,),
    ],
    ids=["first changes", "second changes", "another type", "optional", "one alone"],
)
def test_what_is_not_surely_a_chain_is_none(
    capabilities: tuple[Capability, ...],
) -> None:
    assert find_chain(NAMED, capabilities) is None


@pytest.mark.parametrize(
    "requirement",
    ["By open_invoices, then find_customer", "By find_customer", "Unpaid invoices"],
)
def test_the_order_of_the_names_counts(requirement: str) -> None:
    assert find_chain(requirement, OFFER.capabilities) is None


def test_names_count_once_and_the_longest_is_meant() -> None:
    longer = replace(FIND, name="sales.find_customer_address")
    named = mentioned(
        "sales.find_customer_address, Find-Customer and find customer again",
        (FIND, longer),
    )
    assert [one.name for one in named] == [longer.name, FIND.name]


async def test_rules_on_both_sides_call_two_capabilities_for_one_request() -> None:
    demand = Demand(Need(NAMED), {"company": "Example Ltd"})
    contact = await meet(RulesMind(), RulesMind(), demand, OFFER)
    output = await contact.call({"company": "Example Ltd"}, TOOLS, OFFER)
    assert output == {"invoices": ["7-1"]}
    assert contact.called == [
        ("sales.find_customer", {"company": "Example Ltd"}),
        ("sales.open_invoices", {"customer_id": 7}),
    ]
    assert contact.halves[1].capabilities == (FIND.name, LIST.name)


async def test_what_the_first_one_says_of_an_error_ends_the_request() -> None:
    demand = Demand(Need(NAMED), {"company": "Example Ltd"})
    contact = await meet(RulesMind(), RulesMind(), demand, OFFER)
    tools = {**TOOLS, FIND.name: failing("404", "nobody")}
    said = await contact.call({"company": "x"}, tools, OFFER)
    assert (said["code"], said["message"]) == (404, "nobody")
    assert [name for name, _ in contact.called] == [FIND.name]


async def test_a_chain_that_does_not_fit_is_countered_in_its_own_terms() -> None:
    demand = Demand(Need(NAMED, strict(name=TEXT), strict(unpaid=TEXT)), {"name": "x"})
    with pytest.raises(Rejected) as caught:
        await meet(RulesMind(), RulesMind(), demand, OFFER)
    # The provider said what the chain takes; the requester has none of it.
    assert "/company: expected string" in str(caught.value)
