"""Candidates in two special forms: changes of a protocol we hold, and several options.

An agreed text must be complete, as hash and readers on both sides use it alone. So a
base is written out in full with its changes: a model describes the changes of the
schemas as a list of small edits, and code makes them (ANP-26, ANP-27). Of several
options one is answered in full (ANP-4).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from negotiation.document.markdown import read_outline
from negotiation.document.prose import named_base
from negotiation.document.reader import read_document, read_requirement
from negotiation.document.renderer import quoted
from negotiation.document.shape import MAX_DOCUMENT_SIZE, Document, document_hash
from negotiation.errors import DocumentError, SchemaError
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
from negotiation.llm.links.spots import ITEMS, Root, Spot, described, spots_of
from negotiation.mind import Offer
from negotiation.need import Schema
from negotiation.rules.choice import NoChoice, choose
from negotiation.rules.fit import fit_provider
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import cut
from negotiation.schema.plan import Mismatch

TYPES: Final = ("string", "integer", "number", "boolean", "object", "array")
ACTIONS: Final = ("add", "remove", "rename", "type", "require", "optional")
NAME: Final = re.compile(r"[^\W\d][\w-]{0,63}")
MAX_EDITS: Final = 30


@dataclass(frozen=True, slots=True)
class Base:
    """The protocol that a candidate builds on, if we hold it."""

    uri: str

    document: Document
    "Its text after reading."

    whole: bool
    "True when the candidate can be read without it."

    problem: str = ""
    "Reason against using it, for the peer; empty when there is none."


def base_of(candidate: str, held: Mapping[str, str]) -> Base | None:
    """Return the base of a candidate if it names one that we hold."""
    if len(candidate) > MAX_DOCUMENT_SIZE:
        return None
    found = named_base(read_outline(candidate))
    text = held.get(found.uri) if found is not None else None
    if found is None or text is None:
        return None
    uri, stated = found.uri, found.sha256
    try:
        document = read_document(text)
    except DocumentError:
        return None
    try:
        read_document(candidate)
        whole = True
    except DocumentError:
        whole = False
    problem = ""
    if stated is not None and stated != document_hash(text):
        problem = (
            f"the base {cut(uri)} that is held here has the SHA-256 "
            f"{document_hash(text)}, not {stated}"
        )
    elif stated is None:
        problem = (
            f"the base {cut(uri)} is named without its SHA-256; the one that is held "
            f"here has {document_hash(text)}"
        )
    elif not document.is_json:
        problem = f"the base {cut(uri)} is not JSON; send the whole protocol"
    return Base(uri, document, whole, problem)


def with_base(text: str, requirement: str, held: Mapping[str, str]) -> str:
    """Return `text` with a note about the base that the need names, if we hold it."""
    for uri in sorted(held):
        if uri in requirement:
            note = f"# Base\n\nURI: {uri}\nSHA-256: {document_hash(held[uri])}\n"
            return f"{text}\n{note}\nWhat stands above is the whole protocol.\n"
    return text


def changes_question(candidate: str, base: Base) -> Question:
    """Return the question for the changes of a candidate to its base's schemas."""
    spots = _spots(base.document)
    edit = record(
        action=choice(ACTIONS),
        at=choice(spots),
        name=TEXT,
        type=choice(TYPES),
        description=TEXT,
        required=BOOLEAN,
    )
    return ask_with(
        "changes",
        {
            "candidate": fenced(candidate, limit=16_000),
            "base": fenced(described(spots.values()), limit=16_000),
        },
        schema=record(edits=many(edit, most=MAX_EDITS)),
        max_tokens=1_500,
    )


def read_changes(candidate: str, base: Base, answer: Mapping[str, Any]) -> str:
    """Return the candidate with its base written out in full.

    Raises:
        DocumentError: The edits cannot be made.
    """
    spots = _spots(base.document)
    schemas: dict[str, Any] = {
        "request": copy.deepcopy(base.document.request_schema),
        "response": copy.deepcopy(base.document.response_schema),
    }
    for one in answer["edits"][:MAX_EDITS]:
        spot = spots.get(one["at"])
        if spot is not None:
            _edit(schemas[spot.root], spot, one)
    need = read_requirement(candidate) or base.document.requirement
    parts = ["# Requirement", quoted(need), "# Base"]
    digest = document_hash(base.document.text)
    parts.append(f"URI: {base.uri}\nSHA-256: {digest}\n\nWritten out in full below.")
    for title, name in (
        ("Request message", "request"),
        ("Response message", "response"),
    ):
        try:
            schema = prepared(schemas[name])
        except SchemaError as exc:
            raise DocumentError(f"the changed {name} cannot be used: {exc}") from None
        parts += [f"# {title}", _fence(schema)]
    return "\n\n".join(parts) + "\n"


def _edit(schema: Any, spot: Spot, one: Mapping[str, Any]) -> None:
    """Make one edit; an edit of an unknown place is ignored.

    Raises:
        DocumentError: It gives a field no name, or that of another field.
    """
    path = spot.path if one["action"] == "add" else spot.path[:-1]
    parent = schema
    for step in path:
        inner = parent.get("items") if step == ITEMS else None
        inner = inner or parent.get("properties", {}).get(step)
        if not isinstance(inner, dict):
            return
        parent = inner
    properties: dict[str, Any] = parent.setdefault("properties", {})
    required: list[str] = parent.setdefault("required", [])
    name, old = one["name"], spot.path[-1] if spot.path else ""
    if one["action"] in {"add", "rename"}:
        if not NAME.fullmatch(name):
            raise DocumentError(f"a change gives a field the name {cut(name)!r}")
        if name in properties and (one["action"] == "add" or name != old):
            raise DocumentError(f"a change gives two fields the name {cut(name)!r}")
    if one["action"] == "add":
        properties[name] = {
            "type": one["type"],
            "description": one["description"][:300],
        }
        if one["required"] and name not in required:
            required.append(name)
        return
    if old not in properties:
        return
    match one["action"]:
        case "remove":
            del properties[old]
            parent["required"] = [each for each in required if each != old]
        case "rename":
            properties[name] = properties.pop(old)
            parent["required"] = [name if each == old else each for each in required]
        case "type":
            properties[old] = {"type": one["type"], "description": one["description"]}
        case "require" if old not in required:
            required.append(old)
        case "optional":
            parent["required"] = [each for each in required if each != old]


def _spots(document: Document) -> dict[str, Spot]:
    found: dict[str, Spot] = {}
    sides: tuple[tuple[str, Schema], ...] = (
        ("request", document.request_schema),
        ("response", document.response_schema),
    )
    for name, schema in sides:
        found.update({one.name: one for one in spots_of(Root(name, schema))})
    return found


def _fence(schema: Schema) -> str:
    text = json.dumps(schema, ensure_ascii=False, indent=2, sort_keys=True)
    return f"```json\n{text}\n```"


MAX_OPTIONS: Final = 6
"Largest number of options that are considered."

HEADING: Final = re.compile(
    r"^(#{1,4})[ \t]+(?:option|variant|alternative|选项|方案).{0,90}$",
    re.IGNORECASE | re.MULTILINE,
)
ANY_HEADING: Final = re.compile(r"^(#{1,4})[ \t]+\S", re.MULTILINE)
FENCED: Final = re.compile(
    r"^(`{3,}|~{3,}).*?^\1[`~]*[ \t]*$", re.DOTALL | re.MULTILINE
)


def split_options(text: str) -> list[str]:
    """Return each option as a document of its own, in order; none if there are none.

    Text before the first option belongs to all of them, and so does a section after the
    last one at the same level.
    """
    if len(text) > MAX_DOCUMENT_SIZE:
        return []
    # Blocks are blanked, so that headings inside them are ignored and positions stay.
    bare = FENCED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found = list(HEADING.finditer(bare))
    if len(found) < 2 or len({len(one[1]) for one in found}) != 1:
        return []
    level = len(found[0][1])
    end = next(
        (
            one.start()
            for one in ANY_HEADING.finditer(bare, found[-1].end())
            if len(one[1]) <= level
        ),
        len(text),
    )
    common, rest = text[: found[0].start()], text[end:]
    starts = [one.start() for one in found]
    options = []
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        # Without the heading, since the text would still speak of options.
        _, _, body = text[start:stop].partition("\n")
        option = f"{common.rstrip()}\n\n{body.strip()}\n\n{rest.strip()}".strip() + "\n"
        try:
            read_document(option)
        except DocumentError:
            continue
        options.append(option)
    return options[:MAX_OPTIONS] if len(options) > 1 else []


def fitting_option(options: Sequence[str], offer: Offer) -> int | None:
    """Return the number of the first option that schemas alone accept, from 1."""
    for number, text in enumerate(options, start=1):
        document = read_document(text)
        chosen = choose(document, offer.capabilities, offer.hints)
        if isinstance(chosen, NoChoice):
            continue
        if not isinstance(fit_provider(document, chosen), Mismatch):
            return number
    return None


def option_question(options: Sequence[str], offer: Offer) -> Question:
    """Return the question for the option that our capabilities serve best."""
    shown = "\n\n".join(
        f"Option {number}:\n{fenced(text, limit=8_000)}"
        for number, text in enumerate(options, start=1)
    )
    lines = [
        f"{one.name}: {one_line(one.description, 400)}"
        for one in sorted(offer.capabilities, key=lambda one: one.name)
    ]
    numbers = [str(number) for number in range(len(options) + 1)]
    return ask_with(
        "option",
        {"options": shown, "capabilities": fenced("\n".join(lines), limit=32_000)},
        schema=record(option=choice(numbers), missing=TEXT),
        max_tokens=300,
    )
