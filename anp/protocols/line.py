"""The frames of one channel that carries sessions: read, written, faults counted.

Each protocol for sessions is a codec between frames and the operations of
`anp.interaction`, so that a session may go on over a channel with another protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Final

from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.operations import GroupOperation
from anp.interaction.operations import (
    Operation,
    RefusedOperation,
    Send,
    SubscriptionOperation,
    refusal,
)
from negotiation.consensus.written import Flagged, WrittenLimits

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
        InteractionFault.UNKNOWN_GROUP,
        InteractionFault.UNKNOWN_SUBSCRIPTION,
        InteractionFault.TAKEN,
    }
)
"Refusals that a peer without any fault gets, since operations cross."


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFrame:
    """One frame of a peer."""

    ref: int
    operation: Operation

    request: str = ""
    "Id of its message, if the protocol's refusal has to name that."

    flags: tuple[str, ...] = ()
    "Oddities of a valid frame, in our words."


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherFrame:
    """A frame of a peer about a group or a subscription, which no session takes."""

    ref: int
    operation: GroupOperation | SubscriptionOperation
    size: int = 0
    "Bytes of the frame."

    flags: tuple[str, ...] = ()


class InvalidFrame(Exception):
    """A frame is not valid; the rest is what could be read of it for an answer."""

    def __init__(
        self,
        error: InteractionError,
        *,
        ref: int = 0,
        session: str = "",
        request: str = "",
        answerable: bool = True,
    ) -> None:
        super().__init__(error.text)
        self.error = error
        self.ref = ref
        self.session = session
        self.request = request
        self.answerable = answerable


class SessionLine(ABC):
    """Reads and writes the frames of one channel; whoever drives it takes `outgoing`.

    Conversations decide about what the frames say, so that several channels may carry
    one session.
    """

    def __init__(self, limits: WrittenLimits) -> None:
        self._limits = limits
        self._faults = 0
        self._errors = 0
        self.outgoing: list[bytes] = []
        self.further: deque[FurtherFrame] = deque()
        "Frames about groups and subscriptions; whoever drives the line takes them."

        self.notes: list[Flagged] = []
        "Observations for the log."

        self.broken = ""
        "The reason for which the channel must be closed; empty while there is none."

    def read(self, data: bytes) -> OperationFrame | None:
        """Read a frame.

        None if it is not valid, which is then answered, or if it is in `further`.
        """
        try:
            frame = self._read(data)
        except InvalidFrame as exc:
            self.refuse(
                exc.error,
                ref=exc.ref,
                session=exc.session,
                request=exc.request,
                answer=exc.answerable,
            )
            return None
        self.notes += [Flagged(flag, fault=False) for flag in frame.flags]
        if isinstance(frame, FurtherFrame):
            self.further.append(frame)
            return None
        if isinstance(frame.operation, RefusedOperation):
            shown = f"{frame.operation.code}: {frame.operation.text}"[:MAX_SHOWN]
            self.notes.append(Flagged(f"the peer refused {shown!r}", fault=False))
        return frame

    def write(self, send: Send) -> None:
        """Put an operation among those to send.

        Raises:
            JsonError: It cannot be written, or is over the limit of a frame.
        """
        self.outgoing.append(self._written(send.operation, send.ref))

    def refuse(
        self,
        error: InteractionError,
        *,
        ref: int,
        session: str,
        request: str = "",
        answer: bool = True,
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
        self.outgoing.append(self._refused(refusal(session, ref, error), request))

    @abstractmethod
    def _read(self, data: bytes) -> OperationFrame | FurtherFrame:
        """Read a frame; InvalidFrame if it is not valid."""

    @abstractmethod
    def _written(self, operation: Operation, ref: int) -> bytes:
        """Return the bytes of an operation; JsonError if there are none."""

    @abstractmethod
    def _refused(self, refused: RefusedOperation, request: str) -> bytes:
        """Return the bytes of the answer to an operation that changed nothing."""
