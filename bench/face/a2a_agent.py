"""An agent as the library's documents show it; run as: a2a_agent.py FOLDER [wal].

With `wal` its SQLite writes as that of the daemon: a log ahead, synced at each commit.

It needs `a2a-sdk[http-server,sqlite]`: see `make a2a-env`.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import uvicorn
from a2a.helpers.proto_helpers import new_data_part, new_task_from_user_message
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
from google.protobuf.json_format import MessageToDict
from source import twice
from sqlalchemy import event
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette


class Executor(AgentExecutor):
    """Calls the function in its process."""

    def __init__(self) -> None:
        self._child = ProcessPoolExecutor(1)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        given = MessageToDict(context.message.parts[0].data)
        number = int(given["arguments"]["number"])
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._child, twice, number)
        await updater.add_artifact([new_data_part(found)], artifact_id="output")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        # The library demands the method; nothing that is measured cancels a task.
        raise UnsupportedOperationError


def write_ahead(connection: Any, _: Any) -> None:
    """Have SQLite write as the daemon's does."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    # Accepted sockets inherit it. The loop sets it only on those that it makes itself,
    # and without it an answer in two pieces waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="twice",
        description="Returns twice a number.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(
                url=f"{url}/", protocol_binding="JSONRPC", protocol_version=version
            )
            for version in ("1.0", "0.3")
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["application/json"],
        default_output_modes=["application/json"],
        skills=[AgentSkill(id="twice", name="twice", description="", tags=["a"])],
    )
    name = "-".join(["tasks", *sys.argv[2:]])
    engine = create_async_engine(f"sqlite+aiosqlite:///{sys.argv[1]}/{name}.db")
    if sys.argv[2:] == ["wal"]:
        event.listen(engine.sync_engine, "connect", write_ahead)
    handler = DefaultRequestHandler(Executor(), DatabaseTaskStore(engine), card)
    app = Starlette(
        routes=[
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True),
        ]
    )
    print(url, flush=True)
    config = uvicorn.Config(app, log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
