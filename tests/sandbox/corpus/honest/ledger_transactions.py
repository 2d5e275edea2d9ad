# kind: with-blocks, rollback, operator overloading, class attributes
"""A ledger with transactions that roll back."""

from __future__ import annotations

import logging
from copy import deepcopy
from decimal import ROUND_DOWN, Decimal
from typing import Any, Iterator

logger = logging.getLogger(__name__)
CENT = Decimal("0.01")


class LedgerError(Exception):
    """Base class."""


class InsufficientFunds(LedgerError):
    def __init__(self, account: str, missing: Decimal):
        self.account = account
        self.missing = missing
        super().__init__(f"{account} lacks {missing}")


class Account:
    _next_number = 1000

    def __init__(self, owner: str, balance: Decimal | str = "0", *, overdraft: Decimal | str = "0") -> None:
        self.owner = owner
        self.overdraft = Decimal(overdraft)
        self.__balance = Decimal(balance)
        self.number = Account._next_number
        Account._next_number += 1

    @property
    def balance(self) -> Decimal:
        return self.__balance

    @balance.setter
    def balance(self, value: Decimal) -> None:
        if value < -self.overdraft:
            raise InsufficientFunds(self.owner, -(value + self.overdraft))
        self.__balance = value.quantize(CENT, rounding=ROUND_DOWN)

    def __iadd__(self, amount: Decimal) -> Account:
        self.balance += amount
        return self

    def __isub__(self, amount: Decimal) -> Account:
        self.balance -= amount
        return self


class Ledger:
    def __init__(self) -> None:
        self._accounts: dict[str, Account] = {}
        self._saved: list[dict[str, Account]] = []
        self.rollbacks = 0

    def open(self, owner: str, **options: Any) -> Account:
        account = self._accounts[owner] = Account(owner, **options)
        return account

    def __getitem__(self, owner: str) -> Account:
        try:
            return self._accounts[owner]
        except KeyError:
            raise LedgerError(f"no account of {owner}") from None

    def __setitem__(self, owner: str, account: Account) -> None:
        self._accounts[owner] = account

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for owner, account in sorted(self._accounts.items()):
            yield owner, str(account.balance)

    def __enter__(self) -> Ledger:
        self._saved.append(deepcopy(self._accounts))
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> bool:
        saved = self._saved.pop()
        if error is None:
            return False
        self._accounts = saved
        self.rollbacks += 1
        logger.warning("rolled back: %s", error)
        return isinstance(error, InsufficientFunds)

    def transfer(self, source: str, target: str, amount: Decimal) -> None:
        self[target] += amount
        self[source] -= amount


def run(balances: dict[str, str], transfers: list[list]) -> dict[str, Any]:
    ledger = Ledger()
    for owner, balance in balances.items():
        ledger.open(owner, balance=balance, overdraft="10")
    for source, target, *amounts in transfers:
        with ledger:
            for amount in amounts:
                ledger.transfer(source, target, Decimal(amount))
    return {"balances": dict(ledger), "rollbacks": ledger.rollbacks}


def numbers_grow() -> list[bool]:
    a, b = Account("a"), Account("b")
    return [a.number < b.number, a.number >= 1000]
