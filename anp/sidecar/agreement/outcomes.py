"""Results of agreed test cases, and how long a failed text is refused. Pure.

A text whose cases failed between two sides is not agreed by them again for a while:
minds without randomness would come to the same text, and every call would negotiate
and fail anew. After `HOLD`, or the owner's `protocols release`, it is tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from anp.errors import CallError, ErrorKind
from cache.records.records import AgreementRecord, AgreementState

TESTS_KEY: Final = "cases"
"Key in an agreement's `tests` under which agreed test cases are kept."

AGAIN: Final = "proposed_again"
"Key in those for the time at which our mind came to the failed text once more."

HOLD = 3600.0
"Seconds for which a text is refused after its cases failed."

MAX_TEXTS: Final = 3
"Texts for one need that may fail with one peer within `HOLD`."

NOT_RUN: Final = "not run"
"Detail of the cases after one that got no answer."

MAX_WORDS: Final = 300
"Longest account of what failed, in characters."


@dataclass(frozen=True, slots=True)
class FailedText:
    """A text that is refused because its cases failed."""

    agreement: AgreementRecord
    "The agreement that the text was settled with."

    until: float
    "Seconds since 1970 from which on it may be agreed again."

    @property
    def again(self) -> bool:
        """True if our mind has come to the same text once more since then."""
        return AGAIN in _cases(self.agreement.tests)

    def for_peer(self, *, now: float) -> str:
        """Return the reason of a rejection; it tells the peer no more than needed."""
        return (
            "the agreed test cases of this text failed between us; propose another "
            f"text, or this one again in {self._minutes(now)} min"
        )

    def error(self, *, now: float) -> CallError:
        """Return the error that ends a call which would need the text."""
        short = self.agreement.hash[:12]
        return CallError(
            ErrorKind.GENERATED_CODE,
            f"the protocol for this, {short}, is not used: "
            f"{in_words(self.agreement.tests)}; it is tried again in "
            f"{self._minutes(now)} min, or at once after `anpd protocols release "
            f"{short}`",
            retry_after=max(1.0, self.until - now),
        )

    def _minutes(self, now: float) -> int:
        return max(1, round((self.until - now) / 60))


def failed_texts(
    agreements: Iterable[AgreementRecord], *, now: float
) -> list[FailedText]:
    """Return the texts that are refused at this time, in the order of `agreements`.

    Args:
        now: Seconds since 1970.
    """
    found = []
    for agreement in agreements:
        at = _cases(agreement.tests).get("at")
        # A clock that was set back must not hold a text for longer than it should.
        since = at if isinstance(at, float) and at <= now else agreement.created
        if agreement.state is AgreementState.FAILED and since <= now < since + HOLD:
            found.append(FailedText(agreement, since + HOLD))
    return found


def ruled_out(failed: Sequence[FailedText]) -> FailedText | None:
    """Return the failed text that makes a negotiation pointless, or None.

    That is a text our mind came to once more, or the last one of `MAX_TEXTS`.

    Args:
        failed: Of one need with one peer, newest first.
    """
    for one in failed:
        if one.again:
            return one
    return failed[0] if len(failed) >= MAX_TEXTS else None


def proposed_again(agreement: AgreementRecord, *, now: float) -> dict[str, Any]:
    """Return an agreement's `tests` with a note that its text was proposed again."""
    cases = {**_cases(agreement.tests), AGAIN: now}
    return {**agreement.tests, TESTS_KEY: cases}


def in_words(tests: Mapping[str, Any]) -> str:
    """Return the result of agreed test cases, in one line; empty when there are none.

    Args:
        tests: The `tests` of an agreement, from anywhere.
    """
    cases = _cases(tests)
    results = cases.get("results")
    run = (
        [one for one in results if isinstance(one, dict)]
        if isinstance(results, list)
        else []
    )
    failed = [one for one in run if one.get("passed") is not True]
    skipped = [one for one in failed if one.get("detail") == NOT_RUN]
    failed = [one for one in failed if one not in skipped]
    if failed:
        first = f"{failed[0].get('title')}: {failed[0].get('detail')}"
        rest = f", {len(skipped)} not run" if skipped else ""
        words = f"{len(failed)} of {len(run)} test cases failed{rest}: {first}"
        return " ".join(words.split())[:MAX_WORDS]
    if run:
        return f"{len(run)} of {len(run)} test cases passed ({cases.get('mode')})"
    if cases.get("mode") == "untested":
        return " ".join(f"untested: {cases.get('reason')}".split())[:MAX_WORDS]
    return "agreed with the peer, which runs them" if cases else ""


def _cases(tests: Mapping[str, Any]) -> dict[str, Any]:
    cases = tests.get(TESTS_KEY)
    return cases if isinstance(cases, dict) else {}
