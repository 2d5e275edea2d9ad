"""The cost of models, added up for people and programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from cache.records.negotiations import ModelCallRecord, SpendRecord
from cache.records.records import Count
from negotiation.llm.asking.budget import OWNER, UNLISTED, BudgetLimits

MAX_DAYS = 366
"Most days that are looked at together."

NEWEST_CALLS = 100
"Calls of the ledger that are shown one by one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Model calls, their tokens and their cost."""

    calls: Count
    input_tokens: Count
    output_tokens: Count
    held_tokens: Count
    "Tokens that are reserved for calls whose end is not recorded."

    cost: float
    "Money, by the prices that were set at the time."


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSpend(Amount):
    """The amount of one account today."""

    account: str
    "`owner`, `unlisted`, or the DID of a listed peer."

    calls_limit: int
    tokens_limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySpend(Amount):
    """The amount of one day."""

    day: str
    "The day in UTC, `2026-01-31`."


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSpend(Amount):
    """The amount for negotiations with one peer."""

    peer: str
    "Its DID; `-` for calls that were for no peer."


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpend(Amount):
    """The amount for one step of negotiations."""

    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """The cost of models, by account, day, peer and step."""

    model: str | None
    "The model that is asked now."

    today: str
    "The day in UTC, `2026-01-31`."

    since: str
    "The first day that is counted."

    until: str = "00:00 UTC"
    "The time at which the limits of a day end."

    priced: bool
    "True when the owner set prices, so that `cost` means something."

    total: Amount
    accounts: Sequence[AccountSpend]
    days: Sequence[DaySpend]
    peers: Sequence[PeerSpend]
    steps: Sequence[StepSpend]
    ledger_calls: Count
    "Calls in the ledger, from which `peers` and `steps` are."

    calls: Sequence[ModelCallRecord]
    "The newest calls of the ledger."


def first_day(today: str, days: int) -> str:
    """Return the first of the last `days` days, today being the last of them."""
    return (date.fromisoformat(today) - timedelta(days=days - 1)).isoformat()


def spend_of(
    spends: Sequence[SpendRecord],
    calls: Sequence[ModelCallRecord],
    *,
    limits: BudgetLimits,
    today: str,
    since: str,
    model: str | None,
    priced: bool,
) -> Spend:
    """Return everything known about the days from `since` to `today`.

    Accounts and days count every call. With whom and for what is from the ledger, which
    keeps a bounded number of calls; `ledger_calls` says how many.

    Args:
        spends: The accounts of these days.
        calls: The ledger of these days, newest first.
    """
    accounts = [(record.account, record) for record in spends if record.day == today]
    days = [(record.day, record) for record in spends]
    peers = [(call.peer or "-", call) for call in calls]
    steps = [(call.step, call) for call in calls]
    return Spend(
        model=model,
        today=today,
        since=since,
        priced=priced,
        total=Amount(**_total(spends)),
        accounts=[
            AccountSpend(account=account, **_limits(account, limits), **total)
            for account, total in _grouped(accounts)
        ],
        days=[DaySpend(day=day, **total) for day, total in _grouped(days)],
        peers=[PeerSpend(peer=peer, **total) for peer, total in _by_use(peers)],
        steps=[StepSpend(step=step, **total) for step, total in _by_use(steps)],
        ledger_calls=len(calls),
        calls=calls[:NEWEST_CALLS],
    )


def _total(records: Iterable[SpendRecord | ModelCallRecord]) -> dict[str, Any]:
    """Return the fields of `Amount`; a record without `calls` is of one call."""
    known = list(records)
    return {
        "calls": sum(getattr(one, "calls", 1) for one in known),
        "input_tokens": sum(one.input_tokens for one in known),
        "output_tokens": sum(one.output_tokens for one in known),
        "held_tokens": sum(getattr(one, "held_tokens", 0) for one in known),
        "cost": round(sum(one.cost for one in known), 6),
    }


def _grouped(
    records: Iterable[tuple[str, SpendRecord | ModelCallRecord]],
) -> list[tuple[str, dict[str, Any]]]:
    """Return the total for each key, in the order in which the keys come."""
    groups: dict[str, list[SpendRecord | ModelCallRecord]] = {}
    for key, record in records:
        groups.setdefault(key, []).append(record)
    return [(key, _total(group)) for key, group in groups.items()]


def _by_use(
    records: Iterable[tuple[str, ModelCallRecord]],
) -> list[tuple[str, dict[str, Any]]]:
    groups = _grouped(records)
    return sorted(groups, key=lambda group: (-group[1]["calls"], group[0]))


def _limits(account: str, limits: BudgetLimits) -> dict[str, int]:
    if account == OWNER:
        calls, tokens = limits.owner_calls, limits.owner_tokens
    elif account == UNLISTED:
        calls, tokens = limits.unlisted_calls, limits.unlisted_tokens
    else:
        calls, tokens = limits.peer_calls, limits.peer_tokens
    return {"calls_limit": calls, "tokens_limit": tokens}
