"""JSON numbers that a float would round, kept with all their digits.

Most decimals come back from a float as they were written, and stay plain floats. One
such as 12345678901234567.89 does not: it becomes an `ExactFloat`, which calculates as
its nearest float and is compared and written by its text.

This text stands in `negotiation` and in `sandbox`, since neither may import the other;
a test compares the two. Each knows the numbers of the other by their `repr`.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal, DecimalException
from typing import Any, Final

NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"A number of RFC 8259."

SURE_DIGITS: Final = 15
"Characters up to which a decimal without an exponent always comes back from a float."

TOO_LARGE: Final = "a number too large for a float"
PLAIN: Final = frozenset({str, int, float, bool, type(None)})


class ExactFloat(float):
    """A number of JSON with more digits than a float can hold."""

    __slots__ = ("_text",)

    _text: str

    def __new__(cls, text: str) -> ExactFloat:
        """Keep `text`, a number of JSON; ValueError for anything else."""
        if NUMBER.fullmatch(text) is None:
            raise ValueError("not a number of JSON")
        made = super().__new__(cls, text)
        made._text = text
        return made

    def __repr__(self) -> str:
        return self._text

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactFloat, (self._text,)

    def __copy__(self) -> ExactFloat:
        return self

    def __deepcopy__(self, memo: object) -> ExactFloat:
        return self

    def is_integer(self) -> bool:
        """Return False: `read_number` makes an integer of a whole number."""
        return False

    def __int__(self) -> int:
        return int(Decimal(self._text))

    def __hash__(self) -> int:
        return hash(Decimal(self._text))

    def __eq__(self, other: object) -> bool:
        value = _decimal(other)
        return value is not None and Decimal(self._text) == value

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: float) -> bool:
        value = _decimal(other)
        if value is None:
            return super().__lt__(other)
        return Decimal(self._text) < value

    def __le__(self, other: float) -> bool:
        value = _decimal(other)
        if value is None:
            return super().__le__(other)
        return Decimal(self._text) <= value

    def __gt__(self, other: float) -> bool:
        value = _decimal(other)
        if value is None:
            return super().__gt__(other)
        return Decimal(self._text) > value

    def __ge__(self, other: float) -> bool:
        value = _decimal(other)
        if value is None:
            return super().__ge__(other)
        return Decimal(self._text) >= value


class ExactEncoder(json.JSONEncoder):
    """Writes JSON with every digit of an `ExactFloat`."""

    def iterencode(self, o: Any, _one_shot: bool = False) -> Any:
        """Return the text in pieces; the fast encoder writes what has no such number.

        The encoder in C takes any float for its rounded value, and has no hook.
        """
        if not self._holds_exact(o):
            return super().iterencode(o, _one_shot)
        module: Any = json.encoder
        text = module.encode_basestring
        write = module._make_iterencode(
            {} if self.check_circular else None,
            self.default,
            module.encode_basestring_ascii if self.ensure_ascii else text,
            self.indent,
            self._number,
            self.key_separator,
            self.item_separator,
            self.sort_keys,
            self.skipkeys,
            _one_shot,
        )
        return write(o, 0)

    def _holds_exact(self, value: Any) -> bool:
        try:
            return self._holds(value)
        except (RecursionError, TypeError, ValueError):
            # The encoder itself says best what is wrong with such a value.
            return False

    def _holds(self, value: Any) -> bool:
        kind = type(value)
        if kind is dict or isinstance(value, dict):
            value = value.values()
        elif kind is not list and not isinstance(value, list | tuple):
            return self._is_exact(value)
        for one in value:  # noqa: SIM110 - a generator costs more than what it looks at
            if type(one) not in PLAIN and self._holds(one):
                return True
        return False

    def _is_exact(self, value: Any) -> bool:
        if isinstance(value, float):
            return number_text(value) is not None
        if isinstance(value, str | int) or value is None:
            return False
        return self._holds(self.default(value))

    def _number(self, value: float) -> str:
        text = number_text(value)
        if text is not None:
            return text
        if not self.allow_nan and not math.isfinite(value):
            raise ValueError("a number that is not finite is not JSON")
        return json.dumps(float(value))


def write_json(value: Any, **options: Any) -> str:
    """Return `json.dumps(value, **options)`, with every digit of exact numbers.

    Raises:
        TypeError, ValueError, RecursionError: As `json.dumps` does.
    """
    return json.dumps(value, cls=ExactEncoder, **options)


def read_number(text: str) -> int | float:
    """Return a number of JSON that has a fraction or an exponent, without rounding it.

    A whole number that a float would round becomes an integer of the same value.

    Raises:
        ValueError: It is too large for a float, or too small for a decimal.
    """
    value = float(text)
    if len(text) <= SURE_DIGITS and text.isascii() and "e" not in text.lower():
        return value
    if math.isinf(value):
        raise ValueError(TOO_LARGE)
    if repr(value) == text:
        return value
    try:
        exact = Decimal(text)
        if exact == Decimal(repr(value)):
            return value
        whole = exact.to_integral_value()
        return int(whole) if whole == exact else ExactFloat(text)
    except DecimalException:
        raise ValueError("a number with an exponent out of range") from None


def number_text(value: float) -> str | None:
    """Return the text of an exact number, of either package; None for other floats."""
    if type(value) is float:
        return None
    text = repr(value)
    return text if NUMBER.fullmatch(text) else None


def _decimal(value: object) -> Decimal | None:
    """Return what a number says, for comparisons; None for NaN and for others."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return Decimal(number_text(value) or float.__repr__(value))
    return Decimal(value) if isinstance(value, int) else None
