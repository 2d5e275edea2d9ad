"""The words of A2A 0.3 and 1.0: methods, states and errors (A2A-14, A2A-16, A2A-22)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Final

from anp.interaction.states import TaskState

INTENT_URI: Final = (
    "https://help.aliyun.com/zh/model-studio/multimodal-integration-a2a-intent"
)
"URI of the intent extension, exactly as its text has it (INT-2)."

ONE_TURN: Final = "anpd/one-turn"
"""Entry that is true in the metadata of a message which is a call of one turn: its
answer is one whole result, as over any other protocol."""

ERROR_DOMAIN: Final = "a2a-protocol.org"
"Domain of the reasons in errors of 1.0."


class A2aVersion(StrEnum):
    """A version of the protocol, with its objects and method names."""

    V03 = "0.3"
    V10 = "1.0"


A2A_URIS: Final[dict[str, A2aVersion]] = {
    "urn:anpd:a2a:1.0": A2aVersion.V10,
    "urn:anpd:a2a:0.3": A2aVersion.V03,
    "urn:anpd:a2a-intent:1": A2aVersion.V03,
}
"The consensus protocols that carry A2A between daemons, with their versions."


class A2aMethod(Enum):
    """An operation of A2A; the values are its names in 0.3 and in 1.0."""

    SEND = ("message/send", "SendMessage")
    STREAM = ("message/stream", "SendStreamingMessage")
    GET = ("tasks/get", "GetTask")
    LIST = ("tasks/list", "ListTasks")
    CANCEL = ("tasks/cancel", "CancelTask")
    SUBSCRIBE = ("tasks/resubscribe", "SubscribeToTask")
    PUSH_SET = ("tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig")
    PUSH_GET = ("tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig")
    PUSH_LIST = ("tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs")
    PUSH_DELETE = (
        "tasks/pushNotificationConfig/delete",
        "DeleteTaskPushNotificationConfig",
    )
    CARD = ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard")

    @property
    def is_stream(self) -> bool:
        """True when it is answered by a stream of objects."""
        return self in {A2aMethod.STREAM, A2aMethod.SUBSCRIBE}


METHODS: Final[dict[str, tuple[A2aVersion, A2aMethod]]] = {
    name: (version, method)
    for method in A2aMethod
    for version, name in zip(A2aVersion, method.value, strict=True)
    # 0.3 has it in no binding of JSON-RPC.
    if name != "tasks/list"
}
"The version and operation of each method name; the names of the two differ."


def method_name(version: A2aVersion, method: A2aMethod) -> str:
    """Return the name of an operation in a version."""
    old, new = method.value
    return old if version is A2aVersion.V03 else new


@dataclass(frozen=True, slots=True)
class _Fault:
    code: int
    status: int
    text: str


class A2aFault(Enum):
    """The errors of A2A: code in JSON-RPC, status in HTTP, and words."""

    PARSE = _Fault(-32700, 400, "the request is not JSON")
    REQUEST = _Fault(-32600, 400, "the request is no JSON-RPC 2.0 request")
    TOO_LARGE = _Fault(-32600, 413, "the request is too large")
    METHOD = _Fault(-32601, 404, "there is no such method")
    PARAMS = _Fault(-32602, 400, "the parameters are not valid")
    INTERNAL = _Fault(-32603, 500, "the request failed inside this agent")
    TASK_NOT_FOUND = _Fault(-32001, 404, "there is no such task")
    TASK_NOT_CANCELABLE = _Fault(-32002, 409, "the task has ended")
    PUSH_NOTIFICATION_NOT_SUPPORTED = _Fault(
        -32003, 400, "this agent sends no push notifications"
    )
    UNSUPPORTED_OPERATION = _Fault(-32004, 400, "this is not supported here")
    CONTENT_TYPE_NOT_SUPPORTED = _Fault(
        -32005, 415, "this agent does not take or give content of this type"
    )
    TOO_MANY = _Fault(-32029, 429, "too much of this caller's is open; wait")
    RESULT_TOO_LARGE = _Fault(-32030, 413, "the result is too large to be sent")
    EXTENDED_AGENT_CARD_NOT_CONFIGURED = _Fault(
        -32007, 400, "there is no extended card"
    )
    VERSION_NOT_SUPPORTED = _Fault(
        -32009, 400, "this version of A2A is not supported; 1.0 and 0.3 are"
    )

    @property
    def code(self) -> int:
        """Code in an answer of JSON-RPC."""
        return self.value.code

    @property
    def status(self) -> int:
        """Status in an answer of HTTP."""
        return self.value.status

    @property
    def text(self) -> str:
        """Words when nothing more is known."""
        return self.value.text

    @property
    def is_own(self) -> bool:
        """True for errors that A2A has besides those of JSON-RPC."""
        return -32099 <= self.code <= -32000


class A2aError(Exception):
    """A request is refused; the text is for its caller and quotes little of it."""

    def __init__(self, fault: A2aFault, text: str = "", **details: str) -> None:
        """Make the error.

        Args:
            text: What is wrong; empty for the words of the fault.
            details: More of it for programs; only 1.0 has a place for that.
        """
        super().__init__(text or fault.text)
        self.fault = fault
        self.text = text or fault.text
        self.details = details

    def to_json(self, version: A2aVersion) -> dict[str, Any]:
        """Return the `error` of a JSON-RPC answer."""
        error: dict[str, Any] = {"code": self.fault.code, "message": self.text}
        if version is A2aVersion.V10 and self.fault.is_own:
            error["data"] = [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": self.fault.name,
                    "domain": ERROR_DOMAIN,
                    "metadata": self.details,
                }
            ]
        return error


_STATES: Final[dict[str, str]] = {
    TaskState.HELD: "submitted",
    TaskState.REQUESTED: "submitted",
    TaskState.ACCEPTED: "submitted",
    TaskState.WORKING: "working",
    TaskState.INPUT_REQUIRED: "input-required",
    TaskState.AUTH_REQUIRED: "auth-required",
    TaskState.COMPLETED: "completed",
    TaskState.FAILED: "failed",
    TaskState.CANCELED: "canceled",
    TaskState.REJECTED: "rejected",
}

_READ: Final[dict[str, str]] = {
    **{word: state for state, word in reversed(_STATES.items())},
    "submitted": TaskState.ACCEPTED,
    # Nothing is known of it, so it is at work as far as anybody knows.
    "unknown": TaskState.WORKING,
    "unspecified": TaskState.WORKING,
}


def state_word(state: str, version: A2aVersion) -> str:
    """Return the word for a state; a pause that A2A does not know is `working`."""
    word = _STATES.get(state, "working")
    if version is A2aVersion.V03:
        return word
    return f"TASK_STATE_{word.replace('-', '_').upper()}"


def same_state(one: str, other: str) -> bool:
    """Return whether two states have one word in A2A."""
    return state_word(one, A2aVersion.V03) == state_word(other, A2aVersion.V03)


def read_state(word: str) -> str | None:
    """Return the state of a word of either version, or None for no such word."""
    return _READ.get(word.removeprefix("TASK_STATE_").replace("_", "-").lower())
