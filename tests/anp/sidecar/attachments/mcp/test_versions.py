"""The version of the protocol that is agreed on with an MCP server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import REQUEST_TIMEOUT, UNSUPPORTED_PROTOCOL_VERSION

from anp.sidecar.attachments.mcp.exchange import agree_on_version
from anp.sidecar.attachments.requester import Reply
from tests.anp.sidecar.attachments.mcp.test_attachment import attached, call
from tests.anp.sidecar.attachments.mcp.test_content import asked

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
    ("answers", "methods"),
    [
        ([None], ["initialize"]),
        ([UNKNOWN, None], ["initialize", "discover"]),
        ([NEWER_ONLY, None], ["initialize", "discover"]),
        ([RuntimeError("no version in common"), None], ["initialize", "discover"]),
    ],
)
async def test_the_version_in_which_tools_ask_comes_first(
    answers: list[Exception | None], methods: list[str]
) -> None:
    session: Any = Session(*answers)
    await agree_on_version(session)
    assert session.asked == methods


@pytest.mark.parametrize(
    "answers", [[GONE, GONE], [NEWER_ONLY, SLOW], [UNKNOWN, RuntimeError("none")]]
)
async def test_a_server_that_refuses_both_ways_is_not_asked_for_ever(
    answers: list[Exception | None],
) -> None:
    session: Any = Session(*answers)
    with pytest.raises(MCPError):
        await agree_on_version(session)
    assert session.answers == []


ASKER = """
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("asker")


class Seat(BaseModel):
    seat: str


@server.tool()
async def book(flight: str, ctx: Context) -> str:
    found = await ctx.elicit("Which seat?", Seat)
    return f"{flight}: {found.data.seat}"


server.run("stdio")
"""


async def test_a_tool_of_a_server_of_all_versions_asks_while_it_works(
    tmp_path: Path,
) -> None:
    (tmp_path / "asker.py").write_text(ASKER)
    async with attached(sys.executable, str(tmp_path / "asker.py")) as my:
        with asked(Reply(value={"seat": "4A"})) as requester:
            found = await call(my, "book", flight="XY1")
    assert found == {"result": "XY1: 4A"}
    assert [one.text for one in requester.questions] == ["Which seat?"]
