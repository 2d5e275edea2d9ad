"""The budget for models: reserved before a call, settled after it. Pure.

A day's budget has two parts that never use each other: our own calls, and the calls for
all peers. In the second part each listed peer has a limit, and all unlisted peers share
one, so that new DIDs gain nothing (DESIGN.md, Trust). Each negotiation has another
limit.

Calls never exceed a limit. The largest possible number of tokens is reserved
(`Request.most_tokens`), so tokens exceed no limit either, unless a server uses more
than allowed; then no further call is granted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from negotiation.errors import MindError, MisuseError
from negotiation.llm.asking.requests import Usage

OWNER: Final = "owner"
"The account of our own calls."

UNLISTED: Final = "unlisted"
"The account of all unlisted peers. A listed peer's account is its DID."

ADDRESS_PART: Final = 0.5
"Part of the unlisted peers' calls and tokens that one address may have in a day."


class BudgetExhausted(MindError):
    """A budget has no room for a call; the text names it, and the time it lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """Limits of the budget; a day is one of UTC."""

    negotiation_calls: int = 8
    "Calls in one negotiation."

    negotiation_tokens: int = 200_000
    "Tokens in one negotiation."

    peer_calls: int = 40
    "Calls for one listed peer in a day."

    peer_tokens: int = 400_000
    "Tokens for one listed peer in a day."

    unlisted_calls: int = 20
    "Calls for all unlisted peers together in a day."

    unlisted_tokens: int = 200_000
    "Tokens for all unlisted peers together in a day."

    day_calls: int = 200
    "Calls in a day, for all accounts together."

    day_tokens: int = 2_000_000
    "Tokens in a day, for all accounts together."

    owner_share: float = 0.5
    "Part of the day's calls and tokens for our own calls; peers get the rest."

    def __post_init__(self) -> None:
        if not 0 <= self.owner_share <= 1:
            raise MisuseError("budget.owner_share must be between 0 and 1")

    @property
    def owner_calls(self) -> int:
        """Our own calls in a day."""
        return math.ceil(self.day_calls * self.owner_share)

    @property
    def owner_tokens(self) -> int:
        """Tokens of our own calls in a day."""
        return math.ceil(self.day_tokens * self.owner_share)


@dataclass(frozen=True, slots=True)
class Spent:
    """The use of one account on one day."""

    day: str
    "The day in UTC, `2026-01-31`."

    account: str
    "`owner`, `unlisted`, or the DID of a listed peer."

    calls: int = 0
    "Calls, those still running included."

    input_tokens: int = 0
    "Tokens of prompts, of settled calls."

    output_tokens: int = 0
    "Tokens of answers, of settled calls."

    held_tokens: int = 0
    "Tokens reserved for running calls, or for calls without a recorded end."

    cost: float = 0.0
    "Cost in money, by the owner's prices at the time; 0 without prices."


@dataclass(slots=True)
class Purse:
    """The use counted against one limit; each negotiation has one of its own."""

    calls: int = 0
    "Calls, those still running included."

    tokens: int = 0
    "Tokens of settled calls."

    held: int = 0
    "Tokens reserved for running calls."


@dataclass(frozen=True, slots=True)
class _Limit:
    """One limit on one purse."""

    purse: Purse
    whose: str
    name: str
    """Beginning of its settings: `peer` for `budget.peer_calls` and
    `budget.peer_tokens`."""

    calls: int
    tokens: int


@dataclass(slots=True)
class _Account:
    """The use of one account on one day, with its purse."""

    day: str
    name: str
    purse: Purse = field(default_factory=Purse)
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    @property
    def spent(self) -> Spent:
        return Spent(
            self.day,
            self.name,
            calls=self.purse.calls,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            held_tokens=self.purse.held,
            cost=self.cost,
        )


@dataclass(slots=True, eq=False)
class Reservation:
    """Reserved room for one call; settle or release it exactly once."""

    account: _Account
    purses: tuple[Purse, ...]
    tokens: int
    open: bool = True

    @property
    def spent(self) -> Spent:
        """The use of its account on the day of the reservation, this call included."""
        return self.account.spent


class Budget:
    """Grants calls within the limits; the caller passes the day and stores records.

    Args:
        day: The present day.
        spent: The recorded use of that day, such as before a restart.
    """

    def __init__(
        self, limits: BudgetLimits, *, day: str, spent: Iterable[Spent] = ()
    ) -> None:
        self._limits = limits
        self._day = day
        self._accounts: dict[str, _Account] = {}
        self._peers = Purse()
        self._addresses: dict[str, Purse] = {}
        self._load(spent)

    @property
    def day(self) -> str:
        """The day whose limits apply."""
        return self._day

    def start_day(self, day: str, *, spent: Iterable[Spent] = ()) -> None:
        """Begin a later day; running calls are settled on their own day.

        An earlier day changes nothing: a clock set back must not grant more calls.
        """
        if day > self._day:
            self._day = day
            self._accounts = {}
            self._peers = Purse()
            self._addresses = {}
            self._load(spent)

    def reserve(
        self, account: str, purse: Purse, tokens: int, *, address: str = ""
    ) -> Reservation:
        """Reserve room for one call of at most `tokens`.

        Args:
            account: The paying account: `OWNER`, `UNLISTED` or a listed peer's DID.
            purse: The purse of the negotiation.
            address: Address of an unlisted peer, for a bound of its own; a restart
                forgets what it used of that.

        Raises:
            BudgetExhausted: A limit is reached; the text names its setting.
        """
        if tokens < 0:
            raise MisuseError("a call cannot reserve a negative number of tokens")
        known = self._accounts.get(account) or _Account(self._day, account)
        part = self._addresses.get(address, Purse()) if address else None
        limits = self._limits_of(known, purse, part)
        for limit in limits:
            self._require(limit, tokens)
        self._accounts[account] = known
        if part is not None:
            self._addresses[address] = part
        for limit in limits:
            limit.purse.calls += 1
            limit.purse.held += tokens
        return Reservation(known, tuple(limit.purse for limit in limits), tokens)

    def settle(
        self, reservation: Reservation, usage: Usage | None, *, cost: float = 0.0
    ) -> None:
        """Replace the reserved tokens by the used ones.

        Args:
            usage: None if unknown: then all reserved tokens count as used.
            cost: Money in the currency of the prices.
        """
        self._close(reservation)
        account = reservation.account
        used = usage or Usage(reservation.tokens, 0)
        account.input_tokens += used.input_tokens
        account.output_tokens += used.output_tokens
        account.cost += cost
        for purse in reservation.purses:
            purse.tokens += used.total

    def release(self, reservation: Reservation) -> None:
        """Give back the whole reservation of a call that was never sent."""
        self._close(reservation)
        for purse in reservation.purses:
            purse.calls -= 1

    def spent(self) -> list[Spent]:
        """Return the use of every account today, by name."""
        return [self._accounts[name].spent for name in sorted(self._accounts)]

    def _close(self, reservation: Reservation) -> None:
        if not reservation.open:
            raise MisuseError("a reservation is settled or released once")
        reservation.open = False
        for purse in reservation.purses:
            purse.held -= reservation.tokens

    def _load(self, spent: Iterable[Spent]) -> None:
        for record in spent:
            if record.day != self._day:
                continue
            # Reserved by a process that has ended: the cost of the call is unknown and
            # may have been the whole reservation.
            tokens = record.input_tokens + record.output_tokens + record.held_tokens
            self._accounts[record.account] = _Account(
                record.day,
                record.account,
                Purse(record.calls, tokens),
                input_tokens=record.input_tokens + record.held_tokens,
                output_tokens=record.output_tokens,
                cost=record.cost,
            )
            if record.account != OWNER:
                self._peers.calls += record.calls
                self._peers.tokens += tokens

    def _limits_of(
        self, account: _Account, purse: Purse, part: Purse | None
    ) -> list[_Limit]:
        """Return all limits that apply to a call of `account`."""
        at = self._limits
        found = [
            _Limit(
                purse,
                "of this negotiation",
                "negotiation",
                at.negotiation_calls,
                at.negotiation_tokens,
            )
        ]
        if account.name == OWNER:
            shares = at.owner_calls, at.owner_tokens
            return [*found, _Limit(account.purse, "for our own calls", "day", *shares)]
        listed = account.name != UNLISTED
        whose = f"for {account.name}" if listed else "for unlisted peers"
        name = "peer" if listed else "unlisted"
        calls, tokens = (getattr(at, f"{name}_{one}") for one in ("calls", "tokens"))
        shares = at.day_calls - at.owner_calls, at.day_tokens - at.owner_tokens
        if part is not None:
            parts = (math.ceil(most * ADDRESS_PART) for most in (calls, tokens))
            found.append(_Limit(part, "for one address", name, *parts))
        return [
            *found,
            _Limit(account.purse, whose, name, calls, tokens),
            _Limit(self._peers, "for all peers together", "day", *shares),
        ]

    def _require(self, limit: _Limit, tokens: int) -> None:
        """Raise if a call of `tokens` does not fit into `limit`."""
        room = max(0, limit.tokens - limit.purse.tokens - limit.purse.held)
        if limit.purse.calls >= limit.calls:
            lack, allowed, left = "calls", limit.calls, ""
        elif tokens > room:
            lack, allowed = "tokens", limit.tokens
            left = f": the next call may take {tokens} tokens, {room} are left"
        else:
            return
        setting = f"{limit.name}_{lack}"
        until = "" if limit.name == "negotiation" else " until 00:00 UTC"
        share = ""
        if limit.name == "unlisted" and allowed != getattr(self._limits, setting):
            share = f", {allowed} of them {limit.whose}"
        if limit.name == "day":
            share = f", {allowed} of them {limit.whose} (budget.owner_share)"
        raise BudgetExhausted(
            f"the budget {limit.whose} is used up{until}{left}; "
            f"budget.{setting} = {getattr(self._limits, setting)}{share}"
        )


def utc_day(now: float) -> str:
    """Return the day of `now`, seconds since 1970, as `2026-01-31`."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
