"""Channels that speak a protocol written by hand: the shells of `WrittenProtocol`.

* `driver`: feeds a written protocol and carries its messages and timer.
* `requester`: a channel on which we call through a written protocol.
* `provider`: a channel on which a peer calls through a written protocol.
* `heard`: messages of peers that nobody waits for.
* `base`: the base of both roles on such a channel.
"""

from __future__ import annotations

from anp.sidecar.consensus.written.base import WrittenParts
from anp.sidecar.consensus.written.heard import Heard
from anp.sidecar.consensus.written.provider import WrittenProvider
from anp.sidecar.consensus.written.requester import (
    InputRefused,
    NotServed,
    ResultUnfit,
    WrittenRequester,
)

__all__ = [
    "Heard",
    "InputRefused",
    "NotServed",
    "ResultUnfit",
    "WrittenParts",
    "WrittenProvider",
    "WrittenRequester",
]
