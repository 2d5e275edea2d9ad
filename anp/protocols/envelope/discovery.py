"""The reserved actions: what an agent can do, asked for and announced (ENV-25)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anp.protocols.envelope.reader import MAX_NAME
from negotiation.need import Capability
from negotiation.strict_json import Json, canonical_json

MAX_ANNOUNCED = 256
"Most capabilities that one `register` names."

MAX_WANTED = 256
"Most names that one `discover` asks for."

MAX_DESCRIPTION = 4096
"Longest description that is passed on, in characters."

LARGEST_OFFSET = 2**31


class BadParameters(ValueError):
    """Parameters of a reserved action are not what the text says."""


def describe(
    capabilities: Sequence[Capability], parameters: Mapping[str, Json], *, max_size: int
) -> dict[str, Any]:
    """Return the result of `discover`: a page of the list, in the order of the names.

    Args:
        capabilities: What the asking peer may use.
        parameters: `names` (optional list) and `offset` (optional number).
        max_size: Most bytes of the list as JSON.

    Raises:
        BadParameters: In words that the peer may see.
    """
    offset, names = _wanted(parameters)
    chosen = [one for one in capabilities if names is None or one.name in names]
    page: list[Json] = []
    size = 0
    for index, capability in enumerate(chosen[offset:], start=offset):
        entry = _entry(capability)
        length = len(canonical_json(entry)) + 1
        if length > max_size:
            # A list with it could never be sent; its name and words still can.
            entry = {"name": entry["name"], "description": entry["description"]}
            length = len(canonical_json(entry)) + 1
        if size + length > max_size:
            return {"capabilities": page, "next": index}
        page.append(entry)
        size += length
    return {"capabilities": page}


def read_page(result: Json, offset: int) -> tuple[list[dict[str, Any]], int | None]:
    """Read a page of a peer's list: its entries, and where the next page begins.

    Raises:
        ValueError: It is not a result of `discover`.
    """
    if not isinstance(result, dict):
        raise ValueError("the result of discover is no object")
    following = result.get("next")
    if following is not None and (
        isinstance(following, bool)
        or not isinstance(following, int)
        or not offset < following <= LARGEST_OFFSET
    ):
        raise ValueError("`next` leads nowhere")
    return _entries(result.get("capabilities")), following


def read_announcement(parameters: Mapping[str, Json]) -> list[dict[str, Any]]:
    """Read the parameters of `register`.

    Raises:
        BadParameters: In words that the peer may see.
    """
    try:
        entries = _entries(parameters.get("capabilities"))
    except ValueError as exc:
        raise BadParameters(str(exc)) from None
    if len(entries) > MAX_ANNOUNCED:
        raise BadParameters(f"more than {MAX_ANNOUNCED} capabilities")
    return entries


def _wanted(parameters: Mapping[str, Json]) -> tuple[int, frozenset[str] | None]:
    offset = parameters.get("offset", 0)
    if (
        isinstance(offset, bool)
        or not isinstance(offset, int)
        or not 0 <= offset <= LARGEST_OFFSET
    ):
        raise BadParameters("offset is no number of the list")
    names = parameters.get("names")
    if names is None:
        return offset, None
    if not isinstance(names, list) or len(names) > MAX_WANTED:
        raise BadParameters(f"names is no list of at most {MAX_WANTED}")
    wanted = [name for name in names if isinstance(name, str)]
    if len(wanted) != len(names):
        raise BadParameters("names holds something that is no text")
    return offset, frozenset(wanted)


def _entry(capability: Capability) -> dict[str, Any]:
    return {
        "name": capability.name,
        "description": capability.description[:MAX_DESCRIPTION],
        "input_schema": capability.input_schema,
        "output_schema": capability.output_schema,
        "read_only": capability.read_only,
        "idempotent": capability.idempotent,
    }


def _entries(value: Json) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise ValueError("capabilities is no list")
    entries = []
    for entry in value:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
            raise ValueError(f"a capability without a name of 1 to {MAX_NAME}")
        entries.append(entry)
    return entries
