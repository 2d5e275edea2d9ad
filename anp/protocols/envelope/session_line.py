"""The messages of the envelope 1.1 on one channel with sessions; see `SessionLine`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from anp.interaction.operations import Operation, RefusedOperation
from anp.protocols.envelope.session_reader import read_operation
from anp.protocols.envelope.session_writer import write_operation
from anp.protocols.line import OperationFrame, SessionLine
from negotiation.consensus.written import Parties, WrittenLimits


class EnvelopeLine(SessionLine):
    """Reads and writes the messages of one channel."""

    def __init__(
        self, limits: WrittenLimits, parties: Parties, clock: Callable[[], datetime]
    ) -> None:
        """Begin on a channel.

        Args:
            clock: Gives the time in UTC, for the messages that we send.
        """
        super().__init__(limits)
        self._parties = parties
        self._clock = clock

    def _read(self, data: bytes) -> OperationFrame:
        return read_operation(
            data,
            own_names=self._parties.own_names,
            peer_names=self._parties.peer_names,
            max_size=self._limits.max_message,
            wall_now=self._clock(),
        )

    def _written(self, operation: Operation, ref: int, request: str = "") -> bytes:
        return write_operation(
            operation,
            ref,
            own_id=self._parties.own_id,
            peer_id=self._parties.peer_id,
            sent_at=self._clock(),
            max_size=self._limits.max_message,
            request=request,
        )

    def _refused(self, refused: RefusedOperation, request: str) -> bytes:
        return self._written(refused, 0, request)
