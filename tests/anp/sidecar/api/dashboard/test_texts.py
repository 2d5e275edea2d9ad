"""The dashboard's texts: the same keys in both languages, and no text beside them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from anp.errors import ErrorKind
from anp.interaction.states import TaskState
from anp.sidecar.calls.call import CallState
from anp.sidecar.library.state import STATES
from anp.sidecar.telemetry.call_entry import Direction
from anp.sidecar.telemetry.usage import Way
from cache.records.peers import PeerState
from cache.records.records import AgreementRole

STATIC = Path(__file__).parents[5] / "anp/sidecar/api/dashboard/static"

ENTRY = re.compile(r'^  (?:"(\w+)"|(\w+)): (".*"),$', re.M)

KEY = re.compile(r'(?<![\w.])(?:t|parts)\("([^"]*)"')

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')

CHINESE = re.compile("[\u4e00-\u9fff]")

PROSE = re.compile(r"^ ?[A-Z][a-z]+|[a-z]{2,} [a-z]{2,}")
"A text for people begins with a capital letter, or has two words."

NO_TEXT = re.compile(
    # Commands, paths, headers, names of the browser's own things, classes, words.
    r"^(anpd|[#./]|main |Content-Type|Last-Event-ID|AbortError|Control|DID$|SHA-256$|"
    r"English$|data: |no events|signed out|next negotiation|quiet inline|"
    r"block numbered|not exposed|other keys)"
)


def table(language: str) -> dict[str, str]:
    """Return the texts of a language by their keys."""
    text = (STATIC / "texts" / f"{language}.js").read_text()
    found = [
        (one or other, json.loads(value)) for one, other, value in ENTRY.findall(text)
    ]
    assert len(found) == len(dict(found)), "a key stands there twice"
    assert len(found) == sum(line.endswith(",") for line in text.splitlines())
    return dict(found)


def scripts() -> dict[str, str]:
    """Return the scripts without comments and names of classes, by name."""
    files = [*STATIC.glob("*.js"), *STATIC.glob("pages/*.js")]
    unread = re.compile(r"^\s*//.*$|class: (\"[^\"]*\"|`[^`]*`)", flags=re.M)
    return {one.name: unread.sub("", one.read_text()) for one in files}


def places(text: str) -> set[str]:
    """Return the names of the values that a text has room for."""
    return set(re.findall(r"\{(\w+)\}", text))


def test_both_languages_have_the_same_keys_and_values() -> None:
    english, chinese = table("en"), table("zh")
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert places(chinese[key]) == places(text), key
        assert chinese[key].strip(), key
        # One form is enough where a language has no plural.
        assert len(text.split("|")) in {1, 2}, key


def test_every_chinese_text_is_chinese() -> None:
    same = {key for key, text in table("zh").items() if not CHINESE.search(text)}
    # Numbers with a sign between them, and signs between words.
    numbers = {"failed_of_all", "used_of_limit"}
    signs = {"colon", "comma", "comma_2", "full_stop", "semicolon", "verdict_lines"}
    assert same == numbers | signs


def test_signs_between_chinese_words_are_chinese() -> None:
    joined = re.compile(r"""join\(", "\)|\? ", " :|`\$\{\w+\(.*?\)\}: """)
    left = {name for name, text in scripts().items() if joined.search(text)}
    # It writes JSON.
    assert left == {"form.js"}


def test_every_key_that_a_page_asks_for_is_in_the_tables_and_none_is_left_over() -> (
    None
):
    asked = {key for text in scripts().values() for key in KEY.findall(text)}
    known = {key for key in table("en") if not key.startswith("word_")}
    assert asked - known == set()
    assert known - asked == set()


def test_no_text_stands_in_a_script() -> None:
    left = []
    for name, text in scripts().items():
        for plain, template in LITERAL.findall(text):
            word = plain or re.sub(r"\$\{[^}]*\}", "", template)
            if PROSE.search(word) and not NO_TEXT.match(word) and " " in word.strip():
                left.append(f"{name}: {word}")
    assert left == []


@pytest.mark.parametrize(
    "word",
    sorted(
        {
            *ErrorKind,
            *CallState,
            *STATES,
            *Way,
            *PeerState,
            *AgreementRole,
            *get_args(Direction),
            *(one.removeprefix("x-") for one in TaskState),
            *(one.stem for one in Path("negotiation/llm/prompts").glob("*.md")),
        }
    ),
)
def test_every_state_of_the_daemon_has_a_word_in_both_languages(word: str) -> None:
    key = f"word_{re.sub('[ -]', '_', word)}"
    assert key in table("en")
    assert key in table("zh")
