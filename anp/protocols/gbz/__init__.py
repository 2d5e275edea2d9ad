"""GB/Z 185.6 as consensus protocols over the model of interaction.

Version 1 is point to point; version 2 has groups and subscriptions in addition.

* `words`: URI, operations and words, Chinese ones included; the words of version 2 of
  GB/Z 185.6: groups, subscriptions and sealing keys.
* `reader`: turns bytes of a peer into an operation, or into a reason why they are none.
* `writer`: turns operations into bytes.
* `line`: the frames of one channel; the frames of GB/Z 185.6 version 2 on one channel;
  see `SessionLine`.
* `side`: the common part of both sides of a channel that carries calls of one turn.
* `requester`: the side that calls.
* `file_fields`: Pieces of files in `task.get` and `ack`: fields that the text does not
  name.
* `group_reader`: Bytes of a peer become an operation of version 2: about a group or a
  subscription.
* `group_writer`: Operations of version 2 become bytes.
* `sealed_message`: Messages of a sealed group in messages that the hub passes on
  unread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Final

from anp.protocols.gbz.requester import GbzRequester
from anp.protocols.gbz.side import GbzSetting
from anp.protocols.gbz.words import (
    GBZ_GROUPS_URI,
    GBZ_GROUPS_VERSION,
    GBZ_URI,
    GBZ_VERSION,
)
from negotiation.consensus.written import Parties, WrittenLimits, WrittenProtocol
from negotiation.errors import MisuseError
from negotiation.need import Role

__all__ = [
    "GBZ_GROUPS_URI",
    "GBZ_GROUPS_VERSION",
    "GBZ_URI",
    "GBZ_URIS",
    "GBZ_VERSION",
    "GbzCode",
    "gbz_document",
]

GBZ_URIS: Final = frozenset({GBZ_URI, GBZ_GROUPS_URI})
"URIs of all versions; each carries sessions."


class GbzCode:
    """Makes the requester's side of calls of one turn; a `WrittenCode`.

    The side is the same in all versions. A daemon serves tasks of peers from sessions
    that it stores, so no side in memory answers them.
    """

    def __call__(
        self,
        role: Role,
        parties: Parties,
        *,
        limits: WrittenLimits,
        random_bytes: Callable[[int], bytes],
    ) -> WrittenProtocol:
        """See `WrittenCode`.

        Raises:
            MisuseError: The role is the provider's.
        """
        if role is not Role.REQUESTER:
            raise MisuseError("sessions of GB/Z are served from the store")
        setting = GbzSetting(parties=parties, limits=limits, random_bytes=random_bytes)
        return GbzRequester(setting)


@cache
def gbz_document(version: str = GBZ_VERSION) -> str:
    """Return the text of the consensus protocol of a version."""
    return (files(__name__) / f"gbz-185.6-{version}.md").read_text("utf-8")
