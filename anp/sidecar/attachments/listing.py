"""Turns what a child says about its tools into capabilities; what it says is data."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from anp.sidecar.attachments.attachment import AttachmentLimits
from anp.sidecar.attachments.spec import AttachmentSpec
from negotiation.errors import NegotiationError
from negotiation.need import Capability
from negotiation.schema.intake import SchemaLimits, check_limits
from sandbox.patterns.schemas import pattern_faults, without_faults

__all__ = ["ToolListing", "Tool", "read_tools"]

logger = logging.getLogger(__name__)

MAX_LEFT_OUT = 20
"Patterns of one attachment that are named when they are left out."

TOOL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}")
"Names of tools; they come back in commands, documents and generated source."


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


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The capabilities that can be called, and the reasons why others cannot."""

    capabilities: tuple[Capability, ...] = ()
    "In the child's order, with full names."

    skipped: tuple[str, ...] = ()
    "One line for each tool that cannot be used, or for a part of its schema."


def read_tools(
    spec: AttachmentSpec, tools: Iterable[Tool], limits: AttachmentLimits
) -> ToolListing:
    """Return the tools that keep to the limits as capabilities of `spec`."""
    capabilities: dict[str, Capability] = {}
    skipped: list[str] = []
    left_out: list[str] = []
    for tool in tools:
        if len(capabilities) + len(skipped) >= limits.max_tools:
            skipped.append(f"all tools after the first {limits.max_tools}")
            break
        name = f"{spec.name}.{tool.name}"
        try:
            if not TOOL_NAME.fullmatch(tool.name):
                raise ValueError("its name is no plain word")
            if name in capabilities:
                raise ValueError("its name is used twice")
            capabilities[name] = _capability(spec, tool, limits, left_out)
        except (ValueError, NegotiationError) as exc:
            skipped.append(f"{tool.name[:64]!r}: {exc}")
    for line in left_out:
        logger.warning("pattern left out tool=%s", line)
    return ToolListing(tuple(capabilities.values()), (*skipped, *left_out))


def _capability(
    spec: AttachmentSpec, tool: Tool, limits: AttachmentLimits, left_out: list[str]
) -> Capability:
    allowed = SchemaLimits(max_size=limits.max_schema)
    schemas = [
        _checked(tool, name, check_limits(schema, allowed), left_out)
        for name, schema in (
            ("input", tool.input_schema),
            ("output", tool.output_schema),
        )
    ]
    return Capability(
        name=f"{spec.name}.{tool.name}",
        description=tool.description.strip()[: limits.max_description],
        input_schema=schemas[0],
        output_schema=schemas[1],
        read_only=tool.read_only or spec.says_read_only(tool.name),
        idempotent=tool.idempotent or spec.says_idempotent(tool.name),
    )


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
