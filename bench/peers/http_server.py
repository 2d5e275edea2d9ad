"""The function behind a plain web server: `python -m bench.peers.http_server`.

It prints its port. The answer is JSON; nothing is checked, stored or encrypted.
"""

from __future__ import annotations

import asyncio
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def double(request: Request) -> JSONResponse:
    """Answer one call."""
    given = await request.json()
    number = str(given["number"] * 2)
    return JSONResponse({"text": given["text"], "number": number})


async def main() -> None:
    """Serve until the process ends."""
    # With its protocol named, accepted sockets send without waiting for more.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    app = Starlette(routes=[Route("/", double, methods=["POST"])])
    config = uvicorn.Config(app, log_level="error", lifespan="off")
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(main())
