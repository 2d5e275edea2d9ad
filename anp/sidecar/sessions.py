"""The sessions of this daemon as requester, by agreement."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from anp.channel.channel import Channel
from anp.channel.core import EXTENSION_CLOSE
from anp.sidecar.natural import Asker
from anp.sidecar.protocol import Protocol
from anp.sidecar.session import Session, SessionParts
from cache.records import AgreementRecord, HalfRecord
from negotiation.mind import Need

__all__ = ["Sessions"]


class Sessions:
    """Finds the open session of an agreement, and starts new ones."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self._sessions: list[Session] = []
        self._askers: dict[str, Asker] = {}
        self._retiring: set[asyncio.Task[None]] = set()

    def live(self, agreement: AgreementRecord) -> Session | None:
        """Return the session of an agreement that is still open, or None."""
        wanted = _key(agreement)
        for session in reversed(self._sessions):
            # A repair moves the agreement of a session on, so it is looked at anew.
            if session.alive and _key(session.agreement) == wanted:
                return session
        return None

    def start(
        self,
        channel: Channel,
        protocol: Protocol,
        half: HalfRecord,
        agreement: AgreementRecord,
        need: Need,
    ) -> Session:
        """Bind a channel to a protocol and take in what comes from now on."""
        session = Session(
            channel, protocol, half, agreement, need, self._parts, on_end=self._ended
        )
        self._sessions.append(session)
        return session

    def retire(self, agreements: Collection[AgreementRecord]) -> None:
        """End the sessions of other revisions than these, after their calls in flight.

        New calls take a session of the revision that an agreement names, so none comes
        to them any more.
        """
        current = {(one.peer_did, one.hash): one.revision for one in agreements}
        for session in self._sessions:
            used = session.agreement
            revision = current.get((used.peer_did, used.hash))
            if revision not in {None, used.revision}:
                task = asyncio.create_task(_end(session))
                self._retiring.add(task)
                task.add_done_callback(self._retiring.discard)

    async def make_room(self, did: str) -> None:
        """End idle channels to a peer without our extensions (DESIGN.md).

        The official SDK sends only under its newest key for a pair of DIDs.
        """
        for session in list(self._sessions):
            channel = session.channel
            if channel.peer_did != did or EXTENSION_CLOSE in channel.extensions:
                continue
            await session.wait_idle()
            await channel.close("another protocol is wanted")
            self._ended(session)

    def asker(self, did: str) -> Asker | None:
        """Return the open channel for natural language with a peer, or None."""
        asker = self._askers.get(did)
        return asker if asker is not None and asker.channel.open else None

    def start_asker(self, did: str, channel: Channel) -> Asker:
        """Use a channel for natural language."""
        asker = self._askers[did] = Asker(channel, timeout=self._parts.call_timeout)
        return asker

    def _ended(self, session: Session) -> None:
        if session in self._sessions:
            self._sessions.remove(session)


async def _end(session: Session) -> None:
    await session.wait_idle()
    await session.channel.close("stale: another revision of our half is in use")


def _key(agreement: AgreementRecord) -> tuple[str, str, int]:
    return agreement.peer_did, agreement.hash, agreement.revision
