"""Test cases and the results of running them (ANP-50)."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, Final

from negotiation.errors import CasesError
from negotiation.messages import MAX_TEXT_SIZE

MAX_CASES: Final = 16
"Largest number of cases in one set."

MAX_DATA: Final = 12 * 1024
"Largest message of a case, in bytes; a whole set must fit into 64 KiB of text."

MAX_DETAIL: Final = 500
"Longest detail of a result, in characters."

MODES: Final = frozenset({"wire", "offline", "untested"})

Fixtures = dict[str, list[dict[str, Any]]]
"A side's private data about each case, by `fixture_key` of the request."


def fixture_key(request: bytes) -> str:
    """Return the key under which the fixtures of a request are stored."""
    return hashlib.sha256(request).hexdigest()


@dataclass(frozen=True, slots=True)
class TestCase:
    """One request with its response and the expected result."""

    __test__ = False

    title: str
    "Subject of the case, in words."

    request: bytes
    "The exact bytes of the request."

    response: bytes | None
    "The bytes of the response; None until the provider has added it."

    expected: str
    "The expected result, in words."

    good: bool | None
    "True when a good result is expected; None when the words leave that open."


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of running one case."""

    title: str

    passed: bool
    "True when everything was as agreed."

    detail: str
    "The deviation in words; empty if there was none."


@dataclass(frozen=True, slots=True)
class CasesReport:
    """The result of a set of cases, as stored with the agreement."""

    mode: str
    "`wire` over PT=11, `offline` by one side alone, `untested` (ANP-Q9)."

    text: str
    results: tuple[CaseResult, ...]

    reason: str
    "Reason why the cases were not tested, in words."

    @property
    def passed(self) -> bool:
        """True when no case failed; an untested set has no case that could."""
        return all(result.passed for result in self.results)

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the failures, one line for each case, as findings for a mind."""
        return tuple(
            f"test case {number} ({result.title}): {result.detail}"
            for number, result in enumerate(self.results, 1)
            if not result.passed
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "mode": self.mode,
            "text": self.text,
            "results": [asdict(result) for result in self.results],
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, value: object) -> CasesReport:
        """Return the report in stored JSON; other keys are ignored.

        Raises:
            CasesError: It is invalid or over a limit: a bundle's tests are not trusted.
        """
        if not isinstance(value, dict):
            raise CasesError("stored test cases are no object")
        mode, results = value.get("mode"), value.get("results")
        if not isinstance(mode, str) or mode not in MODES:
            raise CasesError("stored test cases have no mode")
        if not isinstance(results, list):
            raise CasesError("stored test cases have no results")
        if len(results) > MAX_CASES:
            raise CasesError(f"over {MAX_CASES} stored test cases")
        return cls(
            mode,
            _text(value, "text", MAX_TEXT_SIZE),
            tuple(_result(one) for one in results),
            _text(value, "reason", MAX_TEXT_SIZE),
        )


def _result(value: object) -> CaseResult:
    if not isinstance(value, dict) or not isinstance(value.get("passed"), bool):
        raise CasesError("a stored result of a test case is damaged")
    return CaseResult(
        _text(value, "title", MAX_DETAIL),
        value["passed"],
        _text(value, "detail", MAX_TEXT_SIZE),
    )


def _text(value: dict[str, Any], name: str, limit: int) -> str:
    found = value.get(name)
    if not isinstance(found, str) or len(found) > limit:
        raise CasesError(f"{name!r} of stored test cases is no text, or too long")
    return found
