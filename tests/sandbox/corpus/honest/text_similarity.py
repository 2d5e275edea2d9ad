# kind: edit distance, n-grams and ranking
"""Finds the catalogue entry that a person probably meant."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from math import sqrt
from typing import Callable


def levenshtein(a: str, b: str) -> int:
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y)))
        previous = current
    return previous[-1]


def common_subsequence(a: str, b: str) -> str:
    @cache
    def longest(i: int, j: int) -> str:
        if i == len(a) or j == len(b):
            return ""
        if a[i] == b[j]:
            return a[i] + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1), key=len)

    return longest(0, 0)


def _ngrams(text: str, size: int = 3) -> Counter[str]:
    padded = f"  {re.sub('[^a-z0-9]+', ' ', text.lower()).strip()} "
    return Counter(padded[i : i + size] for i in range(len(padded) - size + 1))


def cosine(a: str, b: str) -> float:
    left, right = _ngrams(a), _ngrams(b)
    dot = sum(count * right[gram] for gram, count in left.items())
    norm = sqrt(sum(c * c for c in left.values())) * sqrt(sum(c * c for c in right.values()))
    return dot / norm if norm else 0.0


_MEASURES: dict[str, Callable[[str, str], float]] = {
    "cosine": cosine,
    "edit": lambda a, b: 1 - levenshtein(a, b) / max(len(a), len(b), 1),
}


def best_matches(query: str, entries: list[str], measure: str = "cosine", limit: int = 3) -> list[dict]:
    try:
        similarity = _MEASURES[measure]
    except KeyError:
        choices = ", ".join(sorted(_MEASURES))
        raise ValueError(f"unknown measure {measure!r}; choose from {choices}") from None
    scored = ((similarity(query, entry), entry) for entry in entries)
    ranked = sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:limit]
    return [{"entry": entry, "score": round(score, 3)} for score, entry in ranked if score > 0]


def soundex(name: str) -> str:
    codes = {c: str(n) for n, group in enumerate(("bfpv", "cgjkqsxz", "dt", "l", "mn", "r"), 1) for c in group}
    first, *rest = name.lower()
    result, last = first.upper(), codes.get(first)
    for ch in rest:
        code = codes.get(ch)
        if code and code != last:
            result += code
        if ch not in "hw":
            last = code
    return result[:4].ljust(4, "0")
