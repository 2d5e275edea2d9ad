"""Groups in the store: encrypted, each content sealed for its place."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from anp.interaction.elements import Message
from anp.interaction.groups.member_copy import CopyEvent
from anp.interaction.groups.operations import GroupPost
from anp.protocols.gbz.group_writer import write_distributed
from anp.protocols.gbz.writer import json_bytes
from anp.sidecar.home.rest_cipher import RestCipher
from cache.errors import RecordError
from cache.parts.groups import GroupChange, GroupPage
from cache.store import Store

PURPOSE: Final = b"anpd: groups at rest"
"Purpose of the secret that seals contents; see `PrivateKey.derive`."

SEALED: Final = "sealed"
"Mark of a message of a sealed group that was opened."

LOCKED: Final = "locked"
"Mark of a message of a sealed group whose sender's key is not here yet."

LATE: Final = "late/"
"Begins the names of rows with what locked events said, once the key was here."

# Words of the hub about a frame, which stay when its content is replaced.
_OF_HUB: Final = frozenset(
    {"op", "ref", "groupId", "groupSeq", "epoch", "at", "by", "replayed"}
)

_ADAPTERS: Final[dict[type, TypeAdapter[Any]]] = {}
"The forms of heads by their classes."

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One event of a group, as it is stored and as it is sent."""

    number: int
    by: str
    "DID of the member that said it."

    ref: int
    "The number that this member gave it."

    data: bytes
    "The frame that the hub distributes."

    mark: str = ""
    "Findings of a member: `signed`, `forged`, `repeated`; empty: attested."

    message: Message | None = field(default=None, compare=False, repr=False)
    "The message in `data`, if it is one and was just read."

    def unlocked(self, content: bytes) -> StoredEvent:
        """Return a locked event with the message that was in it, which is JSON."""
        kept = {name: one for name, one in self.frame().items() if name in _OF_HUB}
        data = json_bytes({**kept, **json.loads(content)})
        return replace(self, data=data, mark=SEALED, message=None)

    def frame(self) -> dict[str, Any]:
        """Return the JSON object of the frame."""
        found: dict[str, Any] = json.loads(self.data)
        return found


class GroupShelf:
    """Stores heads and events of groups; its methods block."""

    def __init__(self, store: Store, secret: bytes) -> None:
        """Use a store.

        Args:
            secret: 32 bytes that only this identity can derive.
        """
        self._store = store
        self._cipher = RestCipher(secret, "a part of a group")
        self.owner = secrets.token_hex(8) if store.is_shared else ""
        "Id of this run in a fleet; empty for a daemon whose store nobody shares."

    @property
    def thread(self) -> Executor | None:
        """The thread in which `save` is done best; see `StoreBackend.thread`."""
        return self._store.thread

    def lease(self, groups: Iterable[str], *, seconds: float) -> set[str]:
        """Take or renew groups for a time; return those that a sister has."""
        now = time.time()
        return self._store.lease_groups(
            list(groups), owner=self.owner, now=now, until=now + seconds
        )

    def leases(self) -> dict[str, tuple[str, float]]:
        """Return the leases of all groups; see `GroupStore.group_leases`."""
        return self._store.group_leases()

    def send_mail(self, to: str, data: bytes) -> None:
        """Put a letter into the box of a daemon of the fleet, by its id."""
        self._store.send_mail(to, self._cipher.seal(data, _box(to)))

    def mail(self, after: str, wait: float) -> tuple[str, list[bytes]]:
        """Return our letters after a place, and the new place; see `Store.mail`."""
        place, sealed = self._store.mail(self.owner, after, wait)
        found = []
        for one in sealed:
            with contextlib.suppress(RecordError):
                found.append(self._cipher.open(one, _box(self.owner)))
        return place, found

    def lease_of(self, group: str) -> tuple[str, float] | None:
        """Return the owner and the end of the lease of a group, or None."""
        return self._store.group_lease(group)

    def save(
        self,
        group: str,
        events: Sequence[StoredEvent] = (),
        head: bytes | None = None,
        *,
        is_open: bool = True,
        rows: Mapping[str, bytes | None] | None = None,
    ) -> None:
        """Store events that follow one another, the head, and rows, or some of these.

        Args:
            rows: Small things by name, which go into one transaction with the rest;
                None deletes one.
        """
        page = b""
        if events:
            page = self._cipher.seal(
                _page_bytes(events), _place(group, events[0].number)
            )
        sealed = None
        if head is not None:
            sealed = self._cipher.seal(head, _place(group, 0))
        self._store.save_group(
            GroupChange(
                group=group,
                at=time.time(),
                first=events[0].number if events else 0,
                count=len(events),
                page=page,
                content=sealed,
                open=is_open,
                owner=self.owner,
                rows={
                    _row_id(name): None if row is None else self._row(group, name, row)
                    for name, row in (rows or {}).items()
                },
            )
        )

    def rows(self, group: str) -> dict[str, bytes]:
        """Return the rows of a group by name.

        Raises:
            RecordError: One is damaged.
        """
        rows = self._rows(group)
        return {name: one for name, one in rows.items() if not name.startswith(LATE)}

    def _rows(self, group: str) -> dict[str, bytes]:
        found = {}
        for place, sealed in self._store.group_rows(group).items():
            name, _, row = self._cipher.open(
                sealed, _row_place(group, place)
            ).partition(b"\n")
            found[name.decode("utf-8")] = row
        return found

    def head(self, group: str) -> bytes | None:
        """Return the head of a group; None if it is absent or damaged."""
        content = self._store.group(group)
        if content is None:
            return None
        try:
            return self._cipher.open(content, _place(group, 0))
        except RecordError:
            return None

    def heads(self) -> list[tuple[str, bytes]]:
        """Return the ids and heads of all groups; damaged ones are left out."""
        found = []
        for one in self._store.groups():
            try:
                found.append(
                    (one.id, self._cipher.open(one.content, _place(one.id, 0)))
                )
            except RecordError:
                continue
        return found

    def events(self, group: str, *, after: int, limit: int) -> list[StoredEvent]:
        """Return the first events with numbers above `after`, in order."""
        found: list[StoredEvent] = []
        while len(found) < limit:
            last = found[-1].number if found else after
            pages = self._store.group_pages(group, after=last)
            if not pages:
                break
            for page in pages:
                found += [one for one in self._events(group, page) if one.number > last]
                if len(found) >= limit:
                    break
        if any(one.mark == LOCKED for one in found):
            late = self._rows(group)
            found = [unlocked_of(one, late) for one in found]
        return found[:limit]

    def last(self, group: str) -> list[StoredEvent]:
        """Return the newest page of events."""
        page = self._store.last_group_page(group)
        return [] if page is None else self._events(group, page)

    def trim(self, group: str, *, before: int) -> int:
        """Delete pages whose events all have numbers below `before`; count them."""
        return self._store.trim_group(group, before=before)

    def ended(self, *, older_than: float) -> list[str]:
        """Return groups in which nothing happens any more, not changed since a time."""
        return [
            one.id
            for one in self._store.groups()
            if not one.open and one.updated < older_than
        ]

    def drop(self, group: str) -> None:
        """Delete a group with all its events."""
        self._store.drop_group(group)

    def _events(self, group: str, page: GroupPage) -> list[StoredEvent]:
        return _read_page(self._cipher.open(page.content, _place(group, page.first)))

    def _row(self, group: str, name: str, row: bytes) -> bytes:
        place = _row_place(group, _row_id(name))
        return self._cipher.seal(name.encode("utf-8") + b"\n" + row, place)


def event_bytes(event: CopyEvent) -> bytes:
    """Return the frame of an event as the hub distributes it."""
    post = event.post
    return write_distributed(
        post.frame,
        number=event.number,
        epoch=post.epoch,
        at=post.at or datetime.now(UTC),
        by=post.by,
        replayed=post.replayed,
    )


def _adapter(kind: type) -> TypeAdapter[Any]:
    # Making one takes many milliseconds, and a sealed group stores its head each time
    # that it says something.
    found = _ADAPTERS.get(kind)
    if found is None:
        found = _ADAPTERS[kind] = TypeAdapter(kind)
    return found


def head_bytes(kind: type[T], head: T) -> bytes:
    """Return the stored form of a head."""
    return _adapter(kind).dump_json(head)


def read_head(kind: type[T], data: bytes) -> T:
    """Return the head of `head_bytes`; RecordError if it is none."""
    try:
        found: T = _adapter(kind).validate_json(data)
        return found
    except ValidationError as exc:
        raise RecordError(f"no head of a group: {exc.error_count()} errors") from None


def _place(group: str, number: int) -> str:
    return f"group/{group}/{number}"


def _box(name: str) -> str:
    return f"box/{name}"


def late_row(number: int) -> str:
    """Return the name of the row with what a locked event said."""
    return f"{LATE}{number}"


def unlocked_of(event: StoredEvent, rows: Mapping[str, bytes]) -> StoredEvent:
    """Return an event with its late content if it is locked and rows have that."""
    content = rows.get(late_row(event.number)) if event.mark == LOCKED else None
    return event if content is None else event.unlocked(content)


def _row_id(name: str) -> str:
    # Names hold DIDs, which are nobody's to read in the store.
    return hashlib.sha256(name.encode("utf-8")).hexdigest()


def _row_place(group: str, row: str) -> str:
    return f"group/{group}/row/{row}"


def _page_bytes(events: Sequence[StoredEvent]) -> bytes:
    # The frames follow as they are: nothing is written or read once more.
    about = [[one.number, one.by, one.ref, one.mark, len(one.data)] for one in events]
    head = json.dumps(about, separators=(",", ":")).encode("ascii")
    return b"\n".join((head, b"".join(one.data for one in events)))


def _read_page(page: bytes) -> list[StoredEvent]:
    head, _, rest = page.partition(b"\n")
    found, start = [], 0
    for number, by, ref, mark, size in json.loads(head):
        data = rest[start : start + size]
        found.append(StoredEvent(number, by, ref, data, mark))
        start += size
    return found


def stored_copy(event: CopyEvent, mark: str) -> StoredEvent:
    """Return an event of a member's copy as it is stored."""
    mark = "repeated" if event.repeated else mark
    post, data = event.post, event_bytes(event)
    return StoredEvent(event.number, post.by, 0, data, mark, said_in(post))


def said_in(post: GroupPost) -> Message | None:
    """Return the message that a post has, if it has one."""
    return post.content if isinstance(post.content, Message) else None
