"""An agent made with a2a-sdk 1.3 that plans a journey with another agent.

Run as: python traveller.py PORT OTHER_AGENTS_URL
An access token for the other agent, if it wants one, is in the variable TOKEN.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import uuid
from typing import Any

import httpx
import uvicorn
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.helpers.proto_helpers import (
    new_data_part,
    new_raw_part,
    new_task_from_user_message,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskState,
)
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette

PHOTO = bytes(range(255, -1, -1)) * 100


class Conversation:
    """What is said to the other agent, in one context."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._context = ""
        self.answers: list[list[Any]] = []

    async def say(self, *parts: Part, task: Task | None = None) -> Task:
        """Send one message; return the task as it is afterwards."""
        message = Message(
            message_id=str(uuid.uuid4()),
            role=Role.ROLE_USER,
            parts=parts,
            context_id=self._context,
            task_id="" if task is None else task.id,
        )
        found: Task | None = None
        request = SendMessageRequest(message=message)
        async for event in self._client.send_message(request):
            found = event.task
        assert found is not None
        self._context = found.context_id
        said: list[Any] = []
        if found.status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
            said.append("?")
            said += [shown(part) for part in found.status.message.parts]
        for artifact in found.artifacts:
            said += [shown(part) for part in artifact.parts]
        self.answers.append(said)
        return found


def shown(part: Part) -> Any:
    match part.WhichOneof("content"):
        case "text":
            return part.text
        case "data":
            return MessageToDict(part.data)
        case "raw":
            digest = hashlib.sha256(part.raw).hexdigest()
            return [part.filename, part.media_type, len(part.raw), digest]
    return "?"


class Traveller(AgentExecutor):
    """Talks to the other agent, and reports the conversation."""

    def __init__(self, other: str, token: str) -> None:
        self._other = other
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        async with httpx.AsyncClient(timeout=60, headers=self._headers) as http:
            card = await A2ACardResolver(http, self._other).get_agent_card()
            config = ClientConfig(httpx_client=http, streaming=False)
            talk = Conversation(ClientFactory(config).create(card))
            await talk.say(new_text_part("hello"))
            where = {"lat": 52.5, "stops": ["Köln", "北京"], "people": 3}
            await talk.say(new_text_part("from here"), new_data_part(where))
            photo = new_raw_part(PHOTO, media_type="image/x-raw", filename="photo.bin")
            await talk.say(new_text_part("look"), photo)
            asked = await talk.say(new_text_part("which scale?"))
            await talk.say(new_text_part("1:50000"), task=asked)
            await talk.say(new_text_part("draw"))
        await updater.add_artifact([new_data_part({"answers": talk.answers})])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="traveller",
        description="Plans journeys.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["application/json"],
        skills=[
            AgentSkill(id="plan", name="plan", description="Plans.", tags=["travel"])
        ],
    )
    agent = Traveller(sys.argv[2], os.environ.get("TOKEN", ""))
    handler = DefaultRequestHandler(agent, InMemoryTaskStore(), card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    print(url, flush=True)
    config = uvicorn.Config(Starlette(routes=routes), log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
