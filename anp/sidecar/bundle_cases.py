"""Test cases that come with a half in a bundle: run again before it is used.

What a bundle says about earlier runs is not believed. Its cases are texts of others,
and what they were made of is used only where it has the right shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from negotiation.acceptance import HalfRunner, Validator
from negotiation.cases import (
    CaseResult,
    CasesReport,
    TestCase,
    answer_case,
    compare,
    judge_cases,
    read_cases,
    run_offline,
)
from negotiation.document import Document
from negotiation.errors import (
    CasesError,
    DocumentError,
    HalfError,
    NegotiationError,
    SchemaError,
)
from negotiation.layout import read_layout
from negotiation.mind import Need, Side
from negotiation.samples import make_samples
from negotiation.schemas import prepared
from negotiation.strict_json import Json
from negotiation.task import Schema, Task

__all__ = ["CASES", "Retried", "likely_arguments", "retry_cases"]

CASES: Final = "cases"
"Where an agreement's `tests` keep agreed test cases."

ASKED: Final = "asked"
"Where those keep what a requester made its requests of."

ANSWERED: Final = "fixtures"
"Where those keep what a provider's capabilities are taken to answer."

MAX_FIXTURES: Final = 64
"Most fixtures of one test case."

MAX_DETAIL: Final = 500
"Longest detail of a result, in characters."

_Fixtures = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Retried:
    """How agreed test cases went with a half, by our side alone."""

    problems: tuple[str, ...]
    "What fails, in words; empty when the half may be used."

    kept: dict[str, Any] | None
    "What to keep with the agreement; None when there are no cases."


async def retry_cases(
    tests: Mapping[str, Any],
    document: Document,
    side: Side,
    *,
    runner: HalfRunner,
    validator: Validator,
) -> Retried:
    """Run the test cases in `tests` again, offline (ANP-Q9).

    A provider half answers each request on the fixtures, a requester half reads each
    response.

    Args:
        tests: The `tests` of an agreement, from anywhere.
        runner: The half, loaded.
    """
    kept = tests.get(CASES)
    text = kept.get("text") if isinstance(kept, dict) else None
    if not isinstance(text, str) or not text:
        return Retried((), None)
    name = ASKED if isinstance(side, Need) else ANSWERED
    fixtures = _fixtures(tests, name)
    try:
        cases = read_cases(text, document)
        if isinstance(side, Need):
            judged = await judge_cases(
                cases, document, side, runner=runner, validator=validator
            )
            again = await run_offline(
                judged.cases, text, fixtures, runner=runner, document=document
            )
            problems = (*judged.problems, *again.problems)
            results = list(again.results)
        else:
            results = await _answer_again(cases, fixtures, document, runner)
            problems = tuple(
                f"test case {result.title!r}: {result.detail}"
                for result in results
                if not result.passed
            )
    except NegotiationError as exc:
        return Retried((f"the test cases cannot be run: {exc}",), None)
    mode, reason = ("offline", "") if results else ("untested", "there are no fixtures")
    report = CasesReport(mode, text, tuple(results), reason)
    return Retried(problems, {**report.to_json(), name: fixtures})


async def likely_arguments(
    document: Document, task: Task, tests: Mapping[str, Any], validator: Validator
) -> dict[str, Any]:
    """Return data to try a requester half with, when no call is at hand.

    That is the data of an earlier test case, else what the task's schema allows, else
    what the document's request takes where the rules see it; else an empty object.

    Args:
        tests: The `tests` of an agreement, from anywhere.
    """
    schema = _argument_schema(document, task)
    made = [sample.value for sample in make_samples(schema).values]
    for value in (*_earlier(tests), *made):
        if isinstance(value, dict) and not await validator.validate(schema, value):
            return value
    return {}


def _argument_schema(document: Document, task: Task) -> Schema:
    try:
        if task.input_schema is not None:
            return prepared(task.input_schema)
        return read_layout(document.of_values).request.places[0].schema
    except (DocumentError, SchemaError):
        return True


async def _answer_again(
    cases: Sequence[TestCase],
    fixtures: _Fixtures,
    document: Document,
    runner: HalfRunner,
) -> list[CaseResult]:
    if not fixtures:
        return []
    read = None if document.is_json else runner.read_message
    results = []
    for case in cases:
        try:
            answer = await answer_case(case.request, fixtures, runner=runner)
            differences = await compare(case, answer, document, read=read)
        except (HalfError, CasesError) as exc:
            differences = [str(exc)]
        detail = "; ".join(differences)[:MAX_DETAIL]
        results.append(CaseResult(case.title, not differences, detail))
    return results


def _earlier(tests: Mapping[str, Any]) -> Iterator[Json]:
    for fixtures in _fixtures(tests, ASKED).values():
        for fixture in fixtures:
            yield fixture["arguments"]


def _fixtures(tests: Mapping[str, Any], name: str) -> _Fixtures:
    """Return the fixtures in `tests`, without those that are not shaped as such."""
    kept = tests.get(CASES)
    found: Json = kept.get(name) if isinstance(kept, dict) else None
    if not isinstance(found, dict):
        return {}
    return {
        key: fixtures
        for key, fixtures in found.items()
        if isinstance(fixtures, list)
        and len(fixtures) <= MAX_FIXTURES
        and all(_is_fixture(one, name) for one in fixtures)
    }


def _is_fixture(value: object, name: str) -> bool:
    if not isinstance(value, dict):
        return False
    if name == ASKED:
        made_of = value.get("message_id"), value.get("arguments")
        return isinstance(made_of[0], str) and isinstance(made_of[1], dict)
    if not isinstance(value.get("capability"), str):
        return False
    error = value.get("error")
    return "output" in value or (isinstance(error, list) and len(error) == 2)
