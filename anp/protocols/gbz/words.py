"""The words of GB/Z 185.6 on the wire: URI, operations, fields, and Chinese terms."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from anp.interaction.elements import MessagePurpose, PartyMode, SenderRole
from anp.interaction.groups.elements import GroupState, JoinRule
from anp.interaction.groups.operations import GroupAct
from anp.interaction.states import TaskState

GBZ_VERSION: Final = "1"
"Version of our text; another version has another URI."

GBZ_URI: Final = f"urn:anpd:gbz-185.6:{GBZ_VERSION}"
"URI of the consensus protocol, point to point (ANP-91)."


class GbzOperation(StrEnum):
    """Values of `op` (GBZ-Q10)."""

    SESSION_OPEN = "session.open"
    SESSION_UPDATE = "session.update"
    SESSION_CLOSE = "session.close"
    TASK_CREATE = "task.create"
    TASK_UPDATE = "task.update"
    TASK_CANCEL = "task.cancel"
    TASK_GET = "task.get"
    MESSAGE_SEND = "message.send"
    NOTIFY_REGISTER = "notify.register"
    NOTIFY_UNREGISTER = "notify.unregister"
    ACK = "ack"
    ERROR = "error"


FILE: Final = "file"
"""Field of `task.get` and of its `ack` with a piece of a file. The text of the protocol
has no such field, and says that fields it does not name are legal."""

PROGRESS: Final = "progress"
"The word for a task's state that is an information and no state (GBZ-Q2)."

STATES: Final = {
    "任务接受": str(TaskState.ACCEPTED),
    "任务拒绝": str(TaskState.REJECTED),
    "任务完成": str(TaskState.COMPLETED),
    "任务失败": str(TaskState.FAILED),
    "任务取消": str(TaskState.CANCELED),
    "cancelled": str(TaskState.CANCELED),
    "任务进行中": str(TaskState.WORKING),
    "in_progress": str(TaskState.WORKING),
    "awaiting-input": str(TaskState.INPUT_REQUIRED),
    "awaiting-completion": str(TaskState.INPUT_REQUIRED),
    "任务进度信息": PROGRESS,
}
"""Further words for states that are read (GBZ-Q1); ours are written.

Those that are neither Chinese nor in GBZ-Q1 are of other implementations. In
`awaiting-completion` an agent waits until its requester accepts what it made, so it
waits for a message of the requester.
"""

ROLES: Final = {
    "requester": SenderRole.REQUESTER,
    "请求智能体": SenderRole.REQUESTER,
    "service": SenderRole.SERVICE,
    "服务智能体": SenderRole.SERVICE,
}
"Words for roles (GBZ-Q3)."

PURPOSES: Final = {
    "communication": MessagePurpose.COMMUNICATION,
    "工作沟通": MessagePurpose.COMMUNICATION,
    "work_communication": MessagePurpose.COMMUNICATION,
    "result": MessagePurpose.RESULT,
    "工作成果": MessagePurpose.RESULT,
    "work_result": MessagePurpose.RESULT,
}
"Words for what a message carries (GBZ-Q4), with those of another implementation."

MODES: Final = {
    "p2p": PartyMode.P2P,
    "点对点模式": PartyMode.P2P,
    "point_to_point": PartyMode.P2P,
    "group": PartyMode.GROUP,
    "群组模式": PartyMode.GROUP,
}
"Words for modes (GBZ-Q9), with those of another implementation."

HYBRID: Final = "hybrid"
"Another implementation's mode of an agent that is reached alone and in a group."

ENCODINGS: Final = ("base64", "uri", "text", "json")
"Words of `metadata.encoding` that say how a payload is read (GBZ-Q19)."


# The words of version 2 of GB/Z 185.6: groups and subscriptions.


GBZ_GROUPS_VERSION: Final = "2"
"Version of the text with groups."

GBZ_GROUPS_URI: Final = f"urn:anpd:gbz-185.6:{GBZ_GROUPS_VERSION}"
"URI of the consensus protocol with groups and subscriptions (ANP-91)."


class GroupWord(StrEnum):
    """Values of `op` that version 2 has in addition (GBZ-Q10)."""

    FETCH = "group.fetch"
    SUBSCRIBE = "subscribe.create"
    UNSUBSCRIBE = "subscribe.cancel"


ACTS: Final = {f"group.{act}": act for act in GroupAct}
"The operations that change who is in a group."

JOIN_RULES: Final = {str(one): one for one in JoinRule}

GROUP_STATES: Final = {str(one): one for one in GroupState}

NO_HISTORY: Final = "none"

ALL_HISTORY: Final = "all"

NOT_SIGNED: Final = frozenset(
    {"ref", "groupSeq", "epoch", "at", "by", "replayed", "signature"}
)
"Fields of a frame that its sender does not sign: its own number, and the hub's words."
