"""Test cases of an agreed document: made, judged, run and compared (ANP-48 to ANP-54).

Theory of operation
-------------------

Both sides have written a half for the same text, each for itself. A half that is wrong
in a way which its own side cannot see (two fields exchanged, a constant instead of a
value) is found only when the two meet. So, before the first call, they agree on some
requests with their responses, run them, and compare.

1. The requester proposes (`derive`). For each request it chooses arguments: the data at
   hand, values in which every place differs (`samples`), values at the limits of the
   schemas, and cases in which a capability fails. Its own half encodes them. The
   responses are still empty.
2. The provider completes (`complete`). It runs its real half on each request, but with
   *fixtures* in place of the capabilities: outputs made from the output schemas, or
   taken from a capability that only reads. It writes the response into the case. The
   fixtures stay with it. A case that contradicts the document is taken out, with the
   reason.
3. The requester checks (`check`): it accepts what its half can decode and its need
   allows, or counters with a smaller set.
4. The cases are run (`run`). With `verificationProtocol` on both sides the requester
   sends each request as PT=11, and the provider's real half answers on the fixtures;
   recorded bytes are never sent back. Without it each side tries its own half alone.
5. The answers are compared (`compare`) by their values: message ids and the spelling of
   JSON do not count. The outcome is a `CasesReport`, kept with the agreement.

The set travels as natural language, because the seed says so (ANP-50). `text` writes it
in the form of the seed's example and reads looser forms too, each line once and with
bounded patterns; `body` reads the data inside, JSON or bytes; `expected` turns "a good
result" and "an error, 404" into a kind and back. The expected result is words and is
not trusted: `judge` asks the document whether a response is good.

Each side keeps, with the cases, what its half was given: the requester the arguments,
the provider the capability calls and fixtures. With that either side can run the cases
again later, alone, when a half was repaired or its owner asks. Nothing here does any
I/O: halves are reached through `HalfRunner`, schemas through `Validator`.
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
