"""An A2A agent by its card: skills become capabilities (kind `a2a`).

A2A has no way to choose a skill but words, so its id goes along as metadata, with the
caller's DID and the deadline. Tasks are followed, by stream or by asking, to their end.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anp.sidecar.attachments.a2a.tasks import TaskRecord, failure_of, is_over
from anp.sidecar.attachments.attachment import (
    AttachmentError,
    AttachmentLimits,
    ToolError,
)
from anp.sidecar.attachments.http.endpoint import (
    CallContext,
    deadline_text,
)
from anp.sidecar.attachments.http.remote import Service
from anp.sidecar.attachments.listing import Tool, ToolListing, read_tools
from anp.sidecar.attachments.spec import AttachmentSpec
from anp.sidecar.attachments.tool_errors import error_in
from anp.sidecar.attachments.urls import Url, join_url, parse_url
from negotiation.errors import JsonError

# `a2a` takes half a second to import, so it is imported where a card is read.
if TYPE_CHECKING:
    from a2a.client import Client
    from a2a.types.a2a_pb2 import AgentCard, AgentSkill, SendMessageRequest

__all__ = ["A2aService"]

logger = logging.getLogger(__name__)

WELL_KNOWN = "/.well-known/agent-card.json"
"Where an agent has its card, if the owner gave only its host."

BINDINGS = ("JSONRPC", "HTTP+JSON")
"Ways of calling an agent that are built here; gRPC is not."

TEXT_MODES = ("text", "text/plain", "text/markdown", "text/*", "*/*")
DATA_MODES = ("application/json", "data", "application/*", "*/*")

OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "All text, joined by newlines."},
        "data": {"type": "array", "description": "All JSON values, in order."},
    },
    "required": ["text"],
}
"Output of every skill; cards say nothing more about it."

FIRST_POLL = 0.1
"Seconds until a task is asked for the first time; doubles each time."

LAST_POLL = 5.0
"Longest time between two questions, in seconds."

CANCEL_TIMEOUT = 2.0
"Seconds to tell the agent that nobody waits for a task any more."

_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class A2aService(Service):
    """One life of an agent that speaks A2A."""

    def __init__(self, spec: AttachmentSpec, limits: AttachmentLimits) -> None:
        super().__init__(spec, limits)
        url = self._url
        self._card_url = url if url.path != "/" else replace(url, path=WELL_KNOWN)
        self._calls = self._endpoint_at(
            parse_url(spec.endpoint) if spec.endpoint else url
        )
        self._client: Client | None = None
        self._card = b""
        self._skills: dict[str, str] = {}
        self._listing = ToolListing()

    async def open(self) -> None:
        """Read the secrets and make the clients."""
        await super().open()
        await self._calls.open()

    async def close(self) -> None:
        """End every connection."""
        await super().close()
        await self._calls.close()

    async def list(self) -> ToolListing:
        """Fetch the card, and read it if it has changed."""
        answer = await self._endpoint.ask("GET", self._card_url)
        if answer.status != 200:
            raise AttachmentError(
                f"no agent card at {self._card_url.text}: {answer.phrase}"
            )
        if answer.body != self._card:
            try:
                content = answer.json()
            except JsonError as exc:
                raise AttachmentError(f"the agent card: {exc}") from None
            await asyncio.to_thread(_import)
            self._use(_read_card(content))
            self._card = answer.body
        return self._listing

    async def call(
        self, tool: str, arguments: dict[str, Any], context: CallContext
    ) -> dict[str, Any]:
        """Send a message for a skill and follow its task to the end."""
        client, skill = self._client, self._skills.get(tool)
        if client is None or skill is None:
            raise AttachmentError(f"there is no skill {tool} any more")
        record = TaskRecord(max_size=self._limits.max_result)
        request = _message(skill, arguments, context)
        try:
            await self._follow(client, request, record)
        except asyncio.CancelledError:
            await self._cancel(client, record)
            raise
        error = failure_of(record)
        if error is not None:
            # Nobody will ever answer what it asks for.
            if not is_over(record.state):
                await self._cancel(client, record)
            raise error
        return record.output()

    async def _follow(
        self, client: Client, request: SendMessageRequest, record: TaskRecord
    ) -> None:
        from a2a.types.a2a_pb2 import GetTaskRequest

        try:
            async with aclosing(client.send_message(request)) as events:  # type: ignore[type-var]  # it is a generator, typed as an iterator
                async for event in events:
                    record.add(event)
                    if record.settled:
                        break
            wait = FIRST_POLL
            while not record.settled:
                if not record.task_id:
                    raise ToolError(502, "the agent answered nothing")
                await asyncio.sleep(wait)
                wait = min(wait * 2, LAST_POLL)
                record.replace(await client.get_task(GetTaskRequest(id=record.task_id)))
        except (ToolError, AttachmentError):
            raise
        except Exception as exc:
            # The library lets everything through that a wrong answer sets off.
            raise _translated(exc, started=bool(record.task_id)) from exc

    async def _cancel(self, client: Client, record: TaskRecord) -> None:
        """Tell the agent, if it can be told in a moment, that nobody waits."""
        from a2a.types.a2a_pb2 import CancelTaskRequest

        if not record.task_id:
            return
        try:
            async with asyncio.timeout(CANCEL_TIMEOUT):
                await client.cancel_task(CancelTaskRequest(id=record.task_id))
        except Exception:
            # It may have ended by itself, or cannot cancel; nothing hangs on it.
            logger.debug("task not cancelled name=%s", self._spec.name, exc_info=True)

    def _use(self, card: AgentCard) -> None:
        from a2a.client import ClientConfig, ClientFactory

        self._choose_interface(card)
        config = ClientConfig(
            httpx_client=self._calls.client,
            # A task whose id comes only with its end could not be cancelled.
            polling=not card.capabilities.streaming,
            supported_protocol_bindings=list(BINDINGS),
            accepted_output_modes=["text/plain", "application/json"],
        )
        try:
            self._client = ClientFactory(config).create(card)
        except Exception as exc:
            # Whatever a card makes the library raise, the card cannot be used.
            raise AttachmentError(f"the agent card cannot be used: {exc}") from exc
        skills: dict[str, str] = {}
        tools, skipped = [], []
        for skill in list(card.skills)[: self._limits.max_tools + 1]:
            modes = [*skill.input_modes] or [*card.default_input_modes]
            schema = _input_schema(modes)
            name = _NAME.sub("_", skill.id or skill.name).strip("_.-")
            if schema is None:
                skipped.append(f"{name[:64]!r}: it takes {', '.join(modes)[:80]} only")
                continue
            skills.setdefault(name, skill.id)
            tools.append(
                Tool(
                    name=name,
                    description=_description(skill),
                    input_schema=schema,
                    output_schema=OUTPUT,
                )
            )
        listing = read_tools(self._spec, tools, self._limits)
        self._skills = skills
        self._listing = replace(
            listing, skipped=(*skipped, *listing.skipped), title=card.name
        )

    def _choose_interface(self, card: AgentCard) -> None:
        """Leave only the ways of calling that are built and go to the owner's host."""
        kept, others = [], []
        for interface in card.supported_interfaces:
            try:
                url = join_url(self._card_url, interface.url)
            except ValueError:
                continue
            if interface.protocol_binding not in BINDINGS:
                others.append(f"{interface.protocol_binding[:20]}")
            elif self._spec.endpoint:
                interface.url = self._calls.url.text
                kept.append(interface)
            elif url.origin == self._calls.url.origin:
                interface.url = url.text
                kept.append(interface)
            else:
                others.append(_elsewhere(url))
        if not kept:
            raise AttachmentError(
                "the agent card names no way to call the agent"
                + (f" that can be used: {'; '.join(others[:4])}" if others else "")
            )
        found = [type(each).FromString(each.SerializeToString()) for each in kept]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(found)


def _elsewhere(url: Url) -> str:
    return f"{url.origin} is another host; if it is right: --endpoint {url.text}"


def _import() -> None:
    """Import the library, which takes a moment, off the event loop."""
    import a2a.client  # noqa: F401 -- for its effect


def _read_card(content: Any) -> AgentCard:
    from a2a.client.card_resolver import parse_agent_card

    try:
        return parse_agent_card(content)
    except Exception as exc:
        # The library's readers of old cards raise whatever a wrong type sets off.
        reason = (str(exc).partition("\n")[0] or type(exc).__name__)[:200]
        raise AttachmentError(f"the agent card cannot be read: {reason}") from exc


def _description(skill: AgentSkill) -> str:
    parts = [skill.name, skill.description]
    if skill.examples:
        parts.append("For example: " + "; ".join(list(skill.examples)[:3]))
    return "\n".join(part.strip() for part in parts if part.strip())


def _input_schema(modes: list[str]) -> dict[str, Any] | None:
    """Return what a skill takes, or None if it is neither text nor JSON."""
    texts = not modes or any(mode in TEXT_MODES for mode in modes)
    data = any(mode in DATA_MODES for mode in modes)
    if not texts and not data:
        return None
    properties: dict[str, Any] = {}
    if texts:
        properties["text"] = {"type": "string", "description": "What is wanted."}
    if data:
        properties["data"] = {"type": "object", "description": "Data that goes along."}
    return {
        "type": "object",
        "properties": properties,
        "required": ["text" if texts else "data"],
        "additionalProperties": False,
    }


def _message(
    skill: str, arguments: dict[str, Any], context: CallContext
) -> SendMessageRequest:
    from a2a.types.a2a_pb2 import SendMessageRequest
    from google.protobuf.json_format import ParseDict, ParseError

    parts: list[dict[str, Any]] = []
    if "text" in arguments:
        parts.append({"text": arguments["text"], "mediaType": "text/plain"})
    if "data" in arguments:
        parts.append({"data": arguments["data"], "mediaType": "application/json"})
    metadata = {
        "anpd/skill": skill,
        "anpd/caller": context.caller,
        "anpd/deadline": deadline_text(context),
    }
    message = {
        "messageId": context.call_id,
        "role": "ROLE_USER",
        "parts": parts,
        "metadata": metadata,
    }
    request = SendMessageRequest()
    try:
        ParseDict({"message": message}, request)
    except (ParseError, ValueError, RecursionError):
        text = "the input cannot be sent over A2A"
        raise ToolError(400, text, may_have_run=False) from None
    return request


def _translated(exc: Exception, *, started: bool) -> Exception:
    """Return what an exception of the library means for the call."""
    from a2a.client import A2AClientError
    from a2a.utils.errors import A2A_ERROR_MAPPING, A2AError

    cause = exc.__cause__
    text = (str(exc).partition("\n")[0] or type(exc).__name__)[:300]
    if isinstance(exc, A2AClientError):
        import httpx

        from anp.sidecar.attachments.http.endpoint import NOT_SENT, TooLargeError

        if isinstance(cause, TooLargeError):
            return ToolError(502, str(cause))
        if isinstance(cause, NOT_SENT):
            return AttachmentError(
                f"cannot connect to the agent: {cause}", may_have_run=started
            )
        if isinstance(cause, httpx.HTTPStatusError):
            status = cause.response.status_code
            if status in {401, 407}:
                return ToolError(502, "the agent did not accept the owner's secrets")
            code = status if 400 <= status <= 599 else 502
            return ToolError(code, f"the agent answered {status}")
        if isinstance(cause, json.JSONDecodeError) or cause is None:
            words = f"the agent's answer is no A2A: {text}"
            return ToolError(502, words, private=True)
        return AttachmentError(f"the agent broke off: {text}", may_have_run=True)
    if isinstance(exc, A2AError):
        told = error_in(exc.data)
        if told is not None:
            return ToolError(told[0] or 500, told[1] or text)
        known = A2A_ERROR_MAPPING.get(type(exc))
        return ToolError(known.http_code if known else 500, text, private=True)
    return ToolError(502, f"the agent's answer is no A2A: {text}", private=True)
