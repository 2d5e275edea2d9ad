"""The messages of an A2A agent about one task, and the outcome they mean. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from anp.sidecar.attachments.attachment import ToolError
from anp.sidecar.attachments.tool_errors import tool_error

if TYPE_CHECKING:
    from a2a.types.a2a_pb2 import Part, StreamResponse, Task, TaskStatus

__all__ = ["TaskRecord", "failure_of", "is_over"]

COMPLETED = "TASK_STATE_COMPLETED"
OVER = frozenset(
    {
        COMPLETED,
        "TASK_STATE_FAILED",
        "TASK_STATE_CANCELED",
        "TASK_STATE_REJECTED",
    }
)
"States that a task never leaves."

WAITING = frozenset({"TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"})
"States in which a task waits for somebody."

MAX_ARTIFACTS = 256
"Artifacts of one task that are kept."


class TaskRecord:
    """Collects the events of one call.

    Args:
        max_size: Most bytes of all parts together; more is an error.
    """

    def __init__(self, *, max_size: int) -> None:
        self._max_size = max_size
        self._size = 0
        self._artifacts: dict[str, list[Part]] = {}
        self._said: list[Part] = []
        self.task_id = ""
        self.state = ""
        self.message = False

    @property
    def settled(self) -> bool:
        """True if nothing more comes that would change the outcome."""
        return self.message or self.state in OVER or self.state in WAITING

    @property
    def text(self) -> str:
        """The agent's last words about the task's state, or its message."""
        return "\n".join(part.text for part in self._said if part.text)

    @property
    def said(self) -> Any:
        """The data in the agent's last words, if any."""
        found = [part for part in self._said if part.WhichOneof("content") == "data"]
        return _plain(found[-1].data) if found else None

    def add(self, event: StreamResponse) -> None:
        """Take one event.

        Raises:
            CapabilityError: 502, all together is too large.
        """
        if event.HasField("message"):
            self.message = True
            self._said = self._counted(event.message.parts)
        elif event.HasField("task"):
            self.replace(event.task)
        elif event.HasField("status_update"):
            self.task_id = self.task_id or event.status_update.task_id
            self._take_status(event.status_update.status)
        elif event.HasField("artifact_update"):
            update = event.artifact_update
            self.task_id = self.task_id or update.task_id
            parts = self._counted(update.artifact.parts)
            key = update.artifact.artifact_id
            if update.append:
                self._artifacts.setdefault(key, []).extend(parts)
            else:
                self._artifacts[key] = parts
            self._check_count()

    def replace(self, task: Task) -> None:
        """Take a whole task in place of what was known.

        Raises:
            CapabilityError: 502, it is too large.
        """
        self._size = 0
        self.task_id = task.id or self.task_id
        if task.artifacts:
            self._artifacts = {
                artifact.artifact_id or str(number): self._counted(artifact.parts)
                for number, artifact in enumerate(task.artifacts)
            }
            self._check_count()
        self._take_status(task.status)

    def output(self) -> dict[str, Any]:
        """Return the output of a call that ended well.

        Raises:
            CapabilityError: 502, the agent answered with files.
        """
        parts = [part for found in self._artifacts.values() for part in found]
        texts: list[str] = []
        data: list[Any] = []
        for part in parts or self._said:
            kind = part.WhichOneof("content")
            if kind == "text":
                texts.append(part.text)
            elif kind == "data":
                data.append(_plain(part.data))
            elif kind is not None:
                raise ToolError(
                    502, "the agent answered with a file, not with text or data"
                )
        output: dict[str, Any] = {"text": "\n".join(texts)}
        return output | {"data": data} if data else output

    def _take_status(self, status: TaskStatus) -> None:
        from a2a.types.a2a_pb2 import TaskState

        try:
            self.state = TaskState.Name(status.state)
        except ValueError:
            raise ToolError(
                502, "the agent names a task state that is not A2A's"
            ) from None
        self._said = self._counted(status.message.parts)

    def _counted(self, parts: Iterable[Part]) -> list[Part]:
        kept = list(parts)
        self._size += sum(part.ByteSize() for part in kept)
        if self._size > self._max_size:
            raise ToolError(502, f"the agent's answer is over {self._max_size} bytes")
        return kept

    def _check_count(self) -> None:
        if len(self._artifacts) > MAX_ARTIFACTS:
            raise ToolError(502, f"over {MAX_ARTIFACTS} artifacts in one task")


def is_over(state: str) -> bool:
    """Return whether a task in `state` has ended."""
    return state in OVER


def failure_of(record: TaskRecord) -> ToolError | None:
    """Return why a settled call has no output, or None if it has one."""
    said = record.text
    match record.state:
        case "TASK_STATE_FAILED":
            return tool_error(record.said, said or "the agent failed without a word")
        case "TASK_STATE_REJECTED":
            words = said or "the agent rejected the task"
            return tool_error(record.said, words, default=400)
        case "TASK_STATE_CANCELED":
            return ToolError(500, said or "the agent cancelled the task")
        case "TASK_STATE_INPUT_REQUIRED":
            return ToolError(
                400,
                "the agent asks back, and a call has no second turn; say it in the "
                f"first: {said or 'it did not say what'}",
            )
        case "TASK_STATE_AUTH_REQUIRED":
            return ToolError(
                502, "the agent wants its owner to sign in before it goes on"
            )
    return None


def _plain(value: Any) -> Any:
    """Return a protobuf `Value` as JSON; whole numbers are integers again."""
    from google.protobuf.json_format import MessageToDict

    return _whole(MessageToDict(value))


def _whole(value: Any) -> Any:
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case dict():
            return {key: _whole(one) for key, one in value.items()}
        case list():
            return [_whole(one) for one in value]
    return value
