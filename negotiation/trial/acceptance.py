"""Is this half fit to be used? Every half is checked before it becomes active.

Whoever wrote it (rules, a model, a person), the half runs in a worker and its messages
are judged by the validator, both given as `Protocol` classes. Findings are sentences: a
mind gets them back and tries again (DESIGN.md, Negotiation).
"""

from __future__ import annotations

from negotiation.document.layout import error_response_schema
from negotiation.document.shape import Document
from negotiation.errors import CapabilityFailed
from negotiation.mind import HalfSource, Need, Side
from negotiation.runner import HalfRunner, Validator
from negotiation.trial.provider import ProviderTrial
from negotiation.trial.requester import RequesterTrial
from negotiation.trial.trial import Findings, SamplesMade, Trial
from negotiation.trial.worked_trial import (
    WorkedProviderTrial,
    WorkedRequesterTrial,
    example_schema,
)

__all__ = [
    "CapabilityFailed",
    "Findings",
    "HalfRunner",
    "SamplesMade",
    "Validator",
    "check_half",
]


async def check_half(
    half: HalfSource,
    document: Document,
    side: Side,
    *,
    runner: HalfRunner,
    validator: Validator,
) -> Findings:
    """Try `half`, loaded in `runner`, with all that can be made from the schemas.

    For bytes that are not JSON the worked examples stand in for made messages; see
    `negotiation.trial.worked_trial` for what is checked then (ANP-70).
    """
    trial: Trial
    if isinstance(side, Need):
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
    """Return what speaks against the examples themselves: no half can mend that."""
    error = error_response_schema(document.of_values)
    return [
        f"the worked {example.kind} does not fit its schema: {finding}"
        for example in document.examples
        for finding in await validator.validate(
            example_schema(document, example.kind, error), example.values
        )
    ]
