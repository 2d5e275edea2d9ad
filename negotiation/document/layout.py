"""The purposes of the fields in a document's messages: correlation, outcome, values.

The schemas of a document describe whole messages. The halves fill in the fields of the
protocol (message id, type, action, status) and pass on the rest (DESIGN.md, Needs and
schemas). Our own shape is read by the same rules as other shapes. A message that the
rules do not cover raises `DocumentError`, which a mind answers with a counter-proposal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from negotiation.document.fields import (
    Mark,
    Message,
    MessageFields,
    Place,
    ResponseOutcome,
    Slot,
    places_of,
    take_message_id,
)
from negotiation.document.shape import Document
from negotiation.errors import DocumentError
from negotiation.need import Schema


@dataclass(frozen=True, slots=True)
class RequestLayout:
    """The fields of a request."""

    fields: Message
    "Fields that a requester writes in addition to the values."

    places: tuple[Place, ...]
    "Possible places of the values, the most likely first."

    taken: frozenset[str]
    "Names of all properties that are not values."

    action_schema: Schema | None
    "Schema of an `action` to be filled in, or None."

    action_value: str | None
    "The value of an `action` that the document fixes, or None."


@dataclass(frozen=True, slots=True)
class ResponseLayout:
    """The fields of a response."""

    good: Message
    "Fields that a provider writes in addition to the result."

    bad: Message
    "Fields that it writes instead of a result when something failed."

    taken: frozenset[str]
    "Names of all properties that are not values."

    marks: tuple[Mark, ...]
    "Fields that distinguish success from failure."

    error: str | None
    "A property that is present and not null only in a failure."

    texts: tuple[tuple[str, ...], ...]
    "Places of an error's text, the most likely first."

    codes: tuple[int, ...]
    "The codes that an error may have; empty when any HTTP status is allowed."

    places: tuple[Place, ...]
    "Possible places of the result, the most likely first."

    action_schema: Schema | None = None
    "Schema of an `action` to be filled in, or None."

    words: tuple[str, ...] = ()
    "Words that an error may have for its code; the first one stands for all others."

    @property
    def promised(self) -> tuple[int | str, ...]:
        """The error codes that the document lists."""
        return (*self.codes, *self.words)


@dataclass(frozen=True, slots=True)
class UpdateLayout:
    """The fields of an update, which comes before the response."""

    fields: Message
    "Fields that a provider writes in addition to the value."

    taken: frozenset[str]
    "Names of all properties that are not values."

    place: Place
    "The place of the value."

    mark: str
    "A property that every update has and no response."


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of all messages."""

    message_id: str | None
    "The property with the message id in both messages, or None."

    request: RequestLayout
    response: ResponseLayout

    guessed: frozenset[str]
    "Top-level names whose purpose was recognised by name alone."

    update: UpdateLayout | None = None
    "None when the document has no updates."


def read_layout(document: Document) -> Layout:
    """Return the purposes of the fields in the document's messages.

    Raises:
        DocumentError: The rules do not cover it; the reason names the missing part.
    """
    found = document.once("layout", _layout_or_reason)
    if isinstance(found, str):
        raise DocumentError(found)
    return found


def _layout_or_reason(document: Document) -> Layout | str:
    try:
        return _read_layout(document)
    except DocumentError as exc:
        return str(exc)


def _read_layout(document: Document) -> Layout:
    if not document.is_json:
        raise DocumentError("the messages are not JSON")
    request = MessageFields("request", document.request_schema)
    response = MessageFields("response", document.response_schema)
    message_id = take_message_id(request, response)
    own = document.input_schema is not None and document.output_schema is not None
    given, result = ("input", "output") if own else (None, None)
    for fields, kind, values in (
        (request, "REQUEST", given),
        (response, "RESPONSE", result),
    ):
        fields.take_action()
        fields.take_constants(kind, keep=values)
    outcome = ResponseOutcome(response)
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
            # In our own shape only 200 means success; others also use 0.
            marks=tuple(
                replace(mark, good=mark.good[:1]) if own else mark
                for mark in outcome.marks
            ),
            error=outcome.error,
            texts=tuple(outcome.texts),
            codes=outcome.codes,
            places=places_of(response, result),
            action_schema=response.action_schema,
            words=outcome.words,
        ),
        frozenset(request.by_name | response.by_name),
        _read_update(document, message_id),
    )


def _read_update(document: Document, message_id: str | None) -> UpdateLayout | None:
    if document.update_schema is None:
        return None
    fields = MessageFields("update", document.update_schema)
    own = "update" if document.given_before is not None else None
    if message_id is not None:
        if message_id not in fields.left:
            raise DocumentError(f"an update has no {message_id!r}")
        fields.take(message_id, Slot.MESSAGE_ID)
    fields.take_constants("UPDATE", keep=own)
    schema = document.response_schema
    known = schema.get("properties", {}) if isinstance(schema, dict) else {}
    marks = sorted(fields.required - set(known))
    if not marks:
        raise DocumentError("an update cannot be told from a response")
    return UpdateLayout(
        fields=tuple(fields.fields),
        taken=frozenset(fields.taken),
        place=places_of(fields, own)[0],
        mark=marks[0],
    )


def find_layout(document: Document) -> Layout | None:
    """Return the same as `read_layout`, or None where the rules do not cover it."""
    found = document.once("layout", _layout_or_reason)
    return None if isinstance(found, str) else found


def error_response_schema(document: Document) -> Schema:
    """Return the schema of an error response in the document's own form.

    Such a response need not have the result (DESIGN.md, How a call flows), or may have
    null in its place, as in the seed's second test case (ANP-Q22).
    """
    return error_schema_of(document, find_layout(document))


def error_schema_of(document: Document, layout: Layout | None) -> Schema:
    """Return the same for a document whose layout was read before."""
    if layout is None:
        return {"type": "object"}
    schema = document.response_schema
    assert isinstance(schema, dict)
    kept = layout.response.taken
    properties = schema.get("properties", {})
    return {
        "type": "object",
        "properties": {name: properties[name] for name in properties if name in kept},
        "required": [name for name in schema.get("required", ()) if name in kept],
    }
