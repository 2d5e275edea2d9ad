"""The requester's verdict on a completed set: what it can use, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from negotiation.cases.case import TestCase
from negotiation.cases.judge import CaseJudge
from negotiation.cases.run import decoded
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import HalfError, SchemaError
from negotiation.mind import Need
from negotiation.need import Schema
from negotiation.runner import HalfRunner, Validator
from negotiation.schema.intake import prepared

__all__ = ["Judged", "judge_cases"]


@dataclass(frozen=True, slots=True)
class Judged:
    """What the requester says about a completed set."""

    cases: tuple[TestCase, ...]
    "Those it can use."

    problems: tuple[str, ...]
    "What is wrong with the others, in words."


async def judge_cases(
    cases: Sequence[TestCase],
    document: Document,
    need: Need,
    *,
    runner: HalfRunner,
    validator: Validator,
    proposed: Sequence[TestCase] = (),
) -> Judged:
    """Judge cases that the provider completed: what our half can decode is good.

    Args:
        runner: Our half, loaded.
        proposed: What we proposed; the provider may take a case out, and add others,
            but not call an error what we proposed as a good result.
    """
    wanted: Schema = True
    if need.task.output_schema is not None:
        try:
            wanted = prepared(need.task.output_schema)
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
            problem = f"our half fails: {exc}"
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
        """Return what is wrong with a case, None when it can be used."""
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
        good = "error" not in answer
        if case.good is not None and good != case.good:
            return f"{_kind(case.good)} was expected, our half reads {_kind(good)}"
        asked = await self.judge.message_id(MessageKind.REQUEST, case.request)
        if asked is not None and answer.get("message_id") != asked:
            return "the response does not carry the message id of its request"
        if not good:
            return None
        findings = await self.validator.validate(self.wanted, answer["result"])
        return f"the result does not fit the task: {findings[0]}" if findings else None


def _kind(good: bool) -> str:
    return "a good result" if good else "an error"
