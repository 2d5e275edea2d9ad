"""The purposes of message fields, where the rules alone cannot find them.

The rules of `layout` come first. For a response that they do not cover, a model sorts
the fields into a few roles. For errors with codes of the document's own, it assigns a
code to each kind of failure. Code makes a layout from its answer, or gives a reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from negotiation.document.fields import (
    Fixed,
    Mark,
    MessageFields,
    Place,
    Slot,
    places_of,
    take_message_id,
)
from negotiation.document.layout import (
    Layout,
    RequestLayout,
    ResponseLayout,
    find_layout,
)
from negotiation.document.shape import Document
from negotiation.errors import DocumentError
from negotiation.llm.asking.questions import TEXT, choice, many, record
from negotiation.llm.links.spots import (
    ITEMS,
    Root,
    Spot,
    bare_kind,
    spots_of,
    without_null,
)
from negotiation.need import Role
from negotiation.schema.plan import values_of
from negotiation.schema.values import contradiction
from negotiation.strict_json import Json

FAILURES: Final[dict[str, str]] = {
    "400": "the request cannot be used",
    "401": "not signed in",
    "403": "not allowed",
    "404": "not found",
    "409": "conflicts with what there is",
    "429": "too many requests",
    "500": "anything else",
    "503": "not available now",
}
"Kinds of failure of a capability, by the equivalent HTTP status."

FAILURE_WORDS: Final = "\n".join(f"{one}: {about}" for one, about in FAILURES.items())
"Descriptions of the kinds, for a prompt."

MAX_CODES: Final = 64
"Largest number of listed codes from which a model chooses."


class FieldRole(StrEnum):
    """The purpose of a field in a message."""

    MESSAGE_ID = "message_id"
    GOOD_OR_BAD = "good_or_bad"
    ERROR = "error"
    ERROR_CODE = "error_code"
    ERROR_TEXT = "error_text"
    RESULT = "result"
    VALUE = "value"


ROLE_WORDS: Final = "\n".join(
    (
        "message_id: tells which answer belongs to which request; it has to be "
        "carried over",
        "good_or_bad: says whether the request was served, such as a status",
        "error: an object that is there only when it was not",
        "error_code: which kind of failure it was",
        "error_text: words about the failure",
        "result: what was asked for, there in every answer that is good",
        "value: all else",
    )
)
"Descriptions of the roles, for a prompt."


@dataclass(frozen=True, slots=True)
class FieldUseForm:
    """The questions about the frame of a document's messages."""

    document: Document

    layout: Layout | None
    "The layout by the rules; None when they do not cover the document."

    fields: tuple[Spot, ...]
    "Fields whose role is asked; none when the rules know all roles."

    codes: tuple[Json, ...]
    "Listed error codes to assign to kinds of failure; none if there is no list."

    code_path: tuple[str, ...] = ()

    def properties(self) -> dict[str, dict[str, Any]]:
        """Return the part of the answer's schema about the frame."""
        found: dict[str, dict[str, Any]] = {}
        if self.fields:
            one = record(
                field=choice(spot.name for spot in self.fields), role=choice(FieldRole)
            )
            found["roles"] = many(one, most=len(self.fields))
            found["good"] = many(TEXT, most=4)
        if self.codes:
            pair = record(
                failure=choice(FAILURES), code=choice(map(_written, self.codes))
            )
            found["failures"] = many(pair, most=len(FAILURES))
        return found


@dataclass(frozen=True, slots=True)
class FieldUse:
    """The fields of both messages, with all that is needed to write and read them."""

    layout: Layout

    request_id: str | None
    "The request's property with the message id, or None."

    response_id: str | None
    "The response's property with the message id, or None."

    code_path: tuple[str, ...] = ()
    "Path of a code of the document's own; empty when it has none."

    codes: tuple[tuple[str, Json], ...] = ()
    "The document's code for each kind of failure that has one."

    default_code: Json = None
    "Its code for all other failures."

    @property
    def request_place(self) -> Place:
        """The place of a request's values."""
        return self.layout.request.places[0]

    @property
    def response_place(self) -> Place:
        """The place of the result."""
        return self.layout.response.places[0]


def frame_form(document: Document, role: Role) -> FieldUseForm:
    """Return the questions for a half of `role`.

    Raises:
        DocumentError: A message is not described as an object.
    """
    document = document.of_values
    layout = find_layout(document)
    if layout is not None:
        path, codes = _listed_codes(document, layout)
        return FieldUseForm(
            document, layout, (), codes if role is Role.PROVIDER else (), path
        )
    # The constructor checks that both messages are objects.
    request = MessageFields("request", document.request_schema)
    response = MessageFields("response", document.response_schema)
    fields = (
        *(one for one in _spots("request", request) if len(one.path) == 1),
        *(one for one in _spots("response", response) if len(one.path) <= 2),
    )
    listed = [
        value
        for spot in fields
        if spot.root == "response" and isinstance(spot.schema, dict)
        for value in values_of(spot.schema)
        if isinstance(value, str | int) and not isinstance(value, bool)
    ]
    codes = tuple({_written(one): one for one in listed}.values())[:MAX_CODES]
    return FieldUseForm(document, None, fields, codes if role is Role.PROVIDER else ())


def read_frame(form: FieldUseForm, answer: Mapping[str, Any]) -> FieldUse | list[str]:
    """Return the frame that `answer` to `form` gives, or the reasons for none."""
    given = [
        (one["failure"], one["code"])
        for one in answer.get("failures", ())
        if one["failure"] in FAILURES
    ]
    if form.layout is not None:
        name = form.layout.message_id
        codes, default = _table(given, form.codes)
        return FieldUse(form.layout, name, name, form.code_path, codes, default)
    by_name = {spot.name: spot for spot in form.fields}
    roles = {
        by_name[one["field"]]: FieldRole(one["role"])
        for one in answer.get("roles", ())
        if one["field"] in by_name
    }
    try:
        return _Sorted(form.document, roles, list(answer.get("good", ()))).frame(given)
    except DocumentError as exc:
        return [str(exc)]


class _Sorted:
    """A layout made from the roles that a model gave to fields."""

    def __init__(
        self, document: Document, roles: Mapping[Spot, FieldRole], good: list[str]
    ) -> None:
        self._request = MessageFields("request", document.request_schema)
        self._response = MessageFields("response", document.response_schema)
        self._roles = roles
        self._good_words = good
        self._marks: list[Mark] = []
        self._texts: list[tuple[str, ...]] = []
        self._bad: list[tuple[tuple[str, ...], Slot | Fixed]] = []
        self._good: list[tuple[tuple[str, ...], Slot | Fixed]] = []
        self._error: str | None = None
        self._code_path: tuple[str, ...] = ()
        self._codes: tuple[Json, ...] = ()

    def frame(self, given: Sequence[tuple[str, str]]) -> FieldUse:
        """Return the frame.

        Raises:
            DocumentError: The roles do not give a valid layout.
        """
        request_id, response_id = self._ids()
        for spot in self._of(FieldRole.ERROR):
            self._take_error(spot)
        for spot in self._of(FieldRole.GOOD_OR_BAD):
            self._take_mark(spot)
        for spot in self._of(FieldRole.ERROR_CODE):
            self._take_code(spot)
        for spot in self._of(FieldRole.ERROR_TEXT):
            self._take_text(spot)
        if not self._marks and self._error is None:
            raise DocumentError("the response has no field that tells good from bad")
        for fields, kind in ((self._request, "REQUEST"), (self._response, "RESPONSE")):
            fields.take_constants(kind, keep=None)
        self._check_error()
        sure = {spot.path[0] for spot in self._of(FieldRole.RESULT)}
        codes, default = _table(given, self._codes)
        layout = Layout(
            request_id if request_id == response_id else None,
            RequestLayout(
                fields=tuple(self._request.fields),
                places=places_of(self._request, None),
                taken=frozenset(self._request.taken),
                action_schema=None,
                action_value=None,
            ),
            ResponseLayout(
                good=(*self._response.fields, *self._good),
                bad=(*self._response.fields, *self._bad),
                taken=frozenset(self._response.taken),
                marks=tuple(self._marks),
                error=self._error,
                texts=tuple(self._texts),
                codes=(),
                places=_requiring(places_of(self._response, None), sure),
            ),
            frozenset(self._request.by_name | self._response.by_name),
        )
        return FieldUse(
            layout, request_id, response_id, self._code_path, codes, default
        )

    def _ids(self) -> tuple[str | None, str | None]:
        name = take_message_id(self._request, self._response)
        if name is not None:
            return name, name
        found: dict[str, str] = {}
        for spot, role in self._roles.items():
            top = len(spot.path) == 1
            if role is FieldRole.MESSAGE_ID and top and _takes_text(spot):
                found.setdefault(spot.root, spot.path[0])
        if found.keys() != {"request", "response"}:
            return None, None
        self._request.take(found["request"], Slot.MESSAGE_ID)
        self._response.take(found["response"], Slot.MESSAGE_ID)
        return found["request"], found["response"]

    def _of(self, role: FieldRole) -> list[Spot]:
        return [
            spot
            for spot, its in self._roles.items()
            if its is role and spot.root == "response"
        ]

    def _take_error(self, spot: Spot) -> None:
        if len(spot.path) != 1 or self._error is not None:
            raise DocumentError(f"{spot.pointer} cannot be the error as a whole")
        if spot.sure:
            if contradiction(spot.schema, None) is not None:
                raise DocumentError(f"{spot.pointer} is there in good answers too")
            self._good.append((spot.path, Fixed(None)))
        self._error = spot.path[0]
        self._response.take(self._error)
        if bare_kind(without_null(spot.schema)) == "string":
            self._texts.append(spot.path)
            self._bad.append((spot.path, Slot.TEXT))

    def _take_mark(self, spot: Spot) -> None:
        schema = without_null(spot.schema)
        listed = values_of(schema)
        kind = bare_kind(schema)
        self._response.take(spot.path[0])
        bad: Slot | Fixed
        if kind == "boolean":
            good: list[Json] = [True]
            bad = Fixed(False)
        elif listed:
            good = [one for one in listed if _written(one) in self._good_words]
            others = [one for one in listed if one not in good]
            if not good or not others:
                raise DocumentError(f"{spot.pointer} does not list good and bad")
            bad = Fixed(others[0])
            if len(others) > 1 and not self._of(FieldRole.ERROR_CODE):
                self._code_path, self._codes = spot.path, tuple(others)
        elif kind in {"integer", "number"}:
            good = [int(one) for one in self._good_words if one.isdecimal()] or [200]
            bad = Slot.CODE
        else:
            good = [*self._good_words] or ["ok"]
            bad = Fixed("error")
        good = [one for one in good if contradiction(schema, one) is None]
        if not good or (isinstance(bad, Fixed) and contradiction(schema, bad.value)):
            raise DocumentError(f"{spot.pointer} cannot say both good and bad")
        self._marks.append(Mark(spot.path, tuple(good), bad, spot.sure))
        self._good.append((spot.path, Fixed(good[0])))
        self._bad.append((spot.path, bad))

    def _take_code(self, spot: Spot) -> None:
        schema = without_null(spot.schema)
        listed = values_of(schema)
        self._response.take(spot.path[0])
        if listed:
            self._code_path, self._codes = spot.path, tuple(listed)
            self._bad.append((spot.path, Fixed(listed[0])))
        elif bare_kind(schema) == "integer":
            self._bad.append((spot.path, Slot.CODE))
        else:
            self._bad.append((spot.path, Slot.CODE_TEXT))

    def _take_text(self, spot: Spot) -> None:
        if not _takes_text(spot):
            raise DocumentError(f"{spot.pointer} does not take any text")
        self._response.take(spot.path[0])
        self._texts.append(spot.path)
        self._bad.append((spot.path, Slot.TEXT))
        if len(spot.path) == 1 and spot.sure:
            self._good.append((spot.path, Fixed("OK")))

    def _check_error(self) -> None:
        """Raise if an error has a required value that nothing provides."""
        written = {path for path, _ in self._bad}
        schema = self._response.schema
        for name in sorted({path[0] for path in written}):
            inner = without_null(schema.get("properties", {}).get(name, True))
            if not isinstance(inner, dict) or bare_kind(inner) != "object":
                continue
            for key in inner.get("required", ()):
                if (name, key) not in written:
                    one = inner.get("properties", {}).get(key, True)
                    listed = values_of(one)
                    if len(listed) != 1:
                        where = f"{name}/{key}"
                        raise DocumentError(
                            f"an error needs {where!r}, which is unclear"
                        )
                    self._bad.append(((name, key), Fixed(listed[0])))


def _spots(root: str, fields: MessageFields) -> Iterable[Spot]:
    every = spots_of(Root(root, fields.schema), whole=False)
    return (one for one in every if ITEMS not in one.path)


def _requiring(places: tuple[Place, ...], names: Collection[str]) -> tuple[Place, ...]:
    """Return `places`, with the fields `names` required where they are among values.

    The schema itself cannot require them, because error responses lack them.
    """
    found = []
    for place in places:
        schema = place.schema
        if not place.path and isinstance(schema, dict):
            sure = [name for name in schema.get("properties", {}) if name in names]
            required = dict.fromkeys([*schema.get("required", ()), *sure])
            place = replace(place, schema={**schema, "required": list(required)})
        found.append(place)
    return tuple(found)


def _takes_text(spot: Spot) -> bool:
    schema = without_null(spot.schema)
    free = isinstance(schema, dict) and not schema.keys() & {"enum", "const", "pattern"}
    return free and bare_kind(schema) == "string"


def _listed_codes(
    document: Document, layout: Layout
) -> tuple[tuple[str, ...], tuple[Json, ...]]:
    """Return the path and values of a code that the document lists, or nothing."""
    spots = {
        one.path: one
        for one in spots_of(Root("response", document.response_schema), whole=False)
    }
    good = {mark.path: mark.good for mark in layout.response.marks}
    for path, _ in layout.response.bad:
        schema = without_null(spots[path].schema) if path in spots else True
        listed = values_of(schema)
        codes = tuple(
            one
            for one in listed
            if one not in good.get(path, ())
            and isinstance(one, str | int)
            and not isinstance(one, bool)
        )
        if len(codes) > 1:
            return path, codes[:MAX_CODES]
    return (), ()


def _table(
    given: Iterable[tuple[str, str]], codes: Sequence[Json]
) -> tuple[tuple[tuple[str, Json], ...], Json]:
    known = {_written(one): one for one in codes}
    if not codes:
        return (), None
    # A code that a capability gives itself means itself, unless it is assigned
    # otherwise; so each code that a document promises can be reached.
    table = dict(known)
    table.update({failure: known[code] for failure, code in given if code in known})
    default = table.get("500", codes[-1])
    return tuple(sorted(table.items())), default


def _written(value: Json) -> str:
    return str(value)
