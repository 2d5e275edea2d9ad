"""Two sides at one table: they agree on test cases, and run them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from negotiation.cases.case import CasesReport, Fixtures, TestCase
from negotiation.cases.judge import judge_cases
from negotiation.cases.proposal import complete_cases, derive_cases
from negotiation.cases.run import read_responses, run_offline, run_on_fixtures
from negotiation.cases.text import read_cases, render_cases
from negotiation.document.reader import read_document
from negotiation.document.shape import Document
from negotiation.mind import Demand, HalfSource, Offer
from negotiation.need import Capability
from negotiation.rules.rules import write_from_text
from tests.negotiation.inprocess import InProcessHalf, JsonschemaValidator

VALIDATOR = JsonschemaValidator()


@dataclass(frozen=True)
class Pair:
    """A document, what both sides are there for, and their halves."""

    document: Document
    demand: Demand
    capability: Capability
    requester: str
    provider: str

    @property
    def offer(self) -> Offer:
        """The offer of the provider's side."""
        return Offer((self.capability,))

    @property
    def provider_half(self) -> HalfSource:
        """The provider half, with what it may call."""
        return HalfSource(self.provider, "rules", (self.capability.name,))


@dataclass(frozen=True)
class Table:
    """The test cases that both sides hold when they have agreed."""

    pair: Pair
    proposed: tuple[TestCase, ...]
    cases: tuple[TestCase, ...]
    text: str
    asked: Fixtures
    fixtures: Fixtures

    async def provider_report(self, source: str) -> CasesReport:
        """Run the cases with `source` as the provider half."""
        return await run_on_fixtures(
            self.cases,
            self.text,
            self.fixtures,
            self.pair.document,
            runner=InProcessHalf(source),
        )

    async def requester_report(self, source: str) -> CasesReport:
        """Run the cases with `source` as the requester half."""
        return await run_offline(
            self.cases,
            self.text,
            self.asked,
            runner=InProcessHalf(source),
            document=self.pair.document,
        )


def obj(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    """Return the schema of an object."""
    found = {"type": "object", "properties": properties, "required": list(required)}
    return {**found, **more}


def by_rules(text: str, demand: Demand, capability: Capability) -> Pair:
    """Return a pair whose halves the rules write."""
    return Pair(
        read_document(text),
        demand,
        capability,
        write_from_text(text, demand).text,
        write_from_text(text, Offer((capability,))).text,
    )


async def agree(pair: Pair) -> Table:
    """Let both sides agree, with every text sent as it would be."""
    document = pair.document
    requester, provider = InProcessHalf(pair.requester), InProcessHalf(pair.provider)
    derived = await derive_cases(
        document, pair.demand, runner=requester, validator=VALIDATOR
    )
    proposed = read_cases(render_cases(derived.cases, document), document)
    assert proposed == derived.cases
    completed = await complete_cases(
        proposed,
        document,
        pair.offer,
        pair.provider_half,
        runner=provider,
        validator=VALIDATOR,
    )
    assert completed.removed == ()
    text = render_cases(completed.cases, document)
    cases = read_cases(text, document)
    assert cases == completed.cases
    judged = await judge_cases(
        cases,
        document,
        pair.demand,
        runner=requester,
        validator=VALIDATOR,
        proposed=derived.cases,
    )
    assert judged.problems == ()
    asked = await read_responses(cases, derived.asked, runner=requester)
    return Table(pair, derived.cases, cases, text, asked, completed.fixtures)
