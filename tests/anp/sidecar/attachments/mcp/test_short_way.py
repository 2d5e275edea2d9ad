"""The short way to a server's tools reads what the session reads, and nothing else."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import ClientSession
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.types import DiscoverResult, InitializeResult
from pydantic import ValidationError

from anp.sidecar.attachments.mcp import stdio_transport as module
from anp.sidecar.attachments.mcp.content import block_part
from anp.sidecar.attachments.mcp.exchange import CallTalk, PlainResult, short_way
from anp.sidecar.attachments.mcp.questions import Asking
from anp.sidecar.attachments.mcp.stdio_transport import PipeDispatcher

SERVER = {"name": "s", "version": "1"}
LEGACY = InitializeResult.model_validate(
    {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": SERVER}
)
MODERN = DiscoverResult.model_validate(
    {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {},
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
)

TEXT = {"type": "text", "text": "t"}
VALUES = st.sampled_from([None, True, 1, "x", [], {}, {"a": [1, None]}, [1]])
BLOCKS = st.sampled_from(
    [
        TEXT,
        {"type": "text", "text": "other"},
        {"type": "text", "text": 1},
        {"type": "text"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {**TEXT, "annotations": {"priority": 2}},
        {**TEXT, "more": 1},
        "text",
    ]
)
PLAIN = {
    "content": [TEXT],
    "structuredContent": {"a": 1},
    "isError": False,
    "resultType": "complete",
    "_meta": {"a": 1},
}
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "content": st.lists(BLOCKS, max_size=2) | VALUES,
    "structuredContent": VALUES,
    "isError": st.sampled_from([True, False, 0, 1, "yes", None]),
    "resultType": st.sampled_from(["complete", "input_required", "odd", 1, None]),
    "_meta": st.sampled_from([{}, {"a": 1}, {"progressToken": []}, [], 1, None]),
    "ttlMs": st.integers(-1, 1),
    "inputRequests": st.just({}),
}


@st.composite
def answers_of_a_tool(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return a plain answer, and others that differ from it in one or two fields."""
    left = draw(st.sets(st.sampled_from(sorted(PLAIN)), min_size=3))
    first = {key: value for key, value in PLAIN.items() if key in left}
    found = [first]
    for _ in range(6):
        names = draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=2))
        found.append(first | {name: draw(FIELDS[name]) for name in names})
    return found


class Scripted(PipeDispatcher):
    """Gives each answer once, and keeps the parameters of the requests."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []
        self.asked: list[Mapping[str, Any]] = []

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
    ) -> dict[str, Any]:
        if module._stand_in.get() is not None:
            return await super().send_raw_request(method, params, opts)
        self.asked.append(params or {})
        return copy.deepcopy(self.answers.pop(0))


async def talk(version: DiscoverResult | InitializeResult) -> tuple[Scripted, CallTalk]:
    pipes = Scripted()
    session = ClientSession(dispatcher=pipes)
    session.adopt(version)
    short = await short_way(session, pipes)
    return pipes, CallTalk(session, short, {"own": "1"}, None, Asking(None))


async def outcome(pipes: Scripted, one: CallTalk, answer: dict[str, Any]) -> Any:
    """Return what a call says when the server answers so, and nothing after it."""
    pipes.answers = [answer]
    try:
        found = await one.call_tool("t", {"n": 1}, as_task=False)
    except (ValidationError, MCPError, IndexError) as exc:
        return type(exc)
    parts = [block_part(one) for one in found.content]
    return parts, found.structured_content, found.is_error


@pytest.mark.parametrize("version", [LEGACY, MODERN], ids=["legacy", "modern"])
@given(answers=answers_of_a_tool())
def test_each_answer_is_read_as_the_session_reads_it(
    version: DiscoverResult | InitializeResult, answers: list[dict[str, Any]]
) -> None:
    async def both() -> None:
        pipes, shortly = await talk(version)
        slowly = CallTalk(shortly.session, None, {"own": "1"}, None, Asking(None))
        # Each comes twice, so that the second one may find the first one known.
        for answer in [one for one in answers for _ in range(2)]:
            wanted = await outcome(pipes, slowly, answer)
            asked = pipes.asked[-1]
            assert await outcome(pipes, shortly, answer) == wanted
            assert pipes.asked[-1] == asked

    asyncio.run(both())


async def test_a_plain_answer_goes_past_the_session() -> None:
    pipes, one = await talk(MODERN)
    answer = {"content": [TEXT], "structuredContent": {}, "resultType": "complete"}
    pipes.answers = [answer, answer]
    assert not isinstance(await one.call_tool("t", {}, as_task=False), PlainResult)
    assert isinstance(await one.call_tool("t", {}, as_task=False), PlainResult)
