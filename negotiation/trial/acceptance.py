"""Checks every half before it is used, and lets a mind write one until it passes.

A half of any author (rules, a model, a person) runs in a worker, and its messages are
checked by the validator; both are given as `Protocol` classes. Findings are sentences,
with which a mind can try again (DESIGN.md, Negotiation).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from negotiation.document.layout import error_response_schema
from negotiation.document.shape import Document
from negotiation.errors import HalfError
from negotiation.mind import Demand, HalfRunner, HalfSource, Mind, Side, Validator
from negotiation.trial.provider import ProviderTrial
from negotiation.trial.requester import RequesterTrial
from negotiation.trial.trial import Findings, Trial
from negotiation.trial.worked import (
    WorkedProviderTrial,
    WorkedRequesterTrial,
    example_schema,
)


async def check_half(
    half: HalfSource,
    document: Document,
    side: Side,
    *,
    runner: HalfRunner,
    validator: Validator,
) -> Findings:
    """Check `half`, loaded in `runner`, with all samples that the schemas give.

    For bytes that are not JSON the worked examples replace samples; see
    `negotiation.trial.worked` for the checks (ANP-70).
    """
    trial: Trial
    if isinstance(side, Demand):
        kind = RequesterTrial if document.is_json else WorkedRequesterTrial
        trial = kind(half, document, side, runner=runner, validator=validator)
    else:
        made = ProviderTrial if document.is_json else WorkedProviderTrial
        trial = made(half, document, side, runner=runner, validator=validator)
    for what, schema in (
        ("request", document.request_schema),
        ("response", document.response_schema),
    ):
        for finding in await validator.check_schema(schema):
            trial.problem(f"the {what} schema is no valid schema: {finding}")
    if not trial.problems:
        for finding in await _example_findings(document, validator):
            trial.problem(finding)
    if not trial.problems:
        await trial.run()
    return trial.findings()


async def _example_findings(document: Document, validator: Validator) -> list[str]:
    """Return the faults of the examples themselves, which no half can correct."""
    error = error_response_schema(document.of_values)
    return [
        f"the worked {example.kind} does not fit its schema: {finding}"
        for example in document.examples
        for finding in await validator.validate(
            example_schema(document, example.kind, error), example.values
        )
    ]


MAX_ATTEMPTS = 3
"Largest number of attempts for one half (DESIGN.md)."


async def prepare_half(
    document: str,
    side: Side,
    *,
    mind: Mind,
    check: Callable[[HalfSource, str], Awaitable[Findings]],
    attempts: int = MAX_ATTEMPTS,
    findings: tuple[str, ...] = (),
    replaces: str = "",
) -> HalfSource:
    """Let `mind` write a half until it passes `check`, three times at most.

    Args:
        check: Gets the half and the document, and returns its findings. A `HalfError`
            from it counts as a finding too.
        findings: Faults of a half in use, for its repair.
        replaces: The text of that half; the same text again is no repair.

    Returns:
        The half, which says how much of the schemas its check could sample.

    Raises:
        HalfError: The last attempt failed as well, or returned the same text again.
        MindError: The mind failed.
    """
    outcome, before = "findings", replaces
    for _ in range(attempts):
        half = await mind.write_half(document, side, findings=findings)
        # A mind without randomness would only repeat the failure.
        if half.text == before:
            break
        before = half.text
        try:
            found = await check(half, document)
        except HalfError as exc:
            outcome, findings = exc.outcome, (str(exc),)
            continue
        if not found.problems:
            return replace(half, samples=found.samples)
        outcome, findings = "findings", found.problems
    raise HalfError(outcome, "; ".join(findings))
