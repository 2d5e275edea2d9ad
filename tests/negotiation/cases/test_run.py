"""Cases are judged by the requester, answered by the provider, and compared."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negotiation.cases.case import (
    CaseResult,
    CasesReport,
    Fixtures,
    TestCase,
    fixture_key,
)
from negotiation.cases.judge import Judged, judge_cases
from negotiation.cases.run import (
    answer_case,
    compare,
    read_responses,
    run_offline,
    run_on_fixtures,
)
from negotiation.errors import CasesError, HalfError
from negotiation.mind import Demand
from negotiation.need import Need
from tests.clauses import clause
from tests.negotiation.cases.pairs import PAIRS
from tests.negotiation.cases.table import VALIDATOR, Table, agree
from tests.negotiation.inprocess import InProcessHalf

BOTH_KINDS = pytest.mark.parametrize("name", ["the task's own terms", "packed binary"])


async def table_of(name: str = "the task's own terms") -> Table:
    """Return the table of one pair."""
    return await agree(PAIRS[name])


def changed(case: TestCase, *path: str, to: Any) -> TestCase:
    """Return the case with another value in its response."""
    assert case.response is not None
    answer = json.loads(case.response)
    inner = answer
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = to
    return replace(case, response=json.dumps(answer).encode())


async def judged(
    table: Table, *cases: TestCase, demand: Demand | None = None
) -> Judged:
    """Judge cases as the requester of the table."""
    return await judge_cases(
        cases,
        table.pair.document,
        demand or table.pair.demand,
        runner=InProcessHalf(table.pair.requester),
        validator=VALIDATOR,
        proposed=table.proposed,
    )


@clause("ANP-53", "ANP-75")
@pytest.mark.parametrize("name", PAIRS)
async def test_good_halves_pass_what_they_agreed(name: str) -> None:
    table = await agree(PAIRS[name])
    for report in (
        await table.provider_report(table.pair.provider),
        await table.requester_report(table.pair.requester),
    ):
        assert report.passed
        assert report.problems == ()
        assert report.mode == "offline"
        assert report.text == table.text
        assert [one.title for one in report.results] == [
            one.title for one in table.cases
        ]


@clause("ANP-75")
async def test_a_test_request_is_answered_by_the_real_half_on_fixtures() -> None:
    table = await table_of()
    half = InProcessHalf(table.pair.provider)
    for case in table.cases:
        data = await answer_case(case.request, table.fixtures, runner=half)
        assert (await compare(case, data, table.pair.document, sent=case.request)) == []
    # Nothing is kept from one run to the next.
    data = await answer_case(table.cases[0].request, table.fixtures, runner=half)
    assert data == table.cases[0].response


@clause("ANP-75")
async def test_a_request_of_no_agreed_case_gets_no_answer() -> None:
    table = await table_of()
    half = InProcessHalf(table.pair.provider)
    for request in (b"", b"{}", table.cases[0].request + b" "):
        with pytest.raises(CasesError, match="no agreed test case"):
            await answer_case(request, table.fixtures, runner=half)


CALLS = {
    "another capability": "yield call('shop.other', {'sku': 'P1'})",
    "other arguments": "yield call('shop.order', {'sku': 'P1'})",
    "one call more": (
        "yield call('shop.order', {'sku': 'P1', 'note': 'soon', 'count': 2})\n"
        "    yield call('shop.order', {'sku': 'P1', 'note': 'soon', 'count': 2})"
    ),
}


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS.keys())
async def test_a_call_that_was_not_recorded_fails(calls: str) -> None:
    table = await table_of()
    half = InProcessHalf(f"def handle_request(data):\n    {calls}\n    return b'[]'\n")
    with pytest.raises(HalfError, match="the agreed case has"):
        await answer_case(table.cases[0].request, table.fixtures, runner=half)


@pytest.mark.parametrize(
    "fixture",
    [
        {"capability": "shop.order"},
        {"capability": "shop.order", "error": "404"},
        {"capability": "shop.order", "error": [], "output": 5},
    ],
)
async def test_damaged_fixtures_are_said(fixture: dict[str, Any]) -> None:
    table = await table_of()
    half = InProcessHalf(table.pair.provider)
    request = table.cases[0].request
    with pytest.raises(CasesError, match="damaged"):
        await answer_case(request, {fixture_key(request): [fixture]}, runner=half)
    report = await run_on_fixtures(
        table.cases[:1],
        table.text,
        {fixture_key(request): [fixture]},
        table.pair.document,
        runner=half,
    )
    assert "damaged" in report.results[0].detail


async def test_fixtures_without_arguments_take_any() -> None:
    table = await table_of()
    request = table.cases[0].request
    [kept] = table.fixtures[fixture_key(request)]
    older = {"capability": kept["capability"], "output": kept["output"]}
    half = InProcessHalf(table.pair.provider)
    data = await answer_case(request, {fixture_key(request): [older]}, runner=half)
    assert data == table.cases[0].response


def test_fixtures_are_kept_by_the_exact_request() -> None:
    assert fixture_key(b"{}") != fixture_key(b"{ }")


async def test_differences_are_named_by_their_place_and_ids_are_ignored() -> None:
    table = await table_of()
    document = table.pair.document
    first = table.cases[0]
    assert first.response is not None
    answer = json.loads(first.response)
    answer["messageId"] = "another"
    assert await compare(first, json.dumps(answer).encode(), document) == []
    answer["output"]["name"] = "changed"
    answer["output"]["price"] = True
    del answer["output"]["maker"]
    answer["a/b~c"] = 1
    found = await compare(first, json.dumps(answer).encode(), document)
    assert found[0] == "/a~1b~0c is not in the agreed response"
    assert found[1] == "/output/maker is missing"
    assert found[2].startswith("/output/name is 'changed', agreed is 'text ")
    assert found[3].startswith("/output/price is True, agreed is ")
    assert "cannot be read" in (await compare(first, b"{", document))[0]
    missing, whole = await compare(first, b"[]", document)
    assert missing == "/messageId is missing"
    assert whole.startswith("the answer is [], agreed is {")
    unfilled = replace(first, response=None)
    assert await compare(unfilled, b"{}", document) == ["the case has no response"]


async def test_an_answer_belongs_to_the_request_that_was_sent() -> None:
    table = await table_of()
    first, second = table.cases[:2]
    assert first.response is not None
    other = first.response.replace(b"case000000000001", b"case000000000002")
    document = table.pair.document
    assert await compare(first, other, document, sent=second.request) == []
    assert await compare(first, other, document, sent=first.request) == [
        "/messageId is not that of the request"
    ]
    missing = json.loads(first.response)
    del missing["messageId"]
    data = json.dumps(missing).encode()
    assert await compare(first, data, document) == ["/messageId is missing"]


async def test_numbers_are_compared_as_json_has_them() -> None:
    table = await table_of()
    case = changed(table.cases[0], "output", "price", to=2)
    assert case.response is not None
    same = case.response.replace(b'"price": 2', b'"price": 2.0')
    assert same != case.response
    assert await compare(case, same, table.pair.document) == []
    [found] = await compare(case, same.replace(b"2.0", b"2.5"), table.pair.document)
    assert found == "/output/price is 2.5, agreed is 2"


async def test_items_of_lists_are_named_by_number() -> None:
    table = await table_of("conversions inside")
    case = next(one for one in table.cases if b'"legs": [{' in (one.response or b""))
    found = changed(case, "output", "legs", to=[])
    assert found.response is not None
    [difference] = await compare(case, found.response, table.pair.document)
    assert difference == "/output/legs has 0 items, agreed are 2"


async def test_only_so_many_differences_are_named() -> None:
    table = await table_of()
    case = table.cases[0]
    more = {f"x{number}": number for number in range(500)}
    found = changed(case, "output", to=more)
    assert found.response is not None
    assert len(await compare(case, found.response, table.pair.document)) == 10


async def test_other_bytes_are_compared_by_what_the_half_reads() -> None:
    table = await table_of("packed binary")
    half = InProcessHalf(table.pair.requester)
    first, second = table.cases[:2]
    assert first.response is not None
    assert second.response is not None
    document, read = table.pair.document, half.read_message
    assert await compare(first, first.response, document, read=read) == []
    found = await compare(first, second.response, document, read=read)
    assert any(one.startswith("/reading/value is ") for one in found)
    with pytest.raises(HalfError):
        await compare(first, b"\x00", document, read=read)


@given(st.binary(max_size=60) | st.sampled_from([b"[]", b"{}", b"null", b'{"a":1}']))
async def test_any_answer_is_compared_or_refused(data: bytes) -> None:
    table = await table_of()
    case = table.cases[0]
    assert await compare(case, data, table.pair.document, sent=case.request)


# The requester's verdict.


@BOTH_KINDS
async def test_what_the_requester_can_decode_is_good(name: str) -> None:
    table = await table_of(name)
    verdict = await judged(table, *table.cases)
    assert verdict.cases == table.cases
    assert verdict.problems == ()


async def test_what_the_requester_cannot_use_is_said_in_words() -> None:
    table = await table_of()
    good, bad = table.cases[0], table.cases[-1]
    assert good.response is not None
    wrong = {
        "it has no response": replace(good, response=None),
        "the response contradicts the document: 'dear' is not of": changed(
            good, "output", "price", to="dear"
        ),
        "the response contradicts the document: None is not of type": changed(
            bad, "output", to=None
        ),
        "the request contradicts the document": replace(good, request=b"{}"),
        "we proposed it for a good result": replace(good, good=False),
        "a good result was expected, our half reads an error": replace(
            bad, good=True, request=good.request
        ),
        "the response does not carry the message id of its": changed(
            good, "messageId", to="case000000000009"
        ),
    }
    for reason, case in wrong.items():
        verdict = await judged(table, case, table.cases[1])
        assert verdict.cases == (table.cases[1],)
        [problem] = verdict.problems
        assert problem.startswith(f"test case 1: {reason}"), problem
    verdict = await judged(table, good, good)
    assert verdict.problems == ("test case 2: it has the request of another case",)


async def test_a_result_has_to_fit_the_task() -> None:
    table = await table_of()
    need = Need("shop.order", True, {"type": "object", "required": ["colour"]})
    verdict = await judged(table, *table.cases, demand=Demand(need, {}))
    assert [case.good for case in verdict.cases] == [False, False]
    assert "the result does not fit the task: 'colour'" in verdict.problems[0]
    broken = Need("shop.order", True, {"$ref": "https://example.com/x"})
    verdict = await judged(table, *table.cases, demand=Demand(broken, {}))
    assert verdict.cases == ()
    assert "output schema cannot be used" in verdict.problems[0]


@pytest.mark.parametrize(
    "answer",
    ["None", "{}", "{'result': 1, 'error': {'code': 1}}", "{'result': {1, 2}}"],
)
async def test_a_half_that_gives_no_answer_at_all_cannot_use_a_case(
    answer: str,
) -> None:
    table = await table_of()
    source = f"def decode_response(data):\n    return {answer}\n"
    verdict = await judge_cases(
        table.cases,
        table.pair.document,
        table.pair.demand,
        runner=InProcessHalf(source),
        validator=VALIDATOR,
    )
    assert verdict.cases == ()
    assert all("our half fails" in problem for problem in verdict.problems)
    report = await table.requester_report(source)
    assert not any(result.passed for result in report.results)


# Offline.


@clause("ANP-Q9")
async def test_without_what_the_half_did_before_only_the_kind_is_checked() -> None:
    table = await table_of()
    half = InProcessHalf(
        table.pair.requester.replace('"result": result', '"result": 5')
    )
    report = await run_offline(table.cases, table.text, {}, runner=half)
    assert report.passed
    report = await run_offline(table.cases, table.text, table.asked, runner=half)
    assert [one.passed for one in report.results].count(False) == 3
    assert "our half reads: /result is 5, agreed is" in report.results[0].detail


async def test_requests_are_compared_by_their_values() -> None:
    table = await table_of()
    source = table.pair.requester.replace(
        "json.dumps(message)", "json.dumps(message, indent=1)"
    )
    assert source != table.pair.requester
    assert (await table.requester_report(source)).passed
    report = await run_offline(
        table.cases, table.text, table.asked, runner=InProcessHalf(source)
    )
    assert "makes another request" in report.results[0].detail


async def test_damaged_memories_fail_the_case_and_nothing_else() -> None:
    table = await table_of()
    first = table.cases[0]
    asked: Fixtures = {fixture_key(first.request): [{"arguments": {}}]}
    half = InProcessHalf(table.pair.requester)
    report = await run_offline(table.cases, table.text, asked, runner=half)
    assert [one.passed for one in report.results] == [False, True, True, True, True]
    assert "damaged" in report.results[0].detail


async def test_only_what_was_asked_is_remembered() -> None:
    table = await table_of()
    half = InProcessHalf(table.pair.requester)
    added = TestCase("theirs", b"{}", b"{}", "", None)
    unfilled = replace(table.cases[0], response=None)
    assert await read_responses([added, unfilled], table.asked, runner=half) == {}
    kept = await read_responses(table.cases, table.asked, runner=half)
    assert kept == table.asked
    assert all("answer" in one[0] for one in kept.values())
    assert json.loads(json.dumps(kept)) == kept


# Reports.


def test_a_report_is_stored_and_read_again() -> None:
    results = (CaseResult("one", True, ""), CaseResult("two", False, "/a is missing"))
    report = CasesReport("wire", "# Test case 1", results, "")
    stored = json.loads(json.dumps(report.to_json()))
    assert CasesReport.from_json({**stored, "at": 5.0, "asked": {}}) == report
    assert not report.passed
    assert report.problems == ("test case 2 (two): /a is missing",)
    assert CasesReport("untested", "", (), "the peer cannot").passed


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"mode": "agreed", "text": "", "results": [], "reason": ""},
        {"mode": ["wire"], "text": "", "results": [], "reason": ""},
        {"mode": "wire", "text": 5, "results": [], "reason": ""},
        {"mode": "wire", "text": "x" * 70_000, "results": [], "reason": ""},
        {"mode": "wire", "text": "", "results": [{}] * 17, "reason": ""},
        {"mode": "wire", "text": "", "results": [5], "reason": ""},
        {
            "mode": "wire",
            "text": "",
            "results": [{"title": "", "passed": 1, "detail": ""}],
            "reason": "",
        },
        {"mode": "wire", "text": "", "results": []},
    ],
)
def test_a_damaged_report_is_refused(value: object) -> None:
    with pytest.raises(CasesError, match="stored"):
        CasesReport.from_json(value)
