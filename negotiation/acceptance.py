"""Is this half fit to be used? Every half is checked before it becomes active.

Whoever wrote it (rules, a model, a person), the half runs in a worker and its messages
are judged by the validator, both given as `Protocol` classes. Findings are sentences: a
mind gets them back and tries again (DESIGN.md, Negotiation).
"""

from __future__ import annotations

from negotiation.errors import CapabilityFailed
from negotiation.mind import HalfSource, Need, Side
from negotiation.provider_trial import ProviderTrial
from negotiation.requester_trial import RequesterTrial
from negotiation.runner import HalfRunner, Validator
from negotiation.shape import Document
from negotiation.trial import Findings, SamplesMade, Trial

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
    """Try `half`, loaded in `runner`, with all that can be made from the schemas."""
    trial: Trial
    if isinstance(side, Need):
        trial = RequesterTrial(half, document, side, runner=runner, validator=validator)
    else:
        trial = ProviderTrial(half, document, side, runner=runner, validator=validator)
    for what, schema in (
        ("request", document.request_schema),
        ("response", document.response_schema),
    ):
        for finding in await validator.check_schema(schema):
            trial.problem(f"the {what} schema is no valid schema: {finding}")
    if not trial.problems:
        await trial.run()
    return trial.findings()
