"""A2A for local agents that speak nothing else: a peer does their tasks.

A `contextId` of a local caller is a session of ours with the peer. A skill that a
message names goes along as the capability of the task; all else the peer finds out.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from anp.errors import CallError, ConflictError, ErrorKind
from anp.identity.dids import Identities
from anp.interaction.elements import Message, Part, PartKind, Task
from anp.protocols.a2a.intents import read_intents, slot_values
from anp.protocols.a2a.objects import A2aMessage
from anp.protocols.a2a.words import A2aError, A2aFault
from anp.sidecar.a2a.desk import A2aDesk, Begun, made_of, message_of, named
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.calls.question import ask_list
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.files.sealed_file import BLOCK
from anp.sidecar.files.spool import KeptFile, NoRoom
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.peers.lists import PeerLists
from anp.sidecar.tasks.choice import Choice
from anp.sidecar.tasks.chronicle import created
from anp.sidecar.tasks.known import KnownTask
from anp.sidecar.tasks.service import TaskService
from anp.sidecar.tasks.skills import find_skill
from cache.errors import LogConflict
from negotiation.need import Capability

logger = logging.getLogger(__name__)

MAX_INLINE: Final = 128 * 1024
"Most bytes of a file that stands in its message."

LIFETIME: Final = 60.0
"Seconds after which a peer is asked again what it has for us."


class PeerSkills:
    """The capabilities that a peer has for us, kept for a while."""

    def __init__(
        self, finder: PeerFinder, requesters: Requesters, lists: PeerLists, peer: str
    ) -> None:
        """Begin without asking.

        Args:
            peer: The owner's name for the peer.
        """
        self._finder = finder
        self._requesters = requesters
        self._lists = lists
        self._peer = peer
        self._found: Sequence[Capability] = ()
        self._until = 0.0

    async def __call__(self) -> Sequence[Capability]:
        """Return them; none if the peer cannot be reached, or tells nobody."""
        now = time.monotonic()
        if now >= self._until:
            try:
                target = await self._finder.find(self._peer, trust_first_use=False)
                listing = await ask_list(self._requesters, self._lists, target)
                self._found = () if listing is None else listing.capabilities
                self._until = now + LIFETIME
            except CallError as exc:
                logger.info("no list of peer=%s reason=%s", self._peer, exc.detail)
        return self._found


Skills = Callable[[], Awaitable[Sequence[Capability]]]
"Returns the capabilities that the peer has for us."


class PeerDesk(A2aDesk):
    """Has one peer do the tasks of local callers."""

    def __init__(
        self,
        tasks: TaskService,
        identities: Identities,
        peer: str,
        skills: Skills,
        *,
        files: str = "",
    ) -> None:
        """Make the desk.

        Args:
            peer: The owner's name for the peer.
            files: As for `A2aView`.
        """
        super().__init__(tasks, files=files)
        self._identities = identities
        self._peer = peer
        self._skills = skills

    def _session_id(self, caller: A2aCaller, context: str) -> str:
        # Two callers may use the same id, and one caller may with two peers.
        return made_of(caller.id, self._peer, context)

    async def _context(self, known: KnownTask) -> str:
        return (await self._sessions.conversation(known.log)).session.alias

    async def _is_of(self, caller: A2aCaller, known: KnownTask) -> bool:
        session = (await self._sessions.conversation(known.log)).session
        return session.owner == caller.id

    async def _start(
        self, caller: A2aCaller, message: A2aMessage, modes: Sequence[str]
    ) -> Begun:
        # The same message again is the same task, not a second one (A2A-Q4).
        name = made_of(caller.id, message.id, "task")
        context = message.context or made_of(caller.id, message.id, "context")
        log = await self._session(caller, context)
        conversation = await self._sessions.conversation(log)
        before = conversation.last
        session = conversation.session
        is_repeat = name in conversation.tasks
        task = Task(
            id=name,
            session=session.id,
            requester=session.requester.id,
            executor=session.participants[0].id,
            messages=(message_of(message, session, name),),
            extra=caller.reach.to_extra(),
        )
        await self._create(caller, log, task, modes=modes, is_repeat=is_repeat)
        item = await self._sessions.item_of(log, name)
        return await self._begun(await self._tasks.task(item), before, is_repeat)

    async def _session(self, caller: A2aCaller, context: str) -> str:
        name = self._session_id(caller, context)
        own = self._identities
        for did in dict.fromkeys((own.primary.did, own.canonical)):
            found = await self._sessions.find(did, name)
            if found is not None:
                return found
        with _told():
            try:
                return await self._tasks.open_session(
                    self._peer, name=name, owner=caller.id, alias=context
                )
            except LogConflict:
                # Two messages opened it at the same time.
                return await self._session(caller, context)

    async def _create(
        self,
        caller: A2aCaller,
        log: str,
        task: Task,
        *,
        modes: Sequence[str],
        is_repeat: bool,
    ) -> None:
        (first,) = task.messages
        chosen = await self._named(first)
        if chosen is not None:
            task = named(task, chosen)
            (first,) = task.messages
        if is_repeat:
            known = await created(self._sessions, log, task.id)
            if known is not None and not _same(known.messages, task.messages):
                raise A2aError(
                    A2aFault.PARAMS, "message.messageId: was used for another message"
                )
            return
        task = replace(task, messages=(await self._announced(first),))
        with _told():
            await self._tasks.create(log, task)

    async def _named(self, message: Message) -> Choice | None:
        """Return the skill that a message names, if the peer publishes such a one."""
        files = tuple(
            one for one in message.parts if one.kind in (PartKind.BYTES, PartKind.URI)
        )
        for part in message.parts:
            value = part.content
            if isinstance(value, dict) and isinstance(value.get("skill"), str):
                skill = find_skill(await self._skills(), value["skill"])
                arguments = value.get("arguments", {})
                if skill is not None and isinstance(arguments, dict):
                    return Choice(skill.name, (Part.value(arguments), *files))
        for intent in read_intents(message.metadata):
            skill = find_skill(await self._skills(), intent.skill)
            if skill is None:
                continue
            values = slot_values(intent, skill.input_schema)
            if not values.missing and not values.wrong:
                given = Part.value(dict(values.arguments))
                return Choice(skill.name, (given, *files))
        return None

    async def _post(self, caller: A2aCaller, known: KnownTask, sent: Message) -> None:
        sent = await self._announced(sent)
        with _told():
            await self._tasks.post(known.log, sent)

    async def _announced(self, message: Message) -> Message:
        """Return a message whose large files are kept, and fetched by the peer."""
        with _told():
            parts = [await self._kept(part) for part in message.parts]
        return replace(message, parts=tuple(parts))

    async def _kept(self, part: Part) -> Part:
        content = part.content
        if not isinstance(content, bytes) or len(content) <= MAX_INLINE:
            return part
        try:
            kept = await asyncio.to_thread(self._keep, part, content)
        except NoRoom as exc:
            raise CallError(ErrorKind.USAGE, str(exc)) from exc
        return kept.part

    def _keep(self, part: Part, content: bytes) -> KeptFile:
        spool = self._tasks.files.spool
        spool.check(len(content))
        kept, writer = spool.begin(name=part.name, media_type=part.media_type)
        try:
            for begin in range(0, len(content), BLOCK):
                writer.append(content[begin : begin + BLOCK])
            return spool.keep(kept, writer)
        finally:
            spool.abandon(kept, writer)

    async def _end(self, caller: A2aCaller, known: KnownTask) -> None:
        with _told():
            await self._tasks.cancel(known.id)


def _same(one: Sequence[Message], other: Sequence[Message]) -> bool:
    """Return whether messages say the same; a file may stand in one and be kept."""
    return [_plain(message) for message in one] == [_plain(m) for m in other]


def _plain(message: Message) -> Message:
    return replace(message, parts=tuple(_hashed(part) for part in message.parts))


def _hashed(part: Part) -> Part:
    if isinstance(part.content, bytes):
        digest = hashlib.sha256(part.content).hexdigest()
        return Part.text(digest, media_type=part.media_type, name=part.name)
    if part.is_file:
        return Part.text(part.sha256, media_type=part.media_type, name=part.name)
    return part


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Raise our errors as those of A2A; the caller is an agent of our own owner."""
    try:
        yield
    except ConflictError as exc:
        raise A2aError(A2aFault.UNSUPPORTED_OPERATION, str(exc)) from exc
    except CallError as exc:
        fault = A2aFault.PARAMS if exc.kind is ErrorKind.USAGE else A2aFault.INTERNAL
        raise A2aError(fault, str(exc.detail)[:500]) from exc
