"""A bank."""

from typing import TypedDict


class Balance(TypedDict):
    balance_cents: int
    currency: str


class Refused(Exception):
    """Says no, with the HTTP status code that fits."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def get_balance(account: str) -> Balance:
    """Balance of an account in cents.

    404 when there is no such account, 409 when it is closed.
    """
    if account == "closed":
        raise Refused(409, "the account is closed")
    if not account.isdecimal():
        raise Refused(404, "there is no such account")
    return {"balance_cents": int(account) * 100, "currency": "EUR"}
