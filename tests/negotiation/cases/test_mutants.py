"""A half broken in one line makes an agreed case fail (DESIGN.md, Test cases).

Every half is changed in one place at a time: wrong names and codes, swapped or missing
fields, dropped conversions, constant results, turned conditions. What no case can tell
has to be found by the acceptance of halves, which tries hostile bytes and the worked
examples, or be in `HARMLESS` with the reason.
"""

from __future__ import annotations

import re
from typing import Final

import pytest

from negotiation.mind import HalfSource, Side
from negotiation.trial.acceptance import check_half
from tests.clauses import clause
from tests.negotiation.cases.mutants import mutants
from tests.negotiation.cases.pairs import PAIRS
from tests.negotiation.cases.table import VALIDATOR, Table, agree
from tests.negotiation.inprocess import InProcessHalf

HARMLESS: Final[dict[str, str]] = {
    # Words and guards.
    r"(bare|text|no text): raise ValueError": "words of a refusal, which stay inside",
    r'(bare|text): raise CapabilityError\("400"': (
        "words of a refusal of data that have no request, so no case"
    ),
    r"never: if not isinstance\(value, kind\)": (
        "a guard against hostile bytes; acceptance tries what has a message id"
    ),
    r"never: if name (not )?in \(": "refuses data that have no request, so no case",
    r"text: if name in \('id',\)": "the same refusal, for one name",
    # Fallbacks for answers that no provider half of ours gives.
    r"never: if not isinstance\(value, dict\) or name not in value": (
        "agreed answers have every field that is looked for"
    ),
    r"and/or: if not isinstance\(value, dict\) or name not in value": "the same",
    r'(nothing|text): return ""': "what is found when such a field is not there",
    r"(never|always|no not): if not isinstance\(code, \(int, str\)\)": (
        "agreed errors have a code of one of these types, or the document has none"
    ),
    r'(constant|dropped|text): code = "error"': "the code of errors that have none",
    r'text: text = str\(find.* or "no reason given"\)': "words of errors without any",
    r"number: good = response.* in \(200, 0,\)": "a second good code that nobody sends",
    # Changes that change nothing.
    r"no text made: (text|code) = str\(error\.code\)": "the code is a text already",
    r"no text made: 'message': str\(error\.message\)": "the message is a text already",
    r"no text made: text = str\(find": "the words are a text already",
    r'text: if .*\[0\] in "45"': '"45x" takes no other first character than "45"',
    r"text: values = \{name: request\[name\] .* 'type',\)\}": (
        "the conversion behind it takes the fields of the capability alone"
    ),
    r"(constant|dropped): message_id = None": "nobody reads it without a message id",
}
"What may be changed without a case failing, and why."

WORDS_ONLY: Final = (
    r".*(status_of|str\(error\.code\)|return 500|int\(text\)|len\(text\))"
)
"Where a document has no code, what becomes of it is not on the wire."

BY_HAND: Final[dict[str, str]] = {
    r"never: if character < |and/or: if character < |.*: return \"\\ufffd\"": (
        "control characters, which no sample has"
    ),
    r"no text: if character < ": "the same",
    r"text: if character in '&<>": "text has no such run of characters",
    r"(never|and/or|number|bare): if (not \(code\.isascii|len\(|root\.tag|value is)": (
        "guards against hostile bytes that the hostile bytes of acceptance do not hit"
    ),
    r"never: if (NUMBER\.fullmatch|letter not in|end > |self\.place != )": "the same",
    r"text: \"price\": number_of\(price\[0\]\.text or \"\"\)": "of an empty price",
    r"bare: text = '<product": "message ids of ours have no character to escape",
    r'text: UNITS = "CFK"': "one unit more, which no sample has",
    r"swapped: values = \{\"messageId\": reader\.text\(1\), \"sensor\": reader\.text": (
        "both fields are read alike, in the order of the text"
    ),
    r"(and/or|number): code = int\(text\) if len\(text\) == 3": (
        "codes of other lengths become 500 in the next line"
    ),
    r"number: if not 400 <= code <= 599": "one code at the edge",
    r"number: return response\(message_id, code, text_field\(error\.message\[:1000": (
        "one character at the edge"
    ),
}
"The same for the two halves that were written by hand."


def harmless(name: str, what: str) -> str | None:
    """Return the pattern that covers a change, or None."""
    patterns = [*HARMLESS]
    if name in ("XML", "packed binary"):
        patterns += BY_HAND
    if name == "a status in words":
        patterns.append(WORDS_ONLY)
    return next((one for one in patterns if re.match(one, what)), None)


async def fails(table: Table, role: str, source: str) -> bool:
    """Return whether a case fails with `source` as one of the halves."""
    run = table.provider_report if role == "provider" else table.requester_report
    try:
        report = await run(source)
    except (NameError, KeyError, AttributeError, TypeError):
        # Raised outside of a generator; a worker says the same as a `HalfError`.
        return True
    return not report.passed


async def is_refused(table: Table, role: str, source: str) -> bool:
    """Return whether the half would not have become active at all."""
    pair = table.pair
    provides = role == "provider"
    side: Side = pair.offer if provides else pair.demand
    names = (pair.capability.name,) if provides else ()
    found = await check_half(
        HalfSource(source, "model", names),
        pair.document,
        side,
        runner=InProcessHalf(source),
        validator=VALIDATOR,
    )
    return bool(found.problems)


@clause("ANP-53")
@pytest.mark.parametrize("role", ["provider", "requester"])
@pytest.mark.parametrize("name", PAIRS)
async def test_a_half_broken_in_one_line_fails_a_case(name: str, role: str) -> None:
    table = await agree(PAIRS[name])
    source = table.pair.provider if role == "provider" else table.pair.requester
    assert not await fails(table, role, source)
    tried, found, survivors = 0, 0, []
    for what, broken in mutants(source):
        tried += 1
        if await fails(table, role, broken):
            found += 1
        elif harmless(name, what) is None and not await is_refused(table, role, broken):
            survivors.append(what)
    assert survivors == []
    assert tried > 50
    # The list of what is harmless is no way around the cases.
    assert found > tried * 0.6


async def test_fields_of_one_type_that_change_places_fail_a_case() -> None:
    table = await agree(PAIRS["conversions inside"])
    for names in (
        ("from_city", "to_city"),
        ("legFrom", "legTo"),
        ("isCheap", "isQuick"),
        ("totalKm", "legKm"),
    ):
        source = table.pair.provider
        one, two = (f"'{name}': " for name in names)
        swapped = source.replace(one, "\0").replace(two, one).replace("\0", two)
        assert swapped != source
        assert await fails(table, "provider", swapped), names


async def test_a_provider_that_answers_the_same_to_everything_fails_a_case() -> None:
    table = await agree(PAIRS["the task's own terms"])
    first = table.cases[0].response
    constant = (
        "def handle_request(data):\n"
        "    yield call('shop.order', {'sku': 'P1', 'note': 'soon', 'count': 2})\n"
        f"    return {first!r}\n"
    )
    report = await table.provider_report(constant)
    assert [result.passed for result in report.results].count(True) <= 1
    assert report.problems
