"""Runs a half that rules wrote as a plan: its fit, carried out step by step.

The source text of such a half is made from a fit, and so is the plan: both are made
anew from the document, and the plan is used only if the source is the one that is
stored, byte for byte. It does what the source does as long as everything goes well,
which a test proves; a failed capability is told as well. Whatever is unusual or could
take long is left to the source in its worker: data that is refused, an update, a chain
of capabilities, a result that is judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from jsonic.exact_numbers import ExactEncoder
from negotiation.document.fields import Fixed, Message, Place, Slot
from negotiation.document.layout import ResponseLayout, find_layout
from negotiation.document.shape import Document, document_hash
from negotiation.errors import HalfError, JsonError
from negotiation.long_texts import write_bytes
from negotiation.mind import Demand, Offer, Side
from negotiation.rules.choice import Chain, NoChoice, choose
from negotiation.rules.fit import Fit, fit_provider, fit_requester
from negotiation.rules.halves import (
    SCALED,
    Unplaced,
    error_code_place,
    fallback_code,
    provider_source,
    requester_source,
)
from negotiation.schema.plan import KEEP, ByKind, Fields, Items, Mismatch, Step
from negotiation.schema.values import types_of
from negotiation.strict_json import Json, parse_json

MAX_SIZE: Final = 1024 * 1024
"Longest message that a plan reads, in bytes."

MAX_STEPS: Final = 50_000
"Values that one run looks at; about ten milliseconds."

MAX_DEPTH: Final = 64
MAX_BITS: Final = 2_048
"Longest integer that crosses to a worker."

KINDS: Final = {"object": dict, "array": list, "string": str, "boolean": bool}

FAULTS: Final = (JsonError, LookupError, TypeError, ValueError, RecursionError)
"Errors of a plan that its source meets as well."

_ENCODER: Final = ExactEncoder(allow_nan=False)


class NotPlanned(Exception):
    """The source has to do it, in a worker."""


def plan_of(
    document: Document, sides: Sequence[Side], source: str
) -> RequesterRun | ProviderRun | None:
    """Return the plan of our half, if our rules would write just this source for it.

    Args:
        sides: Sides that the half may have been written for.
        source: The stored source. It is compared, and never run.
    """
    if SCALED in source:
        # The sizes of units are not looked up for a call: the source has them.
        return None
    for side in [*sides, *_published(document, sides)]:
        fit = _fit(document, side)
        if fit is None:
            continue
        digest = document_hash(document.text)
        try:
            if isinstance(side, Demand):
                if requester_source(fit, digest) == source:
                    return RequesterRun(fit)
            elif provider_source(fit, digest) == source:
                return ProviderRun(fit)
        except HalfError:
            continue
    return None


def _published(document: Document, sides: Sequence[Side]) -> list[Demand]:
    """Return demands whose schemas are those of a capability that a peer published."""
    layout = find_layout(document)
    if layout is None:
        return []
    given = layout.request.places[0].schema
    wanted = layout.response.places[0].schema
    return [
        replace(
            side,
            need=replace(
                side.need,
                input_schema=side.need.input_schema or given,
                output_schema=side.need.output_schema or wanted,
            ),
        )
        for side in sides
        if isinstance(side, Demand)
    ]


def _fit(document: Document, side: Side) -> Fit | None:
    """Return how a document serves a side, if a plan can carry that out."""
    if isinstance(side, Demand):
        fit = fit_requester(document, side)
    else:
        chosen = choose(document, side.capabilities, side.hints)
        if isinstance(chosen, NoChoice | Chain):
            return None
        fit = fit_provider(document, chosen)
    if isinstance(fit, Mismatch) or fit.response.judged is not None:
        return None
    if isinstance(side, Offer) and fit.update is not None:
        return None
    return fit


class RequesterRun:
    """The plan of a requester half."""

    def __init__(self, fit: Fit) -> None:
        self._fit = fit
        self._message = _Message(
            fit.layout.request.fields, fit.request.place, fit.action
        )
        self._request_kind = _kind(fit.request.place)
        self._response_kind = _kind(fit.response.place)

    def encode_request(self, message_id: str, arguments: dict[str, Any]) -> Written:
        """Return a request.

        Raises:
            NotPlanned: The source has to try it.
        """
        step, place = self._fit.request.plan.step, self._fit.request.place
        try:
            _check_plain(arguments)
            values = _Conversion(Unplaced.RAISES).apply(step, arguments)
            _expect(values, self._request_kind)
            if not place.path and step == KEEP:
                _refuse(values, self._fit.layout.request.taken)
            return self._message.written(message_id, values)
        except FAULTS as exc:
            raise NotPlanned from exc

    def decode_response(self, response: Json) -> dict[str, Any]:
        """Return the message id of a response, and its result or its error.

        Raises:
            NotPlanned: It is an update, or the source has to try it.
        """
        layout, crossing = self._fit.layout, self._fit.response
        try:
            response = _object(response)
            message_id = _id_of(response, layout.message_id)
            if layout.update is not None and layout.update.mark in response:
                raise NotPlanned
            if not _says_good(layout.response, response):
                error = _error_of(layout.response, response)
                return {"message_id": message_id, "error": error}
            place = crossing.place
            values = _values(response, layout.response.taken, place)
            _expect(values, self._response_kind)
            result = _Conversion(Unplaced.DROPPED).apply(crossing.plan.step, values)
        except FAULTS as exc:
            raise NotPlanned from exc
        return {"message_id": message_id, "result": result}


class Written(NamedTuple):
    """A message that was written."""

    data: bytes
    "It as JSON."

    values: dict[str, Any]
    "The same before it was written."


@dataclass(frozen=True, slots=True)
class StartedRequest:
    """A request that was read, and the call that it asks for."""

    message_id: str | None
    capability: str
    arguments: Any


class ProviderRun:
    """The plan of a provider half that calls one capability."""

    def __init__(self, fit: Fit) -> None:
        assert fit.capability is not None
        self._fit = fit
        self._capability = fit.capability.name
        self._message = _Message(
            fit.layout.response.good, fit.response.place, fit.action
        )

    def begin(self, request: Json) -> StartedRequest:
        """Read a request.

        Raises:
            NotPlanned: The source has to try it.
        """
        layout, crossing = self._fit.layout, self._fit.request
        try:
            request = _object(request)
            message_id = _id_of(request, layout.message_id)
            values = _values(request, layout.request.taken, crossing.place)
            _expect(values, _kind(crossing.place))
            conversion = _Conversion(Unplaced.REFUSED)
            arguments = conversion.apply(crossing.plan.step, values)
        except FAULTS as exc:
            raise NotPlanned from exc
        return StartedRequest(message_id, self._capability, arguments)

    def answer(self, started: StartedRequest, output: Any) -> bytes:
        """Return the answer that carries a capability's output.

        Raises:
            NotPlanned: The source has to try it, with the output that there is.
        """
        try:
            _check_plain(output)
            conversion = _Conversion(Unplaced.DROPPED)
            result = conversion.apply(self._fit.response.plan.step, output)
            return self._message.written(started.message_id, result).data
        except FAULTS as exc:
            raise NotPlanned from exc

    def fail(self, started: StartedRequest, code: int, words: str) -> bytes:
        """Return the answer that says that the capability failed.

        Args:
            code: The code that it failed with.
            words: Its words for people.

        Raises:
            NotPlanned: The source has to try it.
        """
        response = self._fit.layout.response
        told, status = str(code), _status_of(code)
        slots: Mapping[Slot, Json] = {
            Slot.MESSAGE_ID: started.message_id,
            Slot.ACTION: self._fit.action,
            Slot.TEXT: words,
            Slot.CODE: _listed_code(response.codes, code, status),
            Slot.CODE_TEXT: str(status),
        }
        word = told if told in response.words else next(iter(response.words), "")
        own = {
            mark.path: word
            for mark in response.marks
            if isinstance(mark.bad, Fixed) and mark.bad.value in response.words
        }
        try:
            _check_scalar(words)
            return write_message(_tree(response.bad, slots, own))
        except FAULTS as exc:
            raise NotPlanned from exc


class _Message:
    """Writes messages of one kind; `message_lines` has the same for a source."""

    def __init__(self, fields: Message, place: Place, action: str | None) -> None:
        self._fields = fields
        self._path = place.path
        self._action = action

    def written(self, message_id: str | None, values: Any) -> Written:
        """Return a message with `values` at their place."""
        tree: dict[str, Any] = {}
        for names, leaf in self._fields:
            inner = tree
            for name in names[:-1]:
                inner = inner.setdefault(name, {})
            if isinstance(leaf, Fixed):
                inner[names[-1]] = leaf.value
            elif leaf is Slot.MESSAGE_ID:
                inner[names[-1]] = message_id
            elif leaf is Slot.ACTION:
                inner[names[-1]] = self._action
            else:
                raise NotPlanned
        if self._path:
            tree[self._path[0]] = values
        else:
            # The protocol's fields come last, so that no value can overwrite them.
            tree = {**values, **tree}
        return Written(write_message(tree), tree)


def _tree(
    fields: Message,
    slots: Mapping[Slot, Json],
    own: Mapping[tuple[str, ...], Json] | None = None,
) -> dict[str, Any]:
    """Return the protocol's own fields of a message.

    Args:
        own: Values of fields that have codes of the document's own.
    """
    tree: dict[str, Any] = {}
    for names, leaf in fields:
        inner = tree
        for name in names[:-1]:
            inner = inner.setdefault(name, {})
        value = leaf.value if isinstance(leaf, Fixed) else slots[leaf]
        inner[names[-1]] = (own or {}).get(names, value)
    return tree


# Errors, as the sources have them: `STATUS`, `mark_check` and the rest.


def _status_of(code: int) -> int:
    text = str(code)
    return code if len(text) == 3 and text[0] in "45" else 500


def _listed_code(codes: Sequence[int], code: int, status: int) -> int:
    """Return the number for a failure that a document has."""
    if not codes or code in codes:
        return code if codes else status
    return status if status in codes else fallback_code(codes, 500)


def _says_good(layout: ResponseLayout, response: dict[str, Any]) -> bool:
    for mark in layout.marks:
        if mark.required:
            good = _at(response, mark.path) in mark.good
        else:
            good = _found(response, mark.path) in ("", *mark.good)
        if not good:
            return False
    return layout.error is None or not response.get(layout.error)


def _error_of(layout: ResponseLayout, response: dict[str, Any]) -> dict[str, Json]:
    """Return code and message of a response that says error."""
    path, default = error_code_place(layout.marks, layout.error)
    code = _found(response, path) if path else default
    if default:
        code = code or default
    if not isinstance(code, int | str):
        code = "error"
    said = (_found(response, path) for path in layout.texts)
    words = next(filter(None, said), "no reason given")
    _check_scalar(code)
    # Of other values the source makes texts in its own way.
    _expect(words, str)
    return {"code": code, "message": words}


def _found(message: Any, path: Sequence[str]) -> Any:
    """Return the value at a place; an empty text if there is none."""
    for name in path:
        if not isinstance(message, dict) or name not in message:
            return ""
        message = message[name]
    return message


class _Conversion:
    """Applies the steps of a plan to one value, with an end to the work."""

    def __init__(self, unplaced: Unplaced) -> None:
        self._unplaced = unplaced
        self._left = MAX_STEPS

    def apply(self, step: Step, value: Any) -> Any:
        """Return `value` after `step`, as the functions of a source do."""
        match step:
            case Items(inner):
                _expect(value, list)
                self._spend(len(value))
                return [self.apply(inner, item) for item in value]
            case ByKind(of_object, of_array):
                if isinstance(value, dict):
                    return self.apply(of_object, value)
                return self.apply(of_array, value) if isinstance(value, list) else value
            case Fields():
                return self._fields(step, value)
        return value

    def _spend(self, steps: int) -> None:
        self._left -= steps + 1
        if self._left < 0:
            raise NotPlanned

    def _fields(self, step: Fields, value: Any) -> dict[str, Any]:
        _expect(value, dict)
        known = {field.source for field in step.fields}
        self._spend(len(value) + len(known) + len(step.dropped))
        others = [name for name in value if name not in known]
        lost = others and step.rest is None
        if lost and self._unplaced is not Unplaced.DROPPED:
            raise NotPlanned
        result: dict[str, Any] = dict(step.constants)
        sure = [field for field in step.fields if field.required and not field.default]
        for field in sure:
            result[field.target] = self.apply(field.step, value[field.source])
        for field in step.fields:
            if field in sure:
                continue
            if field.source in value:
                result[field.target] = self.apply(field.step, value[field.source])
            elif field.default:
                result[field.target] = field.default[0]
        if step.rest is not None:
            for name in others:
                result[name] = self.apply(step.rest, value[name])
        return result


def read_message(data: bytes) -> Json:
    """Return what a message says; None if it is no JSON, or too long for a plan."""
    try:
        return parse_json(data, max_size=MAX_SIZE)
    except JsonError:
        return None


def write_message(values: Json) -> bytes:
    """Return a message as plans write it; ValueError for what is no JSON."""
    return write_bytes(_ENCODER, values)


def _object(value: Json) -> dict[str, Any]:
    _expect(value, dict)
    assert isinstance(value, dict)
    return value


def _expect(value: Any, kind: type | None) -> None:
    if kind is not None and not isinstance(value, kind):
        raise NotPlanned


def _refuse(values: Any, names: Sequence[str] | frozenset[str]) -> None:
    if any(name in values for name in names):
        raise NotPlanned


def _kind(place: Place) -> type | None:
    types = types_of(place.schema)
    return KINDS.get(next(iter(types))) if len(types) == 1 else None


def _id_of(message: dict[str, Any], name: str | None) -> str | None:
    if name is None:
        return None
    found = message[name]
    _expect(found, str)
    return str(found)


def _at(message: Any, path: Sequence[str]) -> Any:
    for name in path:
        message = message[name]
    return message


def _values(message: dict[str, Any], taken: frozenset[str], place: Place) -> Any:
    if place.path and place.optional:
        return message.get(place.path[0], {})
    if place.path:
        return message[place.path[0]]
    return {name: value for name, value in message.items() if name not in taken}


def _check_scalar(value: Any) -> None:
    """Refuse a text that is no Unicode, a huge number, and all that JSON has not.

    Raises:
        NotPlanned, UnicodeEncodeError: The worker says what is wrong with it.
    """
    if isinstance(value, str):
        if not value.isascii():
            value.encode()
    elif type(value) is int:
        if value.bit_length() > MAX_BITS:
            raise NotPlanned
    elif not (isinstance(value, bool | float) or value is None):
        raise NotPlanned


def _check_plain(value: Any) -> None:
    """Refuse what may not cross to a worker, and values with too many others in them.

    Raises:
        NotPlanned: The worker says what is wrong with it.
    """
    left = MAX_STEPS
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                # Its names have to be texts; joining them tells.
                below.append("".join(one))
                below += one.values()
            elif isinstance(one, list):
                below += one
            else:
                _check_scalar(one)
        left -= len(below)
        if left < 0:
            raise NotPlanned
        if not below:
            return
        level = below
    raise NotPlanned
