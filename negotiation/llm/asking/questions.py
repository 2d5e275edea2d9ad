"""A question to a language model: its text and the schema of its answer.

Prompts are text files of ours, filled with data that cannot leave its fence. A file
under `negotiation/llm/prompts/` begins with a line with its name and version, and has
two sections, `# System` and `# User`. Each `{{name}}` is replaced once, so braces
inside the data are kept. Equal data gives equal bytes (LLM.md).

Schemas of answers have the form that strict servers accept: every object requires all
its properties and allows no others; a choice is an `enum` of strings. Conditions that
such a schema cannot express are checked by code afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, Protocol

from negotiation.errors import MisuseError
from negotiation.messages import cut_text
from negotiation.need import Schema
from negotiation.strict_json import Json

STEP: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
SCHEMA_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request to a model, whose answer is JSON that fits a schema.

    The same need gives the same bytes in two runs: a question contains no DID, address,
    time or random value (LLM.md, "Trying it").
    """

    step: str
    "The purpose, as a fixed word of ours (`a-z0-9_`); the ledger shows it."

    system: str = field(repr=False)
    "The instructions for the model; text of ours alone."

    user: str = field(repr=False)
    "The text about the case; text of others is fenced in it as data."

    schema: Schema = field(repr=False)
    "JSON Schema (2020-12) of the answer; an object schema, as servers require it."

    schema_name: str
    "The schema's name on the wire: 1 to 64 letters, digits, `_` and `-`."

    max_tokens: int
    "Largest number of tokens of the answer; doubled once if the answer was cut off."

    def __post_init__(self) -> None:
        if STEP.fullmatch(self.step) is None:
            raise MisuseError(f"not a valid name of a step: {self.step!r}")
        if SCHEMA_NAME.fullmatch(self.schema_name) is None:
            raise MisuseError(f"not a valid name of a schema: {self.schema_name!r}")
        if self.max_tokens < 1:
            raise MisuseError(f"max_tokens must be >= 1, got {self.max_tokens}")


class Model(Protocol):
    """Answers questions; each answer fits the schema of its question."""

    async def ask(self, question: Question) -> Json:
        """Return the answer to `question`, validated against its schema.

        Raises:
            MindError: There is no such answer: no budget, no network or no valid reply.
                The text is for the owner and never contains a key.
        """
        ...


TEXT: dict[str, Any] = {"type": "string"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}


def record(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def many(items: dict[str, Any], *, most: int) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items, "maxItems": most}


def choice(words: Iterable[str]) -> dict[str, Any]:
    """Return the schema of one of `words`, in their order, each once."""
    # Plain strings, since enumeration members cannot be sent to a worker.
    return {"type": "string", "enum": list(dict.fromkeys(map(str, words)))}


HEAD: Final = re.compile(r"<!-- prompt: ([a-z_]+); version: ([0-9]+) -->\n")
SECTIONS: Final = re.compile(r"# System\n(.*?)\n# User\n(.*)", re.DOTALL)
PLACEHOLDER: Final = re.compile(r"\{\{([a-z_]+)\}\}")
PRIVATE: Final = "hints"
"Placeholder of the owner's private text."


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file."""

    name: str
    "Name of the file without its suffix."

    version: int
    "Raised whenever the text changes; recordings are made for one version."

    system: str

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

    A paragraph of the user's part with an empty value is left out.

    Raises:
        MisuseError: A placeholder has no value, or a value no placeholder; or the
            owner's hints stand beside an answer in free words.
    """
    prompt = load_prompt(name)
    wanted = set(PLACEHOLDER.findall(prompt.user))
    if wanted != values.keys():
        raise MisuseError(f"the prompt {name} wants {sorted(wanted)}")
    if PRIVATE in wanted and not _is_closed(schema):
        # A model may write private text in a form that nobody finds in its answer.
        raise MisuseError(
            f"the prompt {name} has hints, so its answer must be a choice"
        )
    blocks = [
        PLACEHOLDER.sub(lambda match: values[match[1]], block)
        for block in prompt.user.split("\n\n")
        if all(values[name] for name in PLACEHOLDER.findall(block))
    ]
    user = "\n\n".join(blocks)
    return Question(
        step=name,
        system=prompt.system,
        user=user,
        schema=schema,
        schema_name=name,
        max_tokens=max_tokens,
    )


def _is_closed(schema: Schema) -> bool:
    """Return whether an answer is nothing but choices from lists of ours."""
    if not isinstance(schema, dict):
        return False
    match schema.get("type"):
        case "object":
            return all(map(_is_closed, schema["properties"].values()))
        case "array":
            return _is_closed(schema["items"])
        case "string":
            return "enum" in schema
    return schema.get("type") == "boolean"


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
