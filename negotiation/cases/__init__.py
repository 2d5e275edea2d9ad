"""Test cases of an agreed document: made, judged, run and compared (ANP-48 to ANP-54).

* `case`: one test case, its fixtures, and the result of a run.
* `derive`: the requester's proposal: requests made by its half.
* `complete`: the provider's part: responses made on fixtures.
* `check`: the requester's verdict on the completed set.
* `run`: runs agreed cases, with the peer or alone.
* `compare`: compares two messages by what they say.
* `judge`: holds the messages of cases against the document.
* `samples`: values whose places all differ, so that an exchange is noticed.
* `expected`: the expected result of a case in words.
* `text`: the set of cases as Markdown, written and read.
* `body`: the data of a case inside its text.
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
