"""Frames of GB/Z 185.6 version 2: groups, subscriptions, and what version 1 has."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.interaction.elements import Party
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
    GroupFetch,
    GroupOperation,
    GroupPost,
    GroupSignature,
    Membership,
    RefusedGroupOperation,
)
from anp.interaction.operations import (
    MessageSend,
    SubscribeCancel,
    SubscribeCreate,
    SubscriptionOperation,
    TaskCancel,
)
from anp.protocols.gbz.group_reader import read_group_frame
from anp.protocols.gbz.group_writer import (
    signed_bytes,
    write_distributed,
    write_group_frame,
)
from anp.protocols.gbz.writer import write_frame
from anp.protocols.line import FurtherFrame, InvalidFrame, OperationFrame
from tests.anp.interaction.talk import ALICE, BOB, CAROL, NOW, message, task
from tests.clauses import clause

MAX = 786_432

SIGNATURE = GroupSignature("did:x#1", "zKey", b"\0sig")

GROUP = Group(
    id="g",
    name="Build",
    hub=Party(id=ALICE, address="wss://alice.example"),
    owner=ALICE,
    admins=(BOB,),
    members=(
        Member(id=ALICE, since=1),
        Member(id=BOB, address="wss://bob.example", since=2),
    ),
    policy=GroupPolicy(
        join=JoinRule.BOTH, history=None, max_members=5, max_message=9999, rate=0
    ),
    epoch=2,
    last=7,
    sealed=True,
    state=GroupState.CLOSED,
    expires=NOW,
    extra={"colour": "blue"},
)


def read(value: Any) -> FurtherFrame:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    found = read_group_frame(data, max_size=MAX)
    assert isinstance(found, FurtherFrame)
    return found


def again(operation: GroupOperation | SubscriptionOperation, ref: int = 4) -> Any:
    """Return an operation as it is read after it was written."""
    found = read(write_group_frame(operation, ref, max_size=MAX))
    return found.operation


def change(act: GroupAct, **fields: Any) -> GroupPost:
    return GroupPost(group="g", content=Membership(act=act, **fields))


@clause("GBZ-11", "GBZ-13", "GBZ-14", "GBZ-15", "GBZ-16")
@pytest.mark.parametrize(
    "post",
    [
        change(GroupAct.CREATE, group=GROUP),
        change(GroupAct.INVITE, member=Party(id=BOB, address="wss://b"), expires=NOW),
        change(GroupAct.INVITE, group=GROUP, ticket="t", by=ALICE, text="join us"),
        change(GroupAct.ACCEPT, ticket="t"),
        change(GroupAct.DECLINE, ticket="t"),
        change(GroupAct.APPLY, text="may I?"),
        change(GroupAct.APPLY, member=Party(id=CAROL), ticket="t", expires=NOW),
        change(GroupAct.APPROVE, ticket="t"),
        change(GroupAct.DENY, ticket="t"),
        change(GroupAct.LEAVE),
        change(GroupAct.REMOVE, member=Party(id=BOB)),
        change(GroupAct.CLOSE),
        GroupPost(group="g", content=message()),
        GroupPost(group="g", content=task(requester="", executor="")),
        GroupPost(group="g", content=TaskCancel(session="s", task="t")),
        GroupPost(
            group="g",
            content=message(),
            signature=GroupSignature("did:x#1", "zKey", b"\0sig"),
        ),
    ],
)
def test_posts_are_read_as_they_were_written(post: GroupPost) -> None:
    found = again(post)
    assert (found.group, found.content) == ("g", post.content)
    assert found.signature == post.signature
    assert (found.number, found.epoch, found.at, found.by) == (0, 0, None, "")


@pytest.mark.parametrize(
    "operation",
    [
        GroupFetch(group="g", after=12),
        GroupAcknowledgement(
            group="g",
            ref=9,
            posted=((3, 17), (4, 19)),
            ticket="t",
            state=GROUP,
            after=3,
        ),
        GroupAcknowledgement(group="g", ref=0),
        RefusedGroupOperation(group="g", ref=3, code="taken", text="too late"),
        SubscribeCancel(session="s", id="x"),
        SubscribeCreate(
            session="s",
            id="x",
            subscription={
                "sessionId": "s",
                "id": "x",
                "task": {"capability": "look"},
                "triggers": [{"type": "time", "every": 5}],
                "match": "any",
            },
        ),
    ],
)
def test_other_operations_are_read_as_they_were_written(operation: Any) -> None:
    assert again(operation) == operation


@clause("GBZ-17")
def test_a_distributed_frame_is_that_of_the_member_with_the_words_of_the_hub() -> None:
    said = GroupPost(
        group="g",
        content=message(),
        signature=GroupSignature("did:x#1", "zKey", b"sig"),
    )
    frame = dict(read(write_group_frame(said, 4, max_size=MAX)).operation.frame)  # type: ignore[union-attr]
    at = datetime(2026, 11, 22, 12, 0, 1, 5000, tzinfo=UTC)
    data = write_distributed(frame, number=17, epoch=3, at=at, by=BOB, replayed=True)
    found = read(data)
    post = found.operation
    assert isinstance(post, GroupPost)
    assert (found.ref, post.number, post.epoch) == (17, 17, 3)
    assert (post.at, post.by, post.replayed) == (at, BOB, True)
    assert post.content == said.content
    assert post.signature == said.signature
    # What is signed is the same at the member, at the hub and at every receiver.
    assert signed_bytes(post.frame) == signed_bytes(frame)
    assert b"replayed" not in signed_bytes(post.frame)


def test_a_hub_cannot_add_its_words_to_what_a_member_says() -> None:
    frame = json.loads(
        write_group_frame(GroupPost(group="g", content=message()), 4, max_size=MAX)
    )
    forged = {**frame, "groupSeq": 99, "epoch": 9, "by": CAROL, "replayed": True}
    sent = write_distributed(forged, number=5, epoch=1, at=NOW, by=ALICE)
    found = json.loads(sent)
    assert (found["groupSeq"], found["epoch"], found["by"]) == (5, 1, ALICE)
    assert "replayed" not in found


def test_version_1_is_a_part_of_it() -> None:
    for operation in (
        MessageSend(message=message()),
        TaskCancel(session="s", task="t"),
    ):
        data = write_frame(operation, 3, max_size=MAX)
        found = read_group_frame(data, max_size=MAX)
        assert isinstance(found, OperationFrame)
        assert found.operation == operation


@pytest.mark.parametrize(
    "value",
    [
        {"op": "group.leave", "ref": 1},
        {"op": "group.leave", "ref": 0, "groupId": "g"},
        {"op": "group.leave", "ref": "1", "groupId": "g"},
        {"op": "group.invite", "ref": 1, "groupId": "g"},
        {"op": "group.create", "ref": 1, "groupId": "g"},
        {"op": "group.create", "ref": 1, "groupId": "g", "group": {"id": "g"}},
        {"op": "group.fetch", "ref": 1, "groupId": "g", "after": -1},
        {"op": "message.send", "ref": 1, "groupId": "g", "id": "m"},
        {"op": "message.send", "ref": 1, "groupId": ""},
        {"op": "ack", "ref": 1, "groupId": "g", "posted": [[1]]},
        {"op": "ack", "ref": 1, "groupId": "g", "posted": [[1, True]]},
        {"op": "subscribe.create", "ref": 1, "sessionId": "s", "id": "x"},
        {
            "op": "subscribe.create",
            "ref": 1,
            "sessionId": "s",
            "id": "x",
            "task": {},
            "triggers": [],
        },
    ],
)
def test_frames_that_are_not_valid_are_refused(value: dict[str, Any]) -> None:
    with pytest.raises(InvalidFrame):
        read(value)


@pytest.mark.parametrize("history", [-1, "some", 1.5, True])
def test_a_history_is_none_all_or_a_number(history: object) -> None:
    group = {"id": "g", "owner": ALICE, "policy": {"history": history}}
    with pytest.raises(InvalidFrame):
        read({"op": "group.create", "ref": 1, "groupId": "g", "group": group})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(
    st.sampled_from(["group.invite", "group.create", "ack", "error", "message.send"]),
    st.dictionaries(
        st.sampled_from(["groupId", "ref", "member", "group", "posted", "signature"]),
        JSON,
    ),
)
def test_any_fields_are_read_or_refused(op: str, fields: dict[str, Any]) -> None:
    with suppress(InvalidFrame):
        read_group_frame(json.dumps({"op": op, **fields}).encode(), max_size=MAX)
