"""The messages of an A2A agent about one task, and the outcome they mean. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from anp.interaction.elements import Part, PartKind
from anp.sidecar.attachments.a2a.parts import join_chunks, parts_of
from anp.sidecar.attachments.attachment import HandedBack, ToolError
from anp.sidecar.attachments.part_json import listed
from anp.sidecar.attachments.requester import LAST_CHUNK, Question
from anp.sidecar.attachments.tool_errors import tool_error

if TYPE_CHECKING:
    from a2a.types.a2a_pb2 import Artifact, StreamResponse, Task, TaskStatus
    from a2a.types.a2a_pb2 import Part as A2aPart

COMPLETED = "TASK_STATE_COMPLETED"
OVER = frozenset(
    {COMPLETED, "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}
)
"States that a task never leaves."

AUTH_REQUIRED: Final = "TASK_STATE_AUTH_REQUIRED"

WAITING = frozenset({"TASK_STATE_INPUT_REQUIRED", AUTH_REQUIRED})
"States in which a task waits for somebody."

MAX_ARTIFACTS = 256
"Artifacts of one task that are kept."

ARTIFACT, APPEND, STATUS = "artifact", "append", "status"
"Entries in the metadata of a part: its artifact, its place there, the state it tells."

SAYS_NOTHING: Final = "the agent did not say what it wants to know"

_URL = re.compile(r"https?://[^\s<>\"']+")


@dataclass(slots=True)
class News:
    """Something that was not known before an event."""

    parts: list[Part] = field(default_factory=list)
    "The next parts of the result."

    words: str = ""
    "The agent's words about its work."

    said: list[Part] = field(default_factory=list)
    "The contents besides those words, which are no part of the result either."


@dataclass(slots=True)
class _Artifact:
    marks: list[bytes] = field(default_factory=list)
    "A hash of each part that came, to know it again in a later state of the task."

    parts: list[Part] = field(default_factory=list)
    "The content, if it is kept."


class TaskRecord:
    """Collects the events of one call.

    Args:
        max_size: Most bytes of all parts that are kept; more is an error. Where nothing
            is kept, most bytes of one event.
        keeps: False if somebody takes the parts as they come.
    """

    def __init__(self, *, max_size: int, keeps: bool = True) -> None:
        self._max_size = max_size
        self._keeps = keeps
        self._size = 0
        self._artifacts: dict[str, _Artifact] = {}
        self._status = b""
        self._said: list[Part] = []
        self._last: list[Part] = []
        self._news = News()
        self.task_id = ""
        self.context_id = ""
        self.state = ""
        self.message = False

    @property
    def settled(self) -> bool:
        """True if nothing more comes that would change the outcome."""
        return self.message or self.state in OVER or self.state in WAITING

    @property
    def has_result(self) -> bool:
        """True if a part of the result came, so that something was done."""
        return bool(self._artifacts)

    @property
    def text(self) -> str:
        """The agent's last words about the task's state, or its message."""
        return _text(self._said, "\n")

    @property
    def said(self) -> Any:
        """The data in the agent's last words, if any."""
        found = [part for part in self._said if part.kind is PartKind.JSON]
        return found[-1].content if found else None

    @property
    def question(self) -> Question | None:
        """The agent's question, if its task waits for an answer."""
        if self.state not in WAITING:
            return None
        url, auth = "", self.state == AUTH_REQUIRED
        if auth:
            links = [str(p.content) for p in self._said if p.kind is PartKind.URI]
            found = _URL.search(self.text)
            url = (links or [found[0] if found else ""])[0]
        return Question(text=self.text or SAYS_NOTHING, url=url, auth=auth)

    def add(self, event: StreamResponse) -> News:
        """Take one event; return what it tells.

        Raises:
            CapabilityError: 502, all together is too large.
        """
        self._begin()
        if event.HasField("message"):
            self._know("", event.message.context_id)
            self.message = True
            self._said = self._last = self._counted(event.message.parts, {})
            self._news.parts += self._said
        elif event.HasField("task"):
            self._take_task(event.task)
        elif event.HasField("status_update"):
            told = event.status_update
            self._know(told.task_id, told.context_id)
            self._take_status(told.status)
        elif event.HasField("artifact_update"):
            update = event.artifact_update
            self._know(update.task_id, update.context_id)
            self._take_artifact(
                update.artifact, append=update.append, last=update.last_chunk
            )
        return self._news

    def replace(self, task: Task) -> News:
        """Take the whole state of a task; return what was not known of it.

        Raises:
            CapabilityError: 502, it is too large.
        """
        self._begin()
        self._take_task(task)
        return self._news

    def go_on(self) -> None:
        """Forget a question that is answered now; its state may be told once more."""
        self.state = ""
        self._said = []

    def doubt(self) -> None:
        """Believe a state that was told before, if it is told again."""
        self._status = b""

    def output(self) -> dict[str, Any]:
        """Return the output of a call that ended well, of what was kept."""
        artifacts = [
            join_chunks(one.parts) for one in self._artifacts.values() if one.parts
        ]
        parts = [part for found in artifacts for part in found] or self._last
        data = [part.content for part in parts if part.kind is PartKind.JSON]
        files = listed(parts)
        texts = [text for found in artifacts if (text := _text(found, ""))]
        last = _text(self._last, "\n")
        output: dict[str, Any] = {"text": "\n\n".join(texts) if artifacts else last}
        if data:
            output["data"] = data
        if files:
            output["parts"] = files
        if artifacts and last:
            output["status"] = last
        return output

    def _begin(self) -> None:
        self._news = News()
        if not self._keeps:
            self._size = 0

    def _know(self, task_id: str, context_id: str) -> None:
        self.task_id = self.task_id or task_id
        self.context_id = self.context_id or context_id

    def _take_task(self, task: Task) -> None:
        self._know(task.id, task.context_id)
        for number, artifact in enumerate(task.artifacts):
            self._take_whole(artifact, artifact.artifact_id or str(number))
        self._take_status(task.status, is_known=True)

    def _take_whole(self, artifact: Artifact, key: str) -> None:
        """Take an artifact as it is now, of which a part may have come before."""
        known = self._artifacts.get(key)
        marks = [_mark(part) for part in artifact.parts]
        came = [] if known is None else known.marks
        goes_on = known is not None and marks[: len(came)] == came
        if known is not None and goes_on and len(marks) == len(came):
            return
        fresh = artifact.parts[len(came) :] if goes_on else artifact.parts
        self._take_parts(key, fresh, append=goes_on, last=False)

    def _take_artifact(self, artifact: Artifact, *, append: bool, last: bool) -> None:
        key = artifact.artifact_id
        append = append and key in self._artifacts
        self._take_parts(key, artifact.parts, append=append, last=last)

    def _take_parts(
        self, key: str, found: Iterable[A2aPart], *, append: bool, last: bool
    ) -> None:
        metadata: dict[str, Any] = {ARTIFACT: key}
        if append:
            metadata[APPEND] = True
        if last:
            metadata[LAST_CHUNK] = True
        parts = self._counted(found := list(found), metadata)
        artifact = self._artifacts[key] if append else _Artifact()
        self._artifacts[key] = artifact
        if len(self._artifacts) > MAX_ARTIFACTS:
            raise ToolError(502, f"over {MAX_ARTIFACTS} artifacts in one task")
        artifact.marks += [_mark(part) for part in found]
        if self._keeps:
            artifact.parts += parts
        self._news.parts += parts

    def _take_status(self, status: TaskStatus, *, is_known: bool = False) -> None:
        from a2a.types.a2a_pb2 import TaskState

        mark = _mark(status)
        if is_known and mark == self._status:
            return
        self._status = mark
        try:
            self.state = TaskState.Name(status.state)
        except ValueError:
            raise ToolError(
                502, "the agent names a task state that is not A2A's"
            ) from None
        word = self.state.removeprefix("TASK_STATE_").lower().replace("_", "-")
        self._said = self._counted(status.message.parts, {STATUS: word})
        if self.state == COMPLETED:
            # What the agent said before, while it worked, is no result: agents repeat
            # the pictures of such a message in their artifacts.
            self._last = self._said
            self._news.parts += self._said
        elif self.state not in OVER:
            # Words go as progress, or as a question; the rest has no place there.
            self._news.said += [p for p in self._said if p.kind is not PartKind.TEXT]
            if self.state not in WAITING:
                self._news.words = self.text

    def _counted(
        self, found: Iterable[A2aPart], metadata: dict[str, Any]
    ) -> list[Part]:
        kept = list(found)
        self._size += sum(part.ByteSize() for part in kept)
        if self._size > self._max_size:
            raise ToolError(502, f"the agent's answer is over {self._max_size} bytes")
        return parts_of(kept, metadata)


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
            error = tool_error(record.said, words, default=400)
            if record.has_result:
                return error
            return HandedBack(error.message, code=error.code)
        case "TASK_STATE_CANCELED":
            return ToolError(500, said or "the agent cancelled the task")
        case "TASK_STATE_INPUT_REQUIRED":
            return ToolError(
                400,
                "the agent asks back, and a call has no second turn; say it in the "
                "first, or begin a task, which can answer (`anpd tasks start …`): "
                f"{said or 'it did not say what'}",
            )
        case "TASK_STATE_AUTH_REQUIRED":
            return ToolError(
                502,
                "the agent wants its owner to sign in before it goes on"
                + (f": {said}" if said else ""),
            )
    return None


def _text(parts: Iterable[Part], between: str) -> str:
    texts = (str(part.content) for part in parts if part.kind is PartKind.TEXT)
    return between.join(text for text in texts if text)


def _mark(found: A2aPart | TaskStatus) -> bytes:
    data = found.SerializeToString(deterministic=True)
    return hashlib.blake2b(data, digest_size=16).digest()
