"""Judges test cases by the document, and the set that the provider completed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from negotiation.cases.case import TestCase
from negotiation.cases.run import decoded, reads_good
from negotiation.document.layout import Layout
from negotiation.document.message_judge import MessageJudge, says_good
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import HalfError, SchemaError, told_of
from negotiation.mind import Demand, HalfRunner, MessageParser, Validator
from negotiation.need import Schema
from negotiation.schema.intake import prepared
from negotiation.strict_json import Json


class CaseJudge:
    """Judges the messages of cases by one document."""

    def __init__(
        self, document: Document, half: MessageParser, validator: Validator
    ) -> None:
        self._judge = MessageJudge(document, half, validator)
        self._validator = validator
        self._layout = self._judge.layout
        self._present = _present_schema(document.response_schema, self._layout)

    async def contradictions(self, kind: MessageKind, data: bytes) -> list[str]:
        """Return the contradictions between a message of a case and the document.

        It is stricter than in a call, where an error may have null in place of the
        result: here every present value must fit its schema (ANP-Q22).

        Raises:
            HalfError: The half had to be stopped; the bytes may still be right.
        """
        findings = await self._judge.judge(kind, data)
        if findings or kind is MessageKind.REQUEST or self._layout is None:
            return findings
        values = await self._judge.fields(kind, data)
        return await self._validator.validate(self._present, values)

    async def message_id(self, kind: MessageKind, data: bytes) -> Json:
        """Return the message id of a message, or None if it cannot be read."""
        if self._layout is None or self._layout.message_id is None:
            return None
        values = await self._judge.fields(kind, data)
        return values.get(self._layout.message_id)

    async def says_good(self, response: bytes) -> bool | None:
        """Return whether a response reports success; None if that is unknown."""
        if self._layout is None:
            return None
        values = await self._judge.fields(MessageKind.RESPONSE, response)
        return says_good(self._layout.response, values) if values else None


def _present_schema(schema: Schema, layout: Layout | None) -> Schema:
    """Return a schema of responses in which the result may be absent but not wrong."""
    if layout is None or not isinstance(schema, dict):
        return True
    kept = [
        name for name in schema.get("required", ()) if name in layout.response.taken
    ]
    return {**schema, "required": kept}


@dataclass(frozen=True, slots=True)
class Judged:
    """The requester's judgement of a completed set of cases."""

    cases: tuple[TestCase, ...]

    problems: tuple[str, ...]
    "The faults of the other cases, in words."


async def judge_cases(
    cases: Sequence[TestCase],
    document: Document,
    demand: Demand,
    *,
    runner: HalfRunner,
    validator: Validator,
    proposed: Sequence[TestCase] = (),
) -> Judged:
    """Judge the cases that the provider completed.

    A case is usable if our half can decode its response.

    Args:
        runner: Our half, loaded in a worker.
        proposed: The cases that we proposed. The provider may remove some and add
            others, but may not expect an error where we expected a good result.
    """
    wanted: Schema = True
    if demand.need.output_schema is not None:
        try:
            wanted = prepared(demand.need.output_schema)
        except SchemaError as exc:
            return Judged((), (f"the task's output schema cannot be used: {exc}",))
    judging = _Judging(
        CaseJudge(document, runner, validator),
        runner,
        validator,
        wanted,
        {case.request: case.good for case in proposed},
    )
    good: list[TestCase] = []
    problems: list[str] = []
    for number, case in enumerate(cases, 1):
        try:
            problem = await judging.problem(case)
        except HalfError as exc:
            problem = f"our half fails: {told_of(exc)}"
        if problem is None and any(one.request == case.request for one in good):
            problem = "it has the request of another case"
        if problem is None:
            good.append(case)
        else:
            problems.append(f"test case {number}: {problem}")
    return Judged(tuple(good), tuple(problems))


@dataclass(frozen=True, slots=True)
class _Judging:
    judge: CaseJudge
    runner: HalfRunner
    validator: Validator
    wanted: Schema
    proposed: Mapping[bytes, bool | None]

    async def problem(self, case: TestCase) -> str | None:
        """Return the fault of a case, or None if it is usable."""
        if case.response is None:
            return "it has no response"
        for kind, data in (
            (MessageKind.REQUEST, case.request),
            (MessageKind.RESPONSE, case.response),
        ):
            findings = await self.judge.contradictions(kind, data)
            if findings:
                return f"the {kind} contradicts the document: {findings[0]}"
        ours = self.proposed.get(case.request)
        if ours is not None and case.good is not None and ours != case.good:
            return f"we proposed it for {_kind(ours)}"
        answer = await decoded(self.runner, case.response)
        good = reads_good(answer)
        if case.good is not None and good != case.good:
            return f"{_kind(case.good)} was expected, our half reads {_kind(good)}"
        asked = await self.judge.message_id(MessageKind.REQUEST, case.request)
        if asked is not None and answer.get("message_id") != asked:
            return "the response does not carry the message id of its request"
        if "result" not in answer:
            return None
        findings = await self.validator.validate(self.wanted, answer["result"])
        return f"the result does not fit the task: {findings[0]}" if findings else None


def _kind(good: bool) -> str:
    return "a good result" if good else "an error"
