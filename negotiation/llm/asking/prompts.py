"""Prompts: text files of ours, filled with data that cannot leave its fence.

A file under `negotiation/llm/prompts/` begins with a line with its name and version,
and has two sections, `# System` and `# User`. Each `{{name}}` is replaced once, so
braces inside the data are kept. Equal data gives equal bytes (LLM.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from negotiation.errors import MisuseError
from negotiation.llm.asking.questions import Question
from negotiation.messages import cut_text
from negotiation.need import Schema

__all__ = ["Prompt", "ask_with", "fenced", "load_prompt", "one_line"]

HEAD: Final = re.compile(r"<!-- prompt: ([a-z_]+); version: ([0-9]+) -->\n")
SECTIONS: Final = re.compile(r"# System\n(.*?)\n# User\n(.*)", re.DOTALL)
PLACEHOLDER: Final = re.compile(r"\{\{([a-z_]+)\}\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file."""

    name: str
    "Name of the file without its suffix."

    version: int
    "Raised whenever the text changes; recordings are made for one version."

    system: str
    "The instructions for the model."

    user: str
    "The text about the case, with placeholders."


@cache
def load_prompt(name: str) -> Prompt:
    """Return the prompt file `name`.

    Raises:
        MisuseError: There is no such file, or it does not have the required form.
    """
    try:
        text = (files("negotiation.llm") / "prompts" / f"{name}.md").read_text("utf-8")
    except OSError:
        raise MisuseError(f"there is no prompt {name}") from None
    head = HEAD.match(text)
    parts = SECTIONS.match(text, head.end()) if head is not None else None
    if head is None or parts is None or head[1] != name:
        raise MisuseError(f"the prompt {name} lacks its head or a section")
    return Prompt(name, int(head[2]), parts[1].strip(), parts[2].strip())


def ask_with(
    name: str, values: Mapping[str, str], *, schema: Schema, max_tokens: int
) -> Question:
    """Return the question that the prompt `name` makes from `values`.

    Raises:
        MisuseError: A placeholder has no value, or a value no placeholder.
    """
    prompt = load_prompt(name)
    wanted = set(PLACEHOLDER.findall(prompt.user))
    if wanted != values.keys():
        raise MisuseError(f"the prompt {name} wants {sorted(wanted)}")
    user = PLACEHOLDER.sub(lambda match: values[match[1]], prompt.user)
    return Question(
        step=name,
        system=prompt.system,
        user=user,
        schema=schema,
        schema_name=name,
        max_tokens=max_tokens,
    )


def fenced(text: str, *, limit: int) -> str:
    """Return `text` between two marks that do not occur in it.

    Args:
        limit: Largest number of its characters that are shown.
    """
    shown = cut_text(text, limit)
    number = 1
    while f"DATA{number}" in shown:
        number += 1
    return f"<<<DATA{number}\n{shown}\nDATA{number}>>>"


def one_line(text: str, limit: int = 200) -> str:
    """Return `text` as one line without control characters, cut to `limit`."""
    line = " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())
    return line if len(line) <= limit else line[: limit - 3] + "..."
