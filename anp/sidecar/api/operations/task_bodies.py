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
from anp.interaction.plan import Dispatch, Subtask, TaskPlan, Wait
from anp.sidecar.api.operations.task_views import TaskView
from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.requests import LongText, PeerName
from anp.sidecar.api.table import STRICT
from anp.sidecar.files.spool import KeptFile

GroupId = Annotated[str, Field(pattern=r"\A[A-Za-z0-9_-]{1,64}\z")]

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
class SubtaskBody:
    """One part of a task that is made of several: for one peer, or one of several."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: PeerName | None = None
    """Name, DID, URL or `URL#DID`; give one of `peer`, `candidates`,
    `find` and `group`."""

    candidates: Annotated[list[PeerName], Field(min_length=1, max_length=8)] | None = (
        None
    )
    "Peers in order: one that hands it back is followed by the next one."

    find: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    "Name of a capability: its candidates are the best of the allowed peers."

    group: GroupId | None = None
    "Group to whose members it is offered: the first one that accepts it does it."

    capability: Annotated[str, Field(max_length=300)] = ""
    "Name of the capability; not needed with `find`."

    text: LongText | None = None
    "Plain words."

    input: dict[str, Any] | None = None
    "The arguments."

    parts: Annotated[list[PartBody], Field(max_length=64)] = field(default_factory=list)
    "Further contents, no uploaded files."


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

    subtasks: Annotated[list[SubtaskBody], Field(max_length=64)] = field(
        default_factory=list
    )
    """Parts of one task, which this daemon gives to peers and whose results it gathers;
    in place of everything that names a peer or what it is to do."""

    candidates: Annotated[list[PeerName], Field(max_length=8)] = field(
        default_factory=list
    )
    """Peers in order, in place of `peer`: one that hands the task back is followed by
    the next one. This daemon is the executor, and the result names who did it."""

    group: GroupId | None = None
    """Group to whose members the task is offered, in place of `peer`: the first one
    that accepts it does it, and its states are told to the whole group."""

    proxy: bool = False
    "With `find`: the same with the peers that are found, also after their first word."

    dispatch: Literal["parallel", "serial"] = "parallel"
    "Subtasks all at a time, or each after the end of the one before."

    wait: Literal["all", "any"] = "all"
    "All subtasks have to be completed, or any one; the others are then cancelled."

    timeout: Annotated[float, Field(gt=0, le=2_592_000)] | None = None
    "Seconds for the whole of a task with subtasks or candidates."

    parent: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """The task for whose sake this one is begun: our own id, or the key with which the
    agent was given it. It guards against circles of daemons."""

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
class ContentBody:
    """Contents: a text, a value, or parts."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    text: LongText | None = None
    "Plain words."

    value: Any = None
    "A JSON value other than null."

    parts: Annotated[list[PartBody], Field(max_length=64)] = field(default_factory=list)
    "Further contents, such as files."


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBody(ContentBody):
    """A message about a task, such as the answer to its question."""

    action: Literal["accept", "decline", "cancel"] = "accept"
    "`decline`: no answer is given; `cancel`: nor is one wanted to be asked for."


def plan_of(
    body: StartBody, *, visited: tuple[str, ...], now: float
) -> tuple[TaskPlan, list[Part]] | None:
    """Return the plan that a body is, with all its contents; None if it is none.

    Args:
        visited: The way of its parent.
        now: Seconds since 1970.

    Raises:
        ApiError: It is neither this nor that.
    """
    whole = bool(body.candidates or body.proxy or body.parent or body.group)
    if not (whole or body.subtasks):
        if body.timeout is not None:
            raise ApiError(400, "`timeout` stands with subtasks, candidates or group")
        return None
    named = (
        body.peer,
        body.find,
        body.group,
        body.candidates or None,
        body.subtasks or None,
    )
    more = body.session or body.depends_on or body.notify or body.trust_first_use
    if sum(one is not None for one in named) != 1 or more:
        raise ApiError(
            400,
            "give one of peer, candidates, find, group and subtasks, and with "
            "subtasks, candidates or group no session, depends_on, notify and "
            "trust_first_use",
        )
    bodies = body.subtasks or [
        SubtaskBody(
            peer=body.peer,
            candidates=body.candidates or None,
            find=body.find,
            group=body.group,
            capability=body.capability,
            text=body.text,
            input=body.input,
            parts=body.parts,
        )
    ]
    subtasks, contents = [], list[Part]()
    for one in bodies:
        whom = (one.peer, one.candidates, one.find, one.group)
        if sum(who is not None for who in whom) != 1:
            raise ApiError(400, "a subtask has one of peer, candidates, find and group")
        if one.find is not None and one.capability:
            raise ApiError(400, "`find` stands without capability")
        found = parts_of(one.parts, text=one.text, value=one.input)
        contents += found
        peers = one.candidates or ([] if one.peer is None else [one.peer])
        subtasks.append(
            Subtask(
                peers=tuple(peers),
                find=one.find or "",
                group=one.group or "",
                capability=one.capability,
                parts=len(found),
            )
        )
    plan = TaskPlan(
        subtasks=tuple(subtasks),
        dispatch=Dispatch(body.dispatch),
        wait=Wait(body.wait),
        deadline=None if body.timeout is None else now + body.timeout,
        visited=visited,
    )
    return plan, contents


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


def contents_of(body: ContentBody) -> list[Part]:
    """Return the contents of a body whose parts name no uploads; ApiError if none."""
    found = parts_of(body.parts, text=body.text, value=body.value)
    if not found:
        raise ApiError(400, "the message is empty: give text, value or parts")
    return found


def _given(body: PartBody) -> int:
    contents = (body.text, body.value, body.bytes, body.file, body.uri)
    return sum(one is not None for one in contents)


def _part(body: PartBody, upload: Callable[[str], KeptFile | None] | None) -> Part:
    if _given(body) != 1:
        raise ApiError(400, "a part has one of text, value, bytes, file and uri")
    if body.file is not None:
        if upload is None:
            raise ApiError(
                400,
                "an uploaded file goes with a task for one peer; for candidates, a "
                "group or a part give its `bytes`",
            )
        kept = upload(body.file)
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
