"""Questions of an MCP server (elicitation), put to the requester of the call at hand.

The protocol before 2026-07-28 does not say on stdio which call a question belongs to.
A question is put to a requester only if there is no doubt whose it is: the server names
one of its tasks, or it came over the connection of one call, or one call alone is under
way. Every other question is declined, since its text may be meant for somebody else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

from anp.sidecar.attachments.requester import Question, Reply, ReplyAction, Requester

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext
    from mcp.types import ElicitRequestParams, ElicitResult

logger = logging.getLogger(__name__)

RELATED_TASK = "io.modelcontextprotocol/related-task"
"Key in `_meta` of a request with the server's task that it belongs to."

MAX_TEXT = 8_000
"Most characters of a question."

_ACTIONS: dict[ReplyAction, Literal["accept", "decline", "cancel"]] = {
    ReplyAction.ACCEPT: "accept",
    ReplyAction.DECLINE: "decline",
    ReplyAction.CANCEL: "cancel",
}

MAX_TRIES = 3
"Answers in words to one question that wants fields."


class Asking:
    """One call under way, on whose behalf the server may ask.

    Args:
        requester: The requester of the call; None for a call of one turn, for which
            every question is declined.
    """

    def __init__(self, requester: Requester | None) -> None:
        self._requester = requester
        self._ended = asyncio.Event()
        self.task_id = ""
        "The server's own id of the call's task, if it made one."

    def end(self) -> None:
        """Give up the questions that are still open."""
        self._ended.set()

    async def answer(self, params: ElicitRequestParams) -> ElicitResult:
        """Return the requester's answer to a question."""
        from mcp.types import ElicitResult

        if self._requester is None:
            return ElicitResult(action="decline")
        asking = asyncio.ensure_future(self._ask(self._requester, params))
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            both: set[asyncio.Future[Any]] = {asking, ended}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else ElicitResult(action="cancel")
        finally:
            asking.cancel()
            ended.cancel()

    async def _ask(
        self, requester: Requester, params: ElicitRequestParams
    ) -> ElicitResult:
        from mcp.types import ElicitResult

        text = params.message[:MAX_TEXT]
        if params.mode == "url":
            reply = await requester.ask(Question(text=text, url=params.url))
            return ElicitResult(action=_ACTIONS[reply.action])
        schema = params.requested_schema
        for _ in range(MAX_TRIES):
            reply = await requester.ask(Question(text=text, schema=schema))
            if reply.action is not ReplyAction.ACCEPT:
                return ElicitResult(action=_ACTIONS[reply.action])
            content = _content(reply, schema)
            if content is not None:
                return ElicitResult(action="accept", content=content)
            names = ", ".join(map(str, _properties(schema)))
            text = f"{params.message}\nAnswer with an object with: {names}"[:MAX_TEXT]
        return ElicitResult(action="cancel")


_at_hand: ContextVar[Asking | None] = ContextVar("_at_hand", default=None)
"The call whose connection a question came over, where the transport tells that."


class Questions:
    """The calls under way at one server, by which a question finds its requester."""

    def __init__(self) -> None:
        self._open: list[Asking] = []

    @contextmanager
    def during(self, requester: Requester | None) -> Iterator[Asking]:
        """Take questions on behalf of a requester, for the time of a call."""
        asking = Asking(requester)
        self._open.append(asking)
        token = _at_hand.set(asking)
        try:
            yield asking
        finally:
            asking.end()
            _at_hand.reset(token)
            self._open.remove(asking)

    async def answer(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        """Answer a question that the server asks by itself."""
        from mcp.types import ElicitResult

        asking = self._whose(context.meta or {})
        if asking is None:
            logger.warning("question declined: %d calls under way", len(self._open))
            return ElicitResult(action="decline")
        return await asking.answer(params)

    def _whose(self, meta: Mapping[str, Any]) -> Asking | None:
        related = meta.get(RELATED_TASK)
        if isinstance(related, Mapping):
            task_id = related.get("taskId")
            return next((one for one in self._open if one.task_id == task_id), None)
        at_hand = _at_hand.get()
        if at_hand is not None:
            return at_hand if at_hand in self._open else None
        return self._open[0] if len(self._open) == 1 else None


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _content(reply: Reply, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an answer as the fields that were asked for, or None if it is not.

    Words will do where one text is asked for.
    """
    if isinstance(reply.value, dict):
        flat = (str, int, float, bool, type(None))
        for value in reply.value.values():
            items = value if isinstance(value, list) else [value]
            if not all(isinstance(item, flat) for item in items):
                return None
        return reply.value
    properties = _properties(schema)
    names = schema.get("required") or list(properties)
    if not properties:
        return {}
    if not reply.text or len(names) != 1:
        return None
    wanted = properties.get(names[0])
    is_text = isinstance(wanted, dict) and wanted.get("type", "string") == "string"
    return {str(names[0]): reply.text} if is_text else None
