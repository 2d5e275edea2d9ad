"""The frames of GB/Z 185.6 on one channel; see `SessionLine`."""

from __future__ import annotations

from anp.interaction.operations import Operation, RefusedOperation
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
