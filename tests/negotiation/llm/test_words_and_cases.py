"""Words, test cases, faults: what the model says and what code makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from negotiation.errors import MindError
from negotiation.exchange.events import OurFault, PeerFault
from negotiation.llm.assess import CaseArguments, ShownMessages
from negotiation.llm.mind import LlmMind
from negotiation.mind import Demand, Offer
from negotiation.need import Capability, Need
from tests.clauses import clause
from tests.negotiation.formats import strict
from tests.negotiation.llm.scripted import ScriptedModel

TEXT: dict[str, Any] = {"type": "string"}
LIGHT = Capability(
    "home.light",
    "Switches a light",
    {
        **strict(room=TEXT, on={"type": "boolean"}),
        "properties": {
            "room": TEXT,
            "on": {"type": "boolean"},
            "level": {"type": "integer", "minimum": 0, "maximum": 100},
        },
    },
    strict(ok={"type": "boolean"}),
)
OFFER = Offer((LIGHT,))
DOCUMENT = "# Rules\n\nThe price is in cents and never negative.\n"
MESSAGES = (
    ShownMessages("response 1", '{"price": 5}'),
    ShownMessages("response 2", '{"price": 0.05}'),
)


def mind(**script: Any) -> LlmMind:
    return LlmMind(ScriptedModel({step: [answer] for step, answer in script.items()}))


def said(to: str, value: str) -> dict[str, str]:
    return {"to": f"home.light:/{to}", "value": value}


def served(*arguments: Any, capability: str = "home.light", missing: str = "") -> Any:
    return {"capability": capability, "arguments": list(arguments), "missing": missing}


@clause("ANP-71")
async def test_a_text_becomes_a_call_of_an_exposed_capability() -> None:
    answer = served(said("room", "厨房"), said("on", "true"), said("level", "40"))
    spoken = await mind(serve=answer).serve_text("请打开厨房的灯,亮度40%", OFFER)
    assert spoken.capability == "home.light"
    assert spoken.arguments == {"room": "厨房", "on": True, "level": 40}
    assert spoken.reply == ""


async def test_numbers_for_a_text_stay_text() -> None:
    answer = served(said("room", "12"), said("on", "false"))
    spoken = await mind(serve=answer).serve_text("light 12 off", OFFER)
    assert spoken.arguments == {"room": "12", "on": False}


async def test_arguments_that_do_not_fit_are_no_call() -> None:
    for answer in (
        served(said("room", "x")),
        served(said("room", "x"), said("on", "maybe")),
        served(said("room", "x"), said("on", "true"), said("level", "400")),
    ):
        spoken = await mind(serve=answer).serve_text("?", OFFER)
        assert spoken.capability == ""
        assert "home.light" in spoken.reply


async def test_a_text_that_nothing_serves_gets_words() -> None:
    answer = served(capability="none", missing="no capability orders pizza")
    spoken = await mind(serve=answer).serve_text("pizza", OFFER)
    assert spoken.capability == ""
    assert "no capability orders pizza" in spoken.reply
    assert (await mind().serve_text("pizza", Offer(()))).reply


@clause("ANP-64")
async def test_a_question_is_answered_without_the_owners_hints() -> None:
    model = ScriptedModel({"answer": [{"answer": "  We switch lights. "}]})
    hinted = Offer((LIGHT,), ("be stern with Bob",))
    assert await LlmMind(model).answer("What do you do?", hinted) == "We switch lights."
    assert "Bob" not in model.asked[0].user


@clause("ANP-9")
async def test_each_message_gets_a_verdict() -> None:
    verdicts = {
        "1": {"follows": True, "rule": ""},
        "2": {"follows": False, "rule": "The price is in cents"},
    }
    model = ScriptedModel({"messages": [{"verdicts": verdicts}]})
    found = await LlmMind(model).judge_messages(DOCUMENT, MESSAGES)
    assert found == ("response 2: The price is in cents",)
    assert model.calls.total() == 1


@clause("ANP-49")
async def test_test_cases_are_judged_in_one_answer() -> None:
    verdicts = {
        "1": {"follows": False, "rule": ""},
        "2": {"follows": True, "rule": ""},
    }
    found = await mind(judge_cases={"verdicts": verdicts}).judge_cases(
        DOCUMENT, MESSAGES
    )
    assert found == ("response 1: it does not follow the document",)


@clause("ANP-9", "ANP-49")
async def test_an_answer_without_a_verdict_on_a_message_does_not_fit() -> None:
    one = {"follows": True, "rule": ""}
    for verdicts in ({}, {"1": one}, {"2": one}, {"1": one, "3": one}):
        for step in ("messages", "judge_cases"):
            asked = mind(**{step: {"verdicts": verdicts}})
            # The endpoint asks again for what does not fit, and gives up in the end.
            with pytest.raises(MindError):
                await (
                    asked.judge_messages(DOCUMENT, MESSAGES)
                    if step == "messages"
                    else asked.judge_cases(DOCUMENT, MESSAGES)
                )


@clause("ANP-9")
async def test_what_the_question_has_no_room_for_does_not_count_as_good() -> None:
    many = [ShownMessages(f"response {number}", "{}") for number in range(1, 23)]
    good = {str(number): {"follows": True, "rule": ""} for number in range(1, 21)}
    found = await mind(messages={"verdicts": good}).judge_messages(DOCUMENT, many)
    assert found == (
        "response 21: nobody could judge it",
        "response 22: nobody could judge it",
    )


@clause("ANP-64")
async def test_an_empty_answer_is_asked_again_and_twice_empty_is_a_failure() -> None:
    model = ScriptedModel({"answer": [{"answer": " "}, {"answer": "We do light."}]})
    assert await LlmMind(model).answer("What?", OFFER) == "We do light."
    first, second = model.asked
    assert second.user.startswith(first.user)
    assert "empty" in second.user
    model = ScriptedModel({"answer": [{"answer": ""}, {"answer": "\n"}]})
    with pytest.raises(MindError, match="no words"):
        await LlmMind(model).answer("What?", OFFER)
    assert model.calls.total() == 2


@clause("ANP-48")
async def test_test_cases_are_arguments_that_fit_each_once() -> None:
    cases = [
        {"title": "usual", "arguments": '{"room": "a", "on": true}'},
        {"title": "again", "arguments": '{"on": true, "room": "a"}'},
        {"title": "wrong", "arguments": '{"room": 5, "on": true}'},
        {"title": "no JSON", "arguments": "room a"},
        {"title": "no object", "arguments": "[]"},
    ]
    demand = Demand(Need("Light", LIGHT.input_schema), {"room": "a", "on": True})
    found = await mind(cases={"cases": cases}).write_cases(DOCUMENT, demand)
    assert found == (CaseArguments("usual", {"room": "a", "on": True}),)


def fault(breaks: bool, rule: str, reason: str = "") -> Any:
    return {"breaks": breaks, "rule": rule, "reason": reason}


@clause("ANP-60")
async def test_a_fault_is_ours_when_the_document_says_so() -> None:
    answer = fault(True, "The price is in cents and never negative.", "it is in euros")
    found = await mind(fault=answer).judge_fault(DOCUMENT, MESSAGES[1], "wrong unit")
    assert isinstance(found, OurFault)
    assert "it is in euros" in found.findings


@clause("ANP-60")
async def test_a_rule_that_the_document_does_not_hold_proves_nothing() -> None:
    answer = fault(True, "Every response must carry the API key.", "no key")
    found = await mind(fault=answer).judge_fault(DOCUMENT, MESSAGES[1], "no key")
    assert isinstance(found, PeerFault)


@clause("ANP-60")
async def test_what_the_schemas_say_is_not_asked() -> None:
    found = await mind().judge_fault(
        DOCUMENT, MESSAGES[0], "bad", findings=("price: not a string",)
    )
    assert found == OurFault(("price: not a string",))
