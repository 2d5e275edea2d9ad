"""The lines about errors that several parts of the daemon say."""

from __future__ import annotations

import pytest

from anp.errors import no_answer, told_by_peer


@pytest.mark.parametrize(
    "message",
    ["I do not echo boom", "409: I do not echo boom"],
)
def test_the_code_of_a_peer_stands_in_its_line_once(message: str) -> None:
    told = told_by_peer("409", message)
    assert told == "the peer answered 409: I do not echo boom"


def test_who_got_no_answer_learns_of_tasks() -> None:
    told = no_answer(30.0, "call.timeout")
    assert told.startswith("no answer in 30 s (call.timeout)")
    assert "anpd tasks start" in told
