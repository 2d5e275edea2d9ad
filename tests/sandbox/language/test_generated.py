"""Generated hostile programs reach no attribute without a guard, and change nothing.

The ordinary tests run a few hundred; `make test-sandbox` runs 5,000.
"""

from __future__ import annotations

import os

import pytest

from tests.sandbox.language.generated import Canary, Judge, programs

COUNT = int(os.environ.get("ANPD_PROGRAMS", "300"))


def test_no_generated_program_reaches_an_attribute_unguarded() -> None:
    judge = Judge()
    ran, found = 0, {}
    for source in programs(COUNT):
        faults = judge.faults(source)
        ran += faults is not None
        if faults:
            found[source] = faults
    assert found == {}
    # Programs that are refused before they run show little.
    assert ran > COUNT // 2


@pytest.mark.parametrize(
    ("act", "fault"),
    [
        (lambda canary: canary.trap, "reads an attribute"),
        (lambda canary: setattr(canary, "trap", 1), "sets trap of a foreign object"),
        (lambda canary: setattr(Canary, "trap", 1), "sets trap of a foreign class"),
    ],
)
def test_the_judge_sees_what_comes_past_the_guards(act: object, fault: str) -> None:
    judge = Judge()
    assert judge.faults("canary.trap") == []
    source = "act(canary)"
    assert judge.faults(source, act=act) == [fault]


def test_the_judge_sees_a_changed_class_of_the_standard_library() -> None:
    import json

    judge = Judge()

    def act(_: object) -> None:
        json.JSONEncoder.item_separator = "polluted"

    fault = "sets item_separator of json.encoder.JSONEncoder"
    assert judge.faults("act(canary)", act=act) == [fault]
    assert judge.faults("act = canary") == []
