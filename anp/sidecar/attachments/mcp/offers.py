"""Reads what an MCP server can do: its tools, prompts and resources."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from anp.sidecar.attachments.listing import Tool
from anp.sidecar.attachments.mcp.operations import (
    MAX_PAGES,
    McpOperation,
    listed_resources,
    of_prompt,
    of_resources,
    of_tool,
)

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.types import ServerCapabilities

logger = logging.getLogger(__name__)


async def read_offers(
    session: ClientSession, *, max_tools: int
) -> tuple[list[tuple[Tool, McpOperation]], list[str]]:
    """Return everything that can be called, and what the server has besides.

    Args:
        max_tools: Number of tools after which no further page is read.

    Returns:
        The offers, tools first, and one line for each thing that peers do not get.
    """
    able = session.server_capabilities
    assert able is not None, "the session has agreed on a version"
    offers: list[tuple[Tool, McpOperation]] = []
    if able.tools is not None or (able.prompts is None and able.resources is None):
        offers += await _tools(session, max_tools)
    if able.prompts is not None:
        offers += await _prompts(session, max_tools)
    if able.resources is not None and await _has_resources(session):
        offers += of_resources()
    return offers, _cannot(able)


async def _tools(session: ClientSession, most: int) -> list[tuple[Tool, McpOperation]]:
    from mcp.types import PaginatedRequestParams

    found: list[tuple[Tool, McpOperation]] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        wanted = PaginatedRequestParams(cursor=cursor)
        page = await session.list_tools(params=wanted)
        found += map(of_tool, page.tools)
        cursor = page.next_cursor
        if cursor is None or len(found) > most:
            break
    return found


async def _prompts(
    session: ClientSession, most: int
) -> list[tuple[Tool, McpOperation]]:
    from mcp.shared.exceptions import MCPError
    from mcp.types import PaginatedRequestParams

    found: list[tuple[Tool, McpOperation]] = []
    cursor: str | None = None
    try:
        for _ in range(MAX_PAGES):
            wanted = PaginatedRequestParams(cursor=cursor)
            page = await session.list_prompts(params=wanted)
            found += map(of_prompt, page.prompts)
            cursor = page.next_cursor
            if cursor is None or len(found) > most:
                break
    except MCPError as exc:
        # Some servers name what they do not have; their tools work.
        logger.info("no prompts: %s", exc.message)
    return found


async def _has_resources(session: ClientSession) -> bool:
    """True if there is anything to read; many servers say so and have nothing."""
    from mcp.shared.exceptions import MCPError

    try:
        return any(await listed_resources(session))
    except MCPError as exc:
        logger.info("no resources: %s", exc.message)
        return False


def _cannot(able: ServerCapabilities) -> list[str]:
    """Return what the server has and peers do not get, one line each."""
    found = []
    if able.resources is not None and able.resources.subscribe:
        found.append("subscriptions to resources: peers read them, and read them again")
    if able.completions is not None:
        found.append("proposals for arguments: peers get none")
    return found
