"""Documents with error codes of their own, or with fields that rules do not cover."""

from __future__ import annotations

import json
from typing import Any

import pytest

from negotiation.cases.proposal import complete_cases, derive_cases
from negotiation.document.layout import read_layout
from negotiation.document.reader import read_document
from negotiation.errors import DocumentError
from negotiation.llm.mind import LlmMind
from negotiation.mind import Accept, Demand, HalfSource, Offer
from negotiation.need import Capability, Need
from negotiation.rules.rules import RulesMind
from negotiation.trial.acceptance import check_half
from tests.negotiation.formats import strict
from tests.negotiation.inprocess import InProcessHalf, JsonschemaValidator
from tests.negotiation.llm.scripted import (
    ScriptedModel,
    call,
    failing,
    link,
    meet,
    offer_answer,
    prepared,
    reply_answer,
)

TEXT: dict[str, Any] = {"type": "string"}


def written(request: Any, response: Any, words: str = "") -> str:
    return (
        "# Requirement\n\n> Cancel an order by its number.\n\n"
        f"# Errors\n\n{words}\n\n"
        f"# Request message\n\n```json\n{json.dumps(request)}\n```\n\n"
        f"# Response message\n\n```json\n{json.dumps(response)}\n```\n"
    )


LISTED = written(
    strict(messageId=TEXT, order=TEXT),
    {
        **strict(messageId=TEXT, code={"enum": [200, 4001, 4002, 5000]}),
        "properties": {
            "messageId": TEXT,
            "code": {"enum": [200, 4001, 4002, 5000]},
            "message": TEXT,
            "data": strict(cancelled={"type": "boolean"}),
        },
    },
    "4001: no such order. 4002: the order is shipped already. 5000: all else.",
)
UNCOVERED = written(
    strict(ref=TEXT, order=TEXT),
    {
        **strict(ref=TEXT),
        "properties": {
            "ref": TEXT,
            "cancelled": {"type": "boolean"},
            "failure": strict(
                kind={"enum": ["NO_ORDER", "SHIPPED", "BROKEN"]}, detail=TEXT
            ),
        },
    },
    "`failure` is there only if the order was not cancelled.",
)
TOOL = Capability(
    "orders.cancel",
    "Cancels an order",
    strict(number=TEXT),
    strict(done={"type": "boolean"}),
)
OFFER = Offer((TOOL,))
LISTED_ANSWER = offer_answer(
    call("orders.cancel", link("orders.cancel:/number", of=["request:/order"])),
    result=[link("result:/cancelled", of=["orders.cancel:/done"])],
    failures=[
        {"failure": "404", "code": "4001"},
        {"failure": "409", "code": "4002"},
        {"failure": "500", "code": "5000"},
    ],
)
ROLES = [
    {"field": "request:/ref", "role": "message_id"},
    {"field": "response:/ref", "role": "message_id"},
    {"field": "response:/failure", "role": "error"},
    {"field": "response:/failure/kind", "role": "error_code"},
    {"field": "response:/failure/detail", "role": "error_text"},
    {"field": "response:/cancelled", "role": "result"},
]
UNCOVERED_ANSWER = offer_answer(
    call("orders.cancel", link("orders.cancel:/number", of=["request:/order"])),
    # The id is the frame's, but a reader may well link it too.
    result=[
        link("result:/cancelled", of=["orders.cancel:/done"]),
        link("result:/ref", of=["request:/ref"]),
    ],
    roles=ROLES,
    good=[],
    failures=[
        {"failure": "404", "code": "NO_ORDER"},
        {"failure": "409", "code": "SHIPPED"},
        {"failure": "500", "code": "BROKEN"},
    ],
)
CASES = pytest.mark.parametrize(
    ("document", "answer", "code"),
    [(LISTED, LISTED_ANSWER, 4002), (UNCOVERED, UNCOVERED_ANSWER, "SHIPPED")],
    ids=["listed", "uncovered"],
)
NEED = Demand(
    Need("Cancel an order", strict(order=TEXT), strict(cancelled={"type": "boolean"})),
    {"order": "A-7"},
)


def test_the_rules_do_not_cover_the_second_of_them() -> None:
    with pytest.raises(DocumentError):
        read_layout(read_document(UNCOVERED))


@CASES
async def test_a_failure_gets_the_code_of_the_document(
    document: str, answer: Any, code: Any
) -> None:
    model = ScriptedModel({"offer": [answer]})
    mind = LlmMind(model)
    assert await mind.judge(document, OFFER, ()) == Accept()
    half = InProcessHalf((await prepared(mind, document, OFFER)).text)
    assert model.calls == {"offer": 1}
    name = "messageId" if document == LISTED else "ref"
    request = json.dumps({name: "m-1", "order": "A-7"}).encode()

    async def on_call(tool: str, given: Any) -> Any:
        return failing("409", "it is on its way")(given)

    response = json.loads(await half.handle_request(request, on_call))
    said = response if document == LISTED else response["failure"]
    assert said["code" if document == LISTED else "kind"] == code
    assert said["message" if document == LISTED else "detail"] == "it is on its way"

    async def odd(tool: str, given: Any) -> Any:
        return failing("418", "?")(given)

    response = json.loads(await half.handle_request(request, odd))
    assert json.dumps(response).find("5000" if document == LISTED else "BROKEN") > 0

    async def good(tool: str, given: Any) -> Any:
        assert given == {"number": "A-7"}
        return {"done": True}

    response = json.loads(await half.handle_request(request, good))
    data = response["data"] if document == LISTED else response
    assert data["cancelled"] is True
    assert response[name] == "m-1"


@pytest.mark.parametrize("document", [LISTED, UNCOVERED], ids=["listed", "uncovered"])
async def test_a_requester_reads_the_codes_of_the_document(document: str) -> None:
    more: dict[str, Any] = {}
    if document == UNCOVERED:
        more = {"roles": ROLES, "good": []}
    model = ScriptedModel({"reply": [reply_answer(**more)]})
    mind = LlmMind(model)
    assert await mind.judge(document, NEED, ()) == Accept()
    half = InProcessHalf((await prepared(mind, document, NEED)).text)
    if document == LISTED:
        bad = {"messageId": "m-1", "code": 4001, "message": "no such order"}
        expected: Any = 4001
        # All names are the task's own, so nothing was asked.
        assert model.calls == {}
    else:
        failure = {"kind": "NO_ORDER", "detail": "no such order"}
        bad, expected = {"ref": "m-1", "failure": failure}, "NO_ORDER"
    decoded = await half.decode_response(json.dumps(bad).encode())
    assert decoded["error"] == {"code": expected, "message": "no such order"}
    good = (
        {"messageId": "m-1", "code": 200, "data": {"cancelled": True}}
        if document == LISTED
        else {"ref": "m-1", "cancelled": True}
    )
    decoded = await half.decode_response(json.dumps(good).encode())
    assert decoded["result"] == {"cancelled": True}


async def test_roles_that_tell_no_error_end_in_our_own_terms() -> None:
    useless = {**UNCOVERED_ANSWER, "roles": []}
    model = ScriptedModel({"offer": [useless, useless]})
    contact = await meet(
        LlmMind(
            ScriptedModel(
                {
                    "reply": [
                        reply_answer(
                            [link("request:/number", of=["arguments:/order"])],
                            [link("result:/cancelled", of=["response:/done"])],
                        )
                    ]
                }
            )
        ),
        LlmMind(model),
        NEED,
        OFFER,
        first=UNCOVERED,
    )
    tools = {"orders.cancel": lambda given: {"done": True}}
    assert await contact.call({"order": "1"}, tools, OFFER) == {"cancelled": True}
    assert model.calls == {"offer": 2}


@pytest.mark.parametrize("code", ["4001", "4002", "5000"])
async def test_each_code_that_the_document_promises_can_be_reached(code: str) -> None:
    # Nothing is assigned, but a capability may give the codes of the document itself.
    answer = {**LISTED_ANSWER, "failures": []}
    mind = LlmMind(ScriptedModel({"offer": [answer]}))
    assert await mind.judge(LISTED, OFFER, ()) == Accept()
    by_rules = Capability(
        "orders.cancel", "", strict(order=TEXT), strict(cancelled={"type": "boolean"})
    )
    named = LISTED.replace("Cancel an order by its number.", "orders.cancel")
    halves = (
        await prepared(mind, LISTED, OFFER),
        await prepared(RulesMind(), named, Offer((by_rules,))),
    )

    async def on_call(tool: str, given: Any) -> Any:
        return failing(code, "no")(given)

    for half in halves:
        request = json.dumps({"messageId": "m-1", "order": "A-7"}).encode()
        response = await InProcessHalf(half.text).handle_request(request, on_call)
        assert json.loads(response)["code"] == int(code)


WORDS = written(
    strict(messageId=TEXT, order=TEXT),
    {
        **strict(messageId=TEXT, code={"enum": ["ok", "NO_ORDER", "SHIPPED", "error"]}),
        "properties": {
            "messageId": TEXT,
            "code": {"enum": ["ok", "NO_ORDER", "SHIPPED", "error"]},
            "message": TEXT,
            "data": strict(cancelled={"type": "boolean"}),
        },
    },
    "NO_ORDER: no such order. SHIPPED: the order is shipped already. error: all else.",
).replace("Cancel an order by its number.", "orders.cancel")
PLAIN = Offer(
    (
        Capability(
            "orders.cancel",
            "",
            strict(order=TEXT),
            strict(cancelled={"type": "boolean"}),
        ),
    )
)


@pytest.mark.parametrize(
    ("given", "said"),
    [("NO_ORDER", "NO_ORDER"), ("SHIPPED", "SHIPPED"), ("404", "error")],
)
async def test_a_half_by_rules_reaches_each_word(given: str, said: str) -> None:
    half = await prepared(RulesMind(), WORDS, PLAIN)

    async def on_call(tool: str, arguments: Any) -> Any:
        return failing(given, "no")(arguments)

    request = json.dumps({"messageId": "m-1", "order": "A-7"}).encode()
    response = await InProcessHalf(half.text).handle_request(request, on_call)
    assert json.loads(response)["code"] == said


async def test_a_half_that_never_says_a_promised_word_fails_its_trial() -> None:
    half = await prepared(RulesMind(), WORDS, PLAIN)
    deaf = half.text.replace("str(error.code) if", "'error' if")
    assert deaf != half.text
    found = await check_half(
        HalfSource(deaf, half.origin, half.capabilities),
        read_document(WORDS),
        PLAIN,
        runner=InProcessHalf(deaf),
        validator=JsonschemaValidator(),
    )
    assert found.problems == (
        "handle_request says ['error'] when the capability failed with the listed "
        "code NO_ORDER",
        "handle_request says ['error'] when the capability failed with the listed "
        "code SHIPPED",
    )


@pytest.mark.parametrize(
    ("document", "codes"),
    [(WORDS, ["error", "NO_ORDER", "SHIPPED"]), (LISTED, ["4001", "4002", "5000"])],
)
async def test_each_promised_code_has_a_test_case(
    document: str, codes: list[str]
) -> None:
    named = document.replace("Cancel an order by its number.", "orders.cancel")
    read = read_document(named)
    asking = await prepared(RulesMind(), named, NEED)
    derived = await derive_cases(
        read, NEED, runner=InProcessHalf(asking.text), validator=JsonschemaValidator()
    )
    half = await prepared(RulesMind(), named, PLAIN)
    done = await complete_cases(
        derived.cases,
        read,
        PLAIN,
        half,
        runner=InProcessHalf(half.text),
        validator=JsonschemaValidator(),
    )
    said = [json.loads(case.response or b"{}")["code"] for case in done.cases]
    assert [one for one in map(str, said) if one not in ("ok", "200")] == codes
    assert done.removed == ()


MEANT = LISTED_ANSWER | {
    "fails": [
        {"place": "orders.cancel:/state", "value": "gone", "code": "4001"},
        {"place": "orders.cancel:/done", "value": "false", "code": "4002"},
    ]
}


async def test_a_value_of_an_answer_may_mean_an_error_code() -> None:
    gives = strict(done={"type": "boolean"}, state=TEXT)
    offer = Offer((Capability("orders.cancel", "", strict(number=TEXT), gives),))
    mind = LlmMind(ScriptedModel({"offer": [MEANT]}))
    assert await mind.judge(LISTED, offer, ()) == Accept()
    half = InProcessHalf((await prepared(mind, LISTED, offer)).text)
    request = json.dumps({"messageId": "m-1", "order": "A-7"}).encode()
    for output, code in (
        ({"done": True, "state": "gone"}, 4001),
        ({"done": False, "state": "x"}, 4002),
        ({"done": True, "state": "x"}, 200),
    ):

        async def on_call(tool: str, given: Any, output: Any = output) -> Any:
            return output

        response = json.loads(await half.handle_request(request, on_call))
        assert response["code"] == code


async def test_a_half_that_says_another_code_for_a_value_fails_its_trial() -> None:
    gives = strict(done={"type": "boolean"}, state=TEXT)
    offer = Offer((Capability("orders.cancel", "", strict(number=TEXT), gives),))
    mind = LlmMind(ScriptedModel({"offer": [MEANT]}))
    assert await mind.judge(LISTED, offer, ()) == Accept()
    half = await mind.write_half(LISTED, offer)
    for right, wrong, fault in (
        (
            "CapabilityError('4001'",
            "CapabilityError('4002'",
            "4001 for 'gone' in /state",
        ),
        ("('state',), 'gone'", "('state',), 'went'", "4001 for 'gone' in /state"),
        ("('done',), False)", "('done',), None)", "4002 for False in /done"),
    ):
        changed = half.text.replace(right, wrong)
        assert changed != half.text
        found = await check_half(
            HalfSource(changed, half.origin, half.capabilities),
            read_document(LISTED),
            offer,
            runner=InProcessHalf(changed),
            validator=JsonschemaValidator(),
        )
        assert f"does not say {fault}" in found.problems[0]
