"""An agent as the library's documents show it; run as: a2a_agent.py FOLDER.

It needs `a2a-sdk[http-server,sqlite]`: see `make a2a-env`.
"""

from __future__ import annotations

import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import DatabaseTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
)
from a2a.utils.errors import UnsupportedOperationError
from source import updates
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette


class Executor(AgentExecutor):
    """Streams as many updates as it is told, at the pace it is told."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        number, pause = context.get_user_input().split()
        is_first = True
        async for text in updates(int(number), float(pause)):
            part = new_text_part(text)
            await updater.add_artifact([part], artifact_id="text", append=not is_first)
            is_first = False
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        # The library demands the method; nothing that is measured cancels a task.
        raise UnsupportedOperationError


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="updates",
        description="Streams updates.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(
                url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0"
            )
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="updates", name="updates", description="", tags=["a"])],
    )
    engine = create_async_engine(f"sqlite+aiosqlite:///{sys.argv[1]}/tasks.db")
    handler = DefaultRequestHandler(Executor(), DatabaseTaskStore(engine), card)
    app = Starlette(
        routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    )
    print(url, flush=True)
    config = uvicorn.Config(app, log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
