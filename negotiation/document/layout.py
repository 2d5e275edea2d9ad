"""What the fields of a document's messages are for: correlation, outcome, values.

The schemas of a document describe whole messages. The halves fill in what belongs to
the protocol (message id, type, action, status) and pass the rest (DESIGN.md, Tasks and
schemas). Our own shape is read by the same rules as those of others. What the rules do
not cover is a `DocumentError`, which a mind answers with a counter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from negotiation.document.fields import Fields, places_of, take_message_id
from negotiation.document.outcome import Outcome
from negotiation.document.parts import Mark, Message, Place
from negotiation.document.shape import Document
from negotiation.errors import DocumentError
from negotiation.need import Schema

__all__ = [
    "Layout",
    "RequestLayout",
    "ResponseLayout",
    "error_response_schema",
    "read_layout",
]


@dataclass(frozen=True, slots=True)
class RequestLayout:
    """The fields of a request."""

    fields: Message
    "What a requester writes beside the values."

    places: tuple[Place, ...]
    "Where the values may be, the likelier first."

    taken: frozenset[str]
    "Names of all properties that are not values."

    action_schema: Schema | None
    "Schema of an `action` to be filled in, None when there is none."

    action_value: str | None
    "The value of an `action` that the document fixes."


@dataclass(frozen=True, slots=True)
class ResponseLayout:
    """The fields of a response."""

    good: Message
    "What a provider writes beside the result."

    bad: Message
    "What it writes instead of a result when something failed."

    taken: frozenset[str]
    "Names of all properties that are not values."

    marks: tuple[Mark, ...]
    "What tells good from bad."

    error: str | None
    "A property that is there, and not null, only when something failed."

    texts: tuple[tuple[str, ...], ...]
    "Where the words of an error are, the likelier first."

    codes: tuple[int, ...]
    "The only codes an error may have; empty when any HTTP status will do."

    places: tuple[Place, ...]
    "Where the result may be, the likelier first."

    action_schema: Schema | None = None
    "Schema of an `action` to be filled in, None when there is none."


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of both messages."""

    message_id: str | None
    "The property that carries the message id in both, if there is one."

    request: RequestLayout
    "The request."

    response: ResponseLayout
    "The response."

    guessed: frozenset[str]
    "Top-level names that have their meaning by name alone."


def read_layout(document: Document) -> Layout:
    """Return what the fields of the document's messages are for.

    Raises:
        DocumentError: The rules do not cover it; the reason names what is missing.
    """
    if not document.is_json:
        raise DocumentError("the messages are not JSON")
    request = Fields("request", document.request_schema)
    response = Fields("response", document.response_schema)
    message_id = take_message_id(request, response)
    own = document.input_schema is not None and document.output_schema is not None
    given, result = ("input", "output") if own else (None, None)
    for fields, kind, values in (
        (request, "REQUEST", given),
        (response, "RESPONSE", result),
    ):
        fields.take_action()
        fields.take_constants(kind, keep=values)
    outcome = Outcome(response)
    return Layout(
        message_id,
        RequestLayout(
            fields=tuple(request.fields),
            taken=frozenset(request.taken),
            places=places_of(request, given),
            action_schema=request.action_schema,
            action_value=request.action_value,
        ),
        ResponseLayout(
            good=(*response.fields, *outcome.good),
            bad=(*response.fields, *outcome.bad),
            taken=frozenset(response.taken),
            # In our own shape 200 alone is good; others also use 0.
            marks=tuple(
                replace(mark, good=mark.good[:1]) if own else mark
                for mark in outcome.marks
            ),
            error=outcome.error,
            texts=tuple(outcome.texts),
            codes=outcome.codes,
            places=places_of(response, result),
            action_schema=response.action_schema,
        ),
        frozenset(request.by_name | response.by_name),
    )


def error_response_schema(document: Document) -> Schema:
    """Return the schema of a response that says error in the document's own way.

    Such a response need not carry the result (DESIGN.md, How a call flows), and may
    have null in its place, as in the seed's second test case (ANP-Q22).
    """
    schema = document.response_schema
    try:
        layout = read_layout(document)
    except DocumentError:
        return {"type": "object"}
    assert isinstance(schema, dict)
    kept = layout.response.taken
    properties = schema.get("properties", {})
    return {
        "type": "object",
        "properties": {name: properties[name] for name in properties if name in kept},
        "required": [name for name in schema.get("required", ()) if name in kept],
    }
