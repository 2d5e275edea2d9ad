"""The model is asked about messages and test cases only where it is needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from anp.sidecar.bound.examiner import MAX_QUESTIONS, Examiner
from anp.sidecar.minds.minds import Thinking
from negotiation.cases.case import TestCase
from negotiation.cases.text import read_cases, render_cases
from negotiation.document.reader import read_document
from negotiation.exchange.events import (
    AcceptCases,
    CasesVerdict,
    CounterCases,
    OurFault,
    PeerFault,
    RejectCases,
)
from negotiation.exchange.limits import DialogueLimits
from negotiation.llm.mind import LlmMind
from negotiation.mind import Demand
from negotiation.need import Need
from negotiation.rules.rules import RulesMind
from negotiation.rules.rules import propose as plain
from negotiation.strict_json import parse_json
from tests.clauses import clause
from tests.negotiation.formats import strict
from tests.negotiation.llm.scripted import ScriptedModel

NEED = Demand(
    Need(
        "Price in cents",
        strict(sku={"type": "string"}),
        strict(cents={"type": "integer"}),
    ),
    {"sku": "a"},
)
RESPONSE = (
    b'{"messageId": "m", "status": {"code": 200, "message": ""}, '
    b'"output": {"cents": 1}}'
)
FINE = PeerFault("it fits")


class _Protocol:
    """As much of a protocol as the examiner looks at."""

    document = read_document(plain(NEED))

    async def values(self, kind: str, data: bytes) -> Any:
        return parse_json(data, max_size=10_000)


class _Afterwards:
    def __init__(self, model: LlmMind | None) -> None:
        self._model = model
        self.payers: list[bool] = []

    @asynccontextmanager
    async def think(self, *, ours: bool) -> AsyncIterator[Thinking]:
        self.payers.append(ours)
        yield Thinking(RulesMind(), self._model)


def examiner(model: ScriptedModel | None) -> tuple[Examiner, _Afterwards, Any]:
    afterwards = _Afterwards(LlmMind(model) if model is not None else None)
    return Examiner(afterwards.think, DialogueLimits()), afterwards, _Protocol()


def fault(breaks: bool) -> dict[str, Any]:
    return {"breaks": breaks, "rule": "Price in cents" if breaks else "", "reason": "r"}


def verdicts(*follows: bool) -> dict[str, Any]:
    return {
        "verdicts": {
            str(number): {"follows": one, "rule": "" if one else "it is in euros"}
            for number, one in enumerate(follows, 1)
        }
    }


@clause("ANP-9", "ANP-60")
async def test_a_complaint_about_a_message_that_fits_is_a_question() -> None:
    model = ScriptedModel({"fault": [fault(True)]})
    made, afterwards, protocol = examiner(model)
    found = await made.judge_fault(
        "response", RESPONSE, "euros!", found=FINE, protocol=protocol
    )
    assert isinstance(found, OurFault)
    # Who complains pays.
    assert afterwards.payers == [False]
    assert "euros!" in model.asked[0].user


@clause("ANP-9")
async def test_what_schemas_decide_and_what_nobody_says_is_no_question() -> None:
    model = ScriptedModel()
    made, _, protocol = examiner(model)
    broken = OurFault(("cents: not a number",))
    for found, words in ((broken, "wrong"), (FINE, ""), (FINE, " \n")):
        assert found == await made.judge_fault(
            "response", RESPONSE, words, found=found, protocol=protocol
        )
    assert model.asked == []


@clause("ANP-9")
async def test_a_message_is_asked_about_once_and_a_channel_only_so_often() -> None:
    model = ScriptedModel({"fault": [fault(False)] * 20})
    made, _, protocol = examiner(model)
    for _ in range(3):
        await made.judge_fault(
            "response", RESPONSE, "bad", found=FINE, protocol=protocol
        )
    assert model.calls.total() == 1
    for number in range(20):
        data = RESPONSE.replace(b'"m"', f'"m{number}"'.encode())
        found = await made.judge_fault(
            "response", data, "bad", found=FINE, protocol=protocol
        )
    assert model.calls.total() == MAX_QUESTIONS
    assert found == FINE


@clause("ANP-9")
async def test_without_a_model_or_an_answer_the_rules_word_stands() -> None:
    for model in (None, ScriptedModel()):
        made, _, protocol = examiner(model)
        assert (
            await made.judge_fault(
                "response", RESPONSE, "bad", found=FINE, protocol=protocol
            )
            == FINE
        )
        assert await made.deviations(None, RESPONSE + b" ", protocol) == ()
        assert await made.suggest_cases(NEED, protocol) == ()


@clause("ANP-9")
async def test_only_the_answer_counts_as_the_peers_deviation() -> None:
    model = ScriptedModel({"messages": [verdicts(False, True), verdicts(True, False)]})
    made, afterwards, protocol = examiner(model)
    assert await made.deviations(b'{"a": 1}', RESPONSE, protocol) == ()
    found = await made.deviations(b'{"a": 1}', RESPONSE + b" ", protocol)
    assert found == ("the response: it is in euros",)
    # The call in question is ours.
    assert afterwards.payers == [True, True]


def case(title: str, expected: str) -> TestCase:
    request = f'{{"messageId": "{title}", "input": {{"sku": "{title}"}}}}'
    good = None if expected == "the price" else True
    return TestCase(title, request.encode(), RESPONSE, expected, good)


async def accept(text: str) -> CasesVerdict:
    return AcceptCases()


async def judged(
    made: Examiner, protocol: Any, *cases: TestCase, may_counter: bool = True
) -> CasesVerdict:
    text = render_cases(cases, protocol.document)
    return await made.judge_cases(
        text, protocol, accept, ours=False, may_counter=may_counter
    )


@clause("ANP-49", "ANP-50")
async def test_cases_whose_words_the_rules_read_cost_nothing() -> None:
    model = ScriptedModel()
    made, _, protocol = examiner(model)
    found = await judged(made, protocol, case("one", "A good result."))
    assert found == AcceptCases()
    assert model.asked == []


@clause("ANP-49", "ANP-50")
async def test_cases_whose_words_leave_it_open_are_judged_together() -> None:
    model = ScriptedModel({"judge_cases": [verdicts(True, False)]})
    made, afterwards, protocol = examiner(model)
    cases = [case("one", "A good result."), case("two", "the price")]
    found = await judged(made, protocol, *cases, case("three", "the price"))
    assert isinstance(found, CounterCases)
    kept = read_cases(found.text, protocol.document)
    assert [one.title for one in kept] == ["one", "two"]
    assert "it is in euros" in found.summary
    assert model.calls.total() == 1
    assert afterwards.payers == [False]


@clause("ANP-49")
@pytest.mark.parametrize("may_counter", [True, False])
async def test_a_set_in_which_no_case_is_good_is_rejected(may_counter: bool) -> None:
    model = ScriptedModel({"judge_cases": [verdicts(False)]})
    made, _, protocol = examiner(model)
    found = await judged(
        made, protocol, case("two", "the price"), may_counter=may_counter
    )
    assert isinstance(found, RejectCases)
    assert "it is in euros" in found.reason


@clause("ANP-48")
async def test_cases_are_written_by_the_model_where_the_rules_have_none() -> None:
    cases = [{"title": "usual", "arguments": '{"sku": "x"}'}]
    model = ScriptedModel({"cases": [{"cases": cases}]})
    made, afterwards, protocol = examiner(model)
    [found] = await made.suggest_cases(NEED, protocol)
    assert found.arguments == {"sku": "x"}
    assert afterwards.payers == [True]
    assert await made.suggest_cases(NEED, protocol) == ()
    assert model.calls.total() == 1


@clause("ANP-9", "ANP-60")
async def test_a_model_that_takes_too_long_leaves_the_rules_word() -> None:
    _, _, protocol = examiner(None)
    never: Any = _Silent()
    afterwards: Any = _Afterwards(LlmMind(never))
    limits = DialogueLimits(fault_timeout=0.1, answer_timeout=0.1)
    made = Examiner(afterwards.think, limits)
    async with asyncio.timeout(10):
        found = await made.judge_fault(
            "response", RESPONSE, "bad", found=FINE, protocol=protocol
        )
        assert found == FINE
        assert await made.deviations(None, RESPONSE + b" ", protocol) == ()
        assert await judged(made, protocol, case("two", "the price")) == AcceptCases()


class _Silent:
    async def ask(self, question: Any) -> Any:
        await asyncio.Event().wait()
