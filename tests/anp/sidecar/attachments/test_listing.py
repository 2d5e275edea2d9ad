"""Tools whose schemas have patterns that are not run."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from anp.sidecar.attachments.attachment import AttachmentLimits
from anp.sidecar.attachments.listing import MAX_LEFT_OUT, Tool, read_tools
from anp.sidecar.attachments.spec import AttachmentSpec

SPEC = AttachmentSpec(kind="python", name="shop", target="shop:lookup")


def tool(**properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties}
    return Tool(
        name="lookup", description="", input_schema=schema, output_schema=schema
    )


def test_a_tool_with_a_lookahead_is_usable_without_that_pattern(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = tool(
        sku={"type": "string", "pattern": "^(?!x)"}, id={"pattern": "^[0-9]+$"}
    )
    with caplog.at_level(logging.WARNING):
        listing = read_tools(SPEC, [given], AttachmentLimits())
    [capability] = listing.capabilities
    wanted = {"sku": {"type": "string"}, "id": {"pattern": "^[0-9]+$"}}
    assert capability.input_schema == {"type": "object", "properties": wanted}
    assert capability.output_schema == capability.input_schema
    assert listing.skipped == tuple(
        f"'lookup': {part} schema, /properties/sku/pattern: the negative lookahead "
        "(?! is not supported; it is not checked here"
        for part in ("input", "output")
    )
    assert "pattern left out tool='lookup'" in caplog.text


def test_a_tool_without_such_a_pattern_keeps_its_schema() -> None:
    given = tool(sku={"type": "string", "pattern": r"^\p{L}+(?:-\d{1,3})?$"})
    listing = read_tools(SPEC, [given], AttachmentLimits())
    assert listing.capabilities[0].input_schema == given.input_schema
    assert listing.skipped == ()


def test_the_patterns_that_are_named_are_bounded() -> None:
    many = tool(**{f"p{number}": {"pattern": r"(a)\1"} for number in range(90)})
    listing = read_tools(SPEC, [many], AttachmentLimits())
    assert len(listing.capabilities) == 1
    assert len(listing.skipped) == MAX_LEFT_OUT
