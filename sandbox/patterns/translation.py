"""Patterns of JSON Schema, translated for an engine that is linear in the text.

A `pattern` is a regular expression of ECMA-262 (JSON Schema 2020-12, core 6.4).
Python's own engine goes back over a text and can run for ever; RE2 cannot, but writes
some things in another way. `translated` says exactly the same in its words, and refuses
by name what it has no words for. Groups are translated without a number and lazy
quantifiers as greedy ones, because a search that only tells if there is a match knows
no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import re2

MAX_PATTERN: Final = 8 * 1024
"Longest pattern, in characters."

MAX_TRANSLATED: Final = 64 * 1024
"Longest pattern for RE2, in characters; long repetitions are written several times."

MAX_KEPT: Final = 256
"Translations that are kept."

MAX_REPETITION: Final = 1000
"The largest number that RE2 takes in a repetition; larger ones are put together."

MAX_STEPS: Final = 60_000
"""Steps of the compiled pattern, as estimated while it is read: what is repeated counts
each time, so that a short text cannot stand for a machine of any size."""

RANGE_STEPS: Final = 4
"Estimated steps of a range of characters: UTF-8 takes several."

PROPERTY_STEPS: Final = 500
"Estimated steps of a property of Unicode, such as all letters."


class PatternError(ValueError):
    """A pattern that is not run; the text names the construct."""


_SPACE: Final = (
    r"\t\n\x{b}\f\r\x{20}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}"
    r"\x{205f}\x{3000}\x{feff}"
)
"White space of ECMA-262; that of RE2 is smaller."

_NO_SPACE: Final = (
    r"\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}"
    r"\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}"
    r"\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}"
)
_CLASSES: Final = {
    **{letter: "\\" + letter for letter in "dDwW"},
    "s": _SPACE,
    "S": _NO_SPACE,
}
"Escapes for sets of characters, as they stand between brackets in RE2."

_CONTROLS: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}

_ANY: Final = r"[^\n\r\x{2028}\x{2029}]"
"A dot: ECMA-262 has four ends of a line."

_REPETITION: Final = re.compile(r"\{([0-9]{1,9})(,([0-9]{1,9})?)?\}")
_GROUP_NAME: Final = re.compile(r"<[^\W\d][\w$]*>")
_PROPERTY: Final = re.compile(r"\{(?:([A-Za-z_]+)=)?([A-Za-z0-9_]+)\}")
_HEX: Final = re.compile(r"[0-9A-Fa-f]+")

_REFUSED_GROUPS: Final = {
    "(?=": "the lookahead (?=",
    "(?!": "the negative lookahead (?!",
    "(?<=": "the lookbehind (?<=",
    "(?<!": "the negative lookbehind (?<!",
    "(?P": "the group (?P of Python; ECMA-262 writes (?<name>",
}

_CATEGORY_NAMES: Final = (
    "Letter=L Uppercase_Letter=Lu Lowercase_Letter=Ll Titlecase_Letter=Lt "
    "Modifier_Letter=Lm Other_Letter=Lo Mark=M Nonspacing_Mark=Mn Spacing_Mark=Mc "
    "Enclosing_Mark=Me Number=N Decimal_Number=Nd digit=Nd Letter_Number=Nl "
    "Other_Number=No Punctuation=P punct=P Connector_Punctuation=Pc "
    "Dash_Punctuation=Pd Open_Punctuation=Ps Close_Punctuation=Pe "
    "Initial_Punctuation=Pi Final_Punctuation=Pf Other_Punctuation=Po Symbol=S "
    "Math_Symbol=Sm Currency_Symbol=Sc Modifier_Symbol=Sk Other_Symbol=So Separator=Z "
    "Space_Separator=Zs Line_Separator=Zl Paragraph_Separator=Zp Control=Cc cntrl=Cc "
    "Format=Cf Private_Use=Co "
)
_CATEGORIES: Final = dict(re.findall(r"(\w+)=(\w+)", _CATEGORY_NAMES))
"""Long names of general categories. Those with unassigned code points or surrogates are
missing: RE2 has none of them."""

_SHORT: Final = frozenset(_CATEGORIES.values())


@lru_cache(maxsize=MAX_KEPT)
def translated(pattern: str) -> str:
    """Return a pattern of ECMA-262 in the syntax of RE2, for a search.

    Raises:
        PatternError: It is too long or broken, or RE2 has no words for a construct.
    """
    if len(pattern) > MAX_PATTERN:
        raise PatternError(
            f"the pattern has {len(pattern)} characters, at most {MAX_PATTERN}"
        )
    result = _Translator(pattern).run()
    if len(result) > MAX_TRANSLATED:
        raise PatternError("the pattern is too large once its repetitions are written")
    return result


class _Translator:
    """Reads a pattern from left to right; groups are kept on a stack of our own."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._out: list[str] = []
        self._open: list[tuple[int, int]] = []
        "Where each open group begins in `_out`, and the steps before it."
        self._atom: int | None = None
        "Place in `_out` of what a quantifier would repeat; None if there is nothing."
        self._before = 0
        "Estimated steps before that atom."
        self._steps = 0
        self._size = 0

    def run(self) -> str:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        if self._open:
            raise PatternError("a group is not closed")
        return "".join(self._out)

    def _step(self, char: str) -> None:
        repetition = _REPETITION.match(self._text, self._at) if char == "{" else None
        if char in "*+?" or repetition is not None:
            self._quantifier(char, repetition)
        elif char in "^$|":
            self._at += 1
            # RE2's own `$` would do; this says without doubt which end is meant.
            self._put({"$": r"\z"}.get(char, char), atom=False)
        elif char == "(":
            self._group()
        elif char == ")":
            self._close()
        elif char == "[":
            self._at += 1
            found = self._set()
            self._put(found, steps=_steps_of(found))
        elif char == "\\":
            self._escape()
        else:
            self._at += 1
            if char == ".":
                self._put(_ANY, steps=6 * RANGE_STEPS)
            else:
                self._put(_literal(ord(char)))

    def _put(self, text: str, *, atom: bool = True, steps: int = 1) -> None:
        self._atom, self._before = len(self._out) if atom else None, self._steps
        self._count(steps)
        self._add(text)

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise PatternError("the pattern is too large, or repeats too much")

    def _add(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_TRANSLATED:
            raise PatternError(
                "the pattern is too large once its repetitions are written"
            )
        self._out.append(text)

    def _group(self) -> None:
        rest = self._text[self._at : self._at + 4]
        for start, name in _REFUSED_GROUPS.items():
            if rest.startswith(start):
                raise PatternError(f"{name} is not supported")
        self._at += 1
        if rest.startswith("(?:"):
            self._at += 2
        elif rest.startswith("(?<"):
            name_found = _GROUP_NAME.match(self._text, self._at + 1)
            if name_found is None:
                raise PatternError("a group has no valid name")
            self._at = name_found.end()
        elif rest.startswith("(?"):
            raise PatternError(f"the flags {rest} are not supported")
        self._open.append((len(self._out), self._steps))
        self._put("(?:", atom=False)

    def _close(self) -> None:
        if not self._open:
            raise PatternError("a ) closes no group")
        self._at += 1
        self._add(")")
        self._atom, self._before = self._open.pop()

    def _quantifier(self, char: str, repetition: re.Match[str] | None) -> None:
        if self._atom is None:
            raise PatternError(f"{char} repeats nothing")
        least, most = {"*": (0, None), "+": (1, None)}.get(char, (0, 1))
        self._at += 1
        if repetition is not None:
            least = int(repetition[1])
            most = int(repetition[3]) if repetition[3] else None
            most = least if repetition[2] is None else most
            self._at = repetition.end()
        if self._text.startswith("?", self._at):
            self._at += 1
        if most is not None and most < least:
            raise PatternError(f"{{{least},{most}}} is out of order")
        self._count((self._steps - self._before) * (max(least, most or 0, 1) - 1))
        atom = "".join(self._out[self._atom :])
        del self._out[self._atom :]
        self._size -= len(atom)
        self._add(_repeated(atom, least, most))
        # Only one quantifier may follow an atom.
        self._atom = None

    def _escape(self) -> None:
        letter = self._text[self._at + 1 : self._at + 2]
        if letter in {"b", "B"} and letter:
            self._at += 2
            self._put("\\" + letter, atom=False)
            return
        if "1" <= letter <= "9":
            raise PatternError(f"the backreference \\{letter} is not supported")
        if letter == "k":
            raise PatternError("the backreference \\k is not supported")
        found = self._escaped()
        if isinstance(found, str):
            self._put(f"[{found}]", steps=_steps_of(found))
        else:
            self._put(_literal(found))

    def _escaped(self) -> str | int:
        """Read an escape; return its code point, or a set as it stands in brackets."""
        letter = self._text[self._at + 1 : self._at + 2]
        if not letter:
            raise PatternError("a \\ stands at the end")
        self._at += 2
        if letter in _CLASSES:
            return _CLASSES[letter]
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter in "pP":
            return self._property(letter)
        if letter in "cxu":
            return self._coded(letter)
        if letter == "0" and not self._text[self._at : self._at + 1].isdecimal():
            return 0
        if letter.isascii() and letter.isalnum():
            raise PatternError(f"the escape \\{letter} is not one of ECMA-262")
        return ord(letter)

    def _coded(self, letter: str) -> int:
        """Read the rest of `\\cX`, `\\xHH`, `\\uHHHH` or `\\u{H...}`."""
        text = self._text
        if letter == "c":
            control = text[self._at : self._at + 1]
            if not (control.isascii() and control.isalpha()):
                raise PatternError("the escape \\c is not followed by a letter")
            self._at += 1
            return ord(control) % 32
        if letter == "u" and text.startswith("{", self._at):
            digits = text[self._at + 1 : max(text.find("}", self._at), 0)]
            self._at += len(digits) + 2
        else:
            size = 2 if letter == "x" else 4
            digits = text[self._at : self._at + size]
            self._at += size
            digits = digits if len(digits) == size else ""
        if not _HEX.fullmatch(digits) or int(digits, 16) > 0x10FFFF:
            raise PatternError(f"the escape \\{letter} is not followed by a code point")
        return self._joined(int(digits, 16))

    def _joined(self, code: int) -> int:
        """Return the code point of a pair of surrogates that begins with `code`."""
        low = re.compile(r"\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})").match(self._text, self._at)
        if 0xD800 <= code < 0xDC00 and low is not None:
            self._at = low.end()
            return 0x10000 + (code - 0xD800) * 0x400 + int(low[1], 16) - 0xDC00
        if 0xD800 <= code < 0xE000:
            raise PatternError(f"the lone surrogate \\u{code:04x} is not supported")
        return code

    def _property(self, letter: str) -> str:
        found = _PROPERTY.match(self._text, self._at)
        if found is None:
            raise PatternError(f"the escape \\{letter} is not followed by a property")
        self._at = found.end()
        key, name = found.groups()
        if key in {"Script", "sc"} and _is_known(name):
            return f"\\{letter}{{{name}}}"
        short = _CATEGORIES.get(name, name)
        if key in {None, "General_Category", "gc"} and short in _SHORT:
            return f"\\{letter}{{{short}}}"
        if key is None and name in {"Any", "ASCII"}:
            most = 0x7F if name == "ASCII" else 0x10FFFF
            if letter == "p":
                return f"\\x{{0}}-\\x{{{most:x}}}"
            if name == "ASCII":
                return "\\x{80}-\\x{10ffff}"
        raise PatternError(f"the property \\{letter}{found[0]} is not supported")

    def _set(self) -> str:
        negated = self._text.startswith("^", self._at)
        self._at += negated
        parts: list[str] = []
        while not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                raise PatternError("a [ is not closed")
            parts.append(self._set_part())
        self._at += 1
        if not parts:
            # Nothing at all, or any character.
            return r"[\x{0}-\x{10ffff}]" if negated else r"[^\x{0}-\x{10ffff}]"
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _set_part(self) -> str:
        first = self._set_atom()
        text = self._text
        if text.startswith("-", self._at) and not text.startswith("-]", self._at):
            back, self._at = self._at, self._at + 1
            if self._at < len(text):
                last = self._set_atom()
                if isinstance(first, int) and isinstance(last, int):
                    if last < first:
                        raise PatternError("a range in [] is out of order")
                    return f"{_in_set(first)}-{_in_set(last)}"
                self._at = back
        return first if isinstance(first, str) else _in_set(first)

    def _set_atom(self) -> str | int:
        if not self._text.startswith("\\", self._at):
            self._at += 1
            return ord(self._text[self._at - 1])
        letter = self._text[self._at + 1 : self._at + 2]
        if letter == "b":
            self._at += 2
            return 8
        return self._escaped()


def _repeated(atom: str, least: int, most: int | None) -> str:
    """Return an atom with its quantifier; RE2 takes numbers up to 1,000."""
    if most is None:
        short = {0: "*", 1: "+"}.get(least)
        return f"(?:{_times(atom, least, least)}{atom}*)" if not short else atom + short
    return _times(atom, least, most)


def _times(atom: str, least: int, most: int) -> str:
    if most <= MAX_REPETITION:
        return f"{atom}{{{least},{most}}}"
    parts = [*_chunks(atom, least, "{%d}"), *_chunks(atom, most - least, "{0,%d}")]
    return f"(?:{''.join(parts)})"


def _chunks(atom: str, count: int, form: str) -> Iterator[str]:
    while count:
        chunk = min(count, MAX_REPETITION)
        yield atom + form % chunk
        count -= chunk


def _steps_of(found: str) -> int:
    properties = found.count("\\p") + found.count("\\P")
    return RANGE_STEPS * (1 + found.count("-")) + PROPERTY_STEPS * properties


def _literal(code: int) -> str:
    char = chr(code)
    return char if char.isalnum() and char.isascii() else f"\\x{{{code:x}}}"


def _in_set(code: int) -> str:
    return f"\\x{{{code:x}}}"


@lru_cache(maxsize=MAX_KEPT)
def _is_known(script: str) -> bool:
    """Tell if RE2 knows a script; short names of general categories are none."""
    if len(script) < 3:
        return False
    try:
        re2.compile(f"\\p{{{script}}}", quiet_options())
    except re2.error:
        return False
    return True


def quiet_options() -> re2.Options:
    """Return options with which RE2 writes nothing to standard error."""
    options = re2.Options()
    # It would write to standard error, once for each broken pattern of a peer's.
    options.log_errors = False
    return options
