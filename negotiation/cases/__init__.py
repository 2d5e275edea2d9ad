"""Test cases of an agreed document: made, judged, run and compared (ANP-48 to ANP-54).

* `case`: one test case, its fixtures, and the result of a run.
* `derive`: the requester's proposal: requests made by its half.
* `complete`: the provider's part: responses made on fixtures.
* `run`: runs agreed cases, and compares messages by their values.
* `judge`: judges cases by the document, and the set that the provider completed.
* `samples`: values whose places all differ, so that an exchange is noticed.
* `text`: the set of cases as Markdown, written and read.
"""

from __future__ import annotations

from negotiation.cases.case import (
    MAX_CASES,
    CaseResult,
    CasesReport,
    Fixtures,
    TestCase,
    fixture_key,
)
from negotiation.cases.complete import Completed, Live, complete_cases
from negotiation.cases.derive import Derived, derive_cases
from negotiation.cases.judge import Judged, judge_cases
from negotiation.cases.run import (
    answer_case,
    compare,
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
