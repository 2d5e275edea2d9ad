"""The bodies of requests about tasks, and the contents that they carry."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from anp.errors import CallError, ErrorKind
from anp.interaction.elements import Part
from anp.sidecar.api.operations.task_views import TaskView
from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.requests import LongText, PeerName
from anp.sidecar.api.table import STRICT
from anp.sidecar.files.spool import KeptFile

__all__ = [
    "DependencyBody",
    "MessageBody",
    "PartBody",
    "StartBody",
    "WaitBody",
    "WaitedTasks",
    "parts_of",
]

OwnId = Annotated[str, Field(min_length=1, max_length=64)]

FinalState = Literal["completed", "failed", "canceled", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartBody:
    """One content: exactly one of `text`, `value`, `bytes`, `file` and `uri`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    text: str | None = None
    value: Any = None
    "A JSON value other than null."

    bytes: str | None = None
    "Bytes in base64."

    file: Annotated[str, Field(max_length=200)] | None = None
    "Id of a file that `POST /v1/files` took."

    uri: Annotated[str, Field(max_length=2048)] | None = None
    "Address of content elsewhere; the peer decides if it fetches it."

    media_type: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    "Its format; without it the usual one."

    name: Annotated[str, Field(max_length=255)] = ""
    "Name for people, such as a file's."


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyBody:
    """A task that another one waits for, with the ends that will do."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    task: OwnId
    "Our own id of it."

    states: Annotated[list[FinalState], Field(min_length=1, max_length=4)] = field(
        default_factory=lambda: ["completed"]
    )
    "The final states that will do; `failed` makes this task the one for failures."


@dataclass(frozen=True, slots=True, kw_only=True)
class StartBody:
    """A task for a peer."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: PeerName | None = None
    "Name, DID, URL or `URL#DID`; not needed with `session` or `find`."

    find: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    """Name of a capability, in place of `peer` and `capability`: the task goes to the
    best of the allowed peers that publish it, and to the next one as long as nothing
    ran."""

    session: OwnId | None = None
    "Our own id of a session that the task belongs to; without it a new one is made."

    capability: Annotated[str, Field(max_length=300)] = ""
    "Name of the peer's capability; empty when the words say what to do."

    text: LongText | None = None
    "Plain words."

    input: dict[str, Any] | None = None
    "The arguments."

    parts: Annotated[list[PartBody], Field(max_length=64)] = field(default_factory=list)
    "Further contents."

    depends_on: Annotated[list[OwnId | DependencyBody], Field(max_length=64)] = field(
        default_factory=list
    )
    """Tasks of that session that have to end first: our own ids of those that have to
    be completed, or objects."""

    depends_any: bool = False
    "One task of `depends_on` is enough."

    notify: bool = False
    """Need no connection meanwhile: the peer, which has to have us on its list, dials
    our address when it has news."""

    protocol: Annotated[str, Field(max_length=200)] = ""
    """URI of the protocol that has to carry it, one of `interaction.order`; empty for
    the first that the peer knows too. A session keeps the one that it began with."""

    trust_first_use: bool = False
    """Accept the key of an unknown peer over an unencrypted connection.

    Needs the scope `owner`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitBody:
    """The tasks that somebody waits for."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    tasks: Annotated[list[OwnId], Field(min_length=1, max_length=256)]
    "Our own ids of them."

    mode: Literal["all", "any"] = "all"
    "All of them, or any one."

    states: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=16)
    ] = field(default_factory=list)
    "States besides the final ones that end the waiting, such as `x-input-required`."

    timeout: Annotated[float, Field(gt=0, le=3_600)] = 60.0
    "Seconds."


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitedTasks:
    """Tasks that were waited for."""

    done: bool
    "False when the time was over before."

    tasks: Sequence[TaskView]
    "The tasks as they are now, in the order of the request."


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBody:
    """A message about a task, such as the answer to its question."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    text: LongText | None = None
    "Plain words."

    value: Any = None
    "A JSON value other than null, such as one of the question's schema."

    parts: Annotated[list[PartBody], Field(max_length=64)] = field(default_factory=list)
    "Further contents."

    action: Literal["accept", "decline", "cancel"] = "accept"
    "`decline`: no answer is given; `cancel`: nor is one wanted to be asked for."


def parts_of(
    parts: Sequence[PartBody],
    *,
    text: str | None,
    value: Any,
    upload: Callable[[str], KeptFile | None] | None = None,
) -> list[Part]:
    """Return the contents of a body.

    Args:
        upload: Finds the file that a part names; None where parts name none.
    """
    found = [] if value is None else [Part.value(value)]
    found += [] if text is None else [Part.text(text)]
    return found + [_part(one, upload) for one in parts]


def _given(body: PartBody) -> int:
    contents = (body.text, body.value, body.bytes, body.file, body.uri)
    return sum(one is not None for one in contents)


def _part(body: PartBody, upload: Callable[[str], KeptFile | None] | None) -> Part:
    if _given(body) != 1:
        raise ApiError(400, "a part has one of text, value, bytes, file and uri")
    if body.file is not None:
        kept = None if upload is None else upload(body.file)
        if kept is None:
            raise ApiError(404, "there is no such upload, or not any more")
        return kept.part
    more: dict[str, Any] = {"name": body.name}
    if body.media_type is not None:
        more["media_type"] = body.media_type
    if body.text is not None:
        return Part.text(body.text, **more)
    if body.uri is not None:
        return Part.link(body.uri, **more)
    if body.bytes is None:
        return Part.value(body.value, **more)
    try:
        return Part.data(base64.b64decode(body.bytes, validate=True), **more)
    except (binascii.Error, ValueError):
        raise CallError(ErrorKind.USAGE, "bytes are not base64") from None
