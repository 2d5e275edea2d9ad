"""GB/Z 185.6 point to point, as a consensus protocol over the model of interaction.

* `words`: URI, operations and words, Chinese ones included.
* `reader`: turns bytes of a peer into an operation, or into a reason why they are none.
* `writer`: turns operations into bytes.
* `line`: the frames of one channel.
* `side`: the common part of both sides of a channel that carries calls of one turn.
* `requester`: the side that calls.
* `provider`: the side that is called.
* `file_fields`: Pieces of files in `task.get` and `ack`: fields that the text does not
  name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files

from anp.protocols.gbz.provider import GbzProvider
from anp.protocols.gbz.requester import GbzRequester
from anp.protocols.gbz.side import GbzSetting
from anp.protocols.gbz.words import GBZ_URI, GBZ_VERSION
from negotiation.consensus.written import Parties, WrittenLimits, WrittenProtocol
from negotiation.need import Role

__all__ = ["GBZ_URI", "GBZ_VERSION", "GbzCode", "gbz_document"]


class GbzCode:
    """Makes the objects of one daemon for this version; a `WrittenCode`."""

    def __call__(
        self,
        role: Role,
        parties: Parties,
        *,
        limits: WrittenLimits,
        random_bytes: Callable[[int], bytes],
    ) -> WrittenProtocol:
        """See `WrittenCode`."""
        side = GbzRequester if role is Role.REQUESTER else GbzProvider
        setting = GbzSetting(parties=parties, limits=limits, random_bytes=random_bytes)
        return side(setting)


@cache
def gbz_document() -> str:
    """Return the text of the consensus protocol, of this version."""
    return (files(__name__) / f"gbz-185.6-{GBZ_VERSION}.md").read_text("utf-8")
