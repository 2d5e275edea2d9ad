"""Words of a requirement that a capability has to keep, as far as rules can tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from negotiation.need import Capability, Schema
from negotiation.rules.templates import values_in_words
from negotiation.schema.keywords import keywords_of
from negotiation.schema.units import missed_unit
from negotiation.strict_json import canonical_json

MAX_KNOWN: Final = 20_000
"Most characters of a capability's own words that are looked through."

MAX_LISTED: Final = 3
"Largest number of values named in one reason."


def missed_claim(requirement: str, capability: Capability, given: Schema) -> str:
    """Return why a capability, called by rules, would not keep the words; else empty.

    Rules convert no units. They also move no value out of the words: a request that
    gives nothing, for a capability that takes something, would drop what the words say.

    Args:
        given: Schema of the values that the request gives.
    """
    if missed := missed_unit(requirement, capability.output_schema):
        return missed
    return dropped_values(requirement, [capability], given)


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
