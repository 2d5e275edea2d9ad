"""The objects of A2A as both versions mean them; see `reader` and `writer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from anp.interaction.elements import Part
from anp.protocols.a2a.words import A2aVersion

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class A2aMessage:
    """A message of a caller or of an agent (A2A-11)."""

    id: str
    parts: tuple[Part, ...]
    is_agent: bool = False
    task: str = ""
    context: str = ""
    metadata: JsonObject = field(default_factory=dict)
    extensions: tuple[str, ...] = ()

    references: tuple[str, ...] = ()
    "Ids of other tasks that it refers to."


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A result of a task (A2A-18)."""

    id: str
    parts: tuple[Part, ...]
    name: str = ""
    description: str = ""
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class A2aTask:
    """A task as a caller sees it (A2A-15)."""

    id: str
    context: str

    state: str
    "One of `TaskState`."

    changed_at: datetime | None = None
    message: A2aMessage | None = None
    history: tuple[A2aMessage, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusUpdate:
    """A new state of a task, or words about it."""

    task: str
    context: str
    state: str
    changed_at: datetime | None = None
    message: A2aMessage | None = None

    is_last: bool = False
    "True when the stream ends with it."

    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactUpdate:
    """A new artifact of a task, or more parts of one."""

    task: str
    context: str
    artifact: Artifact
    append: bool = False
    last: bool = False


TaskUpdate = A2aTask | A2aMessage | StatusUpdate | ArtifactUpdate
"An object of a stream."


@dataclass(frozen=True, slots=True, kw_only=True)
class PushConfig:
    """An address at which a caller wants the updates of a task (A2A-25)."""

    url: str
    id: str = ""
    task: str = ""

    token: str = ""
    "Sent with each update, so that the receiver knows that it is ours."

    scheme: str = ""
    "Scheme of the `Authorization` header; empty for none."

    credentials: str = ""

    version: A2aVersion = A2aVersion.V10
    "Version whose objects are sent to it: that in which it was named."


@dataclass(frozen=True, slots=True, kw_only=True)
class ListParams:
    """The parameters of a list of tasks."""

    context: str = ""
    "Only tasks of this one; empty for all."

    state: str = ""
    "Only tasks in this state; empty for all."

    changed_since: datetime | None = None
    page_size: int = 50

    page_token: str = ""
    "`next_token` of the page before."

    history: int | None = None
    with_artifacts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class A2aPage:
    """A page of tasks."""

    tasks: tuple[A2aTask, ...]

    total: int
    "Number of all that were asked for."

    next_token: str = ""
    "Empty on the last page."


@dataclass(frozen=True, slots=True, kw_only=True)
class SendParams:
    """The parameters of a message that is sent."""

    message: A2aMessage

    is_blocking: bool = True
    "The answer waits until the task ends or pauses."

    history: int | None = None
    "Most messages of the history in the answer; None for all."

    output_modes: tuple[str, ...] = ()
    push: PushConfig | None = None
    metadata: JsonObject = field(default_factory=dict)
