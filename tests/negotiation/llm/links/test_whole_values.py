"""All that a request gives, as one object, is a place that answers can name."""

from __future__ import annotations

from typing import Any

from negotiation.document.reader import read_document
from negotiation.llm.mind import LlmMind
from negotiation.llm.steps.offer import offer_form, offer_question
from negotiation.mind import Demand, Offer
from negotiation.need import Capability, Need
from negotiation.rules.rules import RulesMind
from tests.negotiation.llm.scripted import (
    ScriptedModel,
    call,
    link,
    meet,
    offer_answer,
    reply_answer,
)

TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer"}


def strict(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


BOOKING = strict(guest=TEXT, nights=WHOLE)
DEMAND = Demand(
    Need("Keep a booking for me", BOOKING, strict(id=TEXT)),
    {"guest": "Ada", "nights": 2},
)


def tool(**takes: Any) -> Capability:
    return Capability(
        "hotel.store", "Stores a record", strict(**takes), strict(id=TEXT)
    )


async def test_a_capability_takes_the_whole_request_as_one_argument() -> None:
    """The enum had every field of the request, and not the request."""
    model = ScriptedModel(
        {
            "offer": [
                offer_answer(
                    call("hotel.store", link("hotel.store:/record", of=["request:"])),
                    result=[link("result:/id", of=["hotel.store:/id"])],
                )
            ]
        }
    )
    offer = Offer((tool(record=BOOKING),))
    contact = await meet(RulesMind(), LlmMind(model), DEMAND, offer)
    arguments = {"guest": "Ada", "nights": 2}
    run = {"hotel.store": lambda given: {"id": given["record"]["guest"]}}
    assert await contact.call(arguments, run, offer) == {"id": "Ada"}
    assert contact.called == [("hotel.store", {"record": arguments})]
    assert len(model.asked) == 1


async def test_a_document_takes_all_arguments_as_one_object() -> None:
    model = ScriptedModel(
        {
            "reply": [
                reply_answer(
                    [link("request:/record", of=["arguments:"])],
                    [link("result:/id", of=["response:/id"])],
                )
            ]
        }
    )
    offer = Offer((tool(record=BOOKING),))
    named = Demand(Need("hotel.store", BOOKING, strict(id=TEXT)), DEMAND.arguments)
    contact = await meet(LlmMind(model), RulesMind(), named, offer)
    run = {"hotel.store": lambda given: {"id": given["record"]["guest"]}}
    arguments = {"guest": "Ada", "nights": 2}
    assert await contact.call(arguments, run, offer) == {"id": "Ada"}


async def test_the_whole_request_is_shown_only_where_an_object_is_taken() -> None:
    document = read_document(await RulesMind().propose(DEMAND))
    for takes, shown in ((BOOKING, True), (TEXT, False)):
        form = offer_form(document, Offer((tool(record=takes),)))
        assert ("\nrequest: (" in offer_question(form).user) is shown
        assert ("request:" in form.request.names) is shown
