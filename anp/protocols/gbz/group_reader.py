"""Bytes of a peer become an operation of version 2: about a group or a subscription."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from anp.interaction.elements import Party
from anp.interaction.errors import InteractionError
from anp.interaction.groups.elements import (
    Group,
    GroupPolicy,
    GroupState,
    JoinRule,
    Member,
)
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
    GroupAct,
    GroupContent,
    GroupFetch,
    GroupOperation,
    GroupPost,
    GroupSignature,
    Membership,
    RefusedGroupOperation,
)
from anp.interaction.operations import (
    SubscribeCancel,
    SubscribeCreate,
    SubscriptionOperation,
)
from anp.interaction.states import MAX_STATE
from anp.protocols.fields import MAX_REF, Fields, invalid
from anp.protocols.gbz.reader import (
    frame_fields,
    read_cancel,
    read_message,
    read_operation,
    read_party,
    read_task,
    read_update,
)
from anp.protocols.gbz.words import (
    ACTS,
    ALL_HISTORY,
    GROUP_STATES,
    JOIN_RULES,
    NO_HISTORY,
    GbzOperation,
    GroupWord,
)
from anp.protocols.line import FurtherFrame, InvalidFrame, OperationFrame

MAX_MEMBERS: Final = 1024
"Most members of a group."

MAX_ADMINS: Final = 64

MAX_POSTED: Final = 4096
"Most pairs of an acknowledgement."

MAX_TRIGGERS: Final = 16

MAX_SIGNATURE: Final = 1024
"Longest signature, as base64."

_SUBSCRIPTIONS: Final = frozenset({GroupWord.SUBSCRIBE, GroupWord.UNSUBSCRIBE})

_ANSWERS: Final = frozenset({GbzOperation.ACK, GbzOperation.ERROR})

_SAID: Final = frozenset(
    {
        GbzOperation.MESSAGE_SEND,
        GbzOperation.TASK_CREATE,
        GbzOperation.TASK_UPDATE,
        GbzOperation.TASK_CANCEL,
    }
)
"Operations of sessions that a group hears when they name it."

_OF_GROUP: Final = frozenset({*ACTS, GroupWord.FETCH})


def read_group_frame(
    data: bytes, *, max_size: int, raw: bool = False
) -> OperationFrame | FurtherFrame:
    """Read one frame of version 2.

    Args:
        max_size: Most bytes.
        raw: See `read_frame`.

    Raises:
        InvalidFrame: It is not valid.
    """
    fields = frame_fields(data, max_size=max_size, raw=raw)
    frame = dict(fields.rest)
    op = frame.get("op")
    if not isinstance(op, str):
        return read_operation(fields)
    of_group = op in _OF_GROUP or (
        "groupId" in frame and (op in _SAID or op in _ANSWERS)
    )
    if not of_group and op not in _SUBSCRIPTIONS:
        return read_operation(fields)
    fields.take("op")
    ref = fields.take("ref")
    is_answer = op in _ANSWERS
    try:
        if type(ref) is not int or not (0 if is_answer else 1) <= ref <= MAX_REF:
            ref = 0
            raise invalid(f"ref is not an integer of 1 to {MAX_REF}")
        found: GroupOperation | SubscriptionOperation
        if of_group:
            found = _group_operation(op, ref, fields, frame)
        else:
            found = _subscription(op, fields, frame)
    except InteractionError as exc:
        session, group = frame.get("sessionId"), frame.get("groupId")
        raise InvalidFrame(
            exc,
            ref=ref,
            session=session if isinstance(session, str) and not of_group else "",
            request=group if isinstance(group, str) and of_group else "",
            answerable=not is_answer,
        ) from None
    return FurtherFrame(
        ref=ref, operation=found, size=len(data), flags=tuple(fields.flags)
    )


def _group_operation(
    op: str, ref: int, fields: Fields, frame: dict[str, Any]
) -> GroupOperation:
    group = fields.text("groupId")
    match op:
        case GbzOperation.ACK:
            return _acknowledgement(group, ref, fields)
        case GbzOperation.ERROR:
            return RefusedGroupOperation(
                group=group,
                ref=ref,
                code=fields.text("code", limit=MAX_STATE),
                text=fields.for_people("text"),
            )
        case GroupWord.FETCH:
            return GroupFetch(
                group=group,
                after=fields.integer("after") or 0,
                whole=fields.boolean("whole") or False,
            )
    post = GroupPost(
        group=group,
        content=Membership(act=GroupAct.LEAVE),
        number=fields.integer("groupSeq") or 0,
        epoch=fields.integer("epoch") or 0,
        at=fields.date_time("at"),
        by=fields.optional_text("by"),
        replayed=fields.boolean("replayed") or False,
        signature=_signature(fields),
        frame=frame,
    )
    return replace(post, content=_content(op, ref, fields))


def _content(op: str, ref: int, fields: Fields) -> GroupContent:
    match op:
        case GbzOperation.MESSAGE_SEND:
            return read_message(fields)
        case GbzOperation.TASK_CREATE:
            return read_task(fields)
        case GbzOperation.TASK_UPDATE:
            return read_update(fields, ref)
        case GbzOperation.TASK_CANCEL:
            return read_cancel(fields, ref)
        case _:
            return _membership(ACTS[op], fields)


def _membership(act: GroupAct, fields: Fields) -> Membership:
    member, group = fields.take("member"), fields.take("group")
    found = Membership(
        act=act,
        member=None if member is None else read_party(fields.inner(member, "member")),
        ticket=fields.optional_text("ticket"),
        by=fields.optional_text("invitedBy"),
        group=None if group is None else _group(fields.inner(group, "group")),
        expires=fields.date_time("expires"),
        text=fields.for_people("text"),
    )
    if act in (GroupAct.INVITE, GroupAct.REMOVE) and not (found.member or found.group):
        raise invalid("a frame: member is absent")
    if act is GroupAct.CREATE and found.group is None:
        raise invalid("a frame: group is absent")
    return found


def read_signature(frame: Mapping[str, Any]) -> GroupSignature | None:
    """Return the signature on the JSON object of a frame, or None.

    Raises:
        InteractionError: It is not valid.
    """
    return _signature(Fields({"signature": frame.get("signature")}, "a frame"))


def _signature(fields: Fields) -> GroupSignature | None:
    value = fields.take("signature")
    if value is None:
        return None
    inner = Fields(value, "signature")
    method, key = inner.text("method", limit=1024), inner.text("key", limit=256)
    text = inner.text("value", limit=MAX_SIGNATURE)
    try:
        return GroupSignature(method, key, base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise invalid("signature: value is not base64") from None


def _acknowledgement(group: str, ref: int, fields: Fields) -> GroupAcknowledgement:
    state = fields.take("group")
    pairs = fields.items("posted", limit=MAX_POSTED)
    if not all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(type(one) is int and 0 < one <= MAX_REF for one in pair)
        for pair in pairs
    ):
        raise invalid("a frame: posted has no pairs of numbers")
    return GroupAcknowledgement(
        group=group,
        ref=ref,
        posted=tuple((first, second) for first, second in pairs),
        ticket=fields.optional_text("ticket"),
        after=fields.integer("after"),
        state=None if state is None else _group(fields.inner(state, "group")),
    )


def _group(fields: Fields) -> Group:
    hub = fields.take("hub")
    members = fields.items("members", limit=MAX_MEMBERS)
    admins = fields.items("admins", limit=MAX_ADMINS)
    if not all(isinstance(one, str) and 0 < len(one) <= 512 for one in admins):
        raise invalid("group: admins is not an array of texts")
    return Group(
        id=fields.text("id"),
        name=fields.optional_text("name"),
        hub=Party(id="", address="")
        if hub is None
        else read_party(fields.inner(hub, "hub")),
        owner=fields.text("owner"),
        admins=tuple(admins),
        members=tuple(_member(fields.inner(one, "a member")) for one in members),
        policy=_policy(fields.inner(fields.mapping("policy"), "policy")),
        epoch=fields.integer("epoch", least=1) or 1,
        last=fields.integer("groupSeq") or 0,
        sealed=fields.boolean("sealed") or False,
        state=fields.word("state", GROUP_STATES, needed=False) or GroupState.OPEN,
        expires=fields.date_time("expires"),
        extra=dict(fields.rest),
    )


def _member(fields: Fields) -> Member:
    return Member(
        id=fields.text("id"),
        address=fields.optional_text("address", limit=2048),
        since=fields.integer("since") or 0,
    )


def _policy(fields: Fields) -> GroupPolicy:
    default = GroupPolicy()
    history = fields.take("history")
    if history in (None, NO_HISTORY):
        kept: int | None = 0
    elif history == ALL_HISTORY:
        kept = None
    elif type(history) is int and history >= 0:
        kept = history
    else:
        raise invalid("policy: history is not none, all or a number")
    rate = fields.integer("rate")
    return GroupPolicy(
        join=fields.word("join", JOIN_RULES, needed=False) or JoinRule.INVITE,
        history=kept,
        max_members=fields.integer("maxMembers", least=1) or default.max_members,
        max_message=fields.integer("maxMessage", least=1) or default.max_message,
        rate=default.rate if rate is None else rate,
    )


def _subscription(
    op: str, fields: Fields, frame: dict[str, Any]
) -> SubscriptionOperation:
    session, name = fields.text("sessionId"), fields.text("id")
    if op == GroupWord.UNSUBSCRIBE:
        return SubscribeCancel(session=session, id=name)
    fields.mapping("task", needed=True)
    triggers = fields.items("triggers", limit=MAX_TRIGGERS)
    if not triggers or not all(isinstance(one, dict) for one in triggers):
        raise invalid(f"a subscription: triggers is no array of 1 to {MAX_TRIGGERS}")
    whole = {name: one for name, one in frame.items() if name not in ("op", "ref")}
    return SubscribeCreate(session=session, id=name, subscription=whole)
