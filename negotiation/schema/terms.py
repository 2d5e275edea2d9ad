"""The terms under which schemas are compared: what may be lost, what must be sure."""

from __future__ import annotations

from enum import Enum, auto


class Drop(Enum):
    """The declared properties of the source that may have no place in the target."""

    NONE = auto()
    "None: a caller's own data, of which nothing declared may be lost."

    OPTIONAL = auto()
    "Optional ones: a request to a capability that does not take every option."

    ALL = auto()
    "All: a result, of which the caller takes the part it asked for."


class MappingProof(Enum):
    """The conditions that the source schema must guarantee."""

    FULL = auto()
    "All conditions: types, limits, enums and formats."

    SHAPE = auto()
    "Names and types; the source was inferred from data that is checked on every call."

    OPEN = auto()
    """Never invented: no condition on what the source leaves open or may leave out.

    Such a value is copied, and judged at run time: one that is absent or unfit becomes
    the document's error, which names its place.
    """


def normal_name(name: str) -> str:
    """Return `name` without case and separators, for comparisons."""
    return "".join(
        ch for ch in name.casefold() if ch not in "_-. " and not ch.isspace()
    )
