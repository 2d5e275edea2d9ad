"""Candidates that change a protocol that we hold, named by URI and hash.

An agreed text must be complete, as hash and readers on both sides use it alone. So the
base is written out in full with its changes: a model describes the changes of the
schemas as a list of small edits, and code makes them (ANP-26, ANP-27).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from negotiation.document.bases import named_base
from negotiation.document.markdown import read_outline
from negotiation.document.reader import read_document, read_requirement
from negotiation.document.shape import MAX_DOCUMENT_SIZE, Document, document_hash
from negotiation.errors import DocumentError, SchemaError
from negotiation.llm.asking.forms import BOOLEAN, TEXT, choice, many, record
from negotiation.llm.asking.prompts import ask_with, fenced
from negotiation.llm.asking.questions import Question
from negotiation.llm.links.spots import ITEMS, Root, Spot, described, spots_of
from negotiation.need import Schema
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import cut

__all__ = ["Base", "base_of", "changes_question", "read_changes", "with_base"]

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
    parts = ["# Requirement", _quoted(need), "# Base"]
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


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _fence(schema: Schema) -> str:
    text = json.dumps(schema, ensure_ascii=False, indent=2, sort_keys=True)
    return f"```json\n{text}\n```"
