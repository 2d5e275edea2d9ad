"""The first document for a need: a model names the fields, code writes the text.

A schema that the caller gave is used unchanged. For a missing one the model lists
fields with types and descriptions, and code makes a schema from the list (ANP-4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from negotiation.document.layout import error_response_schema
from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document, render_encoded_document
from negotiation.document.shape import (
    Document,
    DocumentErrorCode,
    ExampleKind,
    WorkedExample,
    own_request_schema,
    own_response_schema,
)
from negotiation.errors import DocumentError, JsonError, MindError, SchemaError
from negotiation.llm.asking.questions import (
    BOOLEAN,
    TEXT,
    Question,
    ask_with,
    choice,
    fenced,
    many,
    record,
)
from negotiation.llm.links.spots import Root, described, spots_of
from negotiation.llm.steps.candidates import with_base
from negotiation.llm.steps.phrases import PYTHON_WORDS, problem_words, read_codec
from negotiation.messages import cut_text
from negotiation.mind import Demand
from negotiation.need import NAME_ONLY, Schema
from negotiation.rules.fit import given_schema
from negotiation.rules.formats import insisted_format, may_want_format
from negotiation.rules.templates import places_of
from negotiation.schema.intake import prepared
from negotiation.schema.values import contradiction
from negotiation.strict_json import parse_json

TYPES: Final = ("string", "integer", "number", "boolean", "date", "date-time", "object")
FORMATS: Final = ("json", "xml", "binary", "other")

OWN_CODES: Final = re.compile(
    r"error[ _-]?codes?|codes? for (?:errors|failures)|错误码|错误代码", re.IGNORECASE
)
"Words in a need that may ask for error codes of its own."

ERROR_CODE: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
GOOD_CODES: Final = frozenset({"0", "200", "ok"})

STEP: Final = re.compile(r"[^\W\d][\w-]{0,63}(?:\[\])?")

FORMAT_WORDS: Final = (
    "The bytes: `format` is json unless the task insists on messages in another "
    "format. Only then, `encoding` says in one paragraph, without heading, how the "
    "values become bytes, naming the format, and `examples` holds one worked request, "
    'response and error response: `values` in the shape {"messageId", "input"} and '
    '{"messageId", "status": {"code", "message"}, "output"}, where an error has no '
    "output; `bytes` as text of the format, or as hexadecimal digits if `hex` is true. "
    "If a fixed layout has no room for messageId or message, all examples leave it "
    "out; code, 200 if all went well, stays. `codec` is Python source with "
    "`read_message(kind, data)`, which returns the values of a message as a dict, and "
    "`write_message(kind, values)`, which returns bytes; kind is 'request' or "
    f"'response'. They give exactly the worked examples. {PYTHON_WORDS} Otherwise "
    "`encoding`, `examples` and `codec` are empty."
)
"Asked beside the fields if the task may want messages that are not JSON."

MAX_FIELDS: Final = 60
MAX_CODES: Final = 20
MAX_EXAMPLE: Final = 16 * 1024
MAX_TOKENS: Final = 2_500


def needs_model(demand: Demand) -> bool:
    """Return whether a model can add anything to the data of the caller."""
    need = demand.need
    if may_want_format(need.requirement) or OWN_CODES.search(need.requirement):
        return True
    if NAME_ONLY.fullmatch(need.requirement.strip()):
        return False
    # Without data and schemas the need consists of words only, which the provider reads
    # anyway; it can then choose the response's fields from those it has. Values that
    # stood in the words are no other data.
    given = demand.arguments if isinstance(demand.arguments, dict) else {"": None}
    told = need.input_schema is not None or bool(
        given.keys() - places_of(need.requirement)
    )
    return need.output_schema is None and told


def propose_question(
    demand: Demand,
    *,
    problems: Sequence[str] = (),
    previous: Mapping[str, Any] | None = None,
) -> Question:
    """Return the question for the parts of a document.

    Args:
        problems: Faults of an earlier answer.
        previous: The earlier answer.
    """
    need = demand.need
    given = given_schema(demand)
    field = record(
        path=TEXT,
        type=choice(TYPES),
        description=TEXT,
        required=BOOLEAN,
        values=many(TEXT, most=20),
    )
    example = record(kind=choice(ExampleKind), values=TEXT, bytes=TEXT, hex=BOOLEAN)
    packed = may_want_format(need.requirement)
    encoding = {
        "format": choice(FORMATS),
        "encoding": TEXT,
        "codec": TEXT,
        "examples": many(example, most=6),
    }
    return ask_with(
        "propose",
        {
            "task": fenced(need.requirement, limit=8_000),
            "given": fenced(_words("input", given), limit=12_000),
            "wanted": (
                "(nothing is settled)"
                if need.output_schema is None
                else "(settled)\n"
                + fenced(_words("output", need.output_schema), limit=12_000)
            ),
            "bytes": FORMAT_WORDS if packed else "",
            "problems": problem_words(problems, previous),
        },
        schema=record(
            response=many(field, most=MAX_FIELDS),
            errors=many(record(code=TEXT, meaning=TEXT), most=MAX_CODES),
            **(encoding if packed else {}),
        ),
        max_tokens=MAX_TOKENS,
    )


@dataclass(frozen=True, slots=True)
class Proposal:
    """A first document."""

    text: str

    codec: str = ""
    "Source of its `read_message` and `write_message`; empty for JSON."

    format: str = "json"
    "The format of its bytes that the task insists on, one of `FORMATS`."


def read_proposal(
    demand: Demand, answer: Mapping[str, Any], held: Mapping[str, str]
) -> Proposal | list[str]:
    """Return the document that an answer gives, or the faults of its encoding.

    Args:
        held: Texts of protocols that we hold, by URI; one that the need names is
            given as the base (ANP-26).

    Other unusable parts of the answer are left out: the caller's own words and schemas
    are already enough for a document.

    Raises:
        DocumentError: The caller's own schemas cannot be put into a document.
    """
    need = demand.need
    wanted = need.output_schema
    if wanted is None:
        wanted = _schema(answer["response"])
    given = given_schema(demand)
    requirement = need.requirement
    if answer.get("format", "json") != "json":
        try:
            text = _encoded(requirement, given, wanted, answer)
        except DocumentError as exc:
            return [str(exc)]
        codec = read_codec(read_document(text), answer)
        if isinstance(codec, list):
            return codec
        return Proposal(text, codec, answer["format"])
    if wanted_format := insisted_format(requirement):
        return [
            f"the task insists on messages that are not JSON ({wanted_format}), and "
            "`format` is json"
        ]
    errors = _errors(answer["errors"])
    text = render_document(requirement, given, wanted, errors=errors)
    return Proposal(with_base(text, need.requirement, held))


def read_again(
    demand: Demand,
    before: Mapping[str, Any],
    answer: Mapping[str, Any],
    held: Mapping[str, str],
) -> Proposal:
    """Return the document of the second answer to a question whose first had faults.

    Raises:
        MindError: It has faults too, or another format than the first one.
    """
    found, wanted = read_proposal(demand, answer, held), before["format"]
    if isinstance(found, Proposal) and wanted not in {"json", found.format}:
        found = [f"the second answer has the format {found.format}"]
    if isinstance(found, Proposal):
        return found
    named = insisted_format(demand.need.requirement) or wanted
    raise MindError(
        f"the task insists on messages that are not JSON ({named}), and no document "
        f"describes them: {'; '.join(found[:6])}"
    )


def _errors(codes: Sequence[Mapping[str, Any]]) -> tuple[DocumentErrorCode, ...]:
    """Return the listed errors, with one entry for each code."""
    found = {
        code: DocumentErrorCode(code, cut_text(one["meaning"].strip(), 200))
        for one in codes[:MAX_CODES]
        if ERROR_CODE.fullmatch(code := one["code"].strip())
        and code.casefold() not in GOOD_CODES
    }
    return tuple(found.values())


def _schema(fields: Sequence[Mapping[str, Any]]) -> Schema:
    """Return the schema of an object with the listed fields; `{}` without any."""
    root: dict[str, Any] = {}
    for one in fields[:MAX_FIELDS]:
        steps = one["path"].strip().split(".")
        if len(steps) <= 6 and all(STEP.fullmatch(step) for step in steps):
            _put(root, steps, one)
    try:
        return prepared(root)
    except SchemaError:
        return {}


def _put(schema: dict[str, Any], steps: list[str], one: Mapping[str, Any]) -> None:
    for place, step in enumerate(steps):
        last = place == len(steps) - 1
        name = step.removesuffix("[]")
        schema.setdefault("type", "object")
        if schema["type"] != "object":
            return
        properties = schema.setdefault("properties", {})
        required = schema.setdefault("required", [])
        new = name not in properties
        inner: dict[str, Any] = properties.setdefault(name, {})
        # An enclosing object is required, unless its own field says otherwise.
        if new and (one["required"] or not last):
            required.append(name)
        if step.endswith("[]"):
            inner.setdefault("type", "array")
            if last:
                inner["description"] = one["description"]
            inner = inner.setdefault("items", {})
        if last and "type" not in inner:
            inner.update(_leaf(one, described_=not step.endswith("[]")))
        schema = inner


def _leaf(one: Mapping[str, Any], *, described_: bool) -> dict[str, Any]:
    kind = one["type"]
    leaf: dict[str, Any] = {"type": kind}
    if kind in {"date", "date-time"}:
        leaf = {"type": "string", "format": kind}
    if kind == "string" and one["values"]:
        leaf["enum"] = list(dict.fromkeys(one["values"]))
    if described_ and one["description"]:
        leaf["description"] = cut_text(one["description"], 300)
    return leaf


def _encoded(
    requirement: str, given: Schema, wanted: Schema, answer: Mapping[str, Any]
) -> str:
    errors = _errors(answer["errors"])
    examples = list(map(_example, answer["examples"]))
    if {one.kind for one in examples} != set(ExampleKind):
        raise DocumentError("each message needs a worked example")
    request = _as_shown(own_request_schema(given), examples)
    response = _as_shown(own_response_schema(wanted, errors), examples)
    plain = Document("", requirement, request, response)
    schemas = {
        ExampleKind.REQUEST: request,
        ExampleKind.RESPONSE: response,
        ExampleKind.ERROR: error_response_schema(plain),
    }
    for one in examples:
        if reason := contradiction(schemas[one.kind], one.values):
            raise DocumentError(
                f"a worked {one.kind} does not fit its schema: {reason}"
            )
    return render_encoded_document(
        requirement, request, response, encoding=answer["encoding"], examples=examples
    )


def _as_shown(schema: dict[str, Any], examples: Sequence[WorkedExample]) -> Any:
    """Return a message's schema without what a fixed layout has no room for.

    A message id or a status text that no worked example has is left out. Without ids
    there is one call at a time.
    """
    if not any("messageId" in one.values for one in examples):
        del schema["properties"]["messageId"]
        schema["required"].remove("messageId")
    status = schema["properties"].get("status")
    if status is not None and not any(
        "message" in shown
        for one in examples
        if isinstance(shown := one.values.get("status"), dict)
    ):
        del status["properties"]["message"]
        status["required"].remove("message")
    return prepared(schema)


def _example(one: Mapping[str, Any]) -> WorkedExample:
    try:
        values = parse_json(one["values"], max_size=MAX_EXAMPLE)
        text = one["bytes"]
        data = (
            bytes.fromhex("".join(text.split())) if one["hex"] else text.encode("utf-8")
        )
    except (JsonError, ValueError) as exc:
        raise DocumentError(f"a worked example cannot be read: {exc}") from None
    if not isinstance(values, dict) or not data or len(data) > MAX_EXAMPLE:
        raise DocumentError("a worked example has no values or no bytes")
    return WorkedExample(ExampleKind(one["kind"]), values, data)


def _words(name: str, schema: Schema) -> str:
    try:
        return described(spots_of(Root(name, prepared(schema))))
    except SchemaError:
        return "(a schema that cannot be shown)"
