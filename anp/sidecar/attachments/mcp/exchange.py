"""The requests of one call at an MCP server, until it has its result.

A server may want something before it answers: since 2026-07-28 in its answer
(`InputRequiredResult`), before that in a request of its own, or in an error that names
pages to be visited. A tool that works as a task only is started, followed and fetched.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Literal

from anp.sidecar.attachments.attachment import Progress, ToolError
from anp.sidecar.attachments.mcp.questions import Asking

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.shared.dispatcher import CallOptions, Dispatcher
    from mcp.shared.exceptions import MCPError
    from mcp.shared.transport_context import TransportContext
    from mcp.types import (
        CallToolRequest,
        CallToolResult,
        ElicitResult,
        GetPromptResult,
        InputRequest,
        ReadResourceResult,
    )
    from pydantic import TypeAdapter

    from anp.sidecar.attachments.mcp.stdio_transport import PipeDispatcher

MAX_ROUNDS = 10
"Times that a server may ask before it answers one request."

ROUND_WAIT = 0.25
"Seconds before a server that asks nothing but to come again is asked again."

TASK_TTL = 24 * 3600 * 1000
"Milliseconds for which a server is to keep a task, as long as the longest call."

MIN_POLL, MAX_POLL = 0.2, 30.0
"Fewest and most seconds between two looks at a server's task."

CANCEL_TIMEOUT = 2.0
"Seconds for telling the server that nobody waits for its task."

PLAIN: Final = frozenset(
    {"content", "structuredContent", "isError", "resultType", "_meta"}
)
"Keys of a tool's answer that may be read the short way."

TEXT: Final = frozenset({"type", "text"})
"Keys of a block of content that is a plain text."

NO_MODEL = "the tool wants a model or folders of its client; peers' calls have neither"


async def agree_on_version(session: ClientSession, *, newest: bool = False) -> None:
    """Agree with the server on a version of the protocol, by the handshake if it can.

    Most tools that ask for something ask while they work, which a server can do only
    after the handshake: MCP 2026-07-28 has no way for it.

    Args:
        newest: True for a server whose tools ask in their answers, as of 2026-07-28.

    Raises:
        MCPError: It refuses both ways, or is gone.
    """
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    ways = session.initialize, session.discover
    first, second = reversed(ways) if newest else ways
    try:
        await first()
    except (MCPError, ValidationError, RuntimeError) as exc:
        # Servers of 2026-07-28 alone know no handshake, and older ones nothing else.
        try:
            await second()
        except (ValidationError, RuntimeError):
            raise exc from None


@dataclass(frozen=True, slots=True)
class PlainText:
    """A block of content that is a text and nothing else."""

    text: str

    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class PlainResult:
    """The result of a tool in texts, with or without a value."""

    content: list[PlainText]

    structured_content: dict[str, Any] | None

    is_error: bool


class ShortWay:
    """Calls tools at a server on stdio, past the models of the session.

    These take as long for a plain answer as all else that we do for it. An answer is
    read here if it differs from one that the session read only where no model can
    object: in texts, and in the value. The session reads all others.

    Args:
        meta: Entries of `_meta` that the session gives each request.
    """

    def __init__(self, pipes: PipeDispatcher, meta: Mapping[str, Any]) -> None:
        self._pipes = pipes
        self._meta = meta
        self._known: dict[frozenset[str], Any] = {}
        "`_meta` of the last answer with these keys that the session has read."

    async def call_tool(
        self, name: str, arguments: dict[str, Any], meta: Any, on_progress: Any
    ) -> dict[str, Any]:
        """Return the server's answer as it came.

        Raises:
            MCPError: The server answered with an error.
        """
        params = {"name": name, "arguments": arguments, "_meta": {**meta, **self._meta}}
        options: CallOptions = {}
        if on_progress is not None:
            options["on_progress"] = on_progress
        return await self._pipes.send_raw_request("tools/call", params, options)

    def learn(self, answer: dict[str, Any]) -> None:
        """Take note that the session could read an answer."""
        if answer.keys() <= PLAIN:
            self._known[frozenset(answer)] = answer.get("_meta")

    def read(self, answer: dict[str, Any]) -> PlainResult | None:
        """Return an answer as the session would read it; None if that has to."""
        known = self._known.get(frozenset(answer), self)
        content, value = answer.get("content"), answer.get("structuredContent")
        is_error = answer.get("isError", False)
        if (
            answer.get("_meta") != known
            or answer.get("resultType", "complete") != "complete"
            or type(is_error) is not bool
            or type(content) is not list
            or (type(value) is not dict and "structuredContent" in answer)
        ):
            return None
        texts = []
        for block in content:
            if type(block) is not dict or block.keys() != TEXT:
                return None
            if block["type"] != "text" or type(block["text"]) is not str:
                return None
            texts.append(PlainText(block["text"]))
        return PlainResult(texts, value, is_error)


async def short_way(
    session: ClientSession, dispatcher: Dispatcher[TransportContext]
) -> ShortWay | None:
    """Return the short way to the tools of a server, if it has one.

    A version of the protocol has to be agreed on before.
    """
    from mcp.types import CallToolRequest, CallToolRequestParams

    from anp.sidecar.attachments.mcp.stdio_transport import PipeDispatcher, StandIn

    if not isinstance(dispatcher, PipeDispatcher):
        return None
    # The session tells how it asks by asking something that is not sent.
    request = CallToolRequest(params=CallToolRequestParams(name="any"))
    with StandIn({"content": [], "resultType": "complete"}) as seen:
        await session.send_request(request, _results(request.method))
    return ShortWay(dispatcher, seen.asked.get("_meta") or {})


@dataclass(frozen=True, slots=True)
class CallTalk:
    """One call at a server."""

    session: ClientSession

    short: ShortWay | None
    "The short way to its tools; None for a server at a URL."
    meta: Any
    "Our own entries in `_meta` of each request: an object."

    report: Callable[[Progress], None] | None
    "Takes the progress of the call, if anybody wants it."

    asking: Asking

    async def call_tool(
        self, name: str, arguments: dict[str, Any], *, as_task: bool
    ) -> CallToolResult | PlainResult:
        """Return the result of a tool."""
        from mcp.types import CallToolRequest, CallToolRequestParams

        if as_task:
            return await self._task(name, arguments)

        def make(more: dict[str, Any]) -> CallToolRequest:
            return CallToolRequest(
                params=CallToolRequestParams(name=name, arguments=arguments, **more)
            )

        async def ask_shortly(short: ShortWay) -> Any:
            on_progress = self._on_progress()
            answer = await short.call_tool(name, arguments, self.meta, on_progress)
            return short.read(answer) or await self._read(short, make({}), answer)

        short = self.short
        result: CallToolResult | PlainResult = await self._send(
            make, None if short is None else partial(ask_shortly, short)
        )
        return result

    async def _read(
        self, short: ShortWay, request: CallToolRequest, answer: dict[str, Any]
    ) -> Any:
        """Have the session read an answer as if it had asked."""
        from anp.sidecar.attachments.mcp.stdio_transport import StandIn

        with StandIn(answer):
            result = await self.session.send_request(request, _results(request.method))
        short.learn(answer)
        return result

    async def read_resource(self, uri: str) -> ReadResourceResult:
        """Return the content of a resource."""
        from mcp.types import ReadResourceRequest, ReadResourceRequestParams

        result: ReadResourceResult = await self._send(
            lambda more: ReadResourceRequest(
                params=ReadResourceRequestParams(uri=uri, **more)
            )
        )
        return result

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> GetPromptResult:
        """Return a prompt, filled in."""
        from mcp.types import GetPromptRequest, GetPromptRequestParams

        result: GetPromptResult = await self._send(
            lambda more: GetPromptRequest(
                params=GetPromptRequestParams(name=name, arguments=arguments, **more)
            )
        )
        return result

    async def _send(
        self,
        make: Callable[[dict[str, Any]], Any],
        ask_first: Callable[[], Awaitable[Any]] | None = None,
    ) -> Any:
        """Send a request until it is answered with a result.

        Not the session's own methods: they validate a tool's result against the
        server's own schema in this process, where a `pattern` could run for ever
        (DESIGN.md, "Trust").

        Args:
            make: Returns the request with these further parameters.
            ask_first: Sends the request without further parameters another way.

        Raises:
            MCPError: The server answered with an error.
            ToolError: It asked too often, or wants what a call does not have.
        """
        from mcp.shared.exceptions import MCPError
        from mcp.types import URL_ELICITATION_REQUIRED, InputRequiredResult

        more: dict[str, Any] = {}
        rounds = 0
        while rounds < MAX_ROUNDS:
            try:
                if ask_first is not None and not more:
                    result = await ask_first()
                else:
                    request = make({"_meta": self.meta, **more})
                    result = await self.session.send_request(
                        request,
                        _results(request.method),
                        progress_callback=self._on_progress(),
                    )
            except MCPError as exc:
                if exc.code != URL_ELICITATION_REQUIRED:
                    raise
                rounds += 1
                await self._visit(exc)
                continue
            if not isinstance(result, InputRequiredResult):
                return result
            more = {"request_state": result.request_state}
            if result.input_requests:
                rounds += 1
                more["input_responses"] = {
                    key: await self._give(wanted)
                    for key, wanted in result.input_requests.items()
                }
            else:
                await asyncio.sleep(ROUND_WAIT)
        raise ToolError(502, f"the tool asked more than {MAX_ROUNDS} times")

    def _on_progress(self) -> Any:
        report = self.report
        if report is None:
            return None

        async def tell(
            progress: float, total: float | None, message: str | None
        ) -> None:
            report(Progress(progress, total, message or ""))

        return tell

    async def _give(self, wanted: InputRequest) -> ElicitResult:
        from mcp.types import ElicitRequest

        if not isinstance(wanted, ElicitRequest):
            raise ToolError(501, NO_MODEL)
        return await self.asking.answer(wanted.params)

    async def _visit(self, error: MCPError) -> None:
        """Have the requester visit the pages that an error names."""
        from mcp.types import ElicitationRequiredErrorData
        from pydantic import ValidationError

        try:
            data = ElicitationRequiredErrorData.model_validate(error.error.data)
        except ValidationError as exc:
            raise ToolError(
                502, "the tool wants a page visited but names none"
            ) from exc
        for params in data.elicitations:
            given = await self.asking.answer(params)
            if given.action != "accept":
                raise ToolError(403, f"not done: {params.message}")

    # Tools that work as tasks only.

    async def _task(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        from mcp.types import (
            CallToolRequest,
            CallToolRequestParams,
            CallToolResult,
            CreateTaskResult,
            GetTaskPayloadRequest,
            GetTaskPayloadRequestParams,
            TaskMetadata,
        )

        created = await self.session.send_request(
            CallToolRequest(
                params=CallToolRequestParams(
                    name=name,
                    arguments=arguments,
                    task=TaskMetadata(ttl=TASK_TTL),
                    _meta=self.meta,
                )
            ),
            CreateTaskResult,
            progress_callback=self._on_progress(),
        )
        task_id = self.asking.task_id = created.task.task_id
        async with self._followed(task_id, created.task.poll_interval):
            # It is answered at the end; until then questions come over it.
            return await self.session.send_request(
                GetTaskPayloadRequest(
                    params=GetTaskPayloadRequestParams(task_id=task_id)
                ),
                CallToolResult,
            )

    @contextlib.asynccontextmanager
    async def _followed(
        self, task_id: str, interval: int | None
    ) -> AsyncIterator[None]:
        """Report a task's words; have it cancelled if nobody waits for it."""
        following = asyncio.create_task(self._follow(task_id, interval))
        try:
            yield
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CANCEL_TIMEOUT):
                    await self._cancel(task_id)
            raise
        finally:
            following.cancel()
            await asyncio.wait({following})

    async def _follow(self, task_id: str, interval: int | None) -> None:
        from mcp.shared.exceptions import MCPError
        from mcp.types import GetTaskRequest, GetTaskRequestParams, GetTaskResult

        if self.report is None:
            return
        wait = min(max((interval or 1000) / 1000, MIN_POLL), MAX_POLL)
        last = ""
        with contextlib.suppress(MCPError):
            while True:
                task = await self.session.send_request(
                    GetTaskRequest(params=GetTaskRequestParams(task_id=task_id)),
                    GetTaskResult,
                )
                said = task.status_message or ""
                if said and said != last:
                    self.report(Progress(message=said))
                    last = said
                await asyncio.sleep(wait)

    async def _cancel(self, task_id: str) -> None:
        from mcp.types import (
            CancelTaskRequest,
            CancelTaskRequestParams,
            CancelTaskResult,
        )

        await self.session.send_request(
            CancelTaskRequest(params=CancelTaskRequestParams(task_id=task_id)),
            CancelTaskResult,
        )


@cache
def _results(method: str) -> TypeAdapter[Any]:
    """Return the reader of a method's results."""
    from mcp.types import (
        CallToolResult,
        GetPromptResult,
        InputRequiredResult,
        ReadResourceResult,
    )
    from pydantic import TypeAdapter

    results: dict[str, Any] = {
        "tools/call": CallToolResult,
        "resources/read": ReadResourceResult,
        "prompts/get": GetPromptResult,
    }
    return TypeAdapter(results[method] | InputRequiredResult)
