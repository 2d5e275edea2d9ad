# kind: unicode normalization and character properties
"""Matching of names written by people: accents, width, case and spaces."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from functools import lru_cache

_SPECIAL = str.maketrans({"ß": "ss", "æ": "ae", "ø": "o", "ł": "l"})


@lru_cache(maxsize=256)
def fold(text: str) -> str:
    """Return a form in which names that look alike are equal."""
    decomposed = unicodedata.normalize("NFKD", text.casefold().translate(_SPECIAL))
    kept = (ch for ch in decomposed if not unicodedata.combining(ch))
    return " ".join("".join(kept).split())


def group_names(names: list[str]) -> list[list[str]]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[fold(name)].append(name)
    return [groups[key] for key in sorted(groups)]


def check(text: str) -> list[str]:
    problems = []
    for position, ch in enumerate(text):
        category = unicodedata.category(ch)
        if category.startswith("C"):
            problems.append(f"{position}: control U+{ord(ch):04X}")
        elif category == "Zs" and ch != " ":
            problems.append(f"{position}: {unicodedata.name(ch, 'unnamed').lower()}")
    if unicodedata.normalize("NFC", text) != text:
        problems.append("not NFC")
    return problems


def scripts(text: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for ch in text:
        if ch.isalpha():
            script = unicodedata.name(ch).split()[0]
            counts[script] = counts.get(script, 0) + 1
    return counts


def numeric_value(text: str) -> float:
    return sum(unicodedata.numeric(ch) for ch in text)
