"""Tools as capabilities: patterns that are not run, tags and examples."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from mcp.types import Tool as McpTool

from anp.sidecar.attachments.attachment import AttachmentLimits
from anp.sidecar.attachments.declaration import DeclaredCapability
from anp.sidecar.attachments.http.declared import as_operation, as_tool
from anp.sidecar.attachments.http.openapi import read_openapi
from anp.sidecar.attachments.listing import MAX_LEFT_OUT, Tool, read_tools
from anp.sidecar.attachments.mcp.operations import of_tool
from anp.sidecar.attachments.spec import AttachmentSpec
from tests.clauses import clause

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


@clause("A2A-10")
def test_tags_and_examples_of_others_are_short_texts_each_once() -> None:
    odd = [" tea ", "tea", "", 5, None, "x" * 65, *(f"t{n}" for n in range(40))]
    modes: Any = 7
    tea = ["What tea is there?"]
    given = replace(tool(), tags=odd, examples=tea, input_modes=modes)
    (capability,) = read_tools(SPEC, [given], AttachmentLimits()).capabilities
    assert capability.tags == ("tea", *(f"t{number}" for number in range(10)))
    assert capability.examples == ("What tea is there?",)
    assert capability.input_modes == ()
    for wrong in ("tea", {"tea": 1}, None):
        given = replace(tool(), tags=wrong)  # type: ignore[arg-type]  # of a child
        (capability,) = read_tools(SPEC, [given], AttachmentLimits()).capabilities
        assert capability.tags == ()


@clause("A2A-10")
def test_tags_come_from_where_a_capability_does() -> None:
    declared = DeclaredCapability(
        name="draw", tags=("art",), examples=("Draw it.",), media_type="image/png"
    )
    for made in (as_tool(declared), as_operation(declared)):
        assert made.tags == ("art",)
        assert made.examples == ("Draw it.",)
        assert made.output_modes == ("image/png",)
    for key in ("fastmcp", "_fastmcp"):
        told = {
            "name": "a",
            "inputSchema": {"type": "object"},
            "_meta": {key: {"tags": ["tea"]}},
        }
        described, _ = of_tool(McpTool.model_validate(told))
        assert described.tags == ["tea"]
    operation = {"tags": ["tea"], "responses": {"200": {"description": "Good."}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Shop", "version": "1"},
        "paths": {"/tea": {"get": operation}},
    }
    (found,) = read_openapi(document).operations
    assert found.tags == ["tea"]
