"""Four agents made with a2a-sdk 1.3; run as: python current.py PORT."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import (
    new_data_part,
    new_raw_part,
    new_task,
    new_task_from_user_message,
    new_text_part,
    new_url_part,
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
    Artifact,
    Message,
    TaskState,
)
from starlette.applications import Starlette
from starlette.routing import Mount


class Agent(AgentExecutor):
    """The part that all four have in common."""

    async def begin(self, context: RequestContext, queue: EventQueue) -> TaskUpdater:
        """Announce the task, unless it goes on, and say that it is at work."""
        message = context.message
        assert message is not None
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(message)
            await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        await updater.start_work()
        return updater

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def said(updater: TaskUpdater, text: str) -> Message:
    return updater.new_agent_message([new_text_part(text)])


class Writer(Agent):
    """Streams a report of forty lines, then its figures."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = await self.begin(context, event_queue)
        topic = context.get_user_input()
        working = TaskState.TASK_STATE_WORKING
        await updater.update_status(working, said(updater, "reading"))
        lines = [f"{number}. 关于 {topic}: ünï 🐝\n" for number in range(40)]
        for number, line in enumerate(lines):
            await updater.add_artifact(
                [new_text_part(line)],
                artifact_id="report",
                name="report.txt",
                append=number > 0,
                last_chunk=number == len(lines) - 1,
            )
            if number == 20:
                await updater.update_status(working, said(updater, "half"))
                await asyncio.sleep(0.3)
        figures = {"lines": len(lines), "topic": topic, "nested": {"ok": [True, None]}}
        await updater.add_artifact([new_data_part(figures)], name="figures")
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
            await updater.requires_input(said(updater, "From which city?"))
        elif len(known) == 2:
            await updater.requires_auth(
                said(updater, "Sign in at https://rail.example/login, then say so.")
            )
        else:
            words = " / ".join(self._known.pop(updater.task_id))
            await updater.add_artifact([new_text_part(words)], name="ticket")
            await updater.complete()


class Painter(Agent):
    """Returns a picture, a large file, a link, and the files that it was given."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = await self.begin(context, event_queue)
        message = context.message
        assert message is not None
        seed = context.get_user_input().encode()
        picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9
        await updater.add_artifact(
            [
                new_raw_part(picture, media_type="image/png", filename="bee.png"),
                new_url_part("https://example.org/bee", media_type="text/html"),
            ],
            name="picture",
        )
        blocks = [
            hashlib.sha256(seed + number.to_bytes(4)).digest() for number in range(9600)
        ]
        await updater.add_artifact(
            [
                new_raw_part(
                    b"".join(blocks),
                    media_type="application/x-noise",
                    filename="noise.bin",
                )
            ],
            name="noise",
        )
        given = [part for part in message.parts if part.HasField("raw")]
        if given:
            await updater.add_artifact(given, name="given")
        await updater.complete()


class Oracle(Agent):
    """Knows the answer already: its first word is a task that is completed."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        answer = f"The answer to {context.get_user_input()} is 42."
        artifact = Artifact(
            artifact_id="answer", name="answer", parts=[new_text_part(answer)]
        )
        await event_queue.enqueue_event(
            new_task(
                context.task_id,
                context.context_id,
                TaskState.TASK_STATE_COMPLETED,
                artifacts=[artifact],
            )
        )


def describe(name: str, executor: Agent, url: str) -> AgentCard:
    assert executor.__doc__ is not None
    return AgentCard(
        name=name,
        description=executor.__doc__,
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(
                url=f"{url}/{name}/", protocol_binding="JSONRPC", protocol_version="1.0"
            )
        ],
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
        handler = DefaultRequestHandler(executor, InMemoryTaskStore(), card)
        routes = [
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/"),
        ]
        mounts.append(Mount(f"/{name}", routes=routes))
    print(url, flush=True)
    config = uvicorn.Config(Starlette(routes=mounts), log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
