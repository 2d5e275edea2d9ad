# kind: fractions
"""Recipe scaling with exact fractions."""

from fractions import Fraction
from typing import NamedTuple


class Ingredient(NamedTuple):
    amount: Fraction
    unit: str
    name: str

    def scaled(self, factor: Fraction) -> "Ingredient":
        return self._replace(amount=self.amount * factor)

    def __str__(self) -> str:
        return " ".join(part for part in (_mixed(self.amount), self.unit, self.name) if part)


UNITS = {"cup", "cups", "tsp", "tbsp", "g"}


def _mixed(value: Fraction) -> str:
    whole, rest = divmod(value, 1)
    if not rest:
        return str(whole)
    fraction = f"{rest.numerator}/{rest.denominator}"
    return f"{whole} {fraction}" if whole else fraction


def _parse(line: str) -> Ingredient:
    words = line.split()
    amount = Fraction(0)
    while words and words[0][0].isdigit():
        try:
            amount += Fraction(words[0])
        except ZeroDivisionError as exc:
            raise ValueError(f"bad amount in {line!r}") from exc
        del words[0]
    unit = words.pop(0) if words and words[0] in UNITS else ""
    return Ingredient(amount or Fraction(1), unit, " ".join(words))


def scale(lines: list[str], servings: int, wanted: int) -> list[str]:
    factor = Fraction(wanted, servings)
    return [str(_parse(line).scaled(factor)) for line in lines]


def approximate(value: float, limit: int = 8) -> str:
    return _mixed(Fraction(value).limit_denominator(limit))


def total(lines: list[str]) -> dict[str, str]:
    sums: dict[str, Fraction] = {}
    for amount, unit, _name in map(_parse, lines):
        sums[unit] = sums.get(unit, 0) + amount
    return {unit or "pieces": _mixed(amount) for unit, amount in sums.items()}
