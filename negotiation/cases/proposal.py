"""The cases that both sides make, by rules (DESIGN.md, Test cases).

The requests come from the requester's half: valid cases with the data at hand and with
values that differ in every place, boundary cases from the schemas, and cases in which
the capability fails. The provider's half answers each request with fixtures. These
replace the capabilities: their outputs are made from schemas, or come from a read-only
capability. They stay with the provider; the peer sees only the responses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from negotiation.cases.case import MAX_DATA, Fixtures, TestCase, fixture_key
from negotiation.cases.judge import CaseJudge
from negotiation.cases.samples import TITLES, telling_values
from negotiation.cases.text import (
    FAILURES,
    GOOD,
    error_words,
    failure_said,
    fitting,
    words_for,
)
from negotiation.document.layout import find_layout
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import (
    CapabilityFailed,
    CasesError,
    HalfError,
    JsonError,
    SchemaError,
)
from negotiation.mind import Demand, HalfRunner, HalfSource, Offer, Validator
from negotiation.need import Schema, infer_schema
from negotiation.schema.intake import prepared
from negotiation.schema.narrow import narrowed
from negotiation.schema.samples import SampleKind
from negotiation.strict_json import Json, canonical_json
from negotiation.trial.module_examples import examples_in, with_examples
from negotiation.trial.module_shapes import shapes_in
from negotiation.trial.stand_ins import StandIns

MAX_GOOD: Final = 3
"Largest number of cases with a good result."

MAX_PROPOSED: Final = 5
"Largest number of cases in all, with room for at least one error."

MAX_CODES: Final = 8
"Largest number of error codes of a document that have a case of their own."

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
    for failure in _failures(document, MAX_PROPOSED - len(good)) if good else ():
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


def _failures(document: Document, most: int) -> Sequence[tuple[str, str]]:
    """Return the failures to try: each code that a document lists, or usual ones."""
    layout = find_layout(document.of_values)
    own = layout.response.promised[:MAX_CODES] if layout is not None else ()
    return [(str(one), "it failed") for one in own] or FAILURES[:most]


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
    if (layout := find_layout(document.of_values)) is not None:
        # The half may not take the document's names as arguments; then it fails.
        found.append(layout.request.places[0].schema)
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


EXPECTED_GOOD: Final = "it expects a good result"

MAX_CALLS: Final = 16
"Largest number of capability calls of one case."

MAX_OUTPUT: Final = 64 * 1024
"Largest output that is stored as a fixture, in bytes of JSON."

Live = Callable[[str, Json], Awaitable[Json]]
"Calls a read-only capability; may raise `CapabilityFailed`."


@dataclass(frozen=True, slots=True)
class Completed:
    """A set of cases with responses."""

    cases: tuple[TestCase, ...]
    "The cases that agree with the document."

    fixtures: Fixtures
    "Capability calls and their answers in order, to be replayed; private."

    removed: tuple[str, ...]
    "Reasons why the other cases were removed, in words."


async def complete_cases(
    cases: Sequence[TestCase],
    document: Document,
    offer: Offer,
    half: HalfSource,
    *,
    runner: HalfRunner,
    validator: Validator,
    live: Live | None = None,
) -> Completed:
    """Add the responses to a set of cases.

    Args:
        half: The provider half; it may call only the capabilities that it names.
        runner: The same half, loaded in a worker.
        live: Calls capabilities that are marked read-only, for their outputs. Without
            it no capability is called.

    Raises:
        CasesError: The schemas of a capability cannot be used.
    """
    judge = CaseJudge(document, runner, validator)
    tools = await _tools(offer, half, document, validator, live)
    schemas = {name: one.output_schema for name, one in tools.items()}
    stand = StandIns(shapes_in(half.text), schemas)
    good: list[TestCase] = []
    fixtures: Fixtures = {}
    removed: list[str] = []
    for number, case in enumerate(cases, 1):
        done: TestCase | str = ""
        # An output that lacks something may be an error; the first lacks nothing.
        for turn in dict.fromkeys((len(good), 0)):
            recording = _Recording(tools, validator, case, stand, turn=turn)
            try:
                done = await _completed(case, judge, runner, recording)
            except HalfError as exc:
                done = recording.fault or f"our half fails: {exc}"
            if not isinstance(done, str) or not done.startswith(EXPECTED_GOOD):
                break
        key = fixture_key(case.request)
        if key in fixtures:
            done = "it has the request of another case"
        if isinstance(done, TestCase) and not fitting([*good, done], document)[1]:
            fixtures[key] = recording.calls
            good.append(done)
        else:
            reason = done if isinstance(done, str) else "the text has no room for it"
            removed.append(f"test case {number}: {reason}")
    return Completed(tuple(good), fixtures, tuple(removed))


async def _completed(
    case: TestCase, judge: CaseJudge, runner: HalfRunner, recording: _Recording
) -> TestCase | str:
    """Return the case with our response, or the reason to remove it."""
    for kind, data in (
        (MessageKind.REQUEST, case.request),
        (MessageKind.RESPONSE, case.response),
    ):
        findings = [] if data is None else await judge.contradictions(kind, data)
        if findings:
            return f"the {kind} contradicts the document: {findings[0]}"
    if case.good is None and case.response is not None:
        # The words leave the result open, but the response that the peer expects does
        # not.
        case = replace(case, good=await judge.says_good(case.response))
        recording.case = case
    response = await runner.handle_request(case.request, recording.on_call)
    if recording.fault:
        return recording.fault
    if not isinstance(response, bytes) or len(response) > MAX_DATA:
        return f"our answer is no bytes, or more than {MAX_DATA}"
    findings = await judge.contradictions(MessageKind.RESPONSE, response)
    if findings:
        return f"our answer does not fit the document: {findings[0]}"
    good = await judge.says_good(response)
    if None not in (good, case.good) and good != case.good:
        if good:
            return "it expects an error, our half gives a good result"
        return f"{EXPECTED_GOOD}, our half gives an error"
    # A reader of the text sees only the words, so they must tell the expected result.
    expected = words_for(case.expected, case.good if good is None else good)
    return replace(
        case,
        response=response,
        expected=expected,
        good=case.good if good is None else good,
    )


@dataclass(frozen=True, slots=True)
class _Tool:
    """A capability that the half may call."""

    input_schema: Schema
    output_schema: Schema
    outputs: list[Json]
    live: Live | None


async def _tools(
    offer: Offer,
    half: HalfSource,
    document: Document,
    validator: Validator,
    live: Live | None,
) -> dict[str, _Tool]:
    """Return the schemas and sample outputs of each capability of the half.

    Raises:
        CasesError: A schema cannot be used.
    """
    found: dict[str, _Tool] = {}
    examples = examples_in(half.text)
    layout = find_layout(document.of_values)
    wanted = layout.response.places[0].schema if layout is not None else True
    for capability in offer.capabilities:
        if capability.name not in half.capabilities:
            continue
        try:
            given = prepared(capability.input_schema)
            schema = prepared(capability.output_schema)
        except SchemaError as exc:
            raise CasesError(f"{capability.name}: {exc}") from None
        values = await telling_values(narrowed(schema, wanted), (), validator)
        own = examples.get(capability.name, {})
        made = [with_examples(value, own) for _, value in values]
        outputs = [
            value
            for value in made
            if _size(value) <= MAX_OUTPUT
            and not (own and await validator.validate(schema, value))
        ]
        reads = live if capability.read_only else None
        found[capability.name] = _Tool(given, schema, outputs, reads)
    return found


@dataclass(slots=True)
class _Recording:
    """Answers the capability calls of one case, and records the answers."""

    tools: dict[str, _Tool]
    validator: Validator
    case: TestCase
    stand: StandIns
    turn: int
    calls: list[dict[str, Any]] = field(default_factory=list)
    fault: str = ""

    async def on_call(self, name: str, arguments: Json) -> Json:
        """Answer one capability call as the case requires."""
        tool = self.tools.get(name)
        if tool is None or len(self.calls) >= MAX_CALLS:
            self.fault = self.fault or "our half makes a call that it may not make"
            raise CapabilityFailed("403", "not allowed")
        kept: dict[str, Any] = {"capability": name, "arguments": arguments}
        self.calls.append(kept)
        if self.case.good is False:
            failure = failure_said(self.case.expected)
            kept["error"] = list(failure)
            raise CapabilityFailed(*failure)
        findings = await self.validator.validate(tool.input_schema, arguments)
        if findings:
            self.fault = f"the capability does not take these data: {findings[0]}"
            raise CapabilityFailed("400", "the arguments do not fit")
        output = await self._output(tool, name, arguments)
        kept["output"] = output
        return output

    async def _output(self, tool: _Tool, name: str, arguments: Json) -> Json:
        if tool.live is not None:
            try:
                output = await tool.live(name, arguments)
            except CapabilityFailed:
                # The arguments are samples, so the thing they name may not exist.
                output = None
            unfit = await self.validator.validate(tool.output_schema, output)
            if not unfit and _size(output) <= MAX_OUTPUT:
                return output
        if not tool.outputs:
            self.fault = "no output of the capability can be made from its schema"
            raise CapabilityFailed("500", "no sample")
        # A different value for each case and call, so that constants cannot pass.
        turn = self.turn + len(self.calls) - 1
        number = sum(one["capability"] == name for one in self.calls) - 1
        if self.stand.repeats(name):
            turn = self.turn
        output = tool.outputs[turn % len(tool.outputs)]
        return self.stand.answer(name, number, self.stand.first(name, output))


def _size(value: Json) -> int:
    """Return the size of a value as JSON; above the limit if it is not JSON."""
    try:
        return len(canonical_json(value))
    except JsonError:
        return MAX_OUTPUT + 1
