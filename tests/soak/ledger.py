"""What callers were told compared with what the capabilities wrote down. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_EXAMPLES = 5
"Examples of each fault that are printed."


@dataclass(slots=True)
class Ledger:
    """The counts at the end; all faults have to be 0."""

    asked: int = 0
    "Calls that were begun."

    told: int = 0
    "Calls whose caller was told a result."

    failed: int = 0
    "Calls whose caller was told an error."

    open: int = 0
    "Calls whose caller was killed before it was told anything."

    runs: int = 0
    "Runs that the capabilities wrote down."

    lost: int = 0
    "A result was told, and no capability wrote down such a call."

    doubled: int = 0
    "A capability that may not be repeated ran more than once for one call."

    invented: int = 0
    "The result that was told is not that of any run of this call."

    denied: int = 0
    "An error said that it cannot have run, and it had."

    may_have_run: int = 0
    "Errors that said that it may have run."

    did_run: int = 0
    "Of those, calls that did run."

    repeated: int = 0
    "Calls of repeatable capabilities that ran more than once, which they may."

    kinds: dict[str, int] = field(default_factory=dict)
    "Errors by what they said."

    examples: list[str] = field(default_factory=list)
    "The first faults."

    @property
    def faults(self) -> int:
        """Faults of all four kinds."""
        return self.lost + self.doubled + self.invented + self.denied

    def fault(self, kind: str, said: Mapping[str, Any], runs: list[Any]) -> None:
        """Count a fault."""
        setattr(self, kind, getattr(self, kind) + 1)
        if getattr(self, kind) <= MOST_EXAMPLES:
            self.examples.append(f"{kind}: told {said}, written {runs}"[:600])


def compare(
    said: Iterable[Mapping[str, Any]], written: Iterable[Mapping[str, Any]]
) -> Ledger:
    """Compare what callers noted with what capabilities noted.

    Args:
        said: Notes of callers, in order: each has `call`, and `asked` with the name of
            the capability, or `told` with the result, or `error` with `may_have_run`.
        written: Notes of capabilities, one a run: `call`, `run`, `value`, `repeatable`.
    """
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for one in written:
        runs.setdefault(one["call"], []).append(one)
    ledger = Ledger(runs=sum(map(len, runs.values())))
    waiting: set[str] = set()
    for one in said:
        of_call = runs.get(one["call"], [])
        if "asked" in one:
            ledger.asked += 1
            waiting.add(one["call"])
            continue
        waiting.discard(one["call"])
        if "told" in one:
            ledger.told += 1
            _check_result(ledger, one, of_call)
        else:
            ledger.failed += 1
            _check_error(ledger, one, of_call)
    ledger.open = len(waiting)
    for call, those in runs.items():
        if len(those) < 2:
            continue
        if those[0]["repeatable"]:
            ledger.repeated += 1
        else:
            ledger.fault("doubled", {"call": call}, [dict(run) for run in those])
    return ledger


def _check_result(
    ledger: Ledger, said: Mapping[str, Any], runs: list[Mapping[str, Any]]
) -> None:
    if not runs:
        ledger.fault("lost", said, [])
    elif not any(_fits(said["told"], run) for run in runs):
        ledger.fault("invented", said, [dict(run) for run in runs])


def _check_error(
    ledger: Ledger, said: Mapping[str, Any], runs: list[Mapping[str, Any]]
) -> None:
    kind = f"{said['error']}{' (may have run)' * said['may_have_run']}"
    ledger.kinds[kind] = ledger.kinds.get(kind, 0) + 1
    if said["may_have_run"]:
        ledger.may_have_run += 1
        ledger.did_run += bool(runs)
    elif runs:
        ledger.fault("denied", said, [dict(run) for run in runs])


def _fits(told: Any, run: Mapping[str, Any]) -> bool:
    expected = {
        "call": run["call"],
        "run": run["run"],
        "answer": str(run["value"] * 7),
    }
    return isinstance(told, dict) and told == expected
