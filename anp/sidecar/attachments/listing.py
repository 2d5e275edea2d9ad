"""Turns what a child says about its tools into capabilities; what it says is data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from anp.sidecar.attachments.attachment import AttachmentLimits
from anp.sidecar.attachments.spec import AttachmentSpec
from negotiation.errors import NegotiationError
from negotiation.need import Capability
from negotiation.schema.intake import SchemaLimits, check_limits

__all__ = ["ToolListing", "Tool", "read_tools"]

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
    "One line for each tool that cannot be used."


def read_tools(
    spec: AttachmentSpec, tools: Iterable[Tool], limits: AttachmentLimits
) -> ToolListing:
    """Return the tools that keep to the limits as capabilities of `spec`."""
    capabilities: dict[str, Capability] = {}
    skipped: list[str] = []
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
            capabilities[name] = _capability(spec, tool, limits)
        except (ValueError, NegotiationError) as exc:
            skipped.append(f"{tool.name[:64]!r}: {exc}")
    return ToolListing(tuple(capabilities.values()), tuple(skipped))


def _capability(
    spec: AttachmentSpec, tool: Tool, limits: AttachmentLimits
) -> Capability:
    allowed = SchemaLimits(max_size=limits.max_schema)
    return Capability(
        name=f"{spec.name}.{tool.name}",
        description=tool.description.strip()[: limits.max_description],
        input_schema=check_limits(tool.input_schema, allowed),
        output_schema=check_limits(tool.output_schema, allowed),
        read_only=tool.read_only or spec.says_read_only(tool.name),
        idempotent=tool.idempotent or spec.says_idempotent(tool.name),
    )
