"""An A2A agent by its card: skills become capabilities (kind `a2a`).

A2A has no way to choose a skill but words, so its id goes along as metadata, with the
caller's DID and the deadline; an agent with the intent extension gets an intent, made
of the arguments (INT-6 to INT-11). `exchange` follows each call to its end.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import httpx2

from anp.protocols.a2a.intents import SkillSchemas, read_skill_schemas
from anp.protocols.a2a.words import INTENT_URI
from anp.sidecar.attachments.a2a.exchange import TaskTalk
from anp.sidecar.attachments.a2a.parts import PART
from anp.sidecar.attachments.a2a.sign_in import secret_wanted, sign_in
from anp.sidecar.attachments.attachment import (
    AttachmentError,
    AttachmentLimits,
    report_progress,
)
from anp.sidecar.attachments.http.endpoint import (
    CallContext,
    HttpEndpoint,
    TooLargeError,
)
from anp.sidecar.attachments.http.remote import Service
from anp.sidecar.attachments.listing import Tool, ToolListing, read_tools
from anp.sidecar.attachments.requester import current_requester
from anp.sidecar.attachments.spec import AttachmentSpec
from anp.sidecar.attachments.urls import Url, join_url, parse_url
from negotiation.errors import JsonError

if TYPE_CHECKING:
    from a2a.client import Client
    from a2a.types.a2a_pb2 import AgentCard, AgentSkill

# The largest answer of an agent: of all of it, or of each event of a stream.
#
# A stream may last for hours, so that only what has to be held at a time is limited.


UNLIMITED: Final = 2**63
"Most bytes of an answer that is limited here and nowhere else."

EVENT_END: Final = re.compile(rb"\n\r?\n|\r\r")
"The blank line after a server-sent event."

END_SIZE: Final = 3
"Most bytes of it."


def limit_events(client: httpx2.AsyncClient, most: int) -> None:
    """Limit the answers that a client reads.

    Args:
        most: Bytes of an answer, or of one event where events are streamed.
    """

    async def limit(response: httpx2.Response) -> None:
        media_type = response.headers.get("content-type", "").partition(";")[0]
        streams = media_type.strip().lower() == "text/event-stream"
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        response.stream = _Limited(stream, most, per_event=streams)

    client.event_hooks = {"request": [], "response": [limit]}


class _Limited(httpx2.AsyncByteStream):
    def __init__(
        self, inner: httpx2.AsyncByteStream, most: int, *, per_event: bool
    ) -> None:
        self._inner = inner
        self._most = most
        self._per_event = per_event

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, tail = 0, b""
        async for chunk in self._inner:
            size += len(chunk)
            if self._per_event:
                seen = tail + chunk
                ends = [found.end() for found in EVENT_END.finditer(seen)]
                if ends:
                    size = len(seen) - ends[-1]
                tail = seen[-END_SIZE:]
            if size > self._most:
                raise TooLargeError(f"the answer is over {self._most} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


logger = logging.getLogger(__name__)

WELL_KNOWN = "/.well-known/agent-card.json"
"Where an agent has its card, if the owner gave only its host."

BINDINGS = ("JSONRPC", "HTTP+JSON")
"Ways of calling an agent that are built here; gRPC is not."

EXTENSION_HEADERS = ("A2A-Extensions", "X-A2A-Extensions")
"The header that names wanted extensions, in 1.0 and in 0.3."

TEXT_MODES = ("text", "text/plain", "text/markdown", "text/*", "*/*")
DATA_MODES = ("application/json", "data", "application/*", "*/*")

NO_FILES = ("text", "text/plain", "text/markdown", "application/json", "data")
"Modes that say nothing about files."

MAX_TYPES = 300
"Most characters of the media types in a description."

OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {
            "type": "string",
            "description": "All text; a blank line stands between two artifacts.",
        },
        "data": {"type": "array", "description": "All JSON values, in order."},
        "parts": {"type": "array", "items": PART, "description": "All files."},
        "status": {
            "type": "string",
            "description": "The agent's last words about its work.",
        },
    },
    "required": ["text"],
}
"Output of every skill; cards say nothing more about it."

_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class A2aService(Service):
    """One life of an agent that speaks A2A."""

    def __init__(self, spec: AttachmentSpec, limits: AttachmentLimits) -> None:
        super().__init__(spec, limits)
        url = self._url
        self._card_url = url if url.path != "/" else replace(url, path=WELL_KNOWN)
        called = parse_url(spec.endpoint) if spec.endpoint else url
        self._calls = HttpEndpoint(called, spec, max_answer=UNLIMITED)
        self._client: Client | None = None
        self._card = b""
        self._skills: dict[str, str] = {}
        self._intents = SkillSchemas()
        self._listing = ToolListing()

    async def open(self) -> None:
        """Read the secrets and make the clients."""
        await super().open()
        await self._calls.open()
        most = max(self._limits.max_document, self._limits.max_result)
        limit_events(self._calls.client, most)

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
            card = _read_card(content)
            if self._spec.uses_oauth:
                self._calls.client.auth = sign_in(content, self._card_url, self._spec)
            self._use(card, read_skill_schemas(content))
            if not self._spec.has_secrets and (wanted := secret_wanted(content)):
                self._listing = replace(self._listing, warnings=(wanted,))
            self._card = answer.body
        return self._listing

    async def call(
        self, tool: str, arguments: dict[str, Any], context: CallContext
    ) -> dict[str, Any]:
        """Send a message for a skill and follow its task to the end."""
        client, skill = self._client, self._skills.get(tool)
        if client is None or skill is None:
            raise AttachmentError(f"there is no skill {tool} any more")
        exchange = TaskTalk(
            client,
            skill,
            context,
            agent=self._spec.name,
            most=self._limits.max_result,
            requester=current_requester.get(),
            report=report_progress.get(),
            intents=self._intents,
        )
        return await exchange.run(arguments)

    def _use(self, card: AgentCard, intents: SkillSchemas) -> None:
        from a2a.client import ClientConfig, ClientFactory

        self._choose_interface(card)
        # For the library it is one of httpx; see `_import`.
        client: Any = self._calls.client
        config = ClientConfig(
            httpx_client=client,
            # A task whose id comes only with its end could not be cancelled.
            polling=not card.capabilities.streaming,
            supported_protocol_bindings=list(BINDINGS),
            accepted_output_modes=_output_modes(card),
        )
        try:
            self._client = ClientFactory(config).create(card)
        except Exception as exc:
            # Whatever a card makes the library raise, the card cannot be used.
            raise AttachmentError(f"the agent card cannot be used: {exc}") from exc
        self._activate(intents)
        skills: dict[str, str] = {}
        tools: list[Tool] = []
        for skill in list(card.skills)[: self._limits.max_tools + 1]:
            if skill.id in intents.unusable:
                continue
            modes = [*skill.input_modes] or [*card.default_input_modes]
            name = _NAME.sub("_", skill.id or skill.name).strip("_.-")
            skills.setdefault(name, skill.id)
            schema = intents.schemas.get(skill.id)
            tools.append(
                Tool(
                    name=name,
                    description=_description(skill),
                    input_schema=_input_schema(modes) if schema is None else schema,
                    output_schema=OUTPUT,
                    tags=skill.tags,
                    examples=skill.examples,
                    input_modes=modes,
                    output_modes=[*skill.output_modes] or [*card.default_output_modes],
                    updates={} if card.capabilities.streaming else None,
                )
            )
        listing = read_tools(self._spec, tools, self._limits)
        unusable = [
            f"{skill.id[:64]!r}: the schema of its intent cannot be used"
            for skill in card.skills
            if skill.id in intents.unusable
        ]
        for line in unusable:
            logger.warning("skill left out attachment=%s %s", self._spec.name, line)
        self._skills = skills
        self._listing = replace(
            listing, title=card.name, skipped=(*listing.skipped, *unusable)
        )

    def _activate(self, intents: SkillSchemas) -> None:
        """Say with each request that the extension is wanted, where there is one."""
        self._intents = intents
        for name in EXTENSION_HEADERS:
            self._calls.client.headers.pop(name, None)
            if intents.is_declared:
                self._calls.client.headers[name] = INTENT_URI

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
    import httpx2

    # The library uses httpx, whose place its successor takes: all else here, and the
    # clients that the library gets, use that one.
    httpx2.alias_httpx()
    import a2a.client  # noqa: F401 -- for its effect


def _read_card(content: Any) -> AgentCard:
    from a2a.client.card_resolver import parse_agent_card

    try:
        return parse_agent_card(content)
    except Exception as exc:
        # The library's readers of old cards raise whatever a wrong type sets off.
        reason = (str(exc).partition("\n")[0] or type(exc).__name__)[:200]
        raise AttachmentError(f"the agent card cannot be read: {reason}") from exc


def _output_modes(card: AgentCard) -> list[str]:
    """Return the media types that are taken: all that the agent gives, text first."""
    modes = ["text/plain", "application/json", *card.default_output_modes]
    for skill in card.skills:
        modes += skill.output_modes
    return list(dict.fromkeys(modes))


def _description(skill: AgentSkill) -> str:
    parts = [skill.name, skill.description]
    if skill.examples:
        parts.append("For example: " + "; ".join(list(skill.examples)[:3]))
    return "\n".join(part.strip() for part in parts if part.strip())


def _input_schema(modes: list[str]) -> dict[str, Any]:
    """Return what a skill takes: text, JSON, files, or several of them."""
    texts = not modes or any(mode in TEXT_MODES for mode in modes)
    data = any(mode in DATA_MODES for mode in modes)
    files = any(mode not in NO_FILES for mode in modes)
    properties: dict[str, Any] = {}
    if texts:
        properties["text"] = {"type": "string", "description": "What is wanted."}
    if data:
        properties["data"] = {"type": "object", "description": "Data that goes along."}
    if files:
        types = ", ".join(mode for mode in modes if mode not in NO_FILES)
        properties["files"] = {
            "type": "array",
            "items": PART,
            "description": f"Files that go along: {types}"[:MAX_TYPES],
        }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties)[:1],
        "additionalProperties": False,
    }
