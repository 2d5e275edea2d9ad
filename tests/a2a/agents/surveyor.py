"""An agent made with a2a-sdk 1.3 that keeps a notebook for each conversation.

Run as: python surveyor.py PORT
"""

from __future__ import annotations

import hashlib
import socket
import sys

import uvicorn
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
)
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette


class Surveyor(AgentExecutor):
    """Draws maps, and remembers what was said in each conversation."""

    def __init__(self) -> None:
        self._notebooks: dict[str, list[str]] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message = context.message
        assert message is not None
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        notebook = self._notebooks.setdefault(task.context_id, [])
        text = context.get_user_input()
        notebook.append(text)
        parts = [new_text_part(f"note {len(notebook)}: {text}")]
        for part in message.parts:
            kind = part.WhichOneof("content")
            if kind == "data":
                parts.append(new_data_part({"got": MessageToDict(part.data)}))
            elif kind == "raw":
                digest = hashlib.sha256(part.raw).hexdigest()
                parts.append(new_text_part(f"{part.filename} {digest}"))
        if text == "which scale?":
            question = [new_text_part("You tell me: which one?")]
            await updater.requires_input(updater.new_agent_message(question))
            return
        if text == "draw":
            drawn = "\n".join(notebook).encode() + bytes(range(256)) * 40
            parts.append(
                new_raw_part(drawn, media_type="image/x-map", filename="map.bin")
            )
        await updater.add_artifact(parts, name="answer")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="surveyor",
        description="Draws maps.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=[
            "text/plain",
            "application/json",
            "application/octet-stream",
        ],
        default_output_modes=["text/plain", "application/json", "image/x-map"],
        skills=[
            AgentSkill(id="survey", name="survey", description="Maps.", tags=["map"])
        ],
    )
    handler = DefaultRequestHandler(Surveyor(), InMemoryTaskStore(), card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    print(url, flush=True)
    config = uvicorn.Config(Starlette(routes=routes), log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
