"""Our extension `close`: a meta message that ends one channel (DESIGN.md). Pure."""

from __future__ import annotations

from anp.wire.frames import Frame, ProtocolType
from anp.wire.messages import MetaProtocol
from negotiation.errors import MessageError
from negotiation.messages import ChannelClose, parse_meta, render_meta

__all__ = ["EXTENSION_CLOSE", "close_frame", "reason_of_close"]

EXTENSION_CLOSE = "close"
"Name of the extension."

MAX_REASON = 200
"Characters of a peer's reason that are taken."


def close_frame(code: int, reason: str) -> Frame:
    """Return the last frame of a channel that we end."""
    return Frame(ProtocolType.META, render_meta(ChannelClose(code=code, reason=reason)))


def reason_of_close(frame: Frame, own_meta: MetaProtocol) -> str | None:
    """Return why the peer ends the channel with a frame, or None: it does not.

    Args:
        own_meta: What we said in the handshake; without the extension it means nothing.
    """
    if frame.protocol_type is not ProtocolType.META:
        return None
    if EXTENSION_CLOSE not in own_meta.extensions:
        return None
    try:
        message = parse_meta(frame.data)
    except MessageError:
        return None
    if not isinstance(message, ChannelClose):
        return None
    return message.reason[:MAX_REASON]
