"""Everything that follows from one input to a session, or from several at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from anp.interaction.elements import Message, SessionEvent, Task
from anp.interaction.operations import Send


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedSend:
    """A peer refused one of our operations for good."""

    peer: str
    number: int
    "Number of the event that the operation told of."

    code: str
    text: str

    retry_after: float = 0.0
    "Seconds after which the peer may take the same; 0 when it does not say."


@dataclass(slots=True)
class Step:
    """Everything that follows from one input.

    Store the events, and the head and the changed tasks as they are now, in one
    transaction; only then send and do the rest. If that fails, throw the conversation
    away and restore it from what is stored.
    """

    events: list[SessionEvent] = field(default_factory=list)

    sends: list[Send] = field(default_factory=list)
    "Operations and answers, in order."

    tasks: dict[str, None] = field(default_factory=dict)
    "Ids of the tasks that are new or changed, in order."

    is_head_changed: bool = False
    "The head is to be stored although no event says so."

    offered: list[Task] = field(default_factory=list)
    "New tasks for our agent; each is to be accepted or rejected by `report`."

    whole: list[Message] = field(default_factory=list)
    "Messages of the peer that are complete now."

    stop: list[str] = field(default_factory=list)
    "Tasks at work that the requester wants to end; `report` says how they ended."

    ready: list[str] = field(default_factory=list)
    "Held tasks whose dependencies are completed; each is to be sent by `release`."

    start: list[str] = field(default_factory=list)
    "After a restart: accepted tasks, and those at work that may be started again."

    refused: list[RefusedSend] = field(default_factory=list)

    resend: list[tuple[str, int]] = field(default_factory=list)
    "Peers, each with the number of an event whose operation it has to get again."

    def add(self, later: Step) -> None:
        """Take what follows from the next input, to be stored together."""
        self.events += later.events
        self.sends += later.sends
        self.tasks |= later.tasks
        self.is_head_changed |= later.is_head_changed
        self.offered += later.offered
        self.whole += later.whole
        self.stop += later.stop
        self.ready += later.ready
        self.start += later.start
        self.refused += later.refused
        self.resend += later.resend
