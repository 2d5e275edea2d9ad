# kind: decimals and money
"""Prices with taxes and discounts; all arithmetic in Decimal, rounding half even."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from functools import total_ordering
from typing import ClassVar


class CurrencyMismatch(TypeError):
    pass


@total_ordering
@dataclass(frozen=True)
class Money:
    """An amount in a currency."""

    amount: Decimal
    currency: str

    EXPONENTS: ClassVar[dict[str, int]] = {"EUR": 2, "JPY": 0, "BHD": 3}

    @classmethod
    def parse(cls, text: str) -> Money:
        amount, _, currency = text.strip().partition(" ")
        return cls(Decimal(amount), currency or "EUR")

    @property
    def quantum(self) -> Decimal:
        return Decimal(1).scaleb(-self.EXPONENTS[self.currency])

    def _check(self, other: Money) -> None:
        if other.currency != self.currency:
            raise CurrencyMismatch(f"{self.currency} and {other.currency}")

    def __add__(self, other: Money) -> Money:
        self._check(other)
        return Money(self.amount + other.amount, self.currency)

    def __mul__(self, factor: int | Decimal) -> Money:
        return Money(self.amount * factor, self.currency)

    __rmul__ = __mul__

    def __lt__(self, other: Money) -> bool:
        self._check(other)
        return self.amount < other.amount

    def rounded(self, rounding: str = ROUND_HALF_EVEN) -> Money:
        return Money(self.amount.quantize(self.quantum, rounding=rounding), self.currency)

    def __str__(self) -> str:
        return f"{self.amount:,f} {self.currency}"


def invoice_total(lines: list[dict], tax_percent: str) -> dict[str, str]:
    net = Money(Decimal(0), lines[0]["price"].split()[-1])
    for line in lines:
        net += line["quantity"] * Money.parse(line["price"])
    tax = (net * (Decimal(tax_percent) / 100)).rounded(ROUND_HALF_UP)
    return {"net": str(net.rounded()), "tax": str(tax), "gross": str((net + tax).rounded())}


def cheapest(prices: list[str]) -> str:
    return str(min(map(Money.parse, prices)))


def convert(amount: str, rate: str) -> str:
    with localcontext() as ctx:
        ctx.prec = 12
        ctx.rounding = ROUND_HALF_UP
        try:
            return str(+(Decimal(amount) * Decimal(rate)))
        except decimal.InvalidOperation as exc:
            raise ValueError(f"not a number: {amount!r}") from exc
