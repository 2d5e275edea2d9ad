"""Patterns of JSON Schema: what matches, what is refused, and how long it takes.

The table has the meaning that ECMA-262 gives (with the flag `u`, as JSON Schema says);
where Python's `re` or RE2 mean something else, the comment says so.
"""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.patterns.engine import compiled, matches
from sandbox.patterns.schemas import pattern_faults, without_faults
from sandbox.patterns.translation import MAX_PATTERN, PatternError, translated

MEANS: list[tuple[str, list[str], list[str]]] = [
    # Searches anywhere; anchors are those of the whole text.
    ("es", ["es", "expression"], ["e", "s", ""]),
    ("^f.*b$", ["fb", "foob"], ["fb\n", "xfb", "fob\nb"]),
    ("", ["", "a"], []),
    ("^$", [""], ["\n", "a"]),  # Python's `$` matches before a last line end.
    ("a|^b", ["xa", "b"], ["xb"]),
    # A dot matches no end of a line, of which there are four.
    ("^.$", ["a", "é", "😀", "\x85"], ["", "\n", "\r", "\u2028", "\u2029", "ab"]),
    # Digits and word characters are those of ASCII.
    (r"^\d$", ["0", "9"], ["٣", "a"]),
    (r"^\D$", ["٣", "a", "\n"], ["0"]),
    (r"^\w$", ["a", "Z", "_", "0"], ["é", "-"]),
    (r"^\W$", ["é", "-", "\n"], ["a", "_"]),
    # White space is that of Unicode, with the byte order mark.
    (r"^\s$", [*" \t\n\v\f\r\u00a0\u1680\u2003\u2028\u3000\ufeff"], ["\x85", "\x1c"]),
    (r"^\S$", ["a", "\x85", "\u200b", "\u180e"], [" ", "\ufeff", "\u202f", "\v"]),
    (r"^[\s]$", ["\ufeff", " "], ["a"]),
    (r"^[^\s]$", ["a"], ["\u3000"]),
    (r"^[^\S]$", ["\u3000"], ["a"]),
    (r"^[\s\S]$", ["\n", "a", "😀"], ["", "aa"]),
    (r"\bcat\b", ["a cat", "cat-"], ["cats", "_cat"]),
    (r"\Bcat", ["xcat"], ["cat", "a cat"]),
    # Escapes.
    (r"^\t\n\v\f\r$", ["\t\n\v\f\r"], ["tnvfr"]),
    (r"^\cC\cj$", ["\x03\n"], ["cC"]),
    (r"^\0$", ["\0"], ["0"]),
    (r"^\x41\u0042\u{43}$", ["ABC"], ["xABC"]),
    (r"^\uD83D\uDE00$", ["😀"], ["😁"]),
    (r"^\u{1F600}$", ["😀"], ["😁"]),
    (r"^\/\-\.\$\^\*\+\?\(\)\[\]\{\}\|\\$", ["/-.$^*+?()[]{}|\\"], ["a"]),
    (r"^\"\@\_\:\#\ \é$", ['"@_:# é'], ["a"]),
    # Sets.
    ("^[abc]$", ["a", "c"], ["d", "^"]),
    ("^[^abc]$", ["d", "\n", "😀"], ["a", ""]),
    ("^[a-c-]$", ["b", "-"], ["d"]),
    ("^[-a]$", ["-", "a"], ["b"]),
    (r"^[\d-z]$", ["5", "-", "z"], ["a"]),
    (r"^[\]\\^-]$", ["]", "\\", "^", "-"], ["a"]),
    ("^[[:alpha:]]$", ["a]", ":]", "[]"], ["b]", "a"]),  # No class of POSIX.
    (r"^[\b]$", ["\b"], ["b"]),
    (r"^[\w.+-]+@[\w-]+\.[\w.-]+$", ["a.b+c@d-e.fr"], ["a@b", "@b.c"]),
    ("^[]$", [], ["", "a"]),
    ("^[^]$", ["a", "\n", "😀"], ["", "ab"]),
    ("^[&&a~~]$", ["&", "a", "~"], ["b"]),
    ("^[#-&]$", ["$", "%"], ["'"]),
    (r"^[\u4e00-\u9fff]+$", ["中文"], ["a", ""]),
    # Repetitions; a lazy one makes no difference to a search.
    ("^a*?b+?c??$", ["b", "aabbc"], ["ac"]),
    ("^a{2}$", ["aa"], ["a", "aaa"]),
    ("^a{2,}$", ["aa", "a" * 99], ["a"]),
    ("^a{1,3}?$", ["a", "aaa"], ["", "aaaa"]),
    ("^a{,3}$", ["a{,3}"], ["aaa"]),  # For Python a repetition, for ECMA-262 a text.
    ("^a{$", ["a{"], ["a"]),
    ("^{a}$", ["{a}"], ["a"]),
    ("^a{1001}$", ["a" * 1001], ["a" * 1000, "a" * 1002]),
    ("^[ab]{0,2048}$", ["", "ab" * 1024], ["ab" * 1024 + "a"]),
    ("^a{1500,2500}$", ["a" * 1500, "a" * 2500], ["a" * 1499, "a" * 2501]),
    ("^a{1200,}$", ["a" * 1200, "a" * 5000], ["a" * 1199]),
    ("^(a{1500})?b$", ["b", "a" * 1500 + "b"], ["ab"]),
    # Groups.
    ("^(ab|c)+$", ["abcab"], ["ac"]),
    ("^(?:ab)+$", ["abab"], ["aba"]),
    ("^(?<year>[0-9]{4})$", ["2026"], ["026"]),
    ("^()$", [""], ["a"]),
    ("^(|a)$", ["", "a"], ["b"]),
    # Properties of Unicode.
    (r"^\p{L}+$", ["aéя中"], ["a1"]),
    (r"^\p{Letter}+$", ["aéя中"], ["a1"]),
    (r"^\p{Lu}\p{Ll}$", ["Éa"], ["ÉÉ"]),
    (r"^\P{Lu}$", ["a"], ["A"]),
    (r"^[\p{L}\p{Nd}_-]+$", ["é٣_-"], ["!"]),
    (r"^\p{gc=Nd}\p{General_Category=Decimal_Number}$", ["٣3"], ["a3"]),
    (r"^\p{Script=Greek}\p{sc=Cyrillic}$", ["αя"], ["aя"]),
    (r"^\p{ASCII}\P{ASCII}\p{Any}$", ["aé\n"], ["éé\n"]),
]


@pytest.mark.parametrize(("pattern", "good", "bad"), MEANS)
def test_a_pattern_means_what_ecma_262_says(
    pattern: str, good: list[str], bad: list[str]
) -> None:
    assert [text for text in good if not matches(pattern, text)] == []
    assert [text for text in bad if matches(pattern, text)] == []


REFUSED: list[tuple[str, str]] = [
    ("a(?=b)", "the lookahead (?="),
    ("^(?!.*x)a", "the negative lookahead (?!"),
    ("(?<=a)b", "the lookbehind (?<="),
    ("(?<!a)b", "the negative lookbehind (?<!"),
    (r"(a)\1", r"the backreference \1"),
    (r"(?<a>b)\k<a>", r"the backreference \k"),
    ("(?P<a>b)", "the group (?P of Python"),
    ("(?i)a", "the flags (?i)"),
    ("(?i:a)", "the flags (?i:"),
    ("(?>a)", "the flags (?>"),
    ("a++", "repeats nothing"),
    ("*a", "* repeats nothing"),
    ("^*", "* repeats nothing"),
    (r"\b+", "+ repeats nothing"),
    ("{3}", "{ repeats nothing"),
    ("a{3,2}", "{3,2} is out of order"),
    ("(a", "a group is not closed"),
    ("a)", "a ) closes no group"),
    ("(?<1>a)", "no valid name"),
    ("[a", "a [ is not closed"),
    ("[z-a]", "out of order"),
    ("a\\", "stands at the end"),
    (r"\Aa", r"the escape \A"),
    (r"a\Z", r"the escape \Z"),
    (r"\Qa", r"the escape \Q"),
    (r"[\B]", r"the escape \B"),
    (r"\x4", r"the escape \x"),
    (r"\u12", r"the escape \u"),
    (r"\u{110000}", r"the escape \u"),
    (r"\u{", r"the escape \u"),
    (r"\c1", r"the escape \c"),
    (r"\00", r"the escape \0"),
    (r"\ud800", r"the lone surrogate \ud800"),
    (r"\p{Emoji}", r"the property \p{Emoji}"),
    (r"\p{Script_Extensions=Greek}", "the property"),
    (r"\p{Script=Klingon}", "the property"),
    (r"\pL", r"the escape \p"),
    ("a{60001}", "repeats too much"),
    ("((a{100}){100}){100}", "repeats too much"),
    (r"\p{L}{1000}", "repeats too much"),
    ("(a{1000}){2}", "repetitions inside each other"),
    ("(a{40}){40}", "repetitions inside each other"),
    ("a" * (MAX_PATTERN + 1), "characters, at most"),
    ("(" * 900 + "a" + "){1,9}" * 900, "repeats too much"),
]


@pytest.mark.parametrize(("pattern", "name"), REFUSED)
def test_what_the_engine_cannot_say_is_refused_by_name(pattern: str, name: str) -> None:
    with pytest.raises(PatternError, match=re.escape(name)):
        compiled(pattern)


HOSTILE: list[tuple[str, str]] = [
    ("^(a+)+$", "a"),
    ("^(([a-z])+.)+[A-Z]([a-z])+$", "a"),
    ("(x+x+)+y", "x"),
    (r"^(\w+\s?)*$", "a"),
    ("(.*)*" * 500, "a"),
    ("(?:a?){500}a{500}", "a"),
    ("^" + "|".join(f"w{n:05}" for n in range(1_100)) + "$", "w"),
    ("a|" * 4_000 + "a", "b"),
    ("(" * 3_000 + "a" + ")" * 3_000, "b"),
    ("^.{0,2000}$", "a"),
    (r"^[\s\S]*\p{L}{50}!$", "é"),
    (
        "[" + "".join(f"\\u{n:04x}-\\u{n + 5:04x}" for n in range(256, 4_096, 8)) + "]",
        "a",
    ),
]


@pytest.mark.parametrize(("pattern", "letter"), HOSTILE)
def test_a_hostile_pattern_takes_time_by_the_length_of_the_text_only(
    pattern: str, letter: str
) -> None:
    began = time.process_time()
    matches(pattern, letter * 100_000 + "!")
    assert time.process_time() - began < 2.0


@given(st.text(alphabet="ab(?:)|*+{}1,3[]^-$.\\dwsupxLk<=!>é\ud83d", max_size=20))
def test_any_text_is_translated_or_refused(pattern: str) -> None:
    try:
        compiled(pattern)
    except PatternError:
        return


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\.", "^", "$", r"\w"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=8,
)


@given(PATTERNS, st.text(alphabet="ab1._", max_size=12))
def test_where_both_mean_the_same_it_finds_what_pythons_engine_finds(
    pattern: str, text: str
) -> None:
    assert matches(pattern, text) == bool(re.search(pattern, text))


def test_a_text_with_a_lone_surrogate_is_searched() -> None:
    assert matches("^.a$", "\ud800a")
    assert not matches("^a$", "\ud800a")


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a/b": {"type": "string", "pattern": "^(?!x)"},
        "pattern": {"type": "string", "pattern": "^ok$"},
        "list": {"items": {"anyOf": [{"pattern": r"(.)\1"}, {"type": "null"}]}},
    },
    "patternProperties": {"^x-": {}, "(?<=y)": {"type": "integer"}},
    "additionalProperties": False,
    "examples": [{"pattern": "(?=no schema)"}],
}


def test_faults_of_a_schema_are_named_with_their_places() -> None:
    assert list(pattern_faults(SCHEMA)) == [
        "/properties/a~1b/pattern: the negative lookahead (?! is not supported",
        "/properties/list/items/anyOf/0/pattern: "
        r"the backreference \1 is not supported",
        "/patternProperties: the lookbehind (?<= is not supported",
    ]
    assert list(pattern_faults(True)) == []


def test_a_schema_without_its_faults_allows_more_and_nothing_else_changes() -> None:
    assert without_faults(SCHEMA) == {
        "type": "object",
        "properties": {
            "a/b": {"type": "string"},
            "pattern": {"type": "string", "pattern": "^ok$"},
            "list": {"items": {"anyOf": [{}, {"type": "null"}]}},
        },
        "patternProperties": {"^x-": {}},
        "examples": [{"pattern": "(?=no schema)"}],
    }
    good = {"type": "string", "pattern": "^a$"}
    assert without_faults(good) is good


def test_a_long_pattern_is_translated_in_little_time() -> None:
    began = time.process_time()
    for number in range(8):
        translated(f"a{number}|" * (MAX_PATTERN // 4))
    assert time.process_time() - began < 1.0
