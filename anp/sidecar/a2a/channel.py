"""A2A for peers, over the channels between daemons: no HTTP, and no credentials.

A frame is one object of JSON-RPC 2.0. The caller is the peer that the channel proved,
so its tasks pass the same gate as those that come over another protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Any, Final

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.stranger_work import counted
from anp.identity.dids import canonical_did
from anp.interaction.elements import FILE_URN
from anp.protocols.a2a.pieces import body_bytes, check_size, in_pieces
from anp.protocols.a2a.words import (
    A2A_URIS,
    METHODS,
    A2aError,
    A2aFault,
    A2aMethod,
    A2aVersion,
)
from anp.sidecar.a2a.card import CardFacts, make_card
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.own_desk import OwnDesk
from anp.sidecar.a2a.rpc import A2aRpc, rpc_error
from anp.sidecar.a2a.schemes import Schemes
from anp.sidecar.offer.gate import Gate
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.tasks.service import TaskService
from anp.wire.frames import ProtocolType
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json
from sandbox.pool.shares import current_share

logger = logging.getLogger(__name__)

MAX_AT_ONCE: Final = 64
"Requests of one channel that are at work; then it is read no further."

_PUSH: Final = {
    A2aMethod.PUSH_SET,
    A2aMethod.PUSH_GET,
    A2aMethod.PUSH_LIST,
    A2aMethod.PUSH_DELETE,
}

_LINKS: Final = {"url": "raw", "uri": "bytes"}
"The fields of a link in 1.0 and 0.3, with those of bytes."

Serve = Callable[[Channel, str], Awaitable[None]]


class A2aChannels:
    """Serves the channels that carry A2A, and leaves all others to the next."""

    def __init__(self, tasks: TaskService, own: str, gate: Gate) -> None:
        """Begin without channels.

        Args:
            own: Our canonical DID.
        """
        self._tasks = tasks
        self._gate = gate
        self._rpc = A2aRpc(OwnDesk(tasks, own), self._card)

    async def serve(self, channel: Channel, uri: str) -> None:
        """Carry tasks over a channel until it ends.

        Args:
            uri: The protocol that it is bound to.
        """
        version = A2A_URIS.get(uri)
        if version is None:
            await self._tasks.serve(channel, uri)
            return
        did = canonical_did(channel.peer_did, channel.peer_key)
        caller = A2aCaller(name=did, peer_share=current_share.get())
        places = asyncio.Semaphore(MAX_AT_ONCE)
        working: set[asyncio.Task[None]] = set()
        channel.in_use = lambda: bool(working)
        try:
            while True:
                frame = (await channel.receive()).frame
                if frame.protocol_type is not ProtocolType.APPLICATION:
                    continue
                await places.acquire()
                work = asyncio.create_task(
                    counted(self._answer(channel, caller, version, frame.data))
                )
                working.add(work)
                work.add_done_callback(working.discard)
                work.add_done_callback(lambda _: places.release())
        except ChannelClosed as exc:
            logger.debug("channel ended peer=%s reason=%s", did, exc.detail)
        finally:
            for work in working:
                # What it was told goes on; the peer asks for it again.
                work.cancel()
            await asyncio.gather(*working, return_exceptions=True)

    async def _answer(
        self, channel: Channel, caller: A2aCaller, version: A2aVersion, data: bytes
    ) -> None:
        try:
            try:
                request = parse_json(data, max_size=channel.max_payload)
            except JsonError as exc:
                fault = A2aError(A2aFault.PARSE, str(exc))
                await _send(channel, rpc_error(None, fault, version))
                return
            refused = _push_refused(request)
            if refused is not None:
                number = request.get("id") if isinstance(request, dict) else None
                await _send(channel, rpc_error(number, refused, version))
                return
            answer = await self._rpc.answer(caller, request, version=version)
            if answer.stream is None:
                assert answer.body is not None
                await self._tell(channel, caller, answer.body, version)
                return
            async with contextlib.aclosing(answer.stream) as bodies:
                async for body in bodies:
                    if not await self._tell(
                        channel, caller, body, version, is_stream=True
                    ):
                        return
        except ChannelClosed:
            # The reader sees the same end.
            return
        except Exception:
            logger.exception("request of a peer failed")

    async def _tell(
        self,
        channel: Channel,
        caller: A2aCaller,
        body: dict[str, Any],
        version: A2aVersion,
        *,
        is_stream: bool = False,
    ) -> bool:
        """Send an answer, or the error that it cannot be sent; return if it was."""
        most = channel.max_payload
        try:
            data = body_bytes(body)
            if FILE_URN.encode() in data:
                body = {**body, "result": await self._whole(caller, body, most)}
            elif len(data) <= most:
                # Nearly all of them.
                await channel.send(ProtocolType.APPLICATION, data)
                return True
            pieces = in_pieces(body, version, most, is_stream=is_stream)
            for piece in pieces:
                await channel.send(ProtocolType.APPLICATION, piece)
        except A2aError as exc:
            await _send(channel, rpc_error(body.get("id"), exc, version))
            return False
        return True

    async def _whole(self, caller: A2aCaller, body: dict[str, Any], most: int) -> Any:
        """Return a result in which the files that are kept here stand themselves.

        Over a channel nobody could fetch them.
        """
        desk, result = self._rpc.desk, body.get("result")

        async def content(uri: str, task: str) -> str:
            kept = await desk.file(caller, task, uri.removeprefix(FILE_URN))
            check_size(kept.size * 4 // 3, most)
            data = b"".join([one async for one in desk.blocks(kept)])
            return b64encode(data).decode("ascii")

        async def inline(value: Any, task: str) -> Any:
            if isinstance(value, list):
                return [await inline(one, task) for one in value]
            if not isinstance(value, dict):
                return value
            task = value.get("taskId", task)
            made = {}
            for key, one in value.items():
                if key in _LINKS and str(one).startswith(FILE_URN):
                    made[_LINKS[key]] = await content(one, task)
                else:
                    # An agent's own data is not ours to change.
                    is_own = key in ("data", "metadata")
                    made[key] = one if is_own else await inline(one, task)
            return made

        found = result.get("task", result) if isinstance(result, dict) else {}
        return await inline(result, found.get("id", ""))

    async def _card(self, caller: A2aCaller) -> dict[str, Any]:
        facts = CardFacts(
            name="anpd",
            description="An agent behind anpd.",
            url=next(iter(A2A_URIS)),
            schemes=Schemes(token=False),
        )
        return make_card(facts, self._gate.offered(WayIn.TASK, caller.id))


async def _send(channel: Channel, body: dict[str, Any]) -> None:
    await channel.send(ProtocolType.APPLICATION, body_bytes(body))


def _push_refused(request: Any) -> A2aError | None:
    """Return the error for a wish for push notifications; the channel is two-way."""
    if not isinstance(request, dict):
        return None
    method, params = request.get("method"), request.get("params")
    _, known = METHODS.get(str(method), (None, None))
    config = params.get("configuration") if isinstance(params, dict) else None
    wishes = isinstance(config, dict) and any(
        config.get(name) is not None
        for name in ("pushNotificationConfig", "taskPushNotificationConfig")
    )
    if known in _PUSH or wishes:
        return A2aError(A2aFault.PUSH_NOTIFICATION_NOT_SUPPORTED)
    return None
