"""Channels that speak a protocol we wrote: the shells of `WrittenProtocol`.

`WrittenSession` is to a caller what `Session` is for a negotiated protocol, and
`WrittenServed` to a peer what `Served` is.
"""

from __future__ import annotations

from anp.sidecar.consensus.written.heard import Heard, HeardEntry
from anp.sidecar.consensus.written.provider import WrittenServed
from anp.sidecar.consensus.written.requester import (
    InputRefused,
    NotServed,
    ResultUnfit,
    WrittenSession,
)
from anp.sidecar.consensus.written.shell import WrittenParts

__all__ = [
    "Heard",
    "HeardEntry",
    "InputRefused",
    "NotServed",
    "ResultUnfit",
    "WrittenParts",
    "WrittenServed",
    "WrittenSession",
]
