"""Refused handshakes: the error of a caller."""

from __future__ import annotations

from anp.channel.core.events import HandshakeRefused
from anp.errors import CallError, ErrorKind

__all__ = ["refusal_of"]


def refusal_of(event: HandshakeRefused, *, lost: str | None) -> CallError:
    """Return the error of a call whose handshake was refused.

    Args:
        lost: Reason why the link was lost, if it was.
    """
    if lost is not None:
        return CallError(ErrorKind.PEER_UNREACHABLE, lost)
    if event.timed_out:
        return CallError(ErrorKind.PEER_UNREACHABLE, event.detail)
    who = "the peer refused us" if event.by_peer else "handshake failed"
    return CallError(
        ErrorKind.IDENTITY_REFUSED, f"{who}: {int(event.code)} {event.detail}"
    )
