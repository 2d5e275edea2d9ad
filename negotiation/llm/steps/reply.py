"""The requester's question about a document that uses other terms than the need.

It asks for the sources of the request's fields in the caller's arguments, and for those
of the caller's result in the response. Places without a source become reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from negotiation.document.shape import Document
from negotiation.errors import DocumentError, SchemaError
from negotiation.llm.asking.questions import (
    BOOLEAN,
    TEXT,
    Question,
    ask_with,
    fenced,
    one_line,
    record,
)
from negotiation.llm.links.claims import unit_missed
from negotiation.llm.links.frames import FieldUseForm, frame_form, read_frame
from negotiation.llm.links.plans import (
    RequesterPlan,
    ShownValues,
    link_schema,
    read_links,
    shown_root,
    shown_values,
    takes_objects,
)
from negotiation.llm.links.spots import Root, described
from negotiation.llm.links.trees import build_tree, is_open
from negotiation.llm.links.uses import empty_places, lost, taken_of, used_spots
from negotiation.llm.links.ways import ways_for
from negotiation.llm.steps.offer import CODEC_TOKENS, MAX_TOKENS, Unmapped, Unserved
from negotiation.llm.steps.phrases import (
    MAX_TEXT,
    codec_part,
    codec_words,
    document_words,
    frame_words,
    problem_words,
    read_codec,
)
from negotiation.mind import Demand
from negotiation.need import Role
from negotiation.rules.fit import action_for, action_names, given_schema
from negotiation.schema.intake import prepared
from negotiation.schema.terms import Drop, MappingProof
from negotiation.strict_json import canonical_json

MAX_DATA: Final = 4_000
"Largest part of the data at hand that a prompt shows, in characters."


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The question about one document, with the data to check its answer."""

    document: Document
    demand: Demand
    frame: FieldUseForm
    arguments: ShownValues
    request: ShownValues
    response: ShownValues
    result: ShownValues

    proof: MappingProof
    "Conditions that the schema of the arguments guarantees."


def reply_form(document: Document, demand: Demand) -> ReplyForm:
    """Return the questions about `document`.

    Raises:
        DocumentError: A message of it is not an object, or the need's schemas are
            over the limits.
    """
    frame = frame_form(document, Role.REQUESTER)
    layout = frame.layout
    need = demand.need
    inferred = need.input_schema is None
    try:
        given = prepared(given_schema(demand))
        wanted = prepared(True if need.output_schema is None else need.output_schema)
    except SchemaError as exc:
        raise DocumentError(f"the task's schema cannot be used: {exc}") from None
    request = shown_values(
        "request",
        document.request_schema,
        layout.request.places[0] if layout is not None else None,
    )
    return ReplyForm(
        document,
        demand,
        frame,
        shown_root("arguments", given, whole=takes_objects([request])),
        request,
        shown_values(
            "response",
            document.response_schema,
            layout.response.places[0] if layout is not None else None,
            whole=True,
        ),
        shown_root("result", wanted, whole=True),
        MappingProof.SHAPE if inferred else MappingProof.FULL,
    )


def reply_question(
    form: ReplyForm,
    *,
    problems: Sequence[str] = (),
    previous: Mapping[str, Any] | None = None,
) -> Question:
    """Return the question about a document.

    Args:
        problems: Faults of an earlier answer, or of the half made from it.
        previous: The earlier answer.
    """
    schema = record(
        request=link_schema(form.request.names, form.arguments.names),
        result=link_schema(form.result.names, form.response.names),
        **form.frame.properties(),
        **codec_part(form.document),
        missing=TEXT,
        usable=BOOLEAN,
    )
    # If the caller gave a schema, the data of one call adds nothing, and it is the
    # caller's own.
    data = ""
    if form.demand.need.input_schema is None:
        shown = canonical_json(form.demand.arguments).decode("utf-8")
        data = fenced(shown, limit=MAX_DATA)
    return ask_with(
        "reply",
        {
            "task": fenced(form.demand.need.requirement, limit=4_000),
            "data": data,
            "document": document_words(
                form.document, told=form.demand.need.requirement
            ),
            "arguments": fenced(described(form.arguments.spots), limit=MAX_TEXT),
            "request": fenced(described(form.request.spots), limit=MAX_TEXT),
            "response": fenced(described(form.response.spots), limit=MAX_TEXT),
            "result": fenced(described(form.result.spots), limit=MAX_TEXT),
            "ways": ways_for(
                [*form.arguments.spots, *form.response.spots],
                [*form.request.spots, *form.result.spots],
            ),
            "frame": frame_words(form.frame),
            "codec": codec_words(form.document),
            "problems": problem_words(problems, previous),
        },
        schema=schema,
        max_tokens=MAX_TOKENS if form.document.is_json else CODEC_TOKENS,
    )


def read_reply(
    form: ReplyForm, answer: Mapping[str, Any]
) -> RequesterPlan | Unserved | Unmapped:
    """Return the plan that an answer gives, or the reason for none."""
    if not answer["usable"]:
        doubt = ""
        if answer["request"] or answer["result"]:
            doubt = "`usable` is false although there are links"
        return Unserved(one_line(answer["missing"], 300), doubt)
    frame = read_frame(form.frame, answer)
    if isinstance(frame, list):
        return Unmapped(tuple(frame), ())
    codec = read_codec(form.document, answer)
    if isinstance(codec, list):
        return Unmapped(tuple(codec), ())
    reasons: list[str] = []
    given = form.arguments.root
    request = frame.request_place
    links, problems = read_links(
        answer["request"], form.request, [form.arguments], target_place=request
    )
    reasons += problems
    sent = build_tree(request.schema, links, [given], drop=Drop.NONE, proof=form.proof)
    if isinstance(sent, list):
        reasons += sent
    else:
        reasons += lost(given, used_spots(sent), Drop.NONE)
    response = frame.response_place
    links, problems = read_links(
        answer["result"],
        form.result,
        [form.response],
        source_places={"response": response},
    )
    reasons += problems
    gained = build_tree(
        form.result.root.schema,
        links,
        [Root("response", response.schema)],
        drop=Drop.ALL,
        judged=True,
    )
    if isinstance(gained, list):
        reasons += gained
    elif missed := unit_missed(form.demand.need.requirement, gained):
        reasons.append(missed)
    names, action = action_names(form.demand.need.requirement), None
    try:
        action = action_for(frame.layout.request.action_schema, names)
    except ValueError as exc:
        reasons.append(str(exc))
    if reasons or isinstance(sent, list) or isinstance(gained, list):
        return Unmapped(tuple(dict.fromkeys(reasons)), ())
    wanted = form.result.root.schema
    return RequesterPlan(
        frame,
        sent,
        gained,
        taken_of(given, [sent]),
        action,
        codec,
        wanted if is_open(gained) else None,
        empty_places(gained, wanted, [Root("response", response.schema)]),
    )
