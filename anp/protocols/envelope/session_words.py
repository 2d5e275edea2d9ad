"""The words by which messages of the envelope 1.1 carry sessions and tasks."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from anp.interaction.elements import MessagePurpose, PartyMode, SenderRole
from anp.interaction.states import TaskState
from anp.protocols.envelope.messages import EnvelopeStatus

ENVELOPE_TASKS_VERSION: Final = "1.1"
"Value of `protocol_version` on a channel that may carry tasks."

ENVELOPE_TASKS_URI: Final = f"urn:anpd:message-envelope:{ENVELOPE_TASKS_VERSION}"
"URI of that version of the consensus protocol; 1.0 has a text of its own."


class SessionEntry(StrEnum):
    """Entries of `metadata` in a message of a session."""

    SESSION = "session_id"
    REF = "ref"
    ANSWERS = "answers"
    CHUNK_INDEX = "chunk_index"
    LAST_CHUNK = "last_chunk"
    AT = "at"


class SessionAction(StrEnum):
    """Actions of a session; a capability's name has a dot, so that none is one."""

    OPEN = "session_open"
    UPDATE = "session_update"
    CLOSE = "session_close"
    TASK = "task"
    CANCEL = "cancel"
    STATUS = "status"
    NOTIFY = "notify"
    NOTIFY_END = "notify_end"


class SessionEventName(StrEnum):
    """Events of a session."""

    MESSAGE = "message"
    RECEIVED = "received"
    REFUSED = "refused"


REJECTED: Final = "rejected"
"Code of the error by which a task is handed back."

CANCELED: Final = "canceled"
"Code of the failure of a task that ended because its requester asked."

NEEDS: Final = {
    str(TaskState.INPUT_REQUIRED): "input",
    str(TaskState.AUTH_REQUIRED): "auth",
}
"Values of `result.needs`; any other state that waits for the requester is itself one."

STATUS_OF: Final = {
    str(TaskState.COMPLETED): EnvelopeStatus.SUCCESS,
    str(TaskState.FAILED): EnvelopeStatus.FAILURE,
    str(TaskState.CANCELED): EnvelopeStatus.FAILURE,
}
"Statuses of the responses that end a task."

ROLES: Final = {str(one): one for one in SenderRole}
PURPOSES: Final = {str(one): one for one in MessagePurpose}
MODES: Final = {str(one): one for one in PartyMode}


def status_of(state: str) -> EnvelopeStatus:
    """Return the status of a response that tells of a state."""
    return STATUS_OF.get(state, EnvelopeStatus.IN_PROGRESS)
