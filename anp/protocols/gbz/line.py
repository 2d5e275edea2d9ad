"""The frames of one channel: the peer's are read, ours written, and faults counted."""

from __future__ import annotations

from typing import Final

from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import RefusedOperation, Send, refusal
from anp.protocols.gbz.reader import GbzError, GbzFrame, read_frame
from anp.protocols.gbz.writer import write_frame
from negotiation.consensus.written import Flagged, WrittenLimits

__all__ = ["GbzLine"]

MAX_SHOWN: Final = 200
"Most characters of a peer's text in what we log."

CROSSINGS: Final = frozenset(
    {
        InteractionFault.UNKNOWN_SESSION,
        InteractionFault.UNKNOWN_TASK,
        InteractionFault.UNKNOWN_OPERATION,
        InteractionFault.STATE,
        InteractionFault.CLOSED,
        InteractionFault.EXPIRED,
        InteractionFault.TOO_MANY,
    }
)
"Refusals that a peer without any fault gets, since operations cross."


class GbzLine:
    """Reads and writes the frames of one channel; whoever drives it takes `outgoing`.

    Conversations decide about what the frames say, so that several channels may carry
    one session.
    """

    def __init__(self, limits: WrittenLimits) -> None:
        self._limits = limits
        self._faults = 0
        self._errors = 0
        self.outgoing: list[bytes] = []
        self.notes: list[Flagged] = []
        "Observations for the log."

        self.broken = ""
        "The reason for which the channel must be closed; empty while there is none."

    def read(self, data: bytes) -> GbzFrame | None:
        """Read a frame; None if it is not valid, which is then answered."""
        try:
            frame = read_frame(data, max_size=self._limits.max_message)
        except GbzError as exc:
            self.refuse(
                exc.error, ref=exc.ref, session=exc.session, answer=exc.answerable
            )
            return None
        self.notes += [Flagged(flag, fault=False) for flag in frame.flags]
        if isinstance(frame.operation, RefusedOperation):
            shown = f"{frame.operation.code}: {frame.operation.text}"[:MAX_SHOWN]
            self.notes.append(Flagged(f"the peer refused {shown!r}", fault=False))
        return frame

    def write(self, send: Send) -> None:
        """Put an operation among those to send.

        Raises:
            GbzTooLarge: It is over the limit of a frame.
            JsonError: It cannot be written.
        """
        data = write_frame(send.operation, send.ref, max_size=self._limits.max_message)
        self.outgoing.append(data)

    def refuse(
        self, error: InteractionError, *, ref: int, session: str, answer: bool = True
    ) -> None:
        """Answer an operation that changed nothing."""
        is_fault = error.code not in CROSSINGS
        self.notes.append(Flagged(error.text[:MAX_SHOWN], fault=is_fault))
        self._faults += is_fault
        if self._faults > self._limits.max_faults:
            self.broken = f"{self._faults} frames of the peer broke the protocol"
            return
        if not answer:
            return
        self._errors += 1
        if self._errors > self._limits.max_errors:
            self.broken = "too many operations of the peer were refused"
            return
        told = refusal(session, ref, error)
        self.write(Send(to="", ref=0, operation=told))
