"""An agent made with a2a-sdk 0.3 that keeps a notebook for each conversation.

Run as: python surveyor_old.py PORT
"""

from __future__ import annotations

import base64
import hashlib
import socket
import sys

import uvicorn
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
    Part,
    TextPart,
)
from a2a.utils import new_agent_text_message, new_task


def text_part(text: str) -> Part:
    return Part(root=TextPart(text=text))


class Surveyor(AgentExecutor):
    """Draws maps, and remembers what was said in each conversation."""

    def __init__(self) -> None:
        self._notebooks: dict[str, list[str]] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        notebook = self._notebooks.setdefault(task.context_id, [])
        text = context.get_user_input()
        notebook.append(text)
        parts = [text_part(f"note {len(notebook)}: {text}")]
        for part in context.message.parts:
            found = part.root
            if found.kind == "data":
                parts.append(Part(root=DataPart(data={"got": found.data})))
            elif found.kind == "file":
                content = base64.b64decode(found.file.bytes)
                digest = hashlib.sha256(content).hexdigest()
                parts.append(text_part(f"{found.file.name} {digest}"))
        if text == "which scale?":
            question = "You tell me: which one?"
            said = new_agent_text_message(question, task.context_id, task.id)
            await updater.requires_input(said, final=True)
            return
        if text == "draw":
            drawn = "\n".join(notebook).encode() + bytes(range(256)) * 40
            encoded = base64.b64encode(drawn).decode()
            file = FileWithBytes(bytes=encoded, mime_type="image/x-map", name="map.bin")
            parts.append(Part(root=FilePart(file=file)))
        await updater.add_artifact(parts, name="answer")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="surveyor",
        description="Draws maps.",
        version="1.0.0",
        url=f"{url}/",
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
    handler = DefaultRequestHandler(Surveyor(), InMemoryTaskStore())
    app = A2AStarletteApplication(agent_card=card, http_handler=handler)
    print(url, flush=True)
    config = uvicorn.Config(app.build(), log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
