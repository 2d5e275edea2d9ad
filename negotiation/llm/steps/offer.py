"""The provider's question about a candidate: its calls and conversions.

One question covers everything: the calls, the sources of their arguments, and the
sources of the response's fields. Code decides from the schemas if the answer works. A
capability that was not shown cannot be named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from negotiation.document.shape import Document
from negotiation.errors import SchemaError
from negotiation.llm.asking.questions import (
    BOOLEAN,
    TEXT,
    Question,
    ask_with,
    choice,
    fenced,
    many,
    one_line,
    record,
)
from negotiation.llm.links.claims import has_conversion
from negotiation.llm.links.frames import FieldUse, FieldUseForm, frame_form, read_frame
from negotiation.llm.links.plans import (
    PlannedCall,
    ProviderPlan,
    ShownValues,
    link_schema,
    shown_root,
    shown_values,
    takes_objects,
)
from negotiation.llm.links.shapes import ShapeForm, shape_form
from negotiation.llm.links.spots import described
from negotiation.llm.links.ways import ways_for
from negotiation.llm.steps.phrases import (
    MAX_TEXT,
    codec_part,
    codec_words,
    document_words,
    frame_words,
    problem_words,
    read_codec,
)
from negotiation.llm.steps.plan_reader import PlanParts, read_plan
from negotiation.mind import Offer
from negotiation.need import Capability, Role
from negotiation.rules.claims import dropped_values
from negotiation.rules.fit import action_for
from negotiation.rules.names import short_name
from negotiation.schema.intake import prepared

MAX_CALLS: Final = 3
"Largest number of capability calls for one request."

MAX_SHOWN: Final = 300
"Largest number of places in one question; above it capabilities are chosen first."

MAX_TOKENS: Final = 3_000
CODEC_TOKENS: Final = 6_000
RESERVED: Final = frozenset({"request", "result", "response", "arguments"})


@dataclass(frozen=True, slots=True)
class Unserved:
    """No exposed capability serves the request."""

    missing: str
    "The missing thing in the model's words, one line; may be empty."

    doubt: str = ""
    "Contradiction in the answer, for the model; empty if there is none."


@dataclass(frozen=True, slots=True)
class Unmapped:
    """Capabilities serve the request, but not with this document."""

    reasons: tuple[str, ...]
    "Reasons in words that the peer may see."

    capabilities: tuple[str, ...]
    "The capabilities meant, in the order of their calls."


@dataclass(frozen=True, slots=True)
class OfferForm:
    """The question about one candidate, with the data to check its answer."""

    document: Document
    offer: Offer
    frame: FieldUseForm
    request: ShownValues
    result: ShownValues

    takes: Mapping[str, ShownValues]
    "Places of each capability's arguments, by its name."

    gives: Mapping[str, ShownValues]
    "Places of each capability's output, by its name."

    shapes: ShapeForm

    @property
    def too_large(self) -> bool:
        """True when the capabilities must be chosen first."""
        every = [*self.takes.values(), *self.gives.values()]
        return len(self.takes) > 1 and sum(len(one.spots) for one in every) > MAX_SHOWN


def offer_form(document: Document, offer: Offer) -> OfferForm:
    """Return the questions about `document`.

    Raises:
        DocumentError: A message of it is not an object.
    """
    frame = frame_form(document, Role.PROVIDER)
    layout = frame.layout
    takes: dict[str, ShownValues] = {}
    gives: dict[str, ShownValues] = {}
    for one in sorted(offer.capabilities, key=lambda capability: capability.name):
        if one.name in RESERVED:
            continue
        try:
            given, gained = prepared(one.input_schema), prepared(one.output_schema)
        except SchemaError:
            # A half of ours could not call it either.
            continue
        takes[one.name] = shown_root(one.name, given)
        gives[one.name] = shown_root(one.name, gained, whole=True)
    request = shown_values(
        "request",
        document.request_schema,
        layout.request.places[0] if layout is not None else None,
        whole=takes_objects(takes.values()),
    )
    result = shown_values(
        "result",
        document.response_schema,
        layout.response.places[0] if layout is not None else None,
        whole=True,
    )
    shapes = shape_form(
        document.requirement,
        offer.capabilities,
        request=request,
        result=result,
        takes=takes,
        gives=gives,
        codes=frame.codes,
    )
    return OfferForm(document, offer, frame, request, result, takes, gives, shapes)


def offer_question(
    form: OfferForm,
    *,
    problems: Sequence[str] = (),
    previous: Mapping[str, Any] | None = None,
) -> Question:
    """Return the question about a candidate.

    Args:
        problems: Faults of an earlier answer, or of the half made from it.
        previous: The earlier answer.
    """
    names = list(form.takes)
    sources = [*form.request.names, *_names(form.gives)]
    call = record(
        capability=choice(names), arguments=link_schema(_names(form.takes), sources)
    )
    schema = record(
        calls=many(call, most=MAX_CALLS),
        **form.shapes.properties(),
        result=link_schema(form.result.names, sources),
        **form.frame.properties(),
        **codec_part(form.document),
        missing=TEXT,
        serves=BOOLEAN,
    )
    given = [one for each in form.gives.values() for one in each.spots]
    taken = [one for each in form.takes.values() for one in each.spots]
    return ask_with(
        "offer",
        {
            "requirement": fenced(form.document.requirement, limit=8_000),
            "document": document_words(form.document, told=form.document.requirement),
            "capabilities": fenced(_capabilities(form), limit=4 * MAX_TEXT),
            "request": fenced(described(form.request.spots), limit=MAX_TEXT),
            "result": fenced(described(form.result.spots), limit=MAX_TEXT),
            "ways": ways_for(
                [*form.request.spots, *given], [*taken, *form.result.spots]
            ),
            "shapes": form.shapes.words(),
            "frame": frame_words(form.frame),
            "codec": codec_words(form.document),
            "problems": problem_words(problems, previous),
        },
        schema=schema,
        max_tokens=MAX_TOKENS if form.document.is_json else CODEC_TOKENS,
    )


def read_offer(
    form: OfferForm, answer: Mapping[str, Any]
) -> ProviderPlan | Unserved | Unmapped:
    """Return the plan that an answer gives, or the reason for none."""
    calls: list[Mapping[str, Any]] = []
    for one in answer["calls"]:
        # The same call twice would be made twice.
        if one["capability"] in form.takes and one not in calls:
            calls.append(one)
    if not answer["serves"] or not calls:
        doubt = ""
        if answer["serves"] or calls:
            doubt = "`serves` is true if there are calls that serve, and false if not"
        return Unserved(one_line(answer["missing"], 300), doubt)
    meant = tuple(dict.fromkeys(one["capability"] for one in calls))
    frame = read_frame(form.frame, answer)
    if isinstance(frame, list):
        return Unmapped(tuple(frame), meant)
    codec = read_codec(form.document, answer)
    if isinstance(codec, list):
        return Unmapped(tuple(codec), meant)
    reasons: list[str] = []
    try:
        action = action_for(
            frame.layout.response.action_schema, [short_name(meant[0]), meant[0]]
        )
    except ValueError as exc:
        reasons.append(str(exc))
        action = None
    parts = PlanParts(
        document=form.document,
        offer=form.offer,
        frame=frame,
        request=form.request,
        result=form.result,
        takes=form.takes,
        gives=form.gives,
    )
    plan = read_plan(parts, {**answer, "calls": calls[:MAX_CALLS]}, reasons)
    if plan is not None and (missed := _dropped(form, frame, plan.every_call)):
        reasons.append(missed)
    if plan is None or reasons:
        return Unmapped(tuple(dict.fromkeys(reasons)), meant)
    return replace(plan, action=action, codec=codec)


def _dropped(form: OfferForm, frame: FieldUse, calls: Sequence[PlannedCall]) -> str:
    """Return why calls that are given nothing lose values of the words; else empty."""
    if any(has_conversion(one.arguments) for one in calls):
        # A constant may say the same in another way.
        return ""
    names = {one.capability for one in calls}
    called = [one for one in form.offer.capabilities if one.name in names]
    return dropped_values(form.document.requirement, called, frame.request_place.schema)


def choosing_question(form: OfferForm) -> Question:
    """Return the question for the capabilities that matter, when there are many."""
    lines = [
        f"{one.name}: {one_line(one.description)}"
        for one in sorted(form.offer.capabilities, key=lambda one: one.name)
        if one.name in form.takes
    ]
    return ask_with(
        "choose",
        {
            "requirement": fenced(form.document.requirement, limit=4_000),
            "capabilities": fenced("\n".join(lines), limit=4 * MAX_TEXT),
        },
        schema=record(
            capabilities=many(choice(form.takes), most=2 * MAX_CALLS), missing=TEXT
        ),
        max_tokens=500,
    )


def read_choice(form: OfferForm, answer: Mapping[str, Any]) -> Offer | Unserved:
    """Return the part of the offer with the chosen capabilities."""
    meant = [one for one in answer["capabilities"] if one in form.takes]
    chosen = tuple(one for one in form.offer.capabilities if one.name in meant)
    if not chosen:
        return Unserved(one_line(answer["missing"], 300))
    return Offer(chosen)


def _capabilities(form: OfferForm) -> str:
    parts = []
    by_name: dict[str, Capability] = {one.name: one for one in form.offer.capabilities}
    for name in form.takes:
        one = by_name[name]
        effect = "changes nothing" if one.read_only else "not marked read-only"
        parts.append(
            f"{one_line(name)} ({effect}): {one_line(one.description, 1_000)}\n"
            f"takes:\n{described(form.takes[name].spots)}\n"
            f"gives:\n{described(form.gives[name].spots)}"
        )
    return "\n\n".join(parts) or "(no capability is offered)"


def _names(shown: Mapping[str, ShownValues]) -> list[str]:
    return [name for one in shown.values() for name in one.names]
