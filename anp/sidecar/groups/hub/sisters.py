"""The part of this daemon in groups whose hub a sister has, and of sisters in ours."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final

from anp.interaction.errors import InteractionError
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
    GroupPost,
    Membership,
    RefusedGroupOperation,
)
from anp.protocols.gbz.group_reader import read_group_frame
from anp.protocols.line import FurtherFrame
from anp.sidecar.groups.hub.branch import GroupBranch
from anp.sidecar.groups.hub.branches import Branches
from anp.sidecar.groups.hub.holder import GroupHolder, Leases
from anp.sidecar.groups.hub.hub import GroupHub
from anp.sidecar.groups.hub.mail import GroupLetter, GroupMail, LetterKind
from anp.sidecar.groups.shelf import GroupShelf
from anp.sidecar.groups.wires import GroupWires
from anp.sidecar.tasks.delivery.line import Line

logger = logging.getLogger(__name__)


PRESENT: Final = 10.0
"Seconds for which a sister lives that says nothing."


class Sisters:
    """Serves members of groups for the sisters, and has them serve members of ours."""

    def __init__(
        self,
        shelf: GroupShelf,
        wires: GroupWires,
        holder: GroupHolder,
        hubs: Mapping[str, GroupHub],
        *,
        own: Callable[[str], bool],
    ) -> None:
        """Begin without any.

        Args:
            hubs: The groups whose hub is here.
            own: Tells if a DID is one of this daemon's own.
        """
        self._shelf = shelf
        self._wires = wires
        self._holder = holder
        self._hubs = hubs
        self._own = own
        self._mail = GroupMail(shelf, self._take)
        self._here: dict[str, GroupBranch] = {}
        self._heard: dict[str, float] = {}
        "When each sister was heard of last, on the monotonic clock."

        self._opening = asyncio.Lock()
        self._working: set[asyncio.Task[None]] = set()
        self._mail.lost = self._lost
        holder.looked = self._look

    @property
    def branches(self) -> Collection[GroupBranch]:
        """The groups of sisters whose members we serve."""
        return self._here.values()

    def branches_of(self, group: str) -> Branches:
        """Return the desk about the sisters that serve members of a group of ours."""
        return Branches(group, self._shelf.owner, self._mail.send, self._present)

    def start(self) -> None:
        """Take letters of sisters from now on."""
        if not self._holder.is_alone:
            self._mail.start()

    async def close(self) -> None:
        """Serve nobody any more."""
        for branch in list(self._here.values()):
            await branch.close()
        self._here.clear()

    async def stop(self) -> None:
        """Tell the sisters that the groups of this daemon are theirs."""
        for sister in self._present():
            self._mail.send(sister, GroupLetter(kind=LetterKind.LEFT, group=""))
        await self._mail.stop()
        await asyncio.gather(*self._working, return_exceptions=True)

    async def hear(self, group: str, line: Line, frame: FurtherFrame) -> bool:
        """Take what an agent says of a group of a sister; False if it is none."""
        branch = self._here.get(group) or await self._open(group)
        if branch is not None:
            await branch.hear(line, frame)
            return True
        if await self._holder.is_a_sisters(group):
            # The seat of the fleet in a group of others. Nothing is lost: what the hub
            # says waits there, and comes when it dials again.
            await line.channel.close("a sister has the group")
            return True
        return False

    async def end(self, group: str) -> None:
        """Serve nobody of a group any more, for example since its hub is here now."""
        branch = self._here.pop(group, None)
        if branch is not None:
            await branch.lose()

    async def _open(self, group: str) -> GroupBranch | None:
        async with self._opening:
            holder = await self._holder.holder_of(group)
            if not holder or group in self._here:
                return self._here.get(group)
            found = await GroupBranch.open(
                group,
                self._shelf,
                self._wires,
                own=self._own,
                mail=self._mail,
                holder=holder,
            )
            if found is not None and await self._holder.holder_of(group) != holder:
                # Its hub came here, or went to another sister, while it was read.
                await found.lose()
                return None
            if found is not None:
                logger.info("group of a sister is served here group=%s", group)
                self._here[group] = found
            return found

    def _present(self) -> list[str]:
        now = time.monotonic()
        return [one for one, at in self._heard.items() if now - at < PRESENT]

    async def _look(self, leases: Leases) -> None:
        """End what is another's now, or nobody's; tell the hubs whom we serve."""
        now = time.time()
        living = {owner for owner, until in leases.values() if until > now}
        for sister in living - {self._shelf.owner}:
            self._mail.send(sister, GroupLetter(kind=LetterKind.HERE, group=""))
        for group, branch in list(self._here.items()):
            is_same = leases.get(group, ("", 0.0))[0] == branch.holder
            if not is_same or not await branch.look():
                await self.end(group)

    def _lost(self, sister: str) -> None:
        """Have members say again, in order, what a sister did not get."""
        for group, branch in list(self._here.items()):
            if branch.holder == sister:
                del self._here[group]
                branch.log.give_up()
                self._do(branch.lose())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _take(self, sender: str, letter: GroupLetter) -> None:
        self._heard[sender] = time.monotonic()
        if letter.kind is LetterKind.LEFT:
            del self._heard[sender]
            await self._holder.look()
            return
        branch = self._here.get(letter.group)
        if branch is None and letter.kind is LetterKind.DIAL:
            branch = await self._open(letter.group)
        if branch is not None:
            if branch.holder == sender:
                await branch.take_letter(letter)
            return
        hub = self._hubs.get(letter.group)
        if hub is None:
            return
        match letter.kind:
            case LetterKind.PRESENT:
                hub.present(sender, letter.members, letter.did)
            case LetterKind.KNOWN:
                hub.told(letter.did, letter.frame)
            case LetterKind.SAID:
                self._said(hub, sender, letter)

    def _said(self, hub: GroupHub, sister: str, letter: GroupLetter) -> None:
        """Take what a member said on a line of a sister."""
        data = letter.frame.encode("utf-8")
        frame = read_group_frame(data, max_size=len(data))
        post = frame.operation
        assert isinstance(post, GroupPost), "a sister read it before"
        try:
            step = hub.take_soon(post, sender=letter.did, ref=frame.ref, size=len(data))
        except InteractionError as exc:
            refused = RefusedGroupOperation(
                group=letter.group, ref=frame.ref, code=exc.code, text=exc.text
            )
            hub.branches.answer(sister, letter.did, refused)
            return
        if not step.events or isinstance(post.content, Membership):
            # What was said is answered by the sister, when it reads the event.
            self._do(_answer(hub, sister, did=letter.did, answer=step.answer))


async def _answer(
    hub: GroupHub, sister: str, *, did: str, answer: GroupAcknowledgement
) -> None:
    try:
        await hub.log.durable()
    except InteractionError:
        # It is another sister's by now.
        return
    hub.branches.answer(sister, did, answer)
