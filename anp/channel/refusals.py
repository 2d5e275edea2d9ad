"""Refused handshakes: the error of a caller, and our own refusals."""

from __future__ import annotations

import logging

from anp.channel.core.events import HandshakeRefused
from anp.channel.core.handshakes import NOT_HERE
from anp.errors import CallError, ErrorCode, ErrorKind, PeerError
from cache.errors import CacheError

logger = logging.getLogger(__name__)

RETRY_AFTER = 2.0
"Seconds after which a peer that could not take a channel is worth asking again."

CANNOT_SERVE = "unavailable: the store of the peer does not answer"
"Reason for closing a channel that needs our store; nothing is wrong with the channel."


def refusal_of(event: HandshakeRefused, *, lost: str | None) -> CallError:
    """Return the error of a call whose handshake was refused.

    Args:
        lost: Reason why the link was lost, if it was.
    """
    if lost is not None:
        return CallError(ErrorKind.PEER_UNREACHABLE, lost)
    if event.timed_out:
        return CallError(ErrorKind.PEER_UNREACHABLE, event.detail)
    if event.by_peer and event.code is ErrorCode.UNAVAILABLE:
        return CallError(
            ErrorKind.PEER_UNREACHABLE,
            f"the peer takes no channel now: {int(event.code)} {event.detail}",
            retry_after=RETRY_AFTER,
        )
    if event.by_peer and event.detail.endswith(NOT_HERE):
        return CallError(
            ErrorKind.IDENTITY_REFUSED,
            "another agent answers at that address, not the one with the DID that is "
            "meant; `anpd up` of the peer prints its address with its DID",
        )
    who = "the peer refused us" if event.by_peer else "handshake failed"
    return CallError(
        ErrorKind.IDENTITY_REFUSED, f"{who}: {int(event.code)} {event.detail}"
    )


def unable(exc: CacheError, connection: str) -> PeerError:
    """Return our refusal of a hello that we cannot judge without the store."""
    logger.warning("hello not judged connection=%s reason=%s", connection, exc)
    return PeerError(ErrorCode.UNAVAILABLE, str(exc))
