"""Channels bound to one protocol, as requester, with the calls in flight on them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core import EXTENSION_CLOSE, FrameTooLarge
from anp.channel.events import FrameReceived
from anp.errors import CallError, ErrorKind
from anp.sidecar.protocol import Answer, Protocol
from anp.wire.frames import ProtocolType
from cache.records import AgreementRecord
from negotiation.errors import NegotiationError

__all__ = ["Session", "Sessions"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Session:
    """A channel, the protocol it is bound to, and who waits for answers on it."""

    channel: Channel
    "Open as long as the session is of use."

    protocol: Protocol
    "What is spoken on it."

    agreement: AgreementRecord
    "Where the protocol comes from."

    pending: dict[str, asyncio.Future[Answer]] = field(default_factory=dict)
    "Calls in flight by message id."

    single: asyncio.Lock = field(default_factory=asyncio.Lock)
    "Held by the one call in flight of a protocol without message ids."

    reader: asyncio.Task[None] | None = None
    "Takes the answers in."

    @property
    def alive(self) -> bool:
        """Whether requests can still be sent."""
        return self.channel.open


class Sessions:
    """The sessions of this daemon, by agreement."""

    def __init__(self, *, call_timeout: float) -> None:
        self._call_timeout = call_timeout
        self._sessions: dict[tuple[str, str, int], Session] = {}

    def live(self, agreement: AgreementRecord) -> Session | None:
        """Return the session of an agreement that is still open, or None."""
        session = self._sessions.get(_key(agreement))
        return session if session is not None and session.alive else None

    def start(
        self, channel: Channel, protocol: Protocol, agreement: AgreementRecord
    ) -> Session:
        """Bind a channel to a protocol and take its answers in from now on."""
        session = Session(channel, protocol, agreement)
        session.reader = asyncio.create_task(self._read(session))
        self._sessions[_key(agreement)] = session
        return session

    async def make_room(self, did: str) -> None:
        """End idle channels to a peer without our extensions (DESIGN.md).

        The official SDK sends only under its newest key for a pair of DIDs.
        """
        for key, session in list(self._sessions.items()):
            channel = session.channel
            if channel.peer_did != did or EXTENSION_CLOSE in channel.extensions:
                continue
            while session.pending and session.alive:
                await asyncio.wait(session.pending.values())
            await channel.close("another protocol is wanted")
            self._sessions.pop(key, None)

    async def exchange(self, session: Session, message_id: str, data: bytes) -> Answer:
        """Send one request and return its answer.

        Raises:
            ChannelClosed: Nothing was sent.
            CallError: `timeout`, `usage` for a request that is too large, or what the
                channel ended with; see `may_have_run`.
        """
        if session.protocol.has_message_ids:
            return await self._wait_answer(session, message_id, data)
        async with session.single:
            try:
                return await self._wait_answer(session, message_id, data)
            except CallError as exc:
                # A late answer must never meet a later call.
                if exc.kind is ErrorKind.TIMEOUT:
                    await session.channel.close("no answer in time")
                raise

    async def _wait_answer(
        self, session: Session, message_id: str, data: bytes
    ) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        session.pending[message_id] = answer
        try:
            await session.channel.send(ProtocolType.APPLICATION, data)
            async with asyncio.timeout(self._call_timeout):
                return await answer
        except FrameTooLarge as exc:
            raise CallError(ErrorKind.USAGE, str(exc)) from exc
        except TimeoutError:
            raise CallError(
                ErrorKind.TIMEOUT,
                f"no answer in {self._call_timeout:g} s (call.timeout)",
                may_have_run=True,
            ) from None
        finally:
            session.pending.pop(message_id, None)
            if answer.done() and not answer.cancelled():
                answer.exception()

    async def _read(self, session: Session) -> None:
        """Hand answers to the calls that wait for them, until the channel ends."""
        try:
            while True:
                event = await session.channel.receive()
                if event.frame.protocol_type is ProtocolType.APPLICATION:
                    await self._deliver(session, event)
        except ChannelClosed as exc:
            for waiting in session.pending.values():
                if not waiting.done():
                    waiting.set_exception(
                        CallError(
                            ErrorKind.PEER_UNREACHABLE,
                            f"link_lost: {exc.detail}",
                            may_have_run=True,
                        )
                    )
        finally:
            if self._sessions.get(_key(session.agreement)) is session:
                del self._sessions[_key(session.agreement)]

    async def _deliver(self, session: Session, event: FrameReceived) -> None:
        try:
            answer = await session.protocol.decode(event.frame.data)
        except NegotiationError as exc:
            logger.warning(
                "answer does not fit peer=%s reason=%r",
                session.channel.peer_did,
                str(exc)[:200],
            )
            # With one call in flight it must be its answer; with more, nobody knows
            # whose it was, and each ends by its own deadline.
            waiting = [w for w in session.pending.values() if not w.done()]
            if len(waiting) == 1:
                waiting[0].set_exception(
                    CallError(
                        ErrorKind.GENERATED_CODE,
                        f"the answer breaks the protocol: {exc}"[:500],
                        may_have_run=True,
                    )
                )
            return
        key = answer.message_id
        if key is None and len(session.pending) == 1:
            key = next(iter(session.pending))
        future = session.pending.get(key) if key is not None else None
        if future is None or future.done():
            logger.warning(
                "answer to nothing dropped peer=%s", session.channel.peer_did
            )
            return
        future.set_result(answer)


def _key(agreement: AgreementRecord) -> tuple[str, str, int]:
    return agreement.peer_did, agreement.hash, agreement.revision
