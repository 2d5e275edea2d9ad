"""Derives from a document's worked examples the inputs of a half that give them.

Pure: it finds the arguments, the capability's output or the error behind an example.
This is possible where the document uses the names of the need or the capability; a half
that renames or converts values is checked by the schemas alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from negotiation.document.fields import MessageFields, places_of, take_message_id
from negotiation.document.layout import Layout
from negotiation.document.message_judge import find
from negotiation.document.parts import Place, Slot
from negotiation.document.shape import Document, ExampleKind, WorkedExample
from negotiation.errors import CapabilityFailed, DocumentError
from negotiation.strict_json import Json

__all__ = ["Told", "failure_of", "pairs_of", "request_told", "value_at"]


@dataclass(frozen=True, slots=True)
class Told:
    """The input of a requester half that gives an example's request."""

    message_id: str
    "The message id; empty when the document has none."

    arguments: dict[str, Any]
    "The caller's data."


def request_told(
    document: Document, values: dict[str, Json], names: Collection[str]
) -> Told | None:
    """Return the input that gives a request with `values`, or None if unknown.

    Args:
        names: Names of the need's data; the example must use no others.
    """
    try:
        request = MessageFields("request", document.request_schema)
        message_id = take_message_id(
            request, MessageFields("response", document.response_schema)
        )
        # The half may choose the text of a free action.
        request.take_action()
        if request.action_schema is not None:
            return None
        own = document.input_schema is not None
        request.take_constants("REQUEST", keep="input" if own else None)
        places = places_of(request, "input" if own else None)
    except DocumentError:
        return None
    given = values.get(message_id) if message_id is not None else ""
    if not isinstance(given, str):
        return None
    for place in places:
        arguments = value_at(values, place, request.taken)
        if arguments is not None and arguments.keys() <= set(names):
            return Told(given, arguments)
    return None


def value_at(
    values: dict[str, Json], place: Place, taken: Collection[str]
) -> dict[str, Json] | None:
    """Return the object at `place`, or None if there is none.

    Args:
        taken: Names that are not values, for a place among other fields.
    """
    if not place.path:
        return {name: one for name, one in values.items() if name not in taken}
    found = find(values, place.path)
    return found if isinstance(found, dict) else None


def pairs_of(
    document: Document, layout: Layout | None, kind: ExampleKind
) -> list[tuple[WorkedExample, WorkedExample]]:
    """Return each worked request with the answer of `kind` that belongs to it.

    They belong together when they have the same message id; in a document without ids,
    when there is only one of each.
    """
    requests = document.examples_of(ExampleKind.REQUEST)
    answers = document.examples_of(kind)
    name = layout.message_id if layout is not None else None
    if name is None:
        alone = len(requests) == len(answers) == 1
        return [(requests[0], answers[0])] if alone else []
    return [
        (request, answer)
        for request in requests
        for answer in answers
        if request.values.get(name) == answer.values.get(name)
    ]


def failure_of(layout: Layout, values: dict[str, Json]) -> CapabilityFailed:
    """Return the most likely capability failure behind an error response."""
    response = layout.response
    codes = [
        find(values, path)
        for path, leaf in response.bad
        if leaf in {Slot.CODE, Slot.CODE_TEXT}
    ]
    texts = [find(values, path) for path in response.texts]
    code = next((one for one in codes if isinstance(one, int | str)), 500)
    text = next((one for one in texts if isinstance(one, str)), "it broke")
    return CapabilityFailed(str(code), text)
