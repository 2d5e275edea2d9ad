# kind: roman numerals and other number notations
"""Number notations for chapter and clause references."""

from functools import reduce
from operator import add, mul

_ROMAN = list(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        "M CM D CD C XC L XL X IX V IV I".split(),
    )
)
_VALUES = {symbol: value for value, symbol in _ROMAN if len(symbol) == 1}
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def to_roman(number: int) -> str:
    if not 1 <= number < 4000:
        raise ValueError("roman numerals go from 1 to 3999")
    result = ""
    for value, symbol in _ROMAN:
        count, number = divmod(number, value)
        result += symbol * count
    return result


def from_roman(text: str) -> int:
    values = [_VALUES[ch] for ch in text.upper()]
    total = 0
    for current, following in zip(values, [*values[1:], 0]):
        total += -current if current < following else current
    if to_roman(total) != text.upper():
        raise ValueError(f"{text} is not canonical, did you mean {to_roman(total)}?")
    return total


def in_base(number: int, base: int) -> str:
    sign, number = ("-", -number) if number < 0 else ("", number)
    digits = []
    while number or not digits:
        number, digit = divmod(number, base)
        digits.append(_DIGITS[digit])
    return sign + "".join(reversed(digits))


def clause_key(reference: str) -> list[int]:
    """Sort key of 'IV.2.b'."""
    key = []
    for part in reference.split("."):
        if part.isdecimal():
            key.append(int(part))
        elif part.islower():
            key.append(ord(part) - ord("a") + 1)
        else:
            key.append(from_roman(part))
    return key


def sort_clauses(references: list[str]) -> list[str]:
    return sorted(references, key=clause_key)


def digits_of(number: int) -> dict[str, int]:
    digits = [int(d) for d in str(abs(number))]
    return {"sum": reduce(add, digits), "product": reduce(mul, digits, 1)}
