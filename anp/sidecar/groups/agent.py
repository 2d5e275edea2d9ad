"""The attached agent in groups: what others say goes to it, what it answers is posted.

A message is handed over at most once, while the daemon runs. An answer names the
message that it answers, and is never handed to an agent, so that two agents do not talk
for ever.

A task that another member offers is accepted when its capability is exposed to that
member. Work begins when the hub has put our acceptance into its order, since another
may have been the first, and what a kill interrupted is reported as failed.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from anp.errors import CallError
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    PartKind,
    SenderRole,
    Task,
    TaskChange,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.member_state import MemberState
from anp.interaction.operations import TaskCancel, TaskUpdate
from anp.interaction.states import TaskState
from anp.sidecar.files.call_folder import CallFolders
from anp.sidecar.files.transfers import FileFailed
from anp.sidecar.groups.frames import is_of_task, message_of, work_of
from anp.sidecar.groups.reception import NoGroup
from anp.sidecar.groups.service import GroupService
from anp.sidecar.groups.shelf import SEALED, StoredEvent
from anp.sidecar.groups.standing import KnownGroup
from anp.sidecar.offer.capability_calls import MAX_VALUES, CapabilityCalls
from anp.sidecar.offer.gate import ApprovalPending
from anp.sidecar.offer.task_arguments import UnfitPartsError, lay_files
from anp.sidecar.offer.ways import WayIn
from negotiation.errors import CapabilityFailed
from negotiation.natural import text_argument
from negotiation.need import Capability

logger = logging.getLogger(__name__)

ANSWERS: Final = "answers"
"Metadata of an answer: the id of the message that it answers."

AT_A_TIME: Final = 16
"Messages of one group that the agent has at a time; those above are not handed over."

FILES: Final = frozenset({PartKind.BYTES, PartKind.URI})
"Kinds of parts that become an argument by their name, in the folder of the call."

WORD_CHECK: Final = 1.0
"Seconds between two looks for the owner's word about a message."

WORD_WAIT: Final = 24 * 3600.0
"Seconds for which a message waits for the owner's word."


@dataclass(slots=True)
class _Offer:
    """A task that another member offers, and that we accepted or are about to."""

    task: str
    capability: str
    peer: str
    "DID with whose rights it is done."

    parts: tuple[Part, ...]
    running: asyncio.Task[None] | None = None
    is_started: bool = False
    "True when `running` has begun, so that it can report that it is cancelled."

    is_cancelled: bool = False
    "Its maker wants no result any more."


class GroupAgent:
    """Has capabilities answer messages and do offered tasks of groups."""

    def __init__(
        self,
        groups: GroupService,
        capabilities: CapabilityCalls,
        *,
        folders: Callable[[], CallFolders],
        name: str,
    ) -> None:
        """Begin with nothing; `look` follows the groups.

        Args:
            folders: Returns what makes the folder for the files of a call.
            name: Full name of the capability for messages; empty for none.
        """
        self._groups = groups
        self._capabilities = capabilities
        self._folders = folders
        self._name = name
        self._following: dict[str, asyncio.Task[None]] = {}
        self._at_work: dict[str, set[asyncio.Task[None]]] = {}
        self._offers: dict[tuple[str, str], _Offer] = {}
        "Offers that we accepted, or are about to, by group and task."

        self._closing = False

    def look(self) -> None:
        """Follow the groups in which this agent is a member, from now on.

        What was said before was for an earlier life of the daemon, or for the sister
        of the fleet that had the group.
        """
        if not self._name and not self._capabilities.gate.offered(WayIn.OWNER, None):
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
            for task in self._groups.at_work(name):
                if (name, task) not in self._offers:
                    # Of an earlier life, in which it may have begun.
                    self._begin(name, self._report(name, _interrupted(task)))

    async def close(self) -> None:
        """End; a message at work gets no answer."""
        self._closing = True
        tasks = [*self._following.values()]
        tasks += [one for some in self._at_work.values() for one in some]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, name: str, after: int) -> None:
        try:
            own = self._groups.known(name).own
            async for event in self._groups.watch(
                name, after=after, wanted=self._wants
            ):
                work = work_of(event)
                if isinstance(work, Task | TaskUpdate | TaskCancel):
                    self._take_work(name, event, work, own)
                    continue
                message = message_of(event) if self._name else None
                if (
                    message is None
                    or event.by == own
                    or ANSWERS in message.metadata
                    or message.purpose is MessagePurpose.RESULT
                ):
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

    def _wants(self, event: StoredEvent) -> bool:
        return bool(self._name) or is_of_task(event)

    def _hand(self, name: str, event: StoredEvent, message: Message) -> None:
        at_work = self._at_work.setdefault(name, set())
        if len(at_work) >= AT_A_TIME:
            logger.warning(
                "group message not handed over group=%s number=%d: too many at work",
                name,
                event.number,
            )
            return
        self._begin(name, self._answer(name, event, message))

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        at_work = self._at_work.setdefault(name, set())
        task = asyncio.create_task(work)
        at_work.add(task)
        task.add_done_callback(at_work.discard)
        return task

    # Offers.

    def _take_work(
        self,
        name: str,
        event: StoredEvent,
        work: Task | TaskUpdate | TaskCancel,
        own: str,
    ) -> None:
        match work:
            case Task() if event.by != own and event.mark in ("", "signed"):
                self._consider(name, event, work)
            case TaskUpdate(content=TaskChange(task=task, state=TaskState.ACCEPTED)):
                offer = self._offers.get((name, task))
                if event.by != own:
                    self._offers.pop((name, task), None)
                elif offer is not None:
                    offer.running = self._begin(name, self._work(name, offer))
                else:
                    # It was accepted in an earlier life, while the hub was away.
                    self._begin(name, self._report(name, _interrupted(task)))
            case TaskCancel(task=task):
                offer = self._offers.get((name, task))
                if offer is not None:
                    offer.is_cancelled = True
                    if offer.running is not None and offer.is_started:
                        offer.running.cancel()

    def _consider(self, name: str, event: StoredEvent, task: Task) -> None:
        """Accept an offer if we can do it."""
        wanted = task.capability or self._name
        peer = self._speaker(name, event)
        known = self._capabilities.gate.named(WayIn.GROUP, peer, wanted)
        if known is None or len(self._at_work.get(name, ())) >= AT_A_TIME:
            return
        parts = tuple(part for one in task.messages for part in one.parts)
        offer = _Offer(task.id, known.name, peer, parts)
        self._offers[name, task.id] = offer
        self._begin(name, self._accept(name, offer))

    async def _accept(self, name: str, offer: _Offer) -> None:
        await self._groups.note_at_work(name, offer.task, is_begun=True)
        change = TaskChange(task=offer.task, state=TaskState.ACCEPTED)
        try:
            await self._groups.say(name, TaskUpdate(session=name, content=change))
        except (InteractionError, CallError) as exc:
            # Another was the first, or it was taken back.
            logger.debug("offer not got group=%s reason=%s", name, exc)
            self._offers.pop((name, offer.task), None)
            await self._groups.note_at_work(name, offer.task, is_begun=False)

    async def _work(self, name: str, offer: _Offer) -> None:
        end = TaskChange(task=offer.task, state=TaskState.COMPLETED)
        try:
            offer.is_started = True
            if offer.is_cancelled:
                raise asyncio.CancelledError
            working = TaskChange(task=offer.task, state=TaskState.WORKING)
            await self._groups.say(name, TaskUpdate(session=name, content=working))
            output = await self._call(offer.peer, offer.capability, offer.parts)
            await self._groups.say(name, self._result(name, offer, output))
        except asyncio.CancelledError:
            if self._closing:
                raise
            end = replace(end, state=TaskState.CANCELED)
        except CapabilityFailed as exc:
            end = replace(
                end,
                state=TaskState.REJECTED if exc.handed_back else TaskState.FAILED,
                code=exc.code,
                reason=exc.message[:500],
                may_have_run=exc.ran,
            )
        except Exception:
            logger.exception("an offered task failed group=%s", name)
            end = replace(_interrupted(offer.task), code="internal", reason="")
        await self._report(name, end)

    async def _report(self, name: str, end: TaskChange) -> None:
        """Tell the group how a task ended; it may know that already."""
        try:
            await self._groups.say(name, TaskUpdate(session=name, content=end))
        except (InteractionError, CallError) as exc:
            code = exc.code if isinstance(exc, InteractionError) else None
            if end.state == TaskState.REJECTED and code is InteractionFault.STATE:
                # An older hub takes no task back that was accepted.
                await self._report(name, replace(end, state=TaskState.FAILED))
                return
            logger.info("end of a task not told group=%s reason=%s", name, exc)
        self._offers.pop((name, end.task), None)
        await self._groups.note_at_work(name, end.task, is_begun=False)

    def _result(self, name: str, offer: _Offer, output: Any) -> Message:
        return Message(
            id=uuid.uuid4().hex,
            session=name,
            task=offer.task,
            sender=self._groups.known(name).own,
            role=SenderRole.SERVICE,
            purpose=MessagePurpose.RESULT,
            parts=tuple(_parts_of(output) or [Part.text("")]),
        )

    # Messages.

    def _speaker(self, name: str, event: StoredEvent) -> str:
        """Return the DID with whose rights an event was said."""
        about = self._groups.known(name).invitation
        # What is not signed has the rights of the hub, which vouches for it alone; at
        # our own hub the channel proved who spoke.
        return event.by if event.mark or about is None else about.hub

    async def _answer(self, name: str, event: StoredEvent, message: Message) -> None:
        try:
            by = self._speaker(name, event)
            output = await self._call(by, self._name, message.parts)
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

    async def _call(self, peer: str, name: str, parts: Sequence[Part]) -> Any:
        capability = self._capabilities.gate.find(WayIn.GROUP, peer, name)
        if capability is None:
            raise CapabilityFailed(
                "403", "the capability is not exposed to this peer", ran=False
            )
        arguments = _arguments(parts, capability)
        if all(one.kind not in FILES for one in parts):
            return await self._asked(peer, name, arguments)
        about = Task(id="", session="", requester=peer, executor="", capability=name)
        async with self._folders().of_call("", about) as folder:
            try:
                arguments = await folder.fill(arguments)
            except FileFailed as exc:
                raise _misfit(str(exc)) from exc
            return await self._asked(peer, name, arguments)

    async def _asked(self, peer: str, name: str, arguments: dict[str, Any]) -> Any:
        """Call a capability as soon as the gate, or the owner, lets it through."""
        clock = asyncio.get_running_loop().time
        ends = clock() + WORD_WAIT
        while True:
            try:
                return await self._capabilities.run(
                    name,
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


def _interrupted(task: str) -> TaskChange:
    return TaskChange(
        task=task,
        state=TaskState.FAILED,
        code="restarted",
        reason="the daemon was restarted meanwhile",
        may_have_run=True,
    )


def _joined(known: KnownGroup) -> int:
    """Return the number of the event by which this agent joined."""
    members = known.group.members
    return next((one.since for one in members if one.id == known.own), 0)


def _arguments(parts: Sequence[Part], capability: Capability) -> dict[str, Any]:
    """Return the arguments that a message has for a capability, files among them.

    Raises:
        CapabilityFailed: It has none, or a file for which there is no place.
    """
    files = [one for one in parts if one.kind in FILES]
    texts = [str(one.content) for one in parts if one.kind is PartKind.TEXT]
    argument = text_argument(capability)
    objects = [
        one.content
        for one in parts
        if one.kind is PartKind.JSON and isinstance(one.content, dict)
    ]
    if not (objects or files or (texts and argument is not None)):
        raise _misfit("the message has no arguments")
    words = {argument: "\n".join(texts)} if texts and argument is not None else {}
    arguments = {**words, **(objects[0] if objects else {})}
    try:
        lay_files(arguments, files, capability)
    except UnfitPartsError as exc:
        raise _misfit(str(exc)) from exc
    return arguments


def _misfit(reason: str) -> CapabilityFailed:
    """Return the error by which an offer goes back whose contents do not fit."""
    return CapabilityFailed("400", reason, ran=False, handed_back=True)


def _parts_of(output: Any) -> list[Part]:
    """Return an answer as parts; one text alone is words, and an empty one nothing."""
    only = list(output.values()) if isinstance(output, dict) else [output]
    if len(only) == 1 and isinstance(only[0], str):
        return [Part.text(only[0])] if only[0].strip() else []
    return [] if output is None or output == {} else [Part.value(output)]
