"""Frames of groups that are kept here, read again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from anp.interaction.elements import Message
from anp.interaction.errors import InteractionError
from anp.interaction.groups.operations import GroupContent, GroupPost, Membership
from anp.protocols.fields import Fields
from anp.protocols.gbz.group_reader import read_group_frame
from anp.protocols.gbz.reader import read_message
from anp.protocols.gbz.words import NOT_SIGNED, GbzOperation
from anp.protocols.gbz.writer import json_bytes
from anp.protocols.line import FurtherFrame
from anp.sidecar.groups.shelf import StoredEvent

MAX_FRAME: Final = 8 * 1024 * 1024

_OF_FRAME: Final = NOT_SIGNED | {"op", "groupId", "sealing"}


def own_post(
    frame: dict[str, Any], number: int = 0, *, by: str = "", epoch: int = 0
) -> GroupPost:
    """Return what we said ourselves, in the place that the hub gave it.

    Args:
        number: 0 as long as it has none.
    """
    read = read_group_frame(json_bytes(frame), max_size=MAX_FRAME)
    assert isinstance(read, FurtherFrame), "it is ours"
    assert isinstance(read.operation, GroupPost), "it is ours"
    return replace(
        read.operation, number=number, by=by, epoch=epoch, at=datetime.now(UTC)
    )


def is_of_task(event: StoredEvent) -> bool:
    """Return whether an event may be about a task; nothing is read for that."""
    return b'"task' in event.data


def work_of(event: StoredEvent) -> GroupContent | None:
    """Return what an event says of a task: an offer, a change, a message; else None."""
    if not is_of_task(event):
        return None
    read = read_group_frame(event.data, max_size=len(event.data))
    operation = read.operation
    if not isinstance(operation, GroupPost) or isinstance(
        operation.content, Membership
    ):
        return None
    return operation.content


def message_of(event: StoredEvent) -> Message | None:
    """Return the message that an event is, or None for any other event."""
    return event.message or message_in(event.frame())


def message_in(frame: dict[str, Any]) -> Message | None:
    """Return the message of an event's frame, which was checked when it came."""
    if frame.get("op") != GbzOperation.MESSAGE_SEND:
        return None
    said = {name: one for name, one in frame.items() if name not in _OF_FRAME}
    try:
        return read_message(Fields(said, "a message"))
    except InteractionError:
        return None
