"""A registry for other daemons (ENV-25, A2A-20): three capabilities of the daemon.

Peers call them as they call any other: `registry.announce` and `registry.withdraw` for
themselves, `registry.find` for others. A registry vouches for nothing: what it tells is
signed by those who announced it, and whoever reads it decides whom to let in. It lives
in memory; after a restart the announcements come again when they are renewed.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from anp.errors import PeerError
from anp.identity.dids import agent_name, same_agent
from anp.identity.resolver import Resolver
from anp.sidecar.attachments import AttachmentSpec, ToolError
from anp.sidecar.config.registry import RegistryConfig
from anp.sidecar.discovery.announcement import Announcement, read_announcement, verify
from negotiation.need import Capability
from sandbox.pool.shares import Rank, Share, current_share

REGISTRY: Final = "registry"
"Name of the attachment that the capabilities belong to."

ANNOUNCE: Final = f"{REGISTRY}.announce"
WITHDRAW: Final = f"{REGISTRY}.withdraw"
FIND: Final = f"{REGISTRY}.find"

SPEC: Final = AttachmentSpec(
    kind="python", name=REGISTRY, target=REGISTRY, expose=("*",)
)
"""Exposes them to every peer that the owner lets in. An entry has to be of a kind of
the owner's; nothing is ever started from this one."""

PAGE: Final = 32
"Most announcements in one answer."

PAGE_SIZE: Final = 512 * 1024
"Most bytes of them, about."

MAX_OF_SHARE: Final = 16
"Announcements of unlisted peers at one address."

MAX_BYTES: Final = 64 * 1024 * 1024
"Bytes of all announcements."

MAX_BYTES_UNLISTED: Final = 8 * 1024 * 1024
"Those among them of unlisted peers."

MAX_CHANGES: Final = 30
"Announcements and withdrawals of one peer within `PERIOD`."

PERIOD: Final = 600.0
"Seconds."

_OBJECT: Final = {"type": "object"}
_TEXT: Final = {"type": "string", "maxLength": 300}


def _form(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


CAPABILITIES: Final = (
    Capability(
        ANNOUNCE,
        "Announce yourself in this registry, with an object that you signed; it counts "
        "until it expires, or until the next one.",
        _form(["announcement"], announcement=_OBJECT),
        _form(["expires"], expires={"type": "integer"}),
        idempotent=True,
    ),
    Capability(
        WITHDRAW,
        "Take your announcement out of this registry.",
        _form([]),
        _form(["withdrawn"], withdrawn={"type": "boolean"}),
        idempotent=True,
    ),
    Capability(
        FIND,
        "List announcements of those who publish a capability, by its full or short "
        "name, page by page; each is signed by who made it.",
        _form(["capability"], capability=_TEXT, after={**_TEXT, "maxLength": 1024}),
        _form(
            ["announcements"],
            announcements={"type": "array", "items": _OBJECT},
            next={**_TEXT, "maxLength": 1024},
        ),
        read_only=True,
    ),
)


@dataclass(frozen=True, slots=True)
class _Entry:
    announcement: Announcement
    share: Share

    @property
    def is_listed(self) -> bool:
        return self.share.rank is not Rank.COMMON


class Entries:
    """The announcements of a registry, one of each peer. Pure."""

    def __init__(self, *, max_entries: int, max_unlisted: int) -> None:
        self._max_entries = max_entries
        self._max_unlisted = max_unlisted
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._shares: Counter[Share] = Counter()
        self._unlisted = 0
        self._bytes = {True: 0, False: 0}
        "Bytes of listed and of unlisted peers."
        self._changes: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, announcement: Announcement, share: Share, *, now: float) -> None:
        """Keep an announcement in place of an earlier one of the same peer.

        Raises:
            ToolError: There is no room, or the peer announces too often.
        """
        agent = agent_name(announcement.did)
        self._count(agent, now)
        before = self._entries.get(agent)
        if before is not None and announcement.issued < before.announcement.issued:
            raise ToolError(409, "a newer announcement is here", may_have_run=False)
        self._drop(agent)
        self.expire(now=now)
        entry = _Entry(announcement, share)
        size = announcement.size
        full = (
            len(self._entries) >= self._max_entries
            or sum(self._bytes.values()) + size > MAX_BYTES
        )
        if not entry.is_listed:
            full |= (
                self._unlisted >= self._max_unlisted
                or self._shares[share] >= MAX_OF_SHARE
                or self._bytes[False] + size > MAX_BYTES_UNLISTED
            )
        if full:
            raise ToolError(503, "there is no room for more", may_have_run=False)
        self._entries[agent] = entry
        self._bytes[entry.is_listed] += size
        if not entry.is_listed:
            self._unlisted += 1
            self._shares[share] += 1

    def drop(self, did: str, *, now: float) -> bool:
        """Take out the announcement of a peer; False if there was none.

        Raises:
            ToolError: The peer changes it too often.
        """
        self._count(agent_name(did), now)
        return self._drop(agent_name(did))

    def find(
        self, capability: str, *, after: str = "", now: float
    ) -> tuple[list[Announcement], str | None]:
        """Return a page of those that name a capability, and where the next begins.

        Listed peers come first, then by their DIDs.

        Args:
            capability: Its full or short name, in any spelling.
            after: The end of the page before.
        """
        self.expire(now=now)
        ordered = sorted(
            (
                (f"{0 if one.is_listed else 1}{agent}", one.announcement)
                for agent, one in self._entries.items()
                if one.announcement.names(capability)
            ),
            key=lambda one: one[0],
        )
        found: list[Announcement] = []
        place, room = after, PAGE_SIZE
        for key, one in ordered:
            if key <= after:
                continue
            room -= one.size
            if len(found) >= PAGE or (found and room < 0):
                return found, place
            found.append(one)
            place = key
        return found, None

    def expire(self, *, now: float) -> None:
        """Forget what counts no more."""
        for agent, one in list(self._entries.items()):
            if one.announcement.expires <= now:
                self._drop(agent)

    def _count(self, agent: str, now: float) -> None:
        since, changes = self._changes.pop(agent, (now, 0))
        if now - since >= PERIOD:
            since, changes = now, 0
        self._changes[agent] = since, changes + 1
        while len(self._changes) > self._max_entries + 1:
            self._changes.popitem(last=False)
        if changes >= MAX_CHANGES:
            raise ToolError(
                429,
                f"at most {MAX_CHANGES} changes in {PERIOD:g} s",
                may_have_run=False,
            )

    def _drop(self, agent: str) -> bool:
        entry = self._entries.pop(agent, None)
        if entry is None:
            return False
        self._bytes[entry.is_listed] -= entry.announcement.size
        if not entry.is_listed:
            self._unlisted -= 1
            self._shares[entry.share] -= 1
            if not self._shares[entry.share]:
                del self._shares[entry.share]
        return True


class Registry:
    """The three capabilities, as an attachment that needs no program."""

    name = REGISTRY
    kind = REGISTRY
    healthy = True
    problem: str | None = None
    show_errors = False
    begins_itself = False
    skipped: tuple[str, ...] = ()

    def __init__(
        self,
        config: RegistryConfig,
        *,
        resolver: Resolver,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._resolver = resolver
        self._clock = clock
        self.entries = Entries(
            max_entries=config.max_entries, max_unlisted=config.max_unlisted
        )

    async def start(self) -> None:
        """See `Attachment`; there is nothing to start."""

    async def close(self) -> None:
        """See `Attachment`; there is nothing to end."""

    def capabilities(self) -> list[Capability]:
        """See `Attachment`."""
        return list(CAPABILITIES)

    async def call(
        self, capability: str, arguments: dict[str, Any], *, caller: str, timeout: float
    ) -> dict[str, Any]:
        """See `Attachment`."""
        now = self._clock()
        if capability == ANNOUNCE:
            announcement = await self._read(arguments["announcement"], caller)
            self.entries.put(announcement, current_share.get(), now=now)
            return {"expires": announcement.expires}
        if capability == WITHDRAW:
            return {"withdrawn": self.entries.drop(caller, now=now)}
        found, following = self.entries.find(
            arguments["capability"], after=arguments.get("after", ""), now=now
        )
        answer: dict[str, Any] = {"announcements": [dict(one.signed) for one in found]}
        return answer if following is None else {**answer, "next": following}

    async def _read(self, value: Any, caller: str) -> Announcement:
        """Return the announcement that a caller made of itself; ToolError else."""
        try:
            announcement = read_announcement(value, now=self._clock())
            if not same_agent(announcement.did, caller):
                raise ToolError(
                    403, "the announcement is of another agent", may_have_run=False
                )
            await verify(announcement, self._resolver)
        except PeerError as exc:
            raise ToolError(400, exc.detail, may_have_run=False) from exc
        return announcement
