"""A subscription with its firings, encrypted at rest (DESIGN.md, Trust)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from anp.interaction.triggers.subscription import Subscription, read_subscription
from anp.interaction.triggers.watch import Ended, Firing, Watch
from anp.sidecar.home.rest_cipher import RestCipher
from cache.errors import RecordError
from cache.records.subscriptions import FiringRecord, SubscriptionRecord
from cache.store import Store
from jsonic.exact_numbers import read_number, write_json

PURPOSE: Final = b"anpd: subscriptions at rest"
"Purpose of the secret that seals contents; see `PrivateKey.derive`."


class Watcher(StrEnum):
    """The side that watches the triggers."""

    HERE = "here"
    "This daemon, for its own agent: it sends the task to a peer (GBZ-64)."

    PEER = "peer"
    "The peer, which does the task itself (GBZ-65)."

    FOR_PEER = "for_peer"
    "This daemon, for a peer that gave it the subscription (GBZ-65)."


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The task of a subscription."""

    peer: str
    "Name, DID or address of the executor; DID of the requester in one of a peer."

    capability: str = ""
    text: str | None = None
    "Plain words."

    input: Mapping[str, Any] | None = None
    "The arguments."

    give: str = ""
    "The argument that gets the occasion; empty when the task need not know it."

    task: Mapping[str, Any] | None = None
    "The task of a peer's subscription, by table 4 of GB/Z 185.6; None for ours."


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One subscription, as it is stored."""

    id: str
    created: float
    "Seconds since 1970."

    watcher: Watcher
    order: Order

    given: Mapping[str, Any]
    "The object with the triggers, as `read_subscription` takes it."

    state: Mapping[str, Any] = field(default_factory=dict)
    "State of its machine."

    log: str = ""
    "Our own id of the session that carries it; empty when each run has its own."

    name: str = ""
    "Its id on the wire."

    reason: str = ""
    "The reason of its end, in words."

    record: SubscriptionRecord | None = None
    "The record from which it was read; None for a new one."

    @property
    def subscription(self) -> Subscription:
        """Its triggers and limits."""
        return read_subscription(self.given, created=self.created)

    def watch(self) -> Watch:
        """Return its machine as it was stored."""
        return Watch(self.subscription, created=self.created, state=self.state)

    @property
    def ended(self) -> str:
        """One of `Ended`, or empty."""
        return str(self.state.get("ended", ""))

    @property
    def runs(self) -> int:
        """Starts so far."""
        return int(self.state.get("runs", 0))

    @property
    def starting(self) -> tuple[int, ...]:
        """Numbers of the firings whose task is not made yet."""
        return () if self.record is None else self.record.starting


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """One firing, as it is stored."""

    number: int
    "Counted from 1."

    key: str
    "The due time or the event."

    at: float
    "When it was due or happened, in seconds since 1970."

    occasion: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    "Our own id of its task; empty before that is made."

    problem: str = ""
    "The reason for which no task could be made."


def run_of(firing: Firing) -> KeptRun:
    """Return what is stored of a new firing."""
    return KeptRun(
        number=firing.number,
        key=firing.key,
        at=firing.occasion.at,
        occasion=firing.occasion.as_json(),
    )


class SubscriptionBook:
    """All subscriptions of this daemon, in its store."""

    def __init__(self, store: Store, secret: bytes) -> None:
        """Use a store.

        Args:
            secret: 32 bytes that only this identity can derive.
        """
        self._store = store
        self._cipher = RestCipher(secret, "a subscription")

    @property
    def is_shared(self) -> bool:
        """True when other daemons have the same subscriptions."""
        return self._store.is_shared

    async def save(
        self,
        kept: Kept,
        *,
        runs: Sequence[KeptRun] = (),
        starting: Sequence[int] | None = None,
        holder: str = "",
        now: float,
        until: float = 0.0,
    ) -> Kept:
        """Store a subscription with new or changed runs; return it as it is stored.

        Args:
            starting: Numbers of the runs that are to be started; None: as before.
            holder: The run of the daemon that starts them, until a time.

        Raises:
            LogConflict: It was changed meanwhile; nothing was stored.
        """
        numbers = kept.starting if starting is None else tuple(starting)
        content = asdict(replace(kept, record=None))
        content.pop("record")
        record = SubscriptionRecord(
            id=kept.id,
            revision=0 if kept.record is None else kept.record.revision,
            updated=now,
            open=not kept.ended or bool(numbers),
            peer=kept.order.peer if kept.watcher is Watcher.FOR_PEER else None,
            starting=numbers,
            holder=holder or None,
            until=until,
            sealed=self._seal(content, f"subscription/{kept.id}"),
        )
        firings = [
            FiringRecord(
                kept.id, one.number, self._seal(asdict(one), _place(kept.id, one))
            )
            for one in runs
        ]
        stored = await asyncio.to_thread(self._store.save_subscription, record, firings)
        return replace(kept, record=stored)

    async def find(self, name: str) -> Kept | None:
        """Return a subscription, or None."""
        found = await asyncio.to_thread(self._store.subscription, name)
        return None if found is None else self._kept(found)

    async def page(self, *, before: str = "", limit: int = 100) -> list[Kept]:
        """Return a page of subscriptions, newest first."""
        found = await asyncio.to_thread(
            self._store.subscriptions, before=before, limit=limit
        )
        return [self._kept(one) for one in found]

    async def run(self, name: str, number: int) -> KeptRun | None:
        """Return a run of a subscription, or None."""
        found = await asyncio.to_thread(self._store.firing, name, number)
        return None if found is None else self._run(found)

    async def runs(
        self, name: str, *, before: int = 0, limit: int = 100
    ) -> list[KeptRun]:
        """Return a page of the runs of a subscription, newest first."""
        found = await asyncio.to_thread(
            self._store.firings, name, before=before, limit=limit
        )
        return [self._run(one) for one in found]

    async def prune(self, *, older_than: float) -> int:
        """Delete subscriptions that ended before a time, in seconds since 1970."""
        return await asyncio.to_thread(
            self._store.prune_subscriptions, older_than=older_than
        )

    async def drop(self, name: str) -> bool:
        """Delete a subscription with its runs; False if there is none."""
        return await asyncio.to_thread(self._store.drop_subscription, name)

    def _kept(self, record: SubscriptionRecord) -> Kept:
        content = self._open(record.sealed, f"subscription/{record.id}")
        order = Order(**content.pop("order"))
        watcher = Watcher(content.pop("watcher"))
        return Kept(**content, watcher=watcher, order=order, record=record)

    def _run(self, record: FiringRecord) -> KeptRun:
        place = f"firing/{record.subscription}/{record.number}"
        return KeptRun(**self._open(record.sealed, place))

    def _seal(self, content: Mapping[str, Any], place: str) -> str:
        sealed = self._cipher.seal(write_json(content).encode("utf-8"), place)
        return base64.b64encode(sealed).decode("ascii")

    def _open(self, sealed: str, place: str) -> dict[str, Any]:
        try:
            data = base64.b64decode(sealed, validate=True)
            content = self._cipher.open(data, place)
            found: dict[str, Any] = json.loads(content, parse_float=read_number)
        except ValueError as exc:
            raise RecordError("a subscription cannot be opened") from exc
        return found


def _place(name: str, run: KeptRun) -> str:
    return f"firing/{name}/{run.number}"


ENDED_BY_OTHERS: Final = frozenset({Ended.CANCELED, Ended.REFUSED})
"Ends after which runs that are not started yet stay so."
