"""JSON-RPC 2.0 of A2A 0.3 and 1.0: one request in, one answer or a stream out.

It knows no HTTP, so that the face, the gateway and a channel between daemons use it
alike. The method's name says the version: no name is in both.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from anp.errors import UnknownError
from anp.interaction.errors import InteractionError
from anp.protocols.a2a.modes import fit, fit_task
from anp.protocols.a2a.objects import A2aTask, TaskUpdate
from anp.protocols.a2a.reader import (
    A2aFields,
    read_list,
    read_push_name,
    read_push_set,
    read_send,
)
from anp.protocols.a2a.words import METHODS, A2aError, A2aFault, A2aMethod, A2aVersion
from anp.protocols.a2a.writer import (
    write_page,
    write_push,
    write_pushes,
    write_stream,
    write_task,
)
from anp.sidecar.a2a.desk import A2aDesk
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.own_desk import refused

logger = logging.getLogger(__name__)

RequestId = str | int | float | None


@dataclass(frozen=True, slots=True)
class RpcAnswer:
    """The answer to one request: `body`, or a stream of such bodies."""

    body: dict[str, Any] | None = None
    stream: AsyncGenerator[dict[str, Any], None] | None = None


class A2aRpc:
    """Answers the requests of callers."""

    def __init__(
        self, desk: A2aDesk, card: Callable[[A2aCaller], Awaitable[dict[str, Any]]]
    ) -> None:
        """Make it.

        Args:
            card: Makes the extended card of a caller; `A2aError` if there is none.
        """
        self.desk = desk
        self._card = card

    async def answer(
        self, caller: A2aCaller, request: Any, *, version: A2aVersion | None = None
    ) -> RpcAnswer:
        """Answer a request of JSON-RPC; every fault is an answer, too.

        Args:
            version: The only version to be spoken; None leaves it to the method's name.
        """
        number = id_of(request)
        spoken = version or A2aVersion.V03
        try:
            method, params, spoken = _read(request, version)
            result = await self.call(caller, method, params, spoken)
        except Exception as exc:  # noqa: BLE001  # told to the caller, and logged
            return RpcAnswer(rpc_error(number, fault_of(exc), spoken))
        if isinstance(result, AsyncGenerator):
            return RpcAnswer(stream=_results(result, number, spoken))
        return RpcAnswer({"jsonrpc": "2.0", "id": number, "result": result})

    async def call(
        self, caller: A2aCaller, method: A2aMethod, params: Any, version: A2aVersion
    ) -> Any:
        """Do what a method says; return its result, or a generator of results.

        Raises:
            A2aError: It is refused; other exceptions are for `fault_of`.
        """
        if method.is_stream:
            updates = await self._stream(caller, method, params, version)
            return _written(updates, version)
        return await self._call(caller, method, params, version)

    async def _stream(
        self, caller: A2aCaller, method: A2aMethod, params: Any, version: A2aVersion
    ) -> AsyncGenerator[TaskUpdate, None]:
        if method is A2aMethod.STREAM:
            sent = read_send(params, version)
            updates = await self.desk.stream(caller, sent)
            return _fitted(updates, sent.output_modes)
        return await self.desk.subscribe(caller, _task_id(params))

    async def _call(
        self, caller: A2aCaller, method: A2aMethod, params: Any, version: A2aVersion
    ) -> Any:
        match method:
            case A2aMethod.SEND:
                sent = read_send(params, version)
                task = await self.desk.send(caller, sent)
                task = fit_task(task, sent.output_modes)
                return _sent(task, version, sent.history)
            case A2aMethod.GET:
                history = A2aFields(params, "").count("historyLength")
                task = await self.desk.get(caller, _task_id(params))
                return write_task(task, version, history=history)
            case A2aMethod.LIST:
                wanted = read_list(params)
                page = await self.desk.list(caller, wanted)
                return write_page(page, wanted, version)
            case A2aMethod.CANCEL:
                task = await self.desk.cancel(caller, _task_id(params))
                return write_task(task, version)
            case A2aMethod.CARD:
                return await self._card(caller)
        return await self._push(caller, method, params, version)

    async def _push(
        self, caller: A2aCaller, method: A2aMethod, params: Any, version: A2aVersion
    ) -> Any:
        pushes = self.desk.pushes
        if pushes is None:
            raise A2aError(A2aFault.PUSH_NOTIFICATION_NOT_SUPPORTED)
        if method is A2aMethod.PUSH_SET:
            config = read_push_set(params, version)
            known = await self.desk.mine(caller, config.task)
            await pushes.check(caller, config)
            last = await self.desk.newest(known)
            kept = await pushes.set(caller, known, config, after=last)
            return write_push(kept, version)
        task, name = read_push_name(params, version)
        known = await self.desk.mine(caller, task)
        match method:
            case A2aMethod.PUSH_GET:
                return write_push(await pushes.get(known, name), version)
            case A2aMethod.PUSH_LIST:
                return write_pushes(await pushes.list(known), version)
            case A2aMethod.PUSH_DELETE:
                await pushes.delete(known, name)
                return None if version is A2aVersion.V03 else {}
        raise A2aError(A2aFault.UNSUPPORTED_OPERATION)


def _task_id(params: Any) -> str:
    return A2aFields(params, "").text("id", needed=True)


def _sent(task: A2aTask, version: A2aVersion, history: int | None) -> dict[str, Any]:
    written = write_task(task, version, history=history)
    return written if version is A2aVersion.V03 else {"task": written}


async def _fitted(
    updates: AsyncGenerator[TaskUpdate, None], modes: Sequence[str]
) -> AsyncGenerator[TaskUpdate, None]:
    async with contextlib.aclosing(updates):
        async for update in updates:
            yield fit(update, modes)


async def _written(
    updates: AsyncGenerator[TaskUpdate, None], version: A2aVersion
) -> AsyncGenerator[dict[str, Any], None]:
    async with contextlib.aclosing(updates):
        async for update in updates:
            yield write_stream(update, version)


async def _results(
    found: AsyncGenerator[dict[str, Any], None], number: RequestId, version: A2aVersion
) -> AsyncGenerator[dict[str, Any], None]:
    async with contextlib.aclosing(found):
        try:
            async for result in found:
                yield {"jsonrpc": "2.0", "id": number, "result": result}
        except Exception as exc:  # noqa: BLE001  # told to the caller, and logged
            yield rpc_error(number, fault_of(exc), version)


def fault_of(error: Exception) -> A2aError:
    """Return what a caller is told of an error: of ours, only that there is one."""
    if isinstance(error, A2aError):
        return error
    if isinstance(error, UnknownError):
        return A2aError(A2aFault.TASK_NOT_FOUND)
    if isinstance(error, InteractionError):
        return refused(error)
    logger.error("request failed", exc_info=error)
    return A2aError(A2aFault.INTERNAL)


def rpc_error(
    number: RequestId, error: A2aError, version: A2aVersion
) -> dict[str, Any]:
    """Return the answer to a request that is refused."""
    return {"jsonrpc": "2.0", "id": number, "error": error.to_json(version)}


def id_of(request: Any) -> RequestId:
    """Return the id of a request of JSON-RPC; None if it has no good one."""
    found = request.get("id") if isinstance(request, dict) else None
    is_id = isinstance(found, str | int | float) and not isinstance(found, bool)
    return found if is_id and len(str(found)) <= MAX_ID else None


MAX_ID: Final = 256
"Most characters of a request's id."


def _read(
    request: Any, version: A2aVersion | None
) -> tuple[A2aMethod, Any, A2aVersion]:
    if not isinstance(request, dict) or request.get("jsonrpc") != "2.0":
        raise A2aError(A2aFault.REQUEST)
    if request.get("id") is not None and id_of(request) is None:
        raise A2aError(A2aFault.REQUEST, "id: must be a text or a number")
    method = request.get("method")
    if not isinstance(method, str):
        raise A2aError(A2aFault.REQUEST, "method: must be a text")
    found = METHODS.get(method)
    if found is None:
        raise A2aError(A2aFault.METHOD)
    spoken, known = found
    if version is not None and spoken is not version:
        raise A2aError(A2aFault.VERSION_NOT_SUPPORTED, f"A2A {version} has no {method}")
    return known, request.get("params", {}), spoken
