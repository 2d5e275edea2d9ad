"""Judges command lines of `anpd` as documents write them, against the real commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from anp.cli.app import app

_OPERATORS = {"&&", "||", ";", "|", "&", ">", ">>", "<", "2>", "2>&1"}
"Words at which a shell ends a command."

_SETTING = re.compile(r"[A-Z_][A-Z0-9_]*=.*")
_PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*…?|…|\.\.\.")
"Words that stand for others, also for a whole command."

_ASIDE = re.compile(r" {3,}.*")
"What a document says beside a command, in a column of its own."

ROOT_COMMAND: Any = app


def command_lines(text: str) -> Iterator[list[str]]:
    """Give the words behind each `anpd` of one line of a shell or of running text."""
    text = _ASIDE.sub("", text.removeprefix("$ ").strip())
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        # An example that ends within a quotation.
        words = text.split()
    line: list[str] = []
    for word in [*words, ";"]:
        if word not in _OPERATORS:
            line.append(word.rstrip(";"))
        if word in _OPERATORS or word.endswith(";"):
            yield from _behind_anpd(line)
            line = []


def _behind_anpd(words: list[str]) -> Iterator[list[str]]:
    while words and (_SETTING.fullmatch(words[0]) or words[0] in {"sudo", "exec"}):
        words = words[1:]
    if words and words[0].rpartition("/")[2] == "anpd":
        yield words[1:]


def problem_of(words: list[str], *, prose: bool = False) -> str | None:
    """Return what no command or option of ours fits, or None.

    `[--option]` is an option that may be left out, `a|b` are choices, and a word in
    capitals or `…` stands for any word.

    Args:
        prose: Words behind the arguments may be there to explain.
    """
    command, given, rest = ROOT_COMMAND, 0, list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        # Brackets around an option; JSON has other characters next to them.
        word = re.sub(r"^\[(?=-)|(?<=[\w…])\]$", "", word)
        if word.startswith("-") and len(word) > 1:
            name, equals, _ = word.partition("=")
            option = _options(command).get(name.rstrip("…"))
            if option is None:
                return f"`{command.name or 'anpd'}` has no option {name}"
            if option.is_eager:
                return None
            if not option.is_flag and not equals and rest:
                rest.pop(0)
        elif hasattr(command, "commands"):
            if _PLACEHOLDER.fullmatch(word):
                return None
            for choice in word.split("|"):
                if choice not in command.commands:
                    return f"`{command.name or 'anpd'}` has no command {choice}"
            command = command.commands[word.split("|")[0]]
        else:
            given += 1
    return None if prose else _too_many(command, given)


def _options(command: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"--help": _Help(), "-h": _Help()}
    for parameter in command.params:
        if parameter.param_type_name == "option":
            for name in [*parameter.opts, *parameter.secondary_opts]:
                found[name] = parameter
    return found


class _Help:
    """The option that every command has."""

    is_eager = True
    is_flag = True


def _too_many(command: Any, given: int) -> str | None:
    sizes = [p.nargs for p in command.params if p.param_type_name == "argument"]
    if -1 in sizes or given <= sum(sizes):
        return None
    return f"`{command.name}` takes {sum(sizes)} words, got {given}"
