"""An A2A agent made with `a2a-sdk`; run as: python a2a_agent.py PORT [MODE].

The text it gets says what it does: `shout TEXT`, `slow TEXT`, `ask`, `fail`, `reject`,
`login`, `badge`, `file`, `huge N`, `flood N`, `hang`, `whoami`, `cancelled`, `chunks`,
`poem N`, `done TEXT`; data is summed up. Whoever answers a question gets it back.
MODE is `stream` (default), `poll` (no streaming), `rest` (HTTP+JSON), `old` (0.3)
or `elsewhere`.
"""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette

CANCELLED = asyncio.Event()

PICTURE = bytes(range(256)) * 20
"Bytes of a picture, or nearly."

LOGIN = "https://login.example/a?b=1"

LARGE = bytes(number * 7 % 251 for number in range(100_000))
"Bytes of a file that comes in two chunks."


def finished(context: RequestContext, text: str) -> Task:
    """Return a task that has ended with its first word."""
    return Task(
        id=context.task_id,
        context_id=context.context_id,
        status=TaskStatus(state=TaskState.TASK_STATE_COMPLETED),
        artifacts=[Artifact(artifact_id="all", parts=[Part(text=text.upper())])],
    )


class Executor(AgentExecutor):
    """Does what the text says."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message = context.message
        assert message is not None
        assert context.task_id is not None
        assert context.context_id is not None
        word, _, rest = context.get_user_input().partition(" ")
        if word == "whoami":
            found = MessageToDict(message.metadata)
            text = f"{found['anpd/caller']} {found['anpd/skill']}"
            # A message alone, without any task.
            await event_queue.enqueue_event(
                new_text_message(text, role=Role.ROLE_AGENT)
            )
            return
        if word == "done":
            await event_queue.enqueue_event(finished(context, rest))
            return
        if context.current_task is None:
            await event_queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                )
            )
        task = TaskUpdater(event_queue, context.task_id, context.context_id)
        await task.start_work()

        def said(text: str):  # type: ignore[no-untyped-def]  # the library's Message
            return task.new_agent_message([Part(text=text)])

        data = [MessageToDict(p.data) for p in message.parts if p.HasField("data")]
        match word:
            case _ if context.current_task is not None:
                await self.answered(context, task)
            case "poem":
                await self.write_poem(int(rest), task)
                return
            case "shout":
                await task.add_artifact([Part(text=rest.upper())])
            case "slow":
                await asyncio.sleep(0.6)
                await task.add_artifact([Part(text=rest.upper())])
            case "chunks":
                await task.add_artifact([Part(text="one")], artifact_id="a")
                await task.add_artifact(
                    [Part(text="two")], artifact_id="a", append=True
                )
            case "ask":
                await task.requires_input(said("which city?"))
                return
            case "login":
                await task.requires_auth(
                    said("sign in at https://login.example/a?b=1 first")
                )
                return
            case "badge":
                await task.requires_auth(said("show your badge"))
                return
            case "fail":
                await task.failed(said("no oven"))
                return
            case "reject":
                await task.reject(said("not today"))
                return
            case "file":
                await self.give_files(task)
            case "huge":
                await task.add_artifact([Part(text="x" * int(rest))])
            case "flood":
                for _ in range(int(rest)):
                    await task.add_artifact([Part(text="x" * 10_000)], artifact_id="x")
            case "hang":
                await asyncio.sleep(60)
            case "cancelled":
                async with asyncio.timeout(5):
                    await CANCELLED.wait()
                await task.add_artifact([Part(text="yes")])
            case _ if data:
                total = sum(data[0].values())
                value = ParseDict({"total": total}, Value())
                await task.add_artifact([Part(data=value)])
            case "":
                await task.add_artifact([p for p in message.parts if p.raw])
        await task.complete()

    async def answered(self, context: RequestContext, task: TaskUpdater) -> None:
        """Give back what the caller answered."""
        message = context.message
        assert message is not None
        found = MessageToDict(message.metadata)
        text = f"{context.get_user_input()}/{found.get('anpd/action', 'accept')}"
        files = [part for part in message.parts if part.HasField("raw")]
        await task.add_artifact([Part(text=text), *files])

    async def write_poem(self, lines: int, task: TaskUpdater) -> None:
        """Say what it does, write a poem in chunks, and another artifact."""
        said = task.new_agent_message([Part(text="thinking")])
        await task.update_status(TaskState.TASK_STATE_WORKING, said)
        for number in range(lines):
            await task.add_artifact(
                [Part(text=f"line {number}\n")],
                artifact_id="poem",
                append=number > 0,
                last_chunk=number == lines - 1,
            )
            await asyncio.sleep(0.01)
        await task.add_artifact([Part(text="A title")], artifact_id="title")
        await task.complete(task.new_agent_message([Part(text="it is done")]))

    async def give_files(self, task: TaskUpdater) -> None:
        """Give a picture, a file in two chunks, and a link."""
        picture = Part(raw=PICTURE, media_type="image/png", filename="../a.png")
        await task.add_artifact([picture])
        for half in (LARGE[:70_000], LARGE[70_000:]):
            await task.add_artifact(
                [Part(raw=half, media_type="application/x-large", filename="large")],
                artifact_id="large",
                append=half != LARGE[:70_000],
            )
        link = Part(url="https://files.example/a", media_type="text/csv")
        await task.add_artifact([link])

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        CANCELLED.set()
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(url: str, mode: str) -> AgentCard:
    binding = "HTTP+JSON" if mode == "rest" else "JSONRPC"
    if mode == "elsewhere":
        url = url.replace("127.0.0.1", "localhost")
    return AgentCard(
        name="Test agent",
        description="Shouts and adds.",
        version="1",
        supported_interfaces=[
            AgentInterface(
                url=f"{url}/a2a",
                protocol_binding=binding,
                protocol_version="0.3" if mode == "old" else "1.0",
            )
        ],
        capabilities=AgentCapabilities(streaming=mode != "poll"),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain", "application/json"],
        skills=[
            AgentSkill(
                id="shout",
                name="Shout",
                description="Says it louder.",
                tags=["text"],
                examples=["shout hello"],
            ),
            AgentSkill(
                id="add up",
                name="Add",
                description="Sums numbers up.",
                tags=["numbers"],
                input_modes=["application/json"],
            ),
            AgentSkill(
                id="see",
                name="See",
                description="Looks at pictures.",
                tags=["pictures"],
                input_modes=["image/png"],
            ),
        ],
    )


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    mode = sys.argv[2] if len(sys.argv) > 2 else "stream"
    described = card(url, mode)
    handler = DefaultRequestHandler(Executor(), InMemoryTaskStore(), described)
    calls = (
        create_rest_routes(handler, path_prefix="/a2a")
        if mode == "rest"
        else create_jsonrpc_routes(handler, "/a2a", enable_v0_3_compat=mode == "old")
    )
    app = Starlette(routes=[*create_agent_card_routes(described), *calls])
    print(url, flush=True)
    config = uvicorn.Config(app, log_level="error", lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
