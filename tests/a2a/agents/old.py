"""Four agents made with a2a-sdk 0.3; run as: python old.py PORT."""

from __future__ import annotations

import asyncio
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
    FileWithUri,
    Part,
    TaskState,
    TextPart,
)
from a2a.utils import completed_task, new_agent_text_message, new_task
from a2a.utils.artifact import new_text_artifact
from starlette.applications import Starlette
from starlette.routing import Mount


class Agent(AgentExecutor):
    """The part that all four have in common."""

    async def begin(self, context: RequestContext, queue: EventQueue) -> TaskUpdater:
        """Announce the task, unless it goes on, and say that it is at work."""
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        await updater.start_work()
        return updater

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def said(updater: TaskUpdater, text: str):
    return new_agent_text_message(text, updater.context_id, updater.task_id)


def text_part(text: str) -> Part:
    return Part(root=TextPart(text=text))


def file_part(data: bytes, mime_type: str, name: str) -> Part:
    encoded = base64.b64encode(data).decode()
    file = FileWithBytes(bytes=encoded, mime_type=mime_type, name=name)
    return Part(root=FilePart(file=file))


class Writer(Agent):
    """Streams a report of forty lines, then its figures."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = await self.begin(context, event_queue)
        topic = context.get_user_input()
        await updater.update_status(TaskState.working, said(updater, "reading"))
        lines = [f"{number}. 关于 {topic}: ünï 🐝\n" for number in range(40)]
        for number, line in enumerate(lines):
            await updater.add_artifact(
                [text_part(line)],
                artifact_id="report",
                name="report.txt",
                append=number > 0,
                last_chunk=number == len(lines) - 1,
            )
            if number == 20:
                await updater.update_status(TaskState.working, said(updater, "half"))
                await asyncio.sleep(0.3)
        figures = {"lines": len(lines), "topic": topic, "nested": {"ok": [True, None]}}
        data = Part(root=DataPart(data=figures))
        await updater.add_artifact([data], name="figures")
        await updater.complete(said(updater, "the report is written"))


class Clerk(Agent):
    """Books a journey, and asks for what it has to know."""

    def __init__(self) -> None:
        self._known: dict[str, list[str]] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = await self.begin(context, event_queue)
        known = self._known.setdefault(updater.task_id, [])
        known.append(context.get_user_input())
        if len(known) == 1:
            question = said(updater, "From which city?")
            await updater.requires_input(question, final=True)
        elif len(known) == 2:
            login = "Sign in at https://rail.example/login, then say so."
            await updater.requires_auth(said(updater, login), final=True)
        else:
            words = " / ".join(self._known.pop(updater.task_id))
            await updater.add_artifact([text_part(words)], name="ticket")
            await updater.complete()


class Painter(Agent):
    """Returns a picture, a large file, a link, and the files that it was given."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = await self.begin(context, event_queue)
        seed = context.get_user_input().encode()
        picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9
        link = FileWithUri(uri="https://example.org/bee", mime_type="text/html")
        await updater.add_artifact(
            [
                file_part(picture, "image/png", "bee.png"),
                Part(root=FilePart(file=link)),
            ],
            name="picture",
        )
        blocks = [
            hashlib.sha256(seed + number.to_bytes(4)).digest() for number in range(9600)
        ]
        noise = file_part(b"".join(blocks), "application/x-noise", "noise.bin")
        await updater.add_artifact([noise], name="noise")
        given = [part for part in context.message.parts if part.root.kind == "file"]
        if given:
            await updater.add_artifact(given, name="given")
        await updater.complete()


class Oracle(Agent):
    """Knows the answer already: its first word is a task that is completed."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        answer = f"The answer to {context.get_user_input()} is 42."
        artifact = new_text_artifact(name="answer", text=answer)
        await event_queue.enqueue_event(
            completed_task(
                context.task_id, context.context_id, [artifact], [context.message]
            )
        )


def describe(name: str, executor: Agent, url: str) -> AgentCard:
    return AgentCard(
        name=name,
        description=executor.__doc__,
        version="1.0.0",
        url=f"{url}/{name}/",
        capabilities=AgentCapabilities(streaming=name != "oracle"),
        default_input_modes=["text/plain", "application/octet-stream"],
        default_output_modes=["text/plain", "image/png", "application/json"],
        skills=[
            AgentSkill(
                id="work", name=name, description=executor.__doc__, tags=["sample"]
            )
        ],
    )


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    mounts = []
    for executor in (Writer(), Clerk(), Painter(), Oracle()):
        name = type(executor).__name__.lower()
        card = describe(name, executor, url)
        handler = DefaultRequestHandler(executor, InMemoryTaskStore())
        app = A2AStarletteApplication(agent_card=card, http_handler=handler)
        mounts.append(Mount(f"/{name}", app=app.build()))
    print(url, flush=True)
    config = uvicorn.Config(Starlette(routes=mounts), log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
