# kind: Luhn, IBAN, EAN and ISBN checks
"""Check digits of the identifiers in payment and catalogue messages."""

import re
import string

_IBAN_LENGTHS = {"DE": 22, "GB": 22, "FR": 27, "NO": 15}
_LETTERS = {letter: str(number) for number, letter in enumerate(string.ascii_uppercase, 10)}


class InvalidIdentifier(ValueError):
    def __init__(self, kind: str, value: str, reason: str) -> None:
        self.kind, self.value, self.reason = kind, value, reason
        super().__init__(f"{kind} {value}: {reason}")


def luhn_valid(number: str) -> bool:
    digits = [int(ch) for ch in number if ch.isdigit()]
    odd, even = digits[-1::-2], digits[-2::-2]
    total = sum(odd) + sum(sum(divmod(2 * d, 10)) for d in even)
    return len(digits) > 1 and total % 10 == 0


def luhn_digit(number: str) -> int:
    total = 0
    for index, ch in enumerate(reversed(number)):
        digit = int(ch)
        if index % 2 == 0:
            digit *= 2
            if digit > 9:
                digit -= 9
        total += digit
    return -total % 10


def check_iban(text: str) -> str:
    iban = re.sub(r"\s+", "", text).upper()
    country, digits = iban[:2], iban[2:4]
    if country not in _IBAN_LENGTHS:
        raise InvalidIdentifier("IBAN", iban, f"unknown country {country}")
    if len(iban) != _IBAN_LENGTHS[country] or not digits.isdigit():
        raise InvalidIdentifier("IBAN", iban, "wrong length")
    moved = "".join(_LETTERS.get(ch, ch) for ch in iban[4:] + iban[:4])
    if int(moved) % 97 != 1:
        raise InvalidIdentifier("IBAN", iban, "checksum")
    return " ".join(iban[i : i + 4] for i in range(0, len(iban), 4))


def isbn10_to_13(isbn: str) -> str:
    core = isbn.replace("-", "")
    check = sum((10 - i) * (10 if ch == "X" else int(ch)) for i, ch in enumerate(core))
    if check % 11:
        raise InvalidIdentifier("ISBN", isbn, "checksum")
    body = "978" + core[:-1]
    weighted = sum(int(ch) * (3 if i % 2 else 1) for i, ch in enumerate(body))
    return f"{body}{(10 - weighted % 10) % 10}"


def mask(card: str) -> str:
    digits = "".join(filter(str.isdigit, card))
    return "*" * (len(digits) - 4) + digits[-4:]
