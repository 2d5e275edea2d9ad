"""The local API as the MCP face uses it: the same on stdio and inside the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import httpx2

from anp.errors import ErrorKind
from jsonic.exact_numbers import read_number, write_json

OnEvent = Callable[[dict[str, Any]], Awaitable[None]]
"Told of each event of a call."


class ApiProblem(Exception):
    """The daemon answered with a problem document."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(str(body.get("detail", "the daemon gave no reason")))
        self.body = body
        self.kind = str(body.get("kind", ErrorKind.UNEXPECTED.value))


class LocalApi:
    """One daemon's API over its socket."""

    def __init__(self, socket: Path) -> None:
        self._http = httpx2.AsyncClient(
            # No certificate comes over a socket, so no authorities are read.
            transport=httpx2.AsyncHTTPTransport(uds=str(socket), verify=False),
            base_url="http://anpd",
            timeout=None,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._http.aclose()

    async def get(self, path: str, **params: str) -> dict[str, Any]:
        """Return the JSON at `path`.

        Raises:
            ApiProblem: The daemon refused, or does not answer.
        """
        return await self._ask("GET", path, params=params)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post a body to `path`, and return the JSON of the answer.

        Raises:
            ApiProblem: The daemon refused, or does not answer.
        """
        return await self._ask("POST", path, json=body)

    async def events(
        self, path: str, *, after: int, wait: float, silence: float
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of a stream after a number, and stop when it is silent.

        Args:
            wait: Seconds for the first event.
            silence: Seconds between two events, and at least for the first one.

        Raises:
            ApiProblem: The daemon refused, or does not answer.
        """
        headers = {"Last-Event-ID": str(after)}
        try:
            async with self._http.stream("GET", path, headers=headers) as response:
                if not response.is_success:
                    await response.aread()
                    raise ApiProblem(response.json())
                lines = _data_of(response)
                limit = max(wait, silence)
                while True:
                    try:
                        async with asyncio.timeout(limit):
                            event = await anext(lines)
                    except (TimeoutError, StopAsyncIteration):
                        return
                    yield event
                    limit = silence
        except httpx2.HTTPError as exc:
            raise _unreachable(exc, may_have_run=False) from exc

    async def content(self, path: str, *, most: int) -> bytes | None:
        """Return the bytes at `path`, or None if there are more than `most`.

        Raises:
            ApiProblem: The daemon refused, or does not answer.
        """
        found = bytearray()
        try:
            async with self._http.stream("GET", path) as response:
                if not response.is_success:
                    await response.aread()
                    raise ApiProblem(response.json())
                async for chunk in response.aiter_bytes():
                    found += chunk
                    if len(found) > most:
                        return None
        except httpx2.HTTPError as exc:
            raise _unreachable(exc, may_have_run=False) from exc
        return bytes(found)

    async def call(self, body: dict[str, Any], on_event: OnEvent) -> dict[str, Any]:
        """Call a peer, and tell what happens meanwhile.

        A caller that is cancelled takes its call back: a negotiation is ended, the
        peer is told.

        Args:
            body: See `CallBody`.

        Returns:
            See `CallResult`.

        Raises:
            ApiProblem: There is no result.
        """
        headers = {"Prefer": "respond-async"}
        started = await self._ask("POST", "/v1/calls", json=body, headers=headers)
        path = f"/v1/calls/{started['id']}"
        try:
            await self._follow(f"{path}/events", on_event)
            call = await self._ask("GET", path)
            if call["state"] == "waiting":
                # The client would wait for an hour; the owner's word is kept for it.
                ended = await self._ask("POST", f"{path}/cancel", json={})
                if ended["result"] is not None or _may_have_run(ended["problem"]):
                    # The owner's word came meanwhile.
                    call = ended
            if call["result"] is not None:
                result: dict[str, Any] = call["result"]
                return result
            stopped = {"detail": "the daemon stopped", "may_have_run": True}
            raise ApiProblem(call["problem"] or stopped)
        except ApiProblem as exc:
            if exc.kind == ErrorKind.DAEMON_UNREACHABLE:
                # Nobody is left who knows how far the call came.
                exc.body["may_have_run"] = True
            raise
        except asyncio.CancelledError:
            with contextlib.suppress(ApiProblem, TimeoutError):
                async with asyncio.timeout(5):
                    # The scope that was cancelled must not cancel this as well.
                    cancelling = self._ask("POST", f"{path}/cancel", json={})
                    await asyncio.shield(asyncio.ensure_future(cancelling))
            raise

    async def _follow(self, path: str, on_event: OnEvent) -> None:
        """Read events until the call is over or waits for an owner."""
        try:
            async with self._http.stream("GET", path) as response:
                async for event in _data_of(response):
                    await on_event(event)
                    if event["type"] == "call.waiting":
                        return
        except httpx2.HTTPError as exc:
            raise _unreachable(exc, may_have_run=True) from exc

    async def _ask(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        try:
            if "json" in options:
                # The library would round a number such as 12345678901234567.89.
                options["content"] = write_json(options.pop("json"), ensure_ascii=False)
                options["headers"] = {"content-type": "application/json"} | (
                    options.get("headers") or {}
                )
            answer = await self._http.request(method, path, **options)
            body = answer.json(parse_float=read_number)
        except httpx2.HTTPError as exc:
            # Who took the request may have acted on it before it went away.
            sent = not isinstance(exc, httpx2.ConnectError)
            raise _unreachable(exc, may_have_run=sent) from exc
        except ValueError as exc:
            raise ApiProblem({"detail": f"the daemon answered no JSON: {exc}"}) from exc
        if not answer.is_success:
            raise ApiProblem(body if isinstance(body, dict) else {})
        assert isinstance(body, dict), "every answer is an object"
        return body


async def _data_of(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "), parse_float=read_number)


def _may_have_run(problem: dict[str, Any] | None) -> bool:
    return problem is not None and problem.get("may_have_run") is True


def _unreachable(exc: httpx2.HTTPError, *, may_have_run: bool) -> ApiProblem:
    problem: dict[str, Any] = {
        "kind": ErrorKind.DAEMON_UNREACHABLE.value,
        "detail": f"the daemon does not answer ({exc or type(exc).__name__})",
    }
    return ApiProblem(problem | ({"may_have_run": True} if may_have_run else {}))
