"""The attached agent in groups: what others say goes to it, what it answers is posted.

A message is handed over at most once, while the daemon runs. An answer names the
message that it answers, and is never handed to an agent, so that two agents do not talk
for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from anp.errors import CallError
from anp.interaction.elements import Message, Part, PartKind
from anp.interaction.errors import InteractionError
from anp.sidecar.groups.frames import message_of
from anp.sidecar.groups.member import MemberState
from anp.sidecar.groups.service import GroupService, KnownGroup, NoGroup
from anp.sidecar.groups.shelf import SEALED, StoredEvent
from anp.sidecar.offer.capability_calls import MAX_VALUES, CapabilityCalls
from anp.sidecar.offer.gate import ApprovalPending
from anp.sidecar.offer.ways import WayIn
from negotiation.errors import CapabilityFailed
from negotiation.natural import text_argument

__all__ = ["ANSWERS", "GroupAgent"]

logger = logging.getLogger(__name__)

ANSWERS: Final = "answers"
"Metadata of an answer: the id of the message that it answers."

AT_A_TIME: Final = 16
"Messages of one group that the agent has at a time; those above are not handed over."

WORD_CHECK: Final = 1.0
"Seconds between two looks for the owner's word about a message."

WORD_WAIT: Final = 24 * 3600.0
"Seconds for which a message waits for the owner's word."


class GroupAgent:
    """Hands messages of groups to one capability, and posts what it returns."""

    def __init__(
        self, groups: GroupService, capabilities: CapabilityCalls, *, name: str
    ) -> None:
        """Begin with nothing; `look` follows the groups.

        Args:
            name: Full name of the capability; empty for none.
        """
        self._groups = groups
        self._capabilities = capabilities
        self._name = name
        self._following: dict[str, asyncio.Task[None]] = {}
        self._at_work: dict[str, set[asyncio.Task[None]]] = {}

    def look(self) -> None:
        """Follow the groups in which this agent is a member, from now on.

        What was said before was for an earlier life of the daemon, or for the sister
        of the fleet that had the group.
        """
        if not self._name:
            return
        now = {
            known.group.id: known
            for known in self._groups.all()
            if known.state is MemberState.MEMBER
        }
        for name in self._following.keys() - now.keys():
            self._following.pop(name).cancel()
        for name in now.keys() - self._following.keys():
            after = max(now[name].last, _joined(now[name]))
            self._following[name] = asyncio.create_task(self._follow(name, after))

    async def close(self) -> None:
        """End; a message at work gets no answer."""
        tasks = [*self._following.values()]
        tasks += [one for some in self._at_work.values() for one in some]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, name: str, after: int) -> None:
        try:
            own = self._groups.known(name).own
            async for event in self._groups.watch(name, after=after):
                message = message_of(event)
                if message is None or event.by == own or ANSWERS in message.metadata:
                    continue
                if event.mark not in ("", "signed", SEALED):
                    logger.warning(
                        "group message not handed over group=%s number=%d proof=%s",
                        name,
                        event.number,
                        event.mark,
                    )
                    continue
                self._hand(name, event, message)
        except NoGroup:
            self._following.pop(name, None)

    def _hand(self, name: str, event: StoredEvent, message: Message) -> None:
        at_work = self._at_work.setdefault(name, set())
        if len(at_work) >= AT_A_TIME:
            logger.warning(
                "group message not handed over group=%s number=%d: too many at work",
                name,
                event.number,
            )
            return
        task = asyncio.create_task(self._answer(name, event, message))
        at_work.add(task)
        task.add_done_callback(at_work.discard)

    async def _answer(self, name: str, event: StoredEvent, message: Message) -> None:
        try:
            about = self._groups.known(name).invitation
            # What is not signed has the rights of the hub, which vouches for it alone;
            # at our own hub the channel proved who spoke.
            by = event.by if event.mark or about is None else about.hub
            output = await self._call(by, message.parts)
            parts = _parts_of(output)
            if parts:
                await self._groups.post(name, parts, metadata={ANSWERS: message.id})
        except (CapabilityFailed, CallError, InteractionError) as exc:
            logger.warning(
                "group message not answered group=%s number=%d reason=%r",
                name,
                event.number,
                str(exc)[:200],
            )
        except Exception:
            logger.exception("answer in a group failed group=%s", name)

    async def _call(self, peer: str, parts: Sequence[Part]) -> Any:
        capability = self._capabilities.gate.find(WayIn.GROUP, peer, self._name)
        if capability is None:
            raise CapabilityFailed(
                "403", "the capability is not exposed to this peer", ran=False
            )
        arguments = _arguments(parts, text_argument(capability))
        clock = asyncio.get_running_loop().time
        ends = clock() + WORD_WAIT
        while True:
            try:
                return await self._capabilities.run(
                    self._name,
                    arguments,
                    way=WayIn.GROUP,
                    peer=peer,
                    peer_did=peer,
                    max_payload=MAX_VALUES,
                )
            except ApprovalPending:
                if clock() >= ends:
                    raise
                # The owner's word comes into the store.
                await asyncio.sleep(WORD_CHECK)


def _joined(known: KnownGroup) -> int:
    """Return the number of the event by which this agent joined."""
    members = known.group.members
    return next((one.since for one in members if one.id == known.own), 0)


def _arguments(parts: Sequence[Part], argument: str | None) -> dict[str, Any]:
    """Return the arguments that a message has for a capability.

    Raises:
        CapabilityFailed: It has none.
    """
    for part in parts:
        if part.kind is PartKind.JSON and isinstance(part.content, dict):
            return part.content
    texts = [str(one.content) for one in parts if one.kind is PartKind.TEXT]
    if argument is None or not texts:
        raise CapabilityFailed("400", "the message has no arguments", ran=False)
    return {argument: "\n".join(texts)}


def _parts_of(output: Any) -> list[Part]:
    """Return an answer as parts; one text alone is words, and an empty one nothing."""
    only = list(output.values()) if isinstance(output, dict) else [output]
    if len(only) == 1 and isinstance(only[0], str):
        return [Part.text(only[0])] if only[0].strip() else []
    return [] if output is None or output == {} else [Part.value(output)]
