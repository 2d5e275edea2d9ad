"""Finds names of capabilities in texts, without regard to case and separators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from negotiation.need import Capability

__all__ = ["MAX_REQUIREMENT", "WORD", "mentioned", "name_key", "names_in", "short_name"]

MAX_REQUIREMENT: Final = 16 * 1024
"Largest part of a requirement that is searched for names, in characters."

CJK: Final = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
WORD: Final = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
"A word; in scripts without blanks between words each character is one."

GAP: Final = re.compile(r"[\s_\-]*|[./]")
"Separator between the parts of one name."


def short_name(name: str) -> str:
    """Return the name of a capability without that of its attachment."""
    return name.rpartition(".")[2] or name


def name_key(name: str) -> str:
    """Return the letters and digits of a name, which are compared."""
    return "".join(word.casefold() for word in WORD.findall(name))


def names_in(text: str, names: Iterable[str]) -> set[str]:
    """Return those of `names` that occur in `text` as words, with any separators.

    Args:
        names: In the form of `name_key`.
    """
    return {name for _, _, name in _found(text, frozenset(names))}


def mentioned(text: str, capabilities: Sequence[Capability]) -> list[Capability]:
    """Return the capabilities that `text` names, in the order of their first mention.

    A name inside a longer one does not count, nor does one that several share.
    """
    names: dict[str, list[Capability]] = {}
    for one in capabilities:
        for name in {name_key(one.name), name_key(short_name(one.name))} - {""}:
            names.setdefault(name, []).append(one)
    places = sorted(
        _found(text[:MAX_REQUIREMENT], frozenset(names)),
        key=lambda place: (place[0], -place[1]),
    )
    ordered: dict[str, Capability] = {}
    end = 0
    for start, stop, name in places:
        if start < end:
            continue
        end = stop
        if len(names[name]) == 1:
            ordered.setdefault(names[name][0].name, names[name][0])
    return list(ordered.values())


def _found(text: str, wanted: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the beginning, the end and the key of each name found."""
    room = max(map(len, wanted), default=0)
    words = list(WORD.finditer(text))
    for number, first in enumerate(words):
        joined = ""
        end = first.start()
        for word in words[number:]:
            if joined and not GAP.fullmatch(text, end, word.start()):
                break
            joined += word[0].casefold()
            end = word.end()
            if len(joined) > room:
                break
            if joined in wanted:
                yield first.start(), end, joined
