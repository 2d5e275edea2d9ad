"""The version of the protocol that is agreed on with an MCP server."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import REQUEST_TIMEOUT, UNSUPPORTED_PROTOCOL_VERSION

from anp.sidecar.attachments.mcp.exchange import agree_on_version

UNKNOWN = MCPError(-32601, "Method not found")
SLOW = MCPError(REQUEST_TIMEOUT, "timed out")
NEWER_ONLY = MCPError(UNSUPPORTED_PROTOCOL_VERSION, "2026-07-28 only")
GONE = MCPError(-32000, "Connection closed")


class Session:
    """A session whose server answers both ways to begin as a script says."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def discover(self) -> None:
        self._answer("discover")

    async def initialize(self) -> None:
        self._answer("initialize")

    def _answer(self, method: str) -> None:
        self.asked.append(method)
        if (error := self.answers.pop(0)) is not None:
            raise error


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ([None], ["discover"]),
        ([UNKNOWN, None], ["discover", "initialize"]),
        ([RuntimeError("no version in common"), None], ["discover", "initialize"]),
        ([SLOW, NEWER_ONLY, None], ["discover", "initialize", "discover"]),
    ],
)
async def test_the_newest_version_comes_first(
    answers: list[Exception | None], asked: list[str]
) -> None:
    session: Any = Session(*answers)
    await agree_on_version(session)
    assert session.asked == asked


@pytest.mark.parametrize(
    "answers", [[GONE, GONE], [SLOW, NEWER_ONLY, SLOW, NEWER_ONLY]]
)
async def test_a_server_that_refuses_both_ways_is_not_asked_for_ever(
    answers: list[Exception | None],
) -> None:
    session: Any = Session(*answers)
    with pytest.raises(MCPError):
        await agree_on_version(session)
    assert session.answers == []
