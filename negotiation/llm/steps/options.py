"""Proposals with several options: splits them, and chooses one option (ANP-4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from negotiation.document.reader import read_document
from negotiation.document.shape import MAX_DOCUMENT_SIZE
from negotiation.errors import DocumentError
from negotiation.llm.asking.forms import TEXT, choice, record
from negotiation.llm.asking.prompts import ask_with, fenced, one_line
from negotiation.llm.asking.questions import Question
from negotiation.mind import Offer
from negotiation.rules.choice import NoChoice, choose
from negotiation.rules.fit import fit_provider
from negotiation.schema.reasons import Mismatch

__all__ = ["fitting_option", "option_question", "split_options"]

MAX_OPTIONS: Final = 6
"Largest number of options that are considered."

HEADING: Final = re.compile(
    r"^(#{1,4})[ \t]+(?:option|variant|alternative|选项|方案).{0,90}$",
    re.IGNORECASE | re.MULTILINE,
)
ANY_HEADING: Final = re.compile(r"^(#{1,4})[ \t]+\S", re.MULTILINE)
FENCED: Final = re.compile(
    r"^(`{3,}|~{3,}).*?^\1[`~]*[ \t]*$", re.DOTALL | re.MULTILINE
)


def split_options(text: str) -> list[str]:
    """Return each option as a document of its own, in order; none if there are none.

    Text before the first option belongs to all of them, and so does a section after the
    last one at the same level.
    """
    if len(text) > MAX_DOCUMENT_SIZE:
        return []
    # Blocks are blanked, so that headings inside them are ignored and positions stay.
    bare = FENCED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found = list(HEADING.finditer(bare))
    if len(found) < 2 or len({len(one[1]) for one in found}) != 1:
        return []
    level = len(found[0][1])
    end = next(
        (
            one.start()
            for one in ANY_HEADING.finditer(bare, found[-1].end())
            if len(one[1]) <= level
        ),
        len(text),
    )
    common, rest = text[: found[0].start()], text[end:]
    starts = [one.start() for one in found]
    options = []
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        # Without the heading, since the text would still speak of options.
        _, _, body = text[start:stop].partition("\n")
        option = f"{common.rstrip()}\n\n{body.strip()}\n\n{rest.strip()}".strip() + "\n"
        try:
            read_document(option)
        except DocumentError:
            continue
        options.append(option)
    return options[:MAX_OPTIONS] if len(options) > 1 else []


def fitting_option(options: Sequence[str], offer: Offer) -> int | None:
    """Return the number of the first option that schemas alone accept, from 1."""
    for number, text in enumerate(options, start=1):
        document = read_document(text)
        chosen = choose(document, offer.capabilities, offer.hints)
        if isinstance(chosen, NoChoice):
            continue
        if not isinstance(fit_provider(document, chosen), Mismatch):
            return number
    return None


def option_question(options: Sequence[str], offer: Offer) -> Question:
    """Return the question for the option that our capabilities serve best."""
    shown = "\n\n".join(
        f"Option {number}:\n{fenced(text, limit=8_000)}"
        for number, text in enumerate(options, start=1)
    )
    lines = [
        f"{one.name}: {one_line(one.description, 400)}"
        for one in sorted(offer.capabilities, key=lambda one: one.name)
    ]
    numbers = [str(number) for number in range(len(options) + 1)]
    return ask_with(
        "option",
        {
            "options": shown,
            "capabilities": fenced("\n".join(lines), limit=32_000),
        },
        schema=record(option=choice(numbers), missing=TEXT),
        max_tokens=300,
    )
