"""The message envelope of the generic A2A specification, as a consensus protocol.

* `messages`: the four types of messages, their words and date-times (ENV-6 to ENV-23).
* `reader`: turns bytes of a peer into a message, or into a reason why they are none.
* `memory`: messages that were seen and answers that were given (ENV-Q11).
* `discovery`: the reserved actions by which capabilities are asked for and announced.
* `side`: the common part of both sides of a channel.
* `requester`: the side that calls.
* `provider`: the side that is called.
* `session_words`: the words of sessions and tasks, which version 1.1 carries, too.
* `session_objects`: the objects in its messages.
* `session_reader`: turns a message of a session into an operation.
* `session_writer`: turns operations into messages.
* `session_line`: the messages of one channel.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from anp.protocols.envelope.memory import MessageMemory
from anp.protocols.envelope.messages import (
    ENVELOPE_URI,
    ENVELOPE_VERSION,
    EnvelopeAction,
    EnvelopeErrorCode,
    EnvelopeStatus,
    MessageType,
)
from anp.protocols.envelope.provider import EnvelopeProvider
from anp.protocols.envelope.requester import EnvelopeRequester
from anp.protocols.envelope.session_words import (
    ENVELOPE_TASKS_URI,
    ENVELOPE_TASKS_VERSION,
)
from anp.protocols.envelope.side import SideSetting
from negotiation.consensus.written import Parties, WrittenLimits, WrittenProtocol
from negotiation.need import Role

__all__ = [
    "ENVELOPE_TASKS_URI",
    "ENVELOPE_TASKS_VERSION",
    "ENVELOPE_URI",
    "ENVELOPE_VERSION",
    "EnvelopeAction",
    "EnvelopeErrorCode",
    "EnvelopeCode",
    "MessageType",
    "EnvelopeStatus",
    "envelope_document",
]

MAX_PEERS = 32
"Peers and roles whose messages are remembered beyond the end of a channel."


class EnvelopeCode:
    """Makes the objects of one daemon for calls of one turn; a `WrittenCode`."""

    def __init__(
        self,
        *,
        announce: bool = False,
        further_types: frozenset[str] = frozenset(),
        version: str = ENVELOPE_VERSION,
    ) -> None:
        """Begin without any channel.

        Args:
            announce: Whether `agent_online` is sent on a channel when it begins and
                when what we offer there changes; it costs a message each time.
            further_types: Message types beside the four that are delivered (ENV-4).
            version: The version that is spoken.
        """
        self._version = version
        self._announce = announce
        self._further_types = further_types
        self._memories: OrderedDict[tuple[str, str, Role], MessageMemory] = (
            OrderedDict()
        )

    def __call__(
        self,
        role: Role,
        parties: Parties,
        *,
        limits: WrittenLimits,
        random_bytes: Callable[[int], bytes],
    ) -> WrittenProtocol:
        """See `WrittenCode`."""
        side = EnvelopeRequester if role is Role.REQUESTER else EnvelopeProvider
        setting = SideSetting(
            parties=parties,
            limits=limits,
            random_bytes=random_bytes,
            memory=self._memory(parties, role),
            announce=self._announce,
            further_types=self._further_types,
            version=self._version,
        )
        return side(setting)

    def _memory(self, parties: Parties, role: Role) -> MessageMemory:
        """Return what is remembered of a peer: a repeated id is one on any channel."""
        key = (parties.own_id, parties.peer_id, role)
        memory = self._memories.setdefault(key, MessageMemory())
        self._memories.move_to_end(key)
        if len(self._memories) > MAX_PEERS:
            self._memories.popitem(last=False)
        return memory


@cache
def envelope_document(version: str = ENVELOPE_VERSION) -> str:
    """Return the text of the consensus protocol, of one version."""
    name = f"message-envelope-{version}.md"
    return (files(__name__) / name).read_text("utf-8")
