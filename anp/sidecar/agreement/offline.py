"""Agreed test cases, run again by one side alone, and data to try halves with.

A bundle's account of earlier runs is not believed. Its cases are texts of others, and
the data that they were made of is used only where it has the right shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from anp.sidecar.agreement.outcomes import TESTS_KEY
from anp.sidecar.halves.workshop import HalfTrial
from cache.records.records import AgreementRecord
from negotiation.cases.case import CasesReport, Fixtures
from negotiation.cases.judge import judge_cases
from negotiation.cases.run import run_offline, run_on_fixtures
from negotiation.cases.text import read_cases
from negotiation.document.layout import read_layout
from negotiation.document.shape import Document
from negotiation.errors import DocumentError, NegotiationError, SchemaError
from negotiation.mind import Demand, Side, Validator
from negotiation.need import Need, Schema
from negotiation.schema.intake import prepared
from negotiation.schema.samples import make_samples
from negotiation.strict_json import Json

ASKED: Final = "asked"
"Key of kept cases for the data that a requester made its requests of."

ANSWERED: Final = "fixtures"
"Key of kept cases for the assumed answers of a provider's capabilities."

MAX_FIXTURES: Final = 64
"Most fixtures of one test case."


@dataclass(frozen=True, slots=True)
class Retried:
    """The outcome of agreed test cases with a half, run by our side alone."""

    problems: tuple[str, ...]
    "Failures in words; empty when the half may be used."

    kept: dict[str, Any] | None
    "Record for the agreement; None when there are no cases."


async def retry_cases(
    tests: Mapping[str, Any], side: Side, trial: HalfTrial
) -> Retried:
    """Run the test cases in `tests` again, offline (ANP-Q9).

    A provider half answers each request on the fixtures, a requester half reads each
    response.

    Args:
        tests: The `tests` of an agreement, from anywhere.
    """
    document, runner = trial.document, trial.runner
    kept = tests.get(TESTS_KEY)
    text = kept.get("text") if isinstance(kept, dict) else None
    if not isinstance(text, str) or not text:
        return Retried((), None)
    name = ASKED if isinstance(side, Demand) else ANSWERED
    fixtures = kept_fixtures(tests, name)
    problems: tuple[str, ...] = ()
    try:
        cases = read_cases(text, document)
        if isinstance(side, Demand):
            judged = await judge_cases(
                cases, document, side, runner=runner, validator=trial.validator
            )
            problems = tuple(judged.problems)
            report = await run_offline(
                judged.cases, text, fixtures, runner=runner, document=document
            )
        elif fixtures:
            report = await run_on_fixtures(
                cases, text, fixtures, document, runner=runner
            )
        else:
            report = CasesReport("untested", text, (), "there are no fixtures")
    except NegotiationError as exc:
        return Retried((f"the test cases cannot be run: {exc}",), None)
    return Retried((*problems, *report.problems), {**report.to_json(), name: fixtures})


def kept_fixtures(tests: Mapping[str, Any], name: str) -> Fixtures:
    """Return the fixtures in `tests`, without those that are not shaped as such.

    Args:
        tests: The `tests` of an agreement, from anywhere.
        name: `ASKED` or `ANSWERED`.
    """
    kept = tests.get(TESTS_KEY)
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


def need_of(agreement: AgreementRecord, document: Document) -> Need:
    """Return the need of an agreement, or what its document says in words."""
    if agreement.need is None:
        return Need(document.requirement)
    return Need(**agreement.need)


async def likely_arguments(
    document: Document, need: Need, tests: Mapping[str, Any], validator: Validator
) -> dict[str, Any]:
    """Return data to try a requester half with, when no call is at hand.

    That is the data of an earlier test case, else what the need's schema allows, else
    what the document's request takes where the rules see it; else an empty object.

    Args:
        tests: The `tests` of an agreement, from anywhere.
    """
    schema = _argument_schema(document, need)
    made = [sample.value for sample in make_samples(schema).values]
    for value in (*_earlier(tests), *made):
        if isinstance(value, dict) and not await validator.validate(schema, value):
            return value
    return {}


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


def _argument_schema(document: Document, need: Need) -> Schema:
    try:
        if need.input_schema is not None:
            return prepared(need.input_schema)
        return read_layout(document.of_values).request.places[0].schema
    except (DocumentError, SchemaError):
        return True


def _earlier(tests: Mapping[str, Any]) -> Iterator[Json]:
    for fixtures in kept_fixtures(tests, ASKED).values():
        for fixture in fixtures:
            yield fixture["arguments"]
