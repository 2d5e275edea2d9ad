"""An agent made with a2a-sdk 0.3 that plans a journey with another agent.

Run as: python traveller_old.py PORT OTHER_AGENTS_URL
An access token for the other agent, if it wants one, is in the variable TOKEN.
"""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import sys
import uuid

import httpx
import uvicorn
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    DataPart,
    FilePart,
    FileWithBytes,
    Message,
    Part,
    Role,
    TaskState,
    TextPart,
)
from a2a.utils import new_task

PHOTO = bytes(range(255, -1, -1)) * 100


def text_part(text: str) -> Part:
    return Part(root=TextPart(text=text))


class Conversation:
    """What is said to the other agent, in one context."""

    def __init__(self, client) -> None:
        self._client = client
        self._context = None
        self.answers = []

    async def say(self, *parts: Part, task=None):
        """Send one message; return the task as it is afterwards."""
        message = Message(
            message_id=str(uuid.uuid4()),
            role=Role.user,
            parts=list(parts),
            context_id=self._context,
            task_id=None if task is None else task.id,
        )
        found = None
        async for event in self._client.send_message(message):
            found = event[0]
        self._context = found.context_id
        said = []
        if found.status.state == TaskState.input_required:
            said.append("?")
            said += [shown(part) for part in found.status.message.parts]
        for artifact in found.artifacts or ():
            said += [shown(part) for part in artifact.parts]
        self.answers.append(said)
        return found


def shown(part: Part):
    found = part.root
    match found.kind:
        case "text":
            return found.text
        case "data":
            return found.data
    content = base64.b64decode(found.file.bytes)
    digest = hashlib.sha256(content).hexdigest()
    return [found.file.name, found.file.mime_type, len(content), digest]


class Traveller(AgentExecutor):
    """Talks to the other agent, and reports the conversation."""

    def __init__(self, other: str, token: str) -> None:
        self._other = other
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = new_task(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        async with httpx.AsyncClient(timeout=60, headers=self._headers) as http:
            card = await A2ACardResolver(http, self._other).get_agent_card()
            config = ClientConfig(httpx_client=http, streaming=True)
            talk = Conversation(ClientFactory(config).create(card))
            await talk.say(text_part("hello"))
            where = {"lat": 52.5, "stops": ["Köln", "北京"], "people": 3}
            await talk.say(text_part("from here"), Part(root=DataPart(data=where)))
            encoded = base64.b64encode(PHOTO).decode()
            file = FileWithBytes(
                bytes=encoded, mime_type="image/x-raw", name="photo.bin"
            )
            await talk.say(text_part("look"), Part(root=FilePart(file=file)))
            asked = await talk.say(text_part("which scale?"))
            await talk.say(text_part("1:50000"), task=asked)
            await talk.say(text_part("draw"))
        told = DataPart(data={"answers": talk.answers})
        await updater.add_artifact([Part(root=told)])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="traveller",
        description="Plans journeys.",
        version="1.0.0",
        url=f"{url}/",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["application/json"],
        skills=[
            AgentSkill(id="plan", name="plan", description="Plans.", tags=["travel"])
        ],
    )
    agent = Traveller(sys.argv[2], os.environ.get("TOKEN", ""))
    handler = DefaultRequestHandler(agent, InMemoryTaskStore())
    app = A2AStarletteApplication(agent_card=card, http_handler=handler)
    print(url, flush=True)
    config = uvicorn.Config(app.build(), log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
