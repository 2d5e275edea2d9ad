"""The ways in which a value is made, in words for a prompt, as far as they apply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from negotiation.llm.links.conversions import MAX_EXPRESSION, How
from negotiation.llm.links.spots import Spot, without_null
from negotiation.schema.values import types_of

WORDS: Final[dict[How, str]] = {
    How.COPY: "the value as it is",
    How.CONSTANT: '`from` empty; `args` one JSON value, such as 3, true or "km"',
    How.SCALE: "number times factor plus offset; `args` both, decimals or fractions: "
    '["9/5", "32"]',
    How.TEXT: "a number or truth value as a text",
    How.NUMBER: "a text read as a number",
    How.DATE: "`args` the form it has and the form it gets, each date, date-time, "
    "unix-seconds, unix-milliseconds or a pattern such as %d.%m.%Y",
    How.VALUES: "one listed value for another; `args` alternate: given, becomes, "
    "given, becomes; one more at the end stands for all others",
    How.JOIN: "several texts in one; `args` the text between them",
    How.SPLIT: "a part of a text; `args` the separator and the number of the part, "
    "from 0, or from the end as -1",
    How.FIRST: "the first item of a list",
    How.LIST: "one value as a list of one",
    How.COUNT: "how many items a list has",
    How.PYTHON: "only if nothing above will do: `args` one expression of a, b, c, the "
    f"values in `from`, in one line of at most {MAX_EXPRESSION} characters. It has "
    "json, math, re, struct, base64, html, datetime, timedelta, timezone, Decimal, "
    "fromstring (for XML) and no import, and raises ValueError for a text that it "
    "cannot read. For texts in a form of their own (a date, a code, XML) `args` goes "
    "on with an example of each value in `from`",
}

NUMBERS: Final = frozenset({"integer", "number"})
TEXTS: Final = frozenset({"string"})
LISTS: Final = frozenset({"array"})

APPLIES: Final[dict[How, tuple[frozenset[str], frozenset[str]]]] = {
    How.SCALE: (NUMBERS, NUMBERS),
    How.TEXT: (NUMBERS | {"boolean"}, TEXTS),
    How.NUMBER: (TEXTS, NUMBERS),
    How.DATE: (TEXTS | NUMBERS, TEXTS),
    How.VALUES: (TEXTS | NUMBERS | {"boolean"}, TEXTS | NUMBERS | {"boolean"}),
    How.JOIN: (TEXTS, TEXTS),
    How.SPLIT: (TEXTS, TEXTS),
    How.FIRST: (LISTS, NUMBERS | TEXTS | {"boolean", "object"}),
    How.LIST: (NUMBERS | TEXTS | {"boolean", "object"}, LISTS),
    How.COUNT: (LISTS, NUMBERS),
}
"Types of a source and of a target, of which one each has to be there."


def ways_for(sources: Iterable[Spot], targets: Iterable[Spot]) -> str:
    """Return the ways from some of `sources` to some of `targets`, a line for each."""
    given, wanted = _types(sources), _types(targets)
    lines = []
    for how, words in WORDS.items():
        before, after = APPLIES.get(how, (given, wanted))
        if how in APPLIES and not (given & before and wanted & after):
            continue
        lines.append(f"{how}: {words}")
    return "\n".join(lines)


def _types(spots: Iterable[Spot]) -> frozenset[str]:
    return frozenset().union(*(types_of(without_null(one.schema)) for one in spots))
