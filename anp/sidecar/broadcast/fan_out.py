"""Does something for each of several peers; a slow or absent one holds up nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from anp.channel.channel import ChannelClosed
from anp.errors import AnpError, CallError, ErrorKind

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
