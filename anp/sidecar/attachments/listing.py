"""Turns what a child says about its tools into capabilities; what it says is data."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import islice
from typing import Any

from anp.sidecar.attachments.attachment import AttachmentLimits
from anp.sidecar.attachments.spec import AttachmentSpec
from negotiation.errors import NegotiationError
from negotiation.need import Capability
from negotiation.schema.intake import SchemaLimits, check_limits
from sandbox.patterns.schemas import pattern_faults, without_faults

logger = logging.getLogger(__name__)

MAX_LEFT_OUT = 20
"Patterns of one attachment that are named when they are left out."

MAX_WORDS = 16
"Tags, examples and media types of a tool that are read, of each kind."

MAX_TAG = 64
MAX_EXAMPLE = 500
"Longest tag and longest example, in characters; longer ones are left out."

MAX_NAME = 128
"Most characters of a tool's name."


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool as its child described it."""

    name: str
    "Short name."

    description: str
    "In the child's words."

    input_schema: Any
    "Should be a JSON Schema of an object."

    output_schema: Any
    "Should be a JSON Schema of an object."

    read_only: bool = False
    "The child says that it changes nothing."

    idempotent: bool = False
    "The child says that it may be repeated."

    tags: Iterable[Any] = ()
    "Words for search."

    examples: Iterable[Any] = ()
    "Requests in words."

    input_modes: Iterable[Any] = ()
    "Media types that it takes; empty where nothing is said."

    output_modes: Iterable[Any] = ()
    "Media types that it gives; empty where nothing is said."

    updates: Any = None
    "Should be the JSON Schema of what comes before the answer; None for nothing."


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The capabilities that can be called, and the reasons why others cannot."""

    capabilities: tuple[Capability, ...] = ()
    "In the child's order, with full names."

    skipped: tuple[str, ...] = ()
    "Tools, parts of schemas and settings that have no effect, one line each."

    warnings: tuple[str, ...] = ()
    "Lines for the owner about what calls will need."

    title: str = ""
    "The name that the program gives itself; empty where it gives none."

    tools: Mapping[str, str] = field(default_factory=dict)
    "Full name of each capability → the tool's own name, which the owner may change."

    def under(self, name: str) -> ToolListing:
        """Return the same tools of an attachment with another name."""
        return replace(
            self,
            capabilities=tuple(
                replace(one, name=f"{name}.{one.name.partition('.')[2]}")
                for one in self.capabilities
            ),
            tools={
                f"{name}.{full.partition('.')[2]}": tool
                for full, tool in self.tools.items()
            },
        )


def is_tool_name(name: str) -> bool:
    """Return whether a tool may have a name, which may be in any script.

    It comes back in commands, documents and generated source, so it holds no blank and
    no sign that is read differently there, and has one spelling in Unicode (NFC).
    """
    letters = name.translate(dict.fromkeys(map(ord, "_./-"), ""))
    return (
        0 < len(name) <= MAX_NAME
        and name[0] not in "./-"
        and unicodedata.is_normalized("NFC", name)
        and all(unicodedata.category(one)[0] in "LMN" for one in letters)
    )


def read_tools(
    spec: AttachmentSpec, tools: Iterable[Tool], limits: AttachmentLimits
) -> ToolListing:
    """Return the tools that keep to the limits as capabilities of `spec`."""
    capabilities: dict[str, Capability] = {}
    names: dict[str, str] = {}
    skipped: list[str] = []
    left_out: list[str] = []
    for tool in tools:
        if len(capabilities) + len(skipped) >= limits.max_tools:
            skipped.append(f"all tools after the first {limits.max_tools}")
            break
        short = spec.rename.get(tool.name, tool.name)
        name = f"{spec.name}.{short}"
        try:
            if not is_tool_name(short):
                raise ValueError(
                    f"its name is not 1 to {MAX_NAME} letters, digits, _ . / and -; "
                    f"choose one with --rename '{tool.name[:64]}=NAME'"
                )
            if name in capabilities:
                raise ValueError("its name is used twice")
            capabilities[name] = _capability(spec, tool, name, limits, left_out)
            names[name] = tool.name
        except (ValueError, NegotiationError) as exc:
            skipped.append(f"{tool.name[:64]!r}: {exc}")
    for line in left_out:
        logger.warning("pattern left out tool=%s", line)
    listing = ToolListing(tuple(capabilities.values()), tuple(skipped), tools=names)
    skipped += left_out
    return replace(listing, skipped=(*skipped, *check_names(spec, listing)))


def check_names(spec: AttachmentSpec, listing: ToolListing) -> list[str]:
    """Return what is wrong with the names that the owner gave, one line each.

    A name that no tool has would otherwise do nothing, and nobody would see it.
    """
    if any("all tools after" in reason for reason in listing.skipped):
        return []
    known = {
        word: name
        for name, tool in listing.tools.items()
        for word in (tool, name.partition(".")[2], name)
    }
    problems = []
    for field_name in ("expose", "read_only", "idempotent", "conversational", "rename"):
        for name in getattr(spec, field_name):
            if name == "*" or name in known:
                continue
            near = get_close_matches(name, sorted(known), n=1, cutoff=0.5)
            hint = f"; did you mean {known[near[0]].partition('.')[2]}?" if near else ""
            problems.append(f"{field_name}: there is no capability {name}{hint}")
    return problems


def _capability(
    spec: AttachmentSpec,
    tool: Tool,
    name: str,
    limits: AttachmentLimits,
    left_out: list[str],
) -> Capability:
    allowed = SchemaLimits(max_size=limits.max_schema)
    short = name.partition(".")[2]
    schemas = [
        _checked(tool, kind, check_limits(schema, allowed), left_out)
        for kind, schema in (
            ("input", tool.input_schema),
            ("output", tool.output_schema),
        )
    ]
    updates = None
    if tool.updates is not None:
        checked = check_limits(tool.updates, allowed)
        updates = _checked(tool, "update", checked, left_out)
    return Capability(
        name=name,
        description=tool.description.strip()[: limits.max_description],
        input_schema=schemas[0],
        output_schema=schemas[1],
        read_only=tool.read_only or spec.says_read_only(tool.name, short),
        idempotent=tool.idempotent or spec.says_idempotent(tool.name, short),
        tags=_words(tool.tags, MAX_TAG),
        examples=_words(tool.examples, MAX_EXAMPLE),
        input_modes=_words(tool.input_modes, MAX_TAG),
        output_modes=_words(tool.output_modes, MAX_TAG),
        updates=updates,
    )


def _words(found: Any, longest: int) -> tuple[str, ...]:
    """Return the texts of a list, each once; what is no short text is left out."""
    if not isinstance(found, Iterable) or isinstance(found, str | Mapping):
        return ()
    words = [
        text
        for one in islice(found, MAX_WORDS)
        if isinstance(one, str) and (text := one.strip()) and len(text) <= longest
    ]
    return tuple(dict.fromkeys(words))


def _checked(tool: Tool, name: str, schema: Any, left_out: list[str]) -> Any:
    """Return a schema without the patterns that are not run; the tool stays usable.

    The tool checks its arguments itself; a document with such a pattern would be
    refused by every peer.
    """
    faults = list(pattern_faults(schema))
    if not faults:
        return schema
    room = MAX_LEFT_OUT - len(left_out)
    left_out += [
        f"{tool.name[:64]!r}: {name} schema, {fault[:300]}; it is not checked here"
        for fault in faults[:room]
    ]
    return without_faults(schema)
