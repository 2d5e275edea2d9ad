"""The words of registries about others: checked, and never trusted with more.

An announcement whose signature is right says where a peer says that it is. A peer that
the owner allowed is dialled there, at an address that the owner's rules for fetching
allow; any other one is shown to the owner and not used.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from anp.errors import AnpError, PeerError
from anp.identity.dids import agent_name, is_web_did
from anp.identity.resolver import Resolver
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.discovery.announcement import Announcement, read_announcement, verify
from anp.sidecar.discovery.registry import FIND
from negotiation.errors import NegotiationError
from negotiation.need import Need
from negotiation.rules.names import name_key

logger = logging.getLogger(__name__)

CALL_TIME: Final = 5.0
"Seconds for one answer of a registry."

MAX_PAGES: Final = 8
"Pages that are read of one registry."

MAX_RESOLVED: Final = 16
"Announcements of one answer whose DIDs have documents, which are fetched for it."

MAX_KEPT: Final = 2_048
"Announcements that are remembered; the one that came first goes."

ASKED_FOR: Final = 30.0
"Seconds for which a registry is not asked again for the same."

MAX_QUESTIONS: Final = 256
"Questions that are remembered for that."


class Announced:
    """Asks registries, and keeps what they tell until it expires."""

    def __init__(
        self,
        registries: Sequence[str],
        *,
        call: Callable[[CallRequest], Awaitable[CallResult]],
        resolver: Resolver,
        clock: Callable[[], float] = time.time,
        on_version: Callable[[str, str], None] = lambda did, version: None,
    ) -> None:
        """Begin with nothing.

        Args:
            registries: The peers that are registries, as calls name them.
            on_version: Told of each DID with the version of its daemon.
        """
        self._registries = registries
        self._call = call
        self._resolver = resolver
        self._clock = clock
        self._on_version = on_version
        self._kept: OrderedDict[str, Announcement] = OrderedDict()
        self._asked: OrderedDict[str, float] = OrderedDict()

    async def ask(self, capability: str) -> None:
        """Ask the registries for those who publish a capability.

        A registry that does not answer is left out.
        """
        now, key = self._clock(), name_key(capability)
        if not self._registries or now - self._asked.get(key, 0.0) < ASKED_FOR:
            return
        self._asked[key] = now
        while len(self._asked) > MAX_QUESTIONS:
            self._asked.popitem(last=False)
        answers = [self._ask(one, capability) for one in self._registries]
        await asyncio.gather(*answers)

    def naming(self, capability: str) -> list[Announcement]:
        """Return the announcements that name a capability, by DID.

        Args:
            capability: Its full or short name, in any spelling.
        """
        now = self._clock()
        return [
            one
            for _, one in sorted(self._kept.items())
            if one.expires > now and one.names(capability)
        ]

    def url_of(self, did: str) -> str | None:
        """Return where a peer announced that it is, or None."""
        found = self._kept.get(agent_name(did))
        return None if found is None or found.expires <= self._clock() else found.url

    async def _ask(self, registry: str, capability: str) -> None:
        after = None
        for _ in range(MAX_PAGES):
            arguments = {"capability": capability}
            request = CallRequest(
                peer=registry,
                need=Need(FIND),
                arguments=arguments if after is None else {**arguments, "after": after},
                timeout=CALL_TIME,
            )
            try:
                answer = (await self._call(request)).output
            except (AnpError, NegotiationError) as exc:
                logger.warning("registry not read name=%s reason=%s", registry, exc)
                return
            fields = answer if isinstance(answer, dict) else {}
            listed = fields.get("announcements")
            room = MAX_RESOLVED
            for one in listed[:MAX_KEPT] if isinstance(listed, list) else ():
                room -= await self._take(one, resolve=room > 0)
            after = fields.get("next")
            if not isinstance(after, str):
                return

    async def _take(self, value: Any, *, resolve: bool) -> bool:
        """Keep an announcement if it is good; return whether a DID was resolved.

        Args:
            resolve: One whose DID has a document may be looked at.
        """
        is_web = False
        try:
            announcement = read_announcement(value, now=self._clock())
            agent = agent_name(announcement.did)
            before = self._kept.get(agent)
            if before is not None and before.issued >= announcement.issued:
                return False
            is_web = is_web_did(announcement.did)
            if is_web and not resolve:
                return False
            await verify(announcement, self._resolver)
        except PeerError as exc:
            logger.warning("announcement not taken reason=%r", exc.detail[:200])
            return is_web
        self._kept[agent] = announcement
        self._on_version(announcement.did, announcement.version)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return is_web
