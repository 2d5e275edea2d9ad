"""The frames of GB/Z 185.6 on one channel; see `SessionLine`."""

from __future__ import annotations

from anp.interaction.groups.operations import GroupOperation, RefusedGroupOperation
from anp.interaction.operations import (
    Operation,
    RefusedOperation,
    SubscriptionOperation,
)
from anp.protocols.gbz.group_reader import read_group_frame
from anp.protocols.gbz.group_writer import write_group_frame
from anp.protocols.gbz.reader import read_frame
from anp.protocols.gbz.writer import write_frame
from anp.protocols.line import FurtherFrame, OperationFrame, SessionLine
from negotiation.consensus.written import WrittenLimits


class GbzLine(SessionLine):
    """Reads and writes the frames of one channel."""

    def __init__(self, limits: WrittenLimits, *, raw: bool = False) -> None:
        """Begin; `raw`: pieces of files go as they are (extension `binary`)."""
        super().__init__(limits)
        self._raw = raw

    def _read(self, data: bytes) -> OperationFrame | FurtherFrame:
        return read_frame(data, max_size=self._limits.max_message, raw=self._raw)

    def _written(self, operation: Operation, ref: int) -> bytes:
        most = self._limits.max_message
        return write_frame(operation, ref, max_size=most, raw=self._raw)

    def _refused(self, refused: RefusedOperation, request: str) -> bytes:
        return self._written(refused, 0)


# The frames of GB/Z 185.6 version 2 on one channel; see `SessionLine`.


class GroupLine(GbzLine):
    """Reads and writes the frames of one channel, those of sessions included."""

    def write_further(
        self, operation: GroupOperation | SubscriptionOperation, ref: int
    ) -> None:
        """Put an operation about a group or a subscription among those to send.

        Raises:
            JsonError: It cannot be written, or is over the limit of a frame.
        """
        most = self._limits.max_message
        self.outgoing.append(write_group_frame(operation, ref, max_size=most))

    def _read(self, data: bytes) -> OperationFrame | FurtherFrame:
        return read_group_frame(data, max_size=self._limits.max_message, raw=self._raw)

    def _written(self, operation: Operation, ref: int) -> bytes:
        if isinstance(operation, SubscriptionOperation):
            return write_group_frame(operation, ref, max_size=self._limits.max_message)
        return super()._written(operation, ref)

    def _refused(self, refused: RefusedOperation, request: str) -> bytes:
        if not request:
            return super()._refused(refused, request)
        answer = RefusedGroupOperation(
            group=request, ref=refused.ref, code=refused.code, text=refused.text
        )
        return write_group_frame(answer, 0, max_size=self._limits.max_message)
