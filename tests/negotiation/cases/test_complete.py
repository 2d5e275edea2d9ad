"""The provider fills a set with answers of its own half, on fixtures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from negotiation.cases.case import MAX_DATA, TestCase, fixture_key
from negotiation.cases.proposal import Completed, Live, complete_cases
from negotiation.cases.text import read_cases
from negotiation.errors import CapabilityFailed, CasesError
from negotiation.mind import HalfSource, Offer
from negotiation.need import Capability
from negotiation.strict_json import Json
from tests.clauses import clause
from tests.negotiation.cases.pairs import ORDER, PAIRS
from tests.negotiation.cases.table import VALIDATOR, Pair, agree
from tests.negotiation.inprocess import InProcessHalf

VECTORS = Path(__file__).parent.parent.parent / "vectors" / "negotiation"
SEED = (VECTORS / "seed_test_cases.md").read_text(encoding="utf-8")
OWN = PAIRS["the task's own terms"]
REQUEST = b'{"messageId": "case000000000001", "input": {"sku": "P1", "count": 2}}'
GOOD = TestCase("good", REQUEST, None, "A good result.", True)
BAD = replace(GOOD, expected="An error with 503.", good=False)


async def complete(
    *cases: TestCase,
    pair: Pair = OWN,
    source: str | None = None,
    capability: Capability | None = None,
    live: Live | None = None,
) -> Completed:
    """Complete cases with the provider half of a pair, or with another one."""
    text = pair.provider if source is None else source
    tool = capability or pair.capability
    return await complete_cases(
        cases,
        pair.document,
        Offer((tool,)),
        HalfSource(text, "model", (tool.name,)),
        runner=InProcessHalf(text),
        validator=VALIDATOR,
        live=live,
    )


@clause("ANP-50", "ANP-54", "ANP-Q22")
async def test_the_seeds_second_case_contradicts_its_document_and_is_taken_out() -> (
    None
):
    pair = PAIRS["the seed's product"]
    cases = read_cases(SEED, pair.document)
    completed = await complete(*cases, pair=pair)
    [kept] = completed.cases
    assert kept.request == cases[0].request
    assert kept.expected == "成功获取产品信息,状态码为200。"
    assert kept.response is not None
    # The answer of our half on a fixture, in place of what the text had.
    answer = json.loads(kept.response)
    assert (answer["messageId"], answer["status"]["code"]) == ("msg001", 200)
    assert answer["productInfo"]["productId"].startswith("text ")
    [reason] = completed.removed
    assert reason.startswith(
        "test case 2: the response contradicts the document: None is not of type"
    )


async def test_without_the_null_the_seeds_second_case_is_kept() -> None:
    pair = PAIRS["the seed's product"]
    second = read_cases(SEED, pair.document)[1]
    completed = await complete(replace(second, response=None), pair=pair)
    [kept] = completed.cases
    assert kept.response is not None
    # The words say how the capability is to fail.
    status = json.loads(kept.response)["status"]
    assert status == {"code": 404, "message": "not found"}


async def test_fixtures_have_the_calls_their_arguments_and_answers_in_order() -> None:
    completed = await complete(
        GOOD, replace(BAD, request=REQUEST.replace(b"01", b"02"))
    )
    assert completed.removed == ()
    good, bad = (
        completed.fixtures[fixture_key(one.request)] for one in completed.cases
    )
    called = {"capability": "shop.order", "arguments": {"sku": "P1", "count": 2}}
    assert good == [{**called, "output": good[0]["output"]}]
    assert good[0]["output"].keys() == {"name", "maker", "price"}
    assert bad == [{**called, "error": ["503", "not available"]}]
    assert json.loads(json.dumps(completed.fixtures)) == completed.fixtures


async def test_fixtures_never_get_into_the_text() -> None:
    table = await agree(PAIRS["conversions inside"])
    for fixtures in table.fixtures.values():
        for fixture in fixtures:
            assert fixture["capability"] not in table.text
            assert "by_train" not in table.text


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (
            replace(GOOD, request=b'{"messageId": "case000000000009"}'),
            "the request contradicts the document: 'input' is a required property",
        ),
        (replace(GOOD, request=b"\xff"), "the request contradicts the document"),
        (
            replace(GOOD, response=b'{"messageId": 1}'),
            "the response contradicts the document",
        ),
        (
            replace(GOOD, request=REQUEST.replace(b'"P1"', b"5")),
            "the request contradicts the document: 5 is not of type 'string'",
        ),
    ],
)
async def test_a_case_that_contradicts_the_document_is_taken_out_with_the_reason(
    case: TestCase, reason: str
) -> None:
    completed = await complete(case, GOOD)
    assert [one.title for one in completed.cases] == ["good"]
    assert len(completed.fixtures) == 1
    [removed] = completed.removed
    assert removed.startswith(f"test case 1: {reason}")


async def test_two_cases_with_one_request_could_not_be_told_apart() -> None:
    completed = await complete(GOOD, BAD)
    assert [case.good for case in completed.cases] == [True]
    assert completed.removed == ("test case 2: it has the request of another case",)
    assert "output" in completed.fixtures[fixture_key(REQUEST)][0]


ANSWER = (
    "import json\n"
    "def handle_request(data):\n"
    "    request = json.loads(data)\n"
    "    {}\n"
    "    status = {{'code': {}, 'message': 'x'}}\n"
    "    answer = {{'messageId': request['messageId'], 'status': status}}\n"
    "    answer['output'] = {}\n"
    "    return json.dumps(answer).encode()\n"
)
CALL = "found = yield call('shop.order', request['input'])"
MADE = "{'name': 'a', 'maker': 'b', 'price': 1}"


@pytest.mark.parametrize(
    ("source", "case", "reason"),
    [
        (
            ANSWER.format(CALL, 200, "found"),
            BAD,
            "our half fails: error: CapabilityErr",
        ),
        (
            ANSWER.format("if False: yield", 200, MADE),
            BAD,
            "it expects an error, our half gives a good result",
        ),
        (
            ANSWER.format(CALL, 500, "found"),
            GOOD,
            "it expects a good result, our half gives an error",
        ),
        (
            ANSWER.format(CALL, 200, "5"),
            GOOD,
            "our answer does not fit the document: 5 is not of type 'object'",
        ),
        (
            ANSWER.format("found = yield call('shop.order', {'sku': 5})", 200, "found"),
            GOOD,
            "the capability does not take these data: ",
        ),
        (
            ANSWER.format("yield call('shop.steal', {})", 200, MADE),
            GOOD,
            "our half makes a call that it may not make",
        ),
        (
            ANSWER.format(CALL, 200, "{**found, 'name': 'x' * 20_000}"),
            GOOD,
            f"our answer is no bytes, or more than {MAX_DATA}",
        ),
        ("def handle_request(data):\n    yield 5\n", GOOD, "our half fails"),
    ],
)
async def test_a_half_that_does_not_do_its_part_has_its_case_taken_out(
    source: str, case: TestCase, reason: str
) -> None:
    completed = await complete(case, source=source)
    assert completed.cases == ()
    assert completed.fixtures == {}
    [removed] = completed.removed
    assert removed.startswith(f"test case 1: {reason}")


async def test_a_half_that_calls_without_end_is_stopped() -> None:
    source = (
        "def handle_request(data):\n"
        "    while True:\n"
        "        try:\n"
        "            yield call('shop.order', {'sku': 'x', 'count': 1})\n"
        "        except CapabilityError as error:\n"
        "            return b'{}'\n"
    )
    completed = await complete(GOOD, source=source)
    assert completed.removed == (
        "test case 1: our half makes a call that it may not make",
    )


async def test_words_that_leave_the_kind_open_are_settled_by_the_answer() -> None:
    bad = b'{"messageId": "case000000000001", "status": {"code": 404, "message": ""}}'
    for response, good in ((None, True), (bad, False)):
        case = replace(GOOD, response=response, expected="As it is.", good=None)
        [kept] = (await complete(case)).cases
        assert kept.good is good
        assert kept.expected == f"{'A good result' if good else 'An error'}: As it is."


async def test_only_a_capability_that_reads_is_called_and_only_when_asked() -> None:
    called: list[str] = []
    real = {"name": "Lamp", "maker": "Lux", "price": 12.5}

    async def live(name: str, arguments: Json) -> Json:
        called.append(name)
        return real

    await complete(GOOD, live=live)
    assert called == []
    reads = replace(ORDER, read_only=True)
    await complete(GOOD, capability=reads)
    assert called == []
    completed = await complete(GOOD, capability=reads, live=live)
    assert called == ["shop.order"]
    assert completed.fixtures[fixture_key(REQUEST)][0]["output"] == real
    await complete(BAD, capability=reads, live=live)
    assert len(called) == 1


async def test_what_a_live_capability_cannot_answer_is_made_up() -> None:
    reads = replace(ORDER, read_only=True)

    async def fails(name: str, arguments: Json) -> Json:
        raise CapabilityFailed("404", "no such thing")

    async def lies(name: str, arguments: Json) -> Json:
        return {"name": 5}

    for live in (fails, lies):
        completed = await complete(GOOD, capability=reads, live=live)
        made = completed.fixtures[fixture_key(REQUEST)][0]["output"]
        assert made["name"].startswith("text ")


async def test_a_capability_without_a_sample_of_its_output_has_no_good_cases() -> None:
    output = {"type": "string", "pattern": "^(P|Q)[0-9]+$"}
    tool = replace(ORDER, output_schema=output)
    other = replace(BAD, request=REQUEST.replace(b"01", b"02"))
    completed = await complete(GOOD, other, capability=tool)
    assert [case.good for case in completed.cases] == [False]
    assert "no output of the capability can be made" in completed.removed[0]


async def test_a_schema_that_cannot_be_used_is_said() -> None:
    tool = replace(ORDER, output_schema={"$ref": "https://example.com/x"})
    with pytest.raises(CasesError, match=r"shop\.order"):
        await complete(GOOD, capability=tool)


async def test_a_set_that_gets_too_long_is_cut_with_the_reason() -> None:
    cases = [
        replace(
            GOOD,
            request=json.dumps(
                {
                    "messageId": f"case{number:012d}",
                    "input": {"sku": "x" * 9_000, "count": 1},
                }
            ).encode(),
        )
        for number in range(10)
    ]
    completed = await complete(*cases)
    assert 5 < len(completed.cases) < 10
    assert all("no room" in reason for reason in completed.removed)
    assert len(completed.cases) + len(completed.removed) == 10
