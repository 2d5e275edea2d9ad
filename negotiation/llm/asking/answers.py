"""The form in which an answer is requested, and the search for JSON in it. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from negotiation.errors import JsonError
from negotiation.llm.asking.questions import Question
from negotiation.need import Schema
from negotiation.strict_json import Json, canonical_json, parse_json

MAX_ANSWER: Final = 512 * 1024
"Longest answer of a model, in bytes; a document has at most 256 KiB."

MAX_STARTS: Final = 64
"Largest number of places where an object is searched in an answer with other text."

MAX_REMEMBERED: Final = 256
"Largest number of refused schemas that are remembered."

THOUGHTS = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
"Thoughts that some local models write before the answer."

FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
"Beginning of a line that opens or ends a fenced block of Markdown."


class Form(StrEnum):
    """The form in which a server is asked for JSON, strongest first."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    TEXT = "text"


LADDER: Final = tuple(Form)

TOKENS_NAMES: Final = ("max_tokens", "max_completion_tokens")
"Names of the parameter with the largest number of tokens of an answer (LLM.md)."


class Forms:
    """The forms that one endpoint accepts; begins with the strongest one.

    A schema may contain text of a peer (in an `enum`), so a refusal of one schema is
    remembered for that schema only: no peer can weaken the form of other questions.
    """

    def __init__(
        self,
        strongest: Form = Form.JSON_SCHEMA,
        *,
        tokens_names: tuple[str, ...] = TOKENS_NAMES,
    ) -> None:
        self._form = strongest
        self._refused: dict[str, Form] = {}
        self._tokens_names = list(tokens_names)

    @property
    def strongest(self) -> Form:
        """The strongest form that the server has not refused."""
        return self._form

    @property
    def tokens_name(self) -> str:
        """The server's name of the parameter with the largest number of tokens."""
        return self._tokens_names[0]

    def refuse_tokens_name(self, name: str, *, words: str) -> bool:
        """Note that the server refused a parameter; return whether there is another.

        Args:
            words: The server's message; the name is refused only if it is mentioned.
        """
        if name not in words:
            return False
        if name == self._tokens_names[0]:
            if len(self._tokens_names) == 1:
                return False
            self._tokens_names.pop(0)
        return name != self._tokens_names[0]

    def form_for(self, schema: Schema) -> Form:
        """Return the form in which to ask for an answer to `schema`."""
        known = self._refused.get(_digest(schema), Form.JSON_SCHEMA)
        return max(self._form, known, key=LADDER.index)

    def refuse(self, form: Form, schema: Schema, *, words: str) -> Form | None:
        """Note that the server refused `form`; return the next one, or None.

        Args:
            words: The server's message, which shows if the form or the schema is meant.
        """
        rest = LADDER[LADDER.index(form) + 1 :]
        if not rest:
            return None
        if form is Form.JSON_SCHEMA and ABOUT_SCHEMA.search(words):
            if len(self._refused) >= MAX_REMEMBERED:
                del self._refused[next(iter(self._refused))]
            self._refused[_digest(schema)] = rest[0]
        else:
            self._form = max(self._form, rest[0], key=LADDER.index)
        return rest[0]


ABOUT_SCHEMA = re.compile(
    r"invalid (json )?schema|schema (is|was) (invalid|not valid)|grammar|"
    r"enum (value|string|has|list)|"
    r"schema contains|too (large|long|many|deep|complex)|not supported by",
    re.IGNORECASE,
)
"Messages of servers that refuse one schema rather than every schema."


def response_format(form: Form, question: Question) -> dict[str, Any] | None:
    """Return `response_format` of a request, or None to leave it out."""
    match form:
        case Form.JSON_SCHEMA:
            wanted: dict[str, Any] = {
                "name": question.schema_name,
                "schema": question.schema,
            }
            # Servers that know `strict` refuse it together with optional properties.
            if is_strict(question.schema):
                wanted["strict"] = True
            return {"type": "json_schema", "json_schema": wanted}
        case Form.JSON_OBJECT:
            return {"type": "json_object"}
        case Form.TEXT:
            return None


def form_words(form: Form, question: Question) -> str:
    """Return the addition to the system prompt, for forms without a schema."""
    if form is Form.JSON_SCHEMA:
        return ""
    return (
        "\n\nAnswer with one JSON object and nothing else: no words around it, no code "
        f"fence. It has to fit this JSON Schema:\n{_text(question.schema)}"
    )


def is_strict(schema: Schema) -> bool:
    """Return whether all objects of `schema` are closed and require all properties."""
    pending: list[Any] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending.extend(node)
        if not isinstance(node, dict):
            continue
        kinds = node.get("type")
        if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
            names = node.get("properties", {})
            if node.get("additionalProperties") is not False:
                return False
            if not isinstance(names, dict) or set(names) != set(
                node.get("required", ())
            ):
                return False
            pending.extend(names.values())
        pending.extend(
            value
            for key, value in node.items()
            if key in {"items", "anyOf", "oneOf", "allOf"}
        )
        pending.extend(node.get("$defs", {}).values())
    return isinstance(schema, dict) and schema.get("type") == "object"


def find_json(text: str, *, max_size: int = MAX_ANSWER) -> Json:
    """Return the JSON value in an answer: all of it, a fenced block, or an object.

    Of several objects the longest is taken, as examples and remarks are shorter than
    the answer.

    Raises:
        JsonError: There is none; the reason is for the model and quotes nothing.
    """
    if len(text) > max_size:
        raise JsonError(f"{len(text)} characters long, at most {max_size} are allowed")
    rest = THOUGHTS.sub("", text, count=1)
    try:
        return parse_json(rest, max_size=max_size)
    except JsonError as exc:
        first = exc
    found = [
        value
        for value in (_strict(part, max_size) for part in _parts(rest))
        if value is not None
    ]
    if not found:
        raise JsonError(f"no JSON object was found in it; as a whole it is {first}")
    return max(found, key=lambda value: len(canonical_json(value)))


def _parts(text: str) -> Iterator[str]:
    """Yield texts that may be an object: fenced blocks, then text inside braces."""
    yield from _fenced(text)[:MAX_STARTS]
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(MAX_STARTS):
        if start < 0:
            return
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield text[start:end]
        start = text.find("{", end)


def _fenced(text: str) -> list[str]:
    blocks: list[str] = []
    fence = ""
    inside: list[str] = []
    for line in text.splitlines(keepends=True):
        match = FENCE.match(line)
        if not fence and match is not None:
            fence, inside = match[1], []
        elif fence and line.strip() == fence:
            blocks.append("".join(inside))
            fence = ""
        elif fence:
            inside.append(line)
    return blocks


def _strict(text: str, max_size: int) -> dict[str, Any] | None:
    try:
        value = parse_json(text, max_size=max_size)
    except JsonError:
        return None
    return value if isinstance(value, dict) else None


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _digest(schema: Schema) -> str:
    return hashlib.sha256(canonical_json(schema)).hexdigest()
