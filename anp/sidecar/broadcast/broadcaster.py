"""Events of the message envelope, to all peers that listen (ENV-12, ENV-20)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from anp.channel.channel import ChannelClosed
from anp.errors import AnpError, CallError, ErrorKind
from anp.protocols.envelope import ENVELOPE_URI
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.consensus.registry import ConsensusDesk
from anp.sidecar.peers.directory import Directory
from anp.sidecar.peers.finder import PeerFinder
from cache.records.peers import PeerState

# Does something for each of several peers; a slow or absent one holds up nobody.


AT_A_TIME: Final = 16
"Peers to which a message is on its way at a time."

SECONDS: Final = 10.0
"Time for one peer, connecting included."

P = TypeVar("P")


async def fan_out(
    peers: Sequence[P],
    send: Callable[[P], Awaitable[None]],
    *,
    at_a_time: int = AT_A_TIME,
    seconds: float = SECONDS,
) -> list[CallError | None]:
    """Send something to each peer.

    Args:
        send: Sends it to one peer; `CallError` or `ChannelClosed` if it cannot.
        at_a_time: Most peers at a time.
        seconds: Time for each.

    Returns:
        For each peer None when it was sent, else why it was not, in their order.
    """
    room = asyncio.Semaphore(at_a_time)

    async def one(peer: P) -> CallError | None:
        try:
            async with room, asyncio.timeout(seconds):
                await send(peer)
        except TimeoutError:
            return CallError(ErrorKind.TIMEOUT, f"not reached within {seconds:g} s")
        except CallError as exc:
            return exc
        except (AnpError, ChannelClosed) as exc:
            return CallError(ErrorKind.PEER_UNREACHABLE, str(exc))
        return None

    return await asyncio.gather(*map(one, peers))


MAX_RECEIVERS: Final = 256
"Peers that one event goes to."


@dataclass(frozen=True, slots=True)
class Receipt:
    """The fate of an event at one peer."""

    peer: str
    "The peer, as it was named, or as calls name it."

    sent: bool
    "True when it was sent; nobody answers an event."

    reason: str = ""
    "Why it was not."


class Broadcaster:
    """Sends events to the peers that listen."""

    def __init__(
        self,
        *,
        consensus: ConsensusDesk,
        directory: Directory,
        finder: PeerFinder,
        requesters: Requesters,
    ) -> None:
        """Take the parts that find peers and open channels."""
        self._consensus = consensus
        self._directory = directory
        self._finder = finder
        self._requesters = requesters

    async def tell(
        self, name: str, data: dict[str, Any], *, peers: Sequence[str] | None = None
    ) -> list[Receipt]:
        """Send an event to peers; it is one message to `broadcast`, with one id.

        Args:
            peers: Those that it goes to; None for every allowed peer. One that does not
                know the envelope does not listen.

        Raises:
            CallError: `policy`, the owner does not want the envelope; `usage`, there
                are too many peers.
        """
        entry = self._consensus.written(ENVELOPE_URI)
        if entry is None:
            raise CallError(ErrorKind.POLICY, "consensus.envelope is false here")
        if peers is None:
            known = await asyncio.to_thread(self._directory.peers)
            peers = [
                one.address
                for one in known
                if one.state is PeerState.ALLOWED and not one.changed_keys
            ]
        if len(peers) > MAX_RECEIVERS:
            raise CallError(
                ErrorKind.USAGE,
                f"{len(peers)} peers, an event goes to at most {MAX_RECEIVERS}",
            )
        message_id = str(uuid.uuid4())

        async def send(peer: str) -> None:
            target = await self._finder.find(peer, trust_first_use=False)
            bound = await self._requesters.reopen_written(
                target, ENVELOPE_URI, entry.code
            )
            await bound.tell(name, data, message_id=message_id)

        problems = await fan_out(peers, send)
        return [
            Receipt(peer, problem is None, "" if problem is None else problem.detail)
            for peer, problem in zip(peers, problems, strict=True)
        ]
