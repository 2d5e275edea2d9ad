"""Natural-language exchanges (PT=10): the Markdown of a question and of its answer.

The form is that of the seed's example: a requirement and an input in the request, an
output in the answer (ANP-71, ANP-73). Flat values are list items, others are JSON in a
fence. Texts of people or models are read as far as possible.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from jsonic.exact_numbers import write_json
from negotiation.document.markdown import MarkdownSection, read_outline
from negotiation.errors import NOT_RUN, JsonError
from negotiation.late_patterns import late_pattern
from negotiation.need import Capability
from negotiation.schema.values import types_of
from negotiation.strict_json import Json, parse_json

MAX_NATURAL_SIZE: Final = 64 * 1024
"Largest text of an exchange that we read or write, in bytes of UTF-8 (ANP-Q30)."

MAX_ITEMS: Final = 64
"Largest number of list items that are read as values."

REFUSAL: Final = "# Refusal"
"First line of an answer without an output, which no output has in that place."

NEED_WORDS: Final = late_pattern(r"\s*(requirements?|needs?|tasks?|需求|任务)", re.I)
INPUT_WORDS: Final = late_pattern(
    r"\s*(inputs?|data|arguments?|parameters?|输入)", re.I
)
ITEM: Final = late_pattern(r"\s{0,8}[-*+]\s{1,4}([^:\uff1a\n]{1,200})[:\uff1a]\s?(.*)")
QUOTES: Final = "*`\"' "
TEXT_NAMES: Final = ("text", "message", "question", "query", "prompt", "input")
"Names of a property that takes a whole text, the most likely first."


@dataclass(frozen=True, slots=True)
class NaturalRequest:
    """A question, as far as it can be read without a model."""

    text: str

    requirement: str
    "The requirement; the whole text when it has no such heading."

    values: dict[str, Json] | None
    "The input as JSON, or None."

    items: tuple[tuple[str, str], ...]
    "The input as names and texts, if it is a list."


def render_natural_request(requirement: str, arguments: dict[str, Json]) -> str:
    """Return the question for a need and its data (ANP-73)."""
    parts = [f"# Requirement\n{requirement.strip()}"]
    if arguments:
        parts.append(f"# Input\n{_values(arguments)}")
    return "\n\n".join(parts) + "\n"


def render_natural_answer(output: Json) -> str:
    """Return the answer that contains `output` (ANP-73)."""
    return f"# Output\n{_values(output)}\n"


def render_natural_refusal(reason: str, *, ran: bool) -> str:
    """Return the answer that says why there is no output.

    Args:
        reason: In words; of a tool they may be anything.
        ran: False when nothing can have had an effect.
    """
    words = reason if ran or reason.startswith(NOT_RUN) else NOT_RUN + reason
    return f"{REFUSAL}\n{words}\n"


def natural_refusal(answer: str) -> str | None:
    """Return the reason of an answer without an output, or None for any other one.

    A reason that begins with `NOT_RUN` tells that nothing had an effect.
    """
    first, _, words = answer.strip().partition("\n")
    return words.strip() if first.strip() == REFUSAL else None


def read_natural_request(text: str) -> NaturalRequest:
    """Read a question; no text is an error."""
    outline = read_outline(text[:MAX_NATURAL_SIZE])
    need = _section(outline.sections, NEED_WORDS)
    given = _section(outline.sections, INPUT_WORDS)
    values: dict[str, Json] | None = None
    for place in outline.jsons:
        try:
            found = parse_json(place.text, max_size=MAX_NATURAL_SIZE)
        except JsonError:
            continue
        if isinstance(found, dict):
            values = found
            break
    items: list[tuple[str, str]] = []
    for line in given.lines if given is not None else ():
        match = ITEM.match(line)
        if match is not None and len(items) < MAX_ITEMS:
            items.append((match[1].strip(QUOTES), match[2].strip()))
    requirement = "\n".join(need.lines).strip() if need is not None else ""
    return NaturalRequest(text, requirement or text, values, tuple(items))


def arguments_for(
    request: NaturalRequest, capability: Capability
) -> dict[str, Json] | None:
    """Return the arguments for `capability`, or None when the text does not give them.

    List items are matched to the capability's properties by name, and read as their
    types.
    """
    if request.values is not None:
        return request.values
    schema = capability.input_schema
    if not isinstance(schema, dict):
        return None
    properties = schema.get("properties", {})
    arguments: dict[str, Json] = {}
    for name, text in request.items:
        if name in properties:
            arguments[name] = _typed(text, types_of(properties[name]))
    if set(schema.get("required", ())) - arguments.keys():
        return None
    return arguments


def text_argument(capability: Capability) -> str | None:
    """Return the property of `capability` that takes a whole text, or None."""
    schema = capability.input_schema
    if not isinstance(schema, dict):
        return None
    texts = [
        name
        for name, its_schema in schema.get("properties", {}).items()
        if "string" in types_of(its_schema)
    ]
    required = list(schema.get("required", ()))
    if len(required) == 1 and required[0] in texts:
        return str(required[0])
    if required:
        return None
    named = [name for name in TEXT_NAMES if name in texts]
    return named[0] if named else (texts[0] if len(texts) == 1 else None)


def _section(
    sections: tuple[MarkdownSection, ...], words: re.Pattern[str]
) -> MarkdownSection | None:
    return next((one for one in sections if words.match(one.title)), None)


def _typed(text: str, types: Set[str]) -> Json:
    if "string" in types:
        return text.strip('"') if text[:1] == '"' else text
    try:
        return parse_json(text, max_size=MAX_NATURAL_SIZE)
    except JsonError:
        # Left unchanged: validation by the capability's schema will report the fault.
        return text


def _values(value: Json) -> str:
    if isinstance(value, str):
        return value
    if (
        isinstance(value, dict)
        and value
        and all(map(_is_plain, value.values()))
        and all(
            _is_plain(name) and not set(name) & set(":\uff1a*`\"'") for name in value
        )
    ):
        return "\n".join(f"- {name}: {_plain(item)}" for name, item in value.items())
    text = write_json(value, ensure_ascii=False, indent=2)
    return f"```json\n{text}\n```"


def _is_plain(value: Json) -> bool:
    if isinstance(value, str):
        # One that begins with a quotation mark would be read as a quoted one.
        if not value or value.startswith('"'):
            return False
        return value == value.strip() and "\n" not in value
    return isinstance(value, bool | int | float)


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else write_json(value)
