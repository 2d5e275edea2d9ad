"""Test cases: their text form, their derivation and their judgement (ANP-48)."""

from __future__ import annotations

from negotiation.cases.case import (
    MAX_CASES,
    CaseResult,
    CasesReport,
    Fixtures,
    TestCase,
    fixture_key,
)
from negotiation.cases.check import Judged, judge_cases
from negotiation.cases.compare import compare
from negotiation.cases.complete import Completed, Live, complete_cases
from negotiation.cases.derive import Derived, derive_cases
from negotiation.cases.run import (
    answer_case,
    read_responses,
    run_offline,
    run_on_fixtures,
)
from negotiation.cases.text import read_cases, render_cases

__all__ = [
    "MAX_CASES",
    "CaseResult",
    "CasesReport",
    "Completed",
    "Derived",
    "Fixtures",
    "Judged",
    "Live",
    "TestCase",
    "answer_case",
    "compare",
    "complete_cases",
    "derive_cases",
    "fixture_key",
    "judge_cases",
    "read_cases",
    "read_responses",
    "render_cases",
    "run_offline",
    "run_on_fixtures",
]
