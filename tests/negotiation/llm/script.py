"""A scripted OpenAI-compatible server, in memory or on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import jsonschema

from negotiation.llm.asking.attempts import AskingLimits
from negotiation.llm.asking.endpoint import EndpointSettings, ModelEndpoint
from negotiation.llm.asking.questions import Question
from negotiation.need import Schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
QUESTION = Question(
    step="judge",
    system="You name colours.",
    user="Which colour has grass?",
    schema=SCHEMA,
    schema_name="colour",
    max_tokens=100,
)
GREEN = '{"colour": "green"}'
KEY = "sk-verysecret-0123456789"
URL = "http://model.test/v1"


async def validate(schema: Schema, value: Any) -> list[str]:
    """Judge as the daemon's validator does, in this process."""
    found = jsonschema.Draft202012Validator(schema).iter_errors(value)
    return [error.message for error in found]


def completion(content: Any = GREEN, **fields: Any) -> dict[str, Any]:
    """Return the body of a chat completion.

    Args:
        fields: `finish_reason`, `usage`, `model` or `message`.
    """
    message = {"role": "assistant", "content": content, **fields.pop("message", {})}
    finish = fields.pop("finish_reason", "stop")
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
        **fields,
    }


def said(content: Any = GREEN, **fields: Any) -> httpx2.Response:
    """Return an answer with status 200."""
    return httpx2.Response(200, json=completion(content, **fields))


def refused(status: int, message: str = "", **headers: str) -> httpx2.Response:
    """Return an answer with an error in OpenAI's form."""
    return httpx2.Response(
        status, json={"error": {"message": message, "code": None}}, headers=headers
    )


Reaction = httpx2.Response | Exception


class Script:
    """Answers requests one after the other; the last reaction goes on for ever."""

    def __init__(self, *reactions: Reaction) -> None:
        self._reactions = list(reactions)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        reaction = self._reactions[0]
        if len(self._reactions) > 1:
            self._reactions.pop(0)
        if isinstance(reaction, Exception):
            raise reaction
        # A response is used up when it is read.
        return httpx2.Response(
            reaction.status_code, headers=reaction.headers, content=reaction.content
        )

    def body(self, number: int = -1) -> dict[str, Any]:
        """Return the body of a request."""
        value: dict[str, Any] = json.loads(self.requests[number].content)
        return value


def endpoint(script: Script, **settings: Any) -> ModelEndpoint:
    """Return an endpoint that talks to `script`, without waiting between tries."""
    known: dict[str, Any] = {"model": "m", "base_url": URL, "api_key": KEY}
    known["limits"] = AskingLimits(first_wait=0.0)
    return ModelEndpoint(
        EndpointSettings(**{**known, **settings}),
        validate,
        transport=httpx2.MockTransport(script),
    )


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def server(serve: Serve) -> AsyncIterator[str]:
    """Serve raw HTTP on loopback; give the base URL."""

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(ConnectionError):
            await read_request(reader)
            await serve(reader, writer)
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1"


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Read one request and return its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head.splitlines()
        if line.lower().startswith(b"content-length:")
    )
    return await reader.readexactly(length)
