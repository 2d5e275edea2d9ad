"""The questions that `anpd init` asks somebody at a terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import click

from anp.cli.output import progress


@dataclass(frozen=True, slots=True)
class InitQuestion:
    """One question, whose answer is a setting."""

    setting: str
    "Dotted name of the setting."

    text: str
    "The question."

    default: str
    "Answer of an empty line; the setting is left alone."

    allowed: str
    "Pattern of the answers that are understood."

    is_text: bool = True
    "The value is text, else a number."


QUESTIONS: Final = (
    InitQuestion(
        "listen.port", "Port at which peers reach you", "8765", r"\d{1,5}", False
    ),
    InitQuestion(
        "policy.peers",
        "Peers that may use you: any, or only the listed ones that you allowed",
        "any",
        "any|listed",
    ),
    InitQuestion(
        "negotiation.approve",
        "When you are asked first: never, first-use, side-effects or always",
        "never",
        "never|first-use|side-effects|always",
    ),
    InitQuestion(
        "llm.model",
        "Language model that helps where schemas do not decide; it costs money; "
        "none is fine",
        "none",
        r"[\w.:/@+-]{1,100}",
    ),
)


def is_asked(*, as_json: bool) -> bool:
    """Return whether somebody is there to answer."""
    return not as_json and sys.stdin.isatty() and sys.stdout.isatty()


def ask_all(prompt: Callable[[str, str], str] | None = None) -> dict[str, str]:
    """Ask all questions; return the answers that are no defaults, as TOML, by setting.

    Args:
        prompt: Asks one question with its default, and returns the answer.
    """
    prompt = prompt or _prompt
    answers = {}
    for number, question in enumerate(QUESTIONS, 1):
        text = f"{number}/{len(QUESTIONS)} {question.text}"
        while not re.fullmatch(
            question.allowed, answer := prompt(text, question.default).strip()
        ):
            progress(f"  {answer!r} is no answer to this")
        if answer != question.default:
            answers[question.setting] = f'"{answer}"' if question.is_text else answer
    return answers


def _prompt(text: str, default: str) -> str:
    return str(click.prompt(text, default=default))


def with_values(text: str, values: Mapping[str, str]) -> str:
    """Return the text of a configuration with some of its settings in effect.

    Args:
        values: TOML by dotted name, in place of what is shown as a comment.
    """
    section, lines = "", []
    for line in text.splitlines():
        if head := re.match(r"\[([a-z0-9_]+)\]", line):
            section = head[1]
        shown = re.match(r"# ([a-z0-9_]+) = \S+", line)
        value = values.get(f"{section}.{shown[1]}") if shown else None
        if shown and value is not None:
            rest = line[shown.end() :]
            line = f"{shown[1]} = {value}".ljust(shown.end()) + rest
        lines.append(line)
    return "\n".join([*lines, ""])
