"""Words of a requirement that a capability has to keep, as far as rules can tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from negotiation.document.shape import Document
from negotiation.mind import Demand
from negotiation.need import Capability, Schema
from negotiation.rules.fit import Fit
from negotiation.rules.names import content
from negotiation.rules.templates import CLASSES, SPEAKING, listed, values_in_words
from negotiation.schema.keywords import keywords_of
from negotiation.schema.plan import SAME_SIZE
from negotiation.schema.units import (
    Unit,
    asked_units,
    has_numbers,
    same_kind,
    scale_between,
    stated_units,
)
from negotiation.schema.values import types_of
from negotiation.strict_json import Json, canonical_json

MAX_KNOWN: Final = 20_000
"Most characters of a capability's own words that are looked through."

MAX_LISTED: Final = 3
"Largest number of values named in one reason."


NOT_UNITS: Final = (
    frozenset[str]().union(*CLASSES.values())
    | SPEAKING
    | listed(
        "stock order detail details full advance progress case particular addition "
        "fact place turn time use short words percent percentage number numbers digits "
        "json ascending descending alphabetical chronological reverse real"
    )
)
"Words that no sentence means as a unit, such as those of `in stock` and `in March`."


class UnitMissed(NamedTuple):
    """A unit that the words ask for, and that a result would not have."""

    reason: str

    word: str
    "The word that only the data of the call may hold; empty if the data cannot help."


def missed_unit(
    requirement: str, results: Sequence[Schema], *, words: str, data: Json = None
) -> UnitMissed | None:
    """Return what a result misses of the units that a requirement asks for.

    Args:
        results: The result's schemas of both sides, as far as they are known.
        words: Names, descriptions and listed values of both sides.
        data: The data of the call at hand, as far as it is known.
    """
    known = [one for one in results if one not in ({}, True)]
    stated = [one for schema in known for one in stated_units(schema)]
    has_number = all(map(has_numbers, known))
    told = content(canonical_json(data).decode()) if data else frozenset[str]()
    for word, unit in asked_units(requirement):
        if unit is None:
            missed = has_number and word.casefold() not in NOT_UNITS
            if missed and content(word) - told - content(words[:MAX_KNOWN]):
                reason = (
                    f"the words ask for a number in {word!r}, which is no known unit"
                )
                return UnitMissed(f"{reason}, and neither side names it", word)
        elif not any(_is_same(unit, one) for _, one in stated):
            for path, one in stated:
                if same_kind(unit, one):
                    where = "/".join(path) or "the result"
                    reason = f"{unit.said} is asked for, and {where} is in {one.said}"
                    return UnitMissed(reason, "")
            if has_number and content(word) - told:
                reason = f"{unit.said} is asked for, and neither side states it"
                return UnitMissed(reason, word)
    return None


def _is_same(one: Unit, other: Unit) -> bool:
    return one == other or scale_between(one, other) == SAME_SIZE


def missed_by_document(document: Document, fit: Fit, demand: Demand) -> str:
    """Return why a peer's document would not keep the words of a need; else empty."""
    need, schemas = demand.need, [fit.response.place.schema, fit.request.place.schema]
    if document.requirement == need.requirement:
        # Our own proposal, which the peer has judged by its own words.
        return ""
    own = [need.output_schema or {}, need.input_schema or {}]
    words = canonical_json([document.requirement, *schemas, *own]).decode()
    results = [own[0], schemas[0]]
    missed = missed_unit(need.requirement, results, words=words, data=demand.arguments)
    return missed.reason if missed else ""


def missed_claim(
    requirement: str,
    capability: Capability,
    given: Schema,
    wanted: Schema,
    *,
    data: Json = None,
) -> UnitMissed | None:
    """Return what a capability, called by rules, would not keep of the words.

    Rules also move no value out of the words: a request that gives nothing, for a
    capability that takes something, would drop what the words say.

    Args:
        given: Schema of the values that the request gives.
        wanted: Schema of the result that the requester wants.
        data: The data of the call at hand, as far as it is known.
    """
    words = f"{_own_words(capability)} {canonical_json([given, wanted]).decode()}"
    results = [capability.output_schema, wanted]
    missed = missed_unit(requirement, results, words=words, data=data)
    if missed is not None:
        return missed
    dropped = dropped_values(requirement, [capability], given)
    return UnitMissed(dropped, "") if dropped else None


def may_hold_words(schema: Schema) -> bool:
    """Return whether a value of a schema has a property that may be a text."""
    properties = keywords_of(schema).get("properties", {})
    return any("string" in types_of(one) for one in properties.values())


def dropped_values(
    requirement: str, called: Sequence[Capability], given: Schema
) -> str:
    """Return why calls without arguments would drop what the words say; else empty.

    Args:
        called: The capabilities, which get nothing but what the request gives.
        given: Schema of the values that the request gives.
    """
    takes = any(keywords_of(one.input_schema).get("properties") for one in called)
    if not takes or keywords_of(given).get("properties"):
        return ""
    known = " ".join(map(_own_words, called))
    values = values_in_words(requirement, known)
    if not values:
        return ""
    named = ", ".join(dict.fromkeys(values[:MAX_LISTED]))
    return f"no argument carries what the words say ({named}); give it as data"


def _own_words(capability: Capability) -> str:
    schemas = canonical_json([capability.input_schema, capability.output_schema])
    words = f"{capability.name} {capability.description} {schemas.decode()}"
    return words[:MAX_KNOWN]
