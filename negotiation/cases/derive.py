"""The requester's proposal of cases by rules (DESIGN.md, Test cases).

The requests come from its own half: valid cases with the data at hand and with values
that differ in every place, boundary cases from the schemas, and cases in which the
capability fails. The provider adds the responses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from negotiation.cases.case import MAX_DATA, Fixtures, TestCase, fixture_key
from negotiation.cases.judge import CaseJudge
from negotiation.cases.samples import TITLES, telling_values
from negotiation.cases.text import FAILURES, GOOD, error_words, fitting
from negotiation.document.layout import read_layout
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import DocumentError, HalfError, SchemaError
from negotiation.mind import Demand, HalfRunner, Validator
from negotiation.need import Schema, infer_schema
from negotiation.schema.intake import prepared
from negotiation.schema.samples import SampleKind
from negotiation.strict_json import Json

__all__ = ["Derived", "derive_cases"]

MAX_GOOD: Final = 3
"Largest number of cases with a good result."

MAX_PROPOSED: Final = 5
"Largest number of cases in all, with room for at least one error."

REQUEST_SHARE: Final = 0.4
"Share of the text that requests may fill; the responses need the rest."


@dataclass(frozen=True, slots=True)
class Derived:
    """The cases that the requester proposes."""

    cases: tuple[TestCase, ...]

    asked: Fixtures
    "The arguments of each request; private, to make the request again later."


async def derive_cases(
    document: Document,
    demand: Demand,
    *,
    runner: HalfRunner,
    validator: Validator,
    suggested: Sequence[tuple[str, Json]] = (),
) -> Derived:
    """Return the cases that the requester proposes, without responses.

    There are fewer cases when few samples can be made, and none without samples.

    Args:
        runner: Our half, loaded in a worker.
        suggested: Further titles and arguments, tried after those of the rules.
    """
    maker = _Maker(runner, CaseJudge(document, runner, validator))
    derived = await _values(document, demand, validator)
    left = [*((TITLES[kind], value) for kind, value in derived), *suggested]
    good: list[TestCase] = []
    used: list[Json] = []
    while left and len(good) < MAX_GOOD:
        title, value = left.pop(0)
        case = await maker.case(title, value)
        if case is not None:
            good.append(case)
            used.append(value)
    # A failure can use the same data, where a message id makes the requests differ.
    spare = [*used, *(value for _, value in left)]
    bad: list[TestCase] = []
    for failure in FAILURES[: MAX_PROPOSED - len(good)] if good else ():
        for value in spare:
            case = await maker.case(f"a failure ({failure[0]})", value)
            if case is not None:
                words = error_words(failure)
                bad.append(replace(case, expected=words, good=False))
                break
    # If room is short, an error is more useful than a second good case.
    ranked = [*good[:1], *bad[:1], *good[1:], *bad[1:]]
    kept, _ = fitting(ranked, document, share=REQUEST_SHARE)
    cases = tuple(case for case in (*good, *bad) if case in kept)
    return Derived(cases, {key: maker.asked[key] for key in map(_key, cases)})


def _key(case: TestCase) -> str:
    return fixture_key(case.request)


async def _values(
    document: Document, demand: Demand, validator: Validator
) -> list[tuple[SampleKind, Json]]:
    """Return the arguments to try, the best ones first."""
    given = [demand.arguments]
    found: list[tuple[SampleKind, Json]] = []
    for schema in _schemas(document, demand):
        for kind, value in await telling_values(schema, given, validator):
            if all(value != other for _, other in found):
                found.append((kind, value))
    return found


def _schemas(document: Document, demand: Demand) -> Sequence[Schema]:
    """Return schemas of possible arguments, the most reliable first."""
    found: list[Schema] = []
    try:
        if demand.need.input_schema is not None:
            return [prepared(demand.need.input_schema)]
        found.append(prepared(infer_schema(demand.arguments)))
    except SchemaError:
        return [True]
    try:
        # The half may not take the document's names as arguments; then it fails.
        found.append(read_layout(document.of_values).request.places[0].schema)
    except DocumentError:
        return found
    return found


class _Maker:
    """Makes cases with our half, each with its own message id."""

    def __init__(self, runner: HalfRunner, judge: CaseJudge) -> None:
        self._runner = runner
        self._judge = judge
        self.asked: Fixtures = {}

    async def case(self, title: str, arguments: Json) -> TestCase | None:
        """Return a good case with these arguments; None if our half cannot make one."""
        if not isinstance(arguments, dict):
            return None
        message_id = f"case{len(self.asked) + 1:012d}"
        try:
            data = await self._runner.encode_request(message_id, dict(arguments))
            if not isinstance(data, bytes) or len(data) > MAX_DATA:
                return None
            if fixture_key(data) in self.asked:
                return None
            if await self._judge.contradictions(MessageKind.REQUEST, data):
                return None
        except HalfError:
            # Not every value of a schema has a request; the trial has tested the half.
            return None
        made_of = {"message_id": message_id, "arguments": arguments}
        self.asked[fixture_key(data)] = [made_of]
        return TestCase(title, data, None, GOOD, True)
