"""Operations of version 2 become bytes.

What a hub distributes is written once and sent to every member as it is.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from anp.interaction.elements import Message, Task
from anp.interaction.groups.elements import Group, GroupPolicy
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
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
    TaskCancel,
    TaskUpdate,
)
from anp.protocols.fields import given_fields
from anp.protocols.gbz.words import (
    ALL_HISTORY,
    NO_HISTORY,
    NOT_SIGNED,
    GbzOperation,
    GroupWord,
)
from anp.protocols.gbz.writer import (
    GbzTooLarge,
    json_bytes,
    written_message,
    written_party,
    written_task,
    written_update,
)
from anp.protocols.timestamps import write_timestamp
from negotiation.strict_json import canonical_json, parse_json

SIGNATURE_PREFIX = b"urn:anpd:gbz-185.6:2\n"
"Stands before the canonical JSON that is signed, so that it means nothing else."


def group_frame(
    operation: GroupOperation | SubscriptionOperation, ref: int
) -> dict[str, Any]:
    """Return the JSON object of a frame.

    Args:
        ref: Number of the operation; an answer has its own.
    """
    match operation:
        case GroupPost(group=group, content=content):
            op, value = _content(content)
            value = {"op": op, "ref": ref, "groupId": group, **value}
            signature = operation.signature
            return value if signature is None else with_signature(value, signature)
        case GroupFetch(group=group, after=after, whole=whole):
            asked = {"op": GroupWord.FETCH, "ref": ref, "groupId": group}
            return {**asked, "after": after, **({"whole": True} if whole else {})}
        case GroupAcknowledgement(group=group):
            value = {"op": GbzOperation.ACK, "ref": operation.ref, "groupId": group}
            value |= given_fields(
                posted=[list(pair) for pair in operation.posted],
                ticket=operation.ticket,
            )
            if operation.after is not None:
                value["after"] = operation.after
            if operation.state is not None:
                value["group"] = written_group(operation.state)
            return value
        case RefusedGroupOperation(group=group, code=code, text=text):
            value = {"op": GbzOperation.ERROR, "ref": operation.ref, "groupId": group}
            return {**value, "code": str(code), "text": text}
        case SubscribeCreate(subscription=subscription):
            return {**subscription, "op": GroupWord.SUBSCRIBE, "ref": ref}
        case SubscribeCancel(session=session, id=name):
            value = {"op": GroupWord.UNSUBSCRIBE, "ref": ref}
            return {**value, "sessionId": session, "id": name}


def write_group_frame(
    operation: GroupOperation | SubscriptionOperation, ref: int, *, max_size: int
) -> bytes:
    """Return the bytes of a frame.

    Args:
        ref: Number of the operation; an answer has its own.
        max_size: Most bytes.

    Raises:
        GbzTooLarge: It would have more.
        JsonError: It is nothing that a strict reader takes.
    """
    data = json_bytes(group_frame(operation, ref))
    parse_json(data, max_size=max(max_size, len(data)))
    if len(data) > max_size:
        raise GbzTooLarge(f"{len(data)} bytes, at most {max_size} are sent")
    return data


def write_distributed(
    frame: Mapping[str, Any],
    *,
    number: int,
    epoch: int,
    at: datetime,
    by: str,
    replayed: bool = False,
) -> bytes:
    """Return the bytes that a hub sends to every member for what one of them said.

    Args:
        frame: The JSON object of the member's frame.
        number: Number of the event in its group, which is its `ref`, too.
    """
    value = {name: one for name, one in frame.items() if name not in NOT_SIGNED}
    if "signature" in frame:
        value["signature"] = frame["signature"]
    value |= {
        "ref": number,
        "groupSeq": number,
        "epoch": epoch,
        "at": write_timestamp(at),
        "by": by,
    }
    if replayed:
        value["replayed"] = True
    return json_bytes(value)


def signed_bytes(frame: Mapping[str, Any]) -> bytes:
    """Return what a member signs of its frame."""
    said = {name: one for name, one in frame.items() if name not in NOT_SIGNED}
    return SIGNATURE_PREFIX + canonical_json(said)


def with_signature(
    frame: Mapping[str, Any], signature: GroupSignature
) -> dict[str, Any]:
    """Return a frame with the signature of its sender."""
    value = base64.b64encode(signature.value).decode("ascii")
    told = {"method": signature.method, "key": signature.key, "value": value}
    return {**frame, "signature": told}


def written_group(group: Group) -> dict[str, Any]:
    """Return a group as its members see it."""
    value: dict[str, Any] = {
        **group.extra,
        "id": group.id,
        "hub": written_party(group.hub),
        "owner": group.owner,
        "members": [
            {"id": one.id, "since": one.since} | given_fields(address=one.address)
            for one in group.members
        ],
        "policy": _policy(group.policy),
        "epoch": group.epoch,
        "groupSeq": group.last,
        "state": str(group.state),
    }
    if group.expires is not None:
        value["expires"] = write_timestamp(group.expires)
    return value | given_fields(
        name=group.name, admins=list(group.admins), sealed=group.sealed
    )


def _policy(policy: GroupPolicy) -> dict[str, Any]:
    history: str | int = ALL_HISTORY if policy.history is None else policy.history
    return {
        "join": str(policy.join),
        "history": history or NO_HISTORY,
        "maxMembers": policy.max_members,
        "maxMessage": policy.max_message,
        "rate": policy.rate,
    }


def _content(content: GroupContent) -> tuple[str, dict[str, Any]]:
    match content:
        case Message():
            return GbzOperation.MESSAGE_SEND, written_message(content)
        case Task():
            return GbzOperation.TASK_CREATE, written_task(content)
        case TaskUpdate():
            return GbzOperation.TASK_UPDATE, written_update(content)
        case TaskCancel(session=session, task=name):
            value = {"id": name, "sessionId": session}
            return GbzOperation.TASK_CANCEL, value
        case Membership():
            return f"group.{content.act}", _membership(content)


def _membership(change: Membership) -> dict[str, Any]:
    value = given_fields(ticket=change.ticket, invitedBy=change.by, text=change.text)
    if change.member is not None:
        value["member"] = written_party(change.member)
    if change.group is not None:
        value["group"] = written_group(change.group)
    if change.expires is not None:
        value["expires"] = write_timestamp(change.expires)
    return value
