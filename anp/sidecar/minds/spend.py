"""What was spent on models, as JSON for people and programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

from cache.records.spending import ModelCallRecord, SpendRecord
from negotiation.llm.asking.budget import OWNER, UNLISTED, BudgetLimits

__all__ = ["MAX_DAYS", "first_day", "spend_view"]

MAX_DAYS = 366
"Most days that are looked at together."

NEWEST_CALLS = 100
"Calls of the ledger that are shown one by one."


def first_day(today: str, days: int) -> str:
    """Return the first of the last `days` days, today being the last of them."""
    return (date.fromisoformat(today) - timedelta(days=days - 1)).isoformat()


def spend_view(
    spends: Sequence[SpendRecord],
    calls: Sequence[ModelCallRecord],
    *,
    limits: BudgetLimits,
    today: str,
    since: str,
    priced: bool,
) -> dict[str, Any]:
    """Return everything known about the days from `since` to `today`.

    Accounts and days count every call. With whom and for what is from the ledger, which
    keeps a bounded number of calls; `ledger_calls` says how many.

    Args:
        spends: The accounts of these days.
        calls: The ledger of these days, newest first.
        priced: Whether the owner set prices, so that `cost` means something.
    """
    of_today = [record for record in spends if record.day == today]
    return {
        "today": today,
        "since": since,
        "until": "00:00 UTC",
        "priced": priced,
        "total": _total(_of_account(record) for record in spends),
        "accounts": [
            {
                "account": record.account,
                **_total([_of_account(record)]),
                **_limits(record.account, limits),
            }
            for record in of_today
        ],
        "days": _grouped("day", ((r.day, _of_account(r)) for r in spends)),
        "peers": _by_use("peer", ((c.peer or "-", _of_call(c)) for c in calls)),
        "steps": _by_use("step", ((c.step, _of_call(c)) for c in calls)),
        "ledger_calls": len(calls),
        "calls": [asdict(call) for call in calls[:NEWEST_CALLS]],
    }


@dataclass(frozen=True, slots=True)
class _Amount:
    """What is added up."""

    calls: int
    input_tokens: int
    output_tokens: int
    held_tokens: int
    cost: float


def _of_account(record: SpendRecord) -> _Amount:
    return _Amount(
        record.calls,
        record.input_tokens,
        record.output_tokens,
        record.held_tokens,
        record.cost,
    )


def _of_call(call: ModelCallRecord) -> _Amount:
    return _Amount(1, call.input_tokens, call.output_tokens, 0, call.cost)


def _total(amounts: Iterable[_Amount]) -> dict[str, Any]:
    known = list(amounts)
    return {
        "calls": sum(amount.calls for amount in known),
        "input_tokens": sum(amount.input_tokens for amount in known),
        "output_tokens": sum(amount.output_tokens for amount in known),
        "held_tokens": sum(amount.held_tokens for amount in known),
        "cost": round(sum(amount.cost for amount in known), 6),
    }


def _grouped(name: str, amounts: Iterable[tuple[str, _Amount]]) -> list[dict[str, Any]]:
    """Return one entry for each key, in the order in which they come."""
    groups: dict[str, list[_Amount]] = {}
    for key, amount in amounts:
        groups.setdefault(key, []).append(amount)
    return [{name: key, **_total(group)} for key, group in groups.items()]


def _by_use(name: str, amounts: Iterable[tuple[str, _Amount]]) -> list[dict[str, Any]]:
    groups = _grouped(name, amounts)
    return sorted(groups, key=lambda group: (-group["calls"], group[name]))


def _limits(account: str, limits: BudgetLimits) -> dict[str, int]:
    if account == OWNER:
        calls, tokens = limits.owner_calls, limits.owner_tokens
    elif account == UNLISTED:
        calls, tokens = limits.unlisted_calls, limits.unlisted_tokens
    else:
        calls, tokens = limits.peer_calls, limits.peer_tokens
    return {"calls_limit": calls, "tokens_limit": tokens}
