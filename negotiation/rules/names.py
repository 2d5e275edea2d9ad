"""Names and words in requirements: what is named there, and what comes near to it.

Names are compared without case and separators. A name is found as a whole word, or in
scripts without blanks as a part of the text, and never inside a longer name. A letter
that only looks like another one, and one with another mark, is a different letter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from negotiation.late_patterns import late_pattern
from negotiation.need import Capability

MAX_REQUIREMENT: Final = 16 * 1024
"Largest part of a requirement that is searched for names, in characters."

CJK: Final = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
WORD: Final = late_pattern(rf"[{CJK}]|[^\W_{CJK}]+")
"A word; in scripts without blanks between words each character is one."

CJK_TEXT: Final = late_pattern(f"[{CJK}]")
"A character of a script without blanks between words."

GAP: Final = late_pattern(r"[\s_\-]*|[./]")
"Separator between the parts of one name."


def short_name(name: str) -> str:
    """Return the name of a capability without that of its attachment."""
    return name.rpartition(".")[2] or name


def name_key(name: str) -> str:
    """Return the letters, marks and digits of a name, which are compared."""
    return "".join(word for _, _, word in _words(name))


def _words(text: str) -> list[tuple[int, int, str]]:
    """Return the beginning, the end and the compared letters of each word.

    The vowel signs of many scripts are marks, which belong to the letter before them.
    """
    if text.isascii():
        return [(*one.span(), one[0].lower()) for one in WORD.finditer(text)]
    spans: list[tuple[int, int]] = []
    for one in WORD.finditer(text):
        start, end = one.span()
        if spans and spans[-1][1] == start and _is_mark(text[start - 1]):
            start = spans.pop()[0]
        while end < len(text) and _is_mark(text[end]):
            end += 1
        spans.append((start, end))
    return [(start, end, _compared(text[start:end])) for start, end in spans]


def _is_mark(letter: str) -> bool:
    # An invisible character counts as well, so that it makes another name.
    return unicodedata.category(letter) in {"Mn", "Mc", "Me", "Cf"}


def _compared(word: str) -> str:
    """Return a word in small letters; only the usual pair of a letter is the same."""
    letters = unicodedata.normalize("NFC", word)
    return "".join(
        small if letter in {small, small.upper()} else letter
        for letter, small in zip(letters, map(str.lower, letters), strict=True)
    )


def is_named(
    requirement: str, name: str, capabilities: Sequence[Capability], *, several: bool
) -> bool:
    """Return whether a requirement names a capability enough for its side effects.

    The whole requirement is its short or full name. A plan of several steps needs the
    name as a word of its own, and no sentence that may speak against it; an ending, a
    number or a version behind the name makes it another one.

    Args:
        name: Its full name.
        capabilities: All that the peer may call, because two may share a short name.
        several: True for a step of a plan that calls more than one capability.
    """
    text = requirement.strip()
    if [one.name for one in of_name(text, capabilities)] == [name]:
        return True
    meant = [one for one in capabilities if one.name == name]
    if not several or is_against(text, meant):
        return False
    found = mentioned(text, capabilities, after=LONGER_STRICTLY)
    return name in {one.name for one in found}


def unnamed_effects(
    requirement: str, called: Sequence[str], capabilities: Sequence[Capability]
) -> list[str]:
    """Return the calls with side effects that a requirement does not name enough.

    Args:
        called: Full names of the capabilities that a half calls.
        capabilities: All that the peer may call; what is not among them counts too.
    """
    harmless = {one.name for one in capabilities if one.read_only}
    several = len(set(called)) > 1
    return [
        name
        for name in dict.fromkeys(called)
        if name not in harmless
        and not is_named(requirement, name, capabilities, several=several)
    ]


def mentioned(
    text: str,
    capabilities: Sequence[Capability],
    *,
    after: re.Pattern[str] | None = None,
) -> list[Capability]:
    """Return the capabilities that `text` names, in the order of their first mention.

    A name inside a longer one does not count, nor does one that several share.

    Args:
        after: What makes a longer name behind one; None for the usual.
    """
    names: dict[str, list[Capability]] = {}
    for one in capabilities:
        for name in {name_key(one.name), name_key(short_name(one.name))} - {""}:
            names.setdefault(name, []).append(one)
    places = sorted(
        _found(text[:MAX_REQUIREMENT], frozenset(names), after or LONGER_AFTER),
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


def _found(
    text: str, wanted: frozenset[str], after: re.Pattern[str]
) -> Iterator[tuple[int, int, str]]:
    """Yield the beginning, the end and the key of each name found.

    A name that is a part of a longer one is not found: `git_reset` is not meant by
    `git_reset_hard`, nor `fetch` by `fetch.json`.
    """
    room = max(map(len, wanted), default=0)
    words = _words(text)
    for number, (start, _, _) in enumerate(words):
        joined = ""
        end = start
        for begin, stop, word in words[number:]:
            if joined and not GAP.fullmatch(text, end, begin):
                break
            joined += word
            end = stop
            if len(joined) > room:
                break
            if joined in wanted and not (
                LONGER_BEFORE.search(text, 0, start) or after.match(text, end)
            ):
                yield start, end, joined


LONGER_BEFORE: Final = late_pattern(rf"[^\W{CJK}][_./-]\Z|[_-]\Z")
LONGER_AFTER: Final = late_pattern(rf"[_./-][^\W{CJK}]|[_-]")
"Ends of a longer name before and after a part of it."

LONGER_STRICTLY: Final = late_pattern(
    rf"[_./-][^\W{CJK}]|[_-]|['’]\w|[\s@:#(]*(v|version)?[\s.]*\d", re.IGNORECASE
)
"Ends of a longer name where side effects follow: also a version, and `'s`."

NAME_LIKE: Final = late_pattern(r"[\w$@]+([./_-][\w$@]+)*")
"A requirement of this form, in one word, is a name and no sentence."

AGAINST: Final = late_pattern(
    r"\b(not|n't|never|no|none|nobody|nothing|neither|nor|without|except|besides|avoid"
    r"|stop|instead|rather|or|either|versus|vs|if|unless|don't|doesn't|won't|cannot"
    r"|can't|forbid|forbidden|prevent|skip|ignore)\b"
    r"|[\u4e0d\u522b\u52ff\u672a\u83ab\u65e0\u6ca1]|\u7981\u6b62|\u9664\u4e86"
    r"|\u800c\u975e|\u6216|\u8fd8\u662f|\u5982\u679c|\u907f\u514d|\u505c\u6b62",
    re.IGNORECASE,
)
"""Words by which a sentence may mean the opposite, an alternative or a condition.

Rules do not understand sentences, so one with such a word chooses nothing.
"""

SENTENCE_END: Final = late_pattern(r"(?<=[.!?])\s+|[\u3002\uff01\uff1f]")
"The place between two sentences."

OTHER_NAME: Final = late_pattern(r"[^\W_]_[^\W_]|[a-z][A-Z][a-z]|[^\W_]\(\)")
"A word that can only be a name: a sentence with one means that and nothing else."

CHANGES: Final = late_pattern(
    r"\b(add|append|apply|book|buy|cancel|change|clear|close|commit|create|delete|drop"
    r"|edit|forget|insert|install|kill|merge|modify|move|order|pay|publish|push|put"
    r"|remove|rename|replace|reset|restart|restore|revert|run|save|send|set|shut|start"
    r"|stop|store|switch|turn|undo|update|upload|write)\b"
    r"|[\u5220\u6539\u5199\u589e\u53d1\u79fb\u5b58]|\u521b\u5efa|\u6dfb\u52a0|\u8bbe\u7f6e|\u66f4\u65b0"
    r"|\u64a4\u9500|\u5173\u95ed|\u91cd\u542f|\u542f\u52a8|\u5408\u5e76|\u53d6\u6d88|\u4e0b\u5355|\u652f\u4ed8",
    re.IGNORECASE,
)
"Words of those who want something changed, which nothing that only reads can do."

_COMMON: Final = """
a an and any are as at be by can could do does for from get give got had has have how
i in into is it its list make me my new of on one out please return returns say set
show tell that the their them then there these this to tool use used uses using value
want was we what when where which who why will with would you your call run input
output object string number text data all given
"""
COMMON: Final = frozenset(_COMMON.split())
"Words that say nothing about which capability is meant."


def is_against(text: str, capabilities: Sequence[Capability]) -> bool:
    """Return whether a sentence that names one of the capabilities may be against it.

    What other sentences say, such as the meaning of an error code, is not about it.
    """
    return any(
        AGAINST.search(sentence) and mentioned(sentence, capabilities)
        for sentence in SENTENCE_END.split(text[:MAX_REQUIREMENT])
    )


def near_names(
    text: str, capabilities: Sequence[Capability], fitting: Sequence[Capability] = ()
) -> list[str]:
    """Return the names of capabilities near to `text`, the nearest first.

    Args:
        fitting: Those whose shape fits the request, which count as nearer.
    """
    wanted = content(text[:MAX_REQUIREMENT])
    shapes = {one.name for one in fitting}
    key = name_key(text[:200])
    ranked = []
    for one in capabilities:
        named = content(short_name(one.name))
        told = content(one.description[:1000])
        score = 3.0 * shared(wanted, named) + shared(wanted, told)
        score += (
            2.0 * SequenceMatcher(None, key, name_key(short_name(one.name))).ratio()
        )
        near = bool(shared(wanted, named | told)) or score > 1.0
        if near or one.name in shapes:
            ranked.append((-(score + (one.name in shapes)), one.name))
    return [name for _, name in sorted(ranked)]


def content(text: str) -> frozenset[str]:
    """Return the words of a text that say what it is about, each in one form."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    words = {word for _, _, word in _words(spaced)}
    return frozenset(_stem(word) for word in words - COMMON if not word.isdecimal())


def _stem(word: str) -> str:
    """Return a word without the usual endings of English, so that forms meet."""
    for ending in ("ies", "ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def shared(one: frozenset[str], other: frozenset[str]) -> int:
    return len(one & other)


def of_name(text: str, capabilities: Sequence[Capability]) -> list[Capability]:
    """Return the capabilities whose name `text` is, in any spelling."""
    exact = [one for one in capabilities if one.name == text]
    if exact:
        return exact[:1]
    key = name_key(text)
    if not key or len(text) > 4 * len(key):
        return []
    full = [one for one in capabilities if name_key(one.name) == key]
    return full or [
        one for one in capabilities if name_key(short_name(one.name)) == key
    ]
