"""The groups of the owner's settings: made at start, and changed as the settings were.

The settings are compared with the group as it is, so that a start after a kill goes on
where the last one was. Agents that declined, or left, are not asked again.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from anp.channel.links import LinkTarget
from anp.errors import CallError, ConflictError, ErrorKind
from anp.identity.dids import agent_name
from anp.interaction.errors import InteractionError
from anp.interaction.groups.elements import GroupState
from anp.sidecar.config.groups import GroupEntry
from anp.sidecar.groups.service import GroupService
from anp.sidecar.groups.standing import KnownGroup
from anp.sidecar.peers.finder import PeerFinder

logger = logging.getLogger(__name__)

FIRST_WAIT: Final = 1.0
"Seconds before peers that were not found are looked for again; then it doubles."

MOST_WAIT: Final = 60.0

NAMED_NO_MORE: Final = "the settings name it no more; it goes on as it is"


@dataclass(frozen=True, slots=True)
class _Named:
    """The peers of one entry, as far as they were found, by agent."""

    hub: LinkTarget | None
    owner: LinkTarget | None
    admins: dict[str, LinkTarget]
    others: dict[str, LinkTarget]
    problems: tuple[str, ...]
    "Peers that were not found, each with the reason."

    @property
    def wanted(self) -> dict[str, LinkTarget]:
        """All that are to be members."""
        owner = {} if self.owner is None else {agent_name(self.owner.did): self.owner}
        return {**owner, **self.admins, **self.others}


class GroupPresets:
    """Brings the groups of the settings to what the settings say."""

    def __init__(
        self,
        groups: GroupService,
        finder: PeerFinder,
        entries: Iterable[GroupEntry],
        *,
        own: str,
    ) -> None:
        """Begin with nothing done.

        Args:
            own: This agent's canonical DID.
        """
        self._groups = groups
        self._finder = finder
        self._own = own
        self._entries = tuple(entries)
        self._waiting: dict[str, GroupEntry] = {}
        self._running: asyncio.Task[None] | None = None

    def id_of(self, entry: GroupEntry) -> str:
        """Return the id of the group that an entry is about."""
        return uuid.uuid5(uuid.NAMESPACE_OID, f"{self._own}/{entry.name}").hex

    @property
    def is_settled(self) -> bool:
        """True when all that the settings say was tried, and nothing is waited for."""
        return not self._waiting

    def start(self) -> None:
        """Make and change the groups, beside everything else."""
        self._waiting = {self.id_of(one): one for one in self._entries}
        for known in self._groups.all():
            if known.preset is not None and known.group.id not in self._waiting:
                self._groups.preset_problems[known.group.id] = (NAMED_NO_MORE,)
        if self._waiting:
            self._running = asyncio.create_task(self._run())

    def replace(self, entries: Iterable[GroupEntry]) -> None:
        """Go by other settings from now on."""
        entries = tuple(entries)
        if entries != self._entries:
            self._entries = entries
            if self._running is not None:
                self._running.cancel()
            self.start()

    async def close(self) -> None:
        """End; the next start goes on."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        wait = FIRST_WAIT
        while True:
            for name, entry in list(self._waiting.items()):
                await self._look(name, entry)
            if not self._waiting:
                return
            await asyncio.sleep(wait)
            wait = min(2 * wait, MOST_WAIT)

    async def _look(self, name: str, entry: GroupEntry) -> None:
        problems: Sequence[str] = ()
        try:
            is_done, problems = await self._apply(name, entry)
        except (CallError, TimeoutError) as exc:
            is_done, problems = False, [str(exc) or "the hub does not answer"]
        except (InteractionError, ConflictError) as exc:
            is_done, problems = True, [str(exc)]
        except Exception:
            logger.exception("group of the settings not made name=%r", entry.name)
            is_done = True
        if tuple(problems) != self._groups.preset_problems.get(name, ()):
            self._groups.preset_problems[name] = tuple(problems)
            for one in problems:
                logger.warning("group of the settings name=%r: %s", entry.name, one)
        if is_done:
            del self._waiting[name]

    async def _apply(self, name: str, entry: GroupEntry) -> tuple[bool, Sequence[str]]:
        """Make or change a group; return whether that is all, and what is not so."""
        if await self._groups.is_a_sisters(name):
            return False, ()
        named = await self._find(entry)
        if not self._groups.is_here(name):
            await self._create(name, entry, named)
        known = self._groups.known(name)
        if known.group.state is GroupState.CLOSED:
            return True, ["the group is closed; it does not open again"]
        stays = _stays(known, entry, named)
        before = {agent_name(did): did for did in known.preset or ()}
        wanted = {agent: one.did for agent, one in named.wanted.items()}
        if named.problems:
            # One that was not found now is not one that was taken out.
            wanted = before | wanted
        if known.is_hub:
            admins = [one.did for one in named.admins.values()]
            if entry.owner is not None:
                admins.append(self._own)
            await self._groups.put_preset(
                name, [*wanted.values()], entry.policy, admins
            )
        await self._change_members(name, named, before, wanted=wanted)
        if not known.is_hub:
            await self._groups.put_preset(name, [*wanted.values()], entry.policy, ())
        return not named.problems, [*named.problems, *stays]

    async def _change_members(
        self,
        name: str,
        named: _Named,
        before: Mapping[str, str],
        *,
        wanted: Mapping[str, str],
    ) -> None:
        """Invite who is named and was not before, and remove who is named no more.

        Args:
            before: DIDs of whom the settings named before, by their names as agents.
            wanted: Those that they name now.
        """
        known = self._groups.known(name)
        members = {agent_name(one.id): one.id for one in known.group.members}
        # Another's hub does not say who declined.
        gone = self._groups.gone_from(name) if known.is_hub else before.keys()
        for agent, target in named.wanted.items():
            is_asked = agent in before and agent in gone
            if agent not in members and not is_asked and agent != agent_name(self._own):
                await self._groups.invite(name, _address(target))
        for agent in before.keys() - wanted.keys():
            if agent in members:
                await self._groups.remove(
                    name, members[agent], text="the settings name it no more"
                )

    async def _create(self, name: str, entry: GroupEntry, named: _Named) -> None:
        if named.hub is not None and named.problems:
            # Its admins are settled when it is made.
            raise CallError(ErrorKind.PEER_UNREACHABLE, "; ".join(named.problems))
        await self._groups.create(
            group=name,
            name=entry.name,
            policy=entry.policy,
            admins=[one.did for one in named.admins.values()],
            hub=entry.hub or "",
            sealed=entry.seal,
            owner="" if named.owner is None else named.owner.did,
        )

    async def _find(self, entry: GroupEntry) -> _Named:
        """Find the peers of an entry; its hub and owner have to be found."""
        problems: list[str] = []
        hub = None if entry.hub is None else await self._target(entry.hub)
        owner = None if entry.owner is None else await self._target(entry.owner)
        found: list[dict[str, LinkTarget]] = []
        for peers in (entry.admins, entry.members):
            some = {}
            for peer in peers:
                try:
                    target = await self._target(peer)
                except CallError as exc:
                    problems.append(f"{peer}: {exc.detail}")
                else:
                    some[agent_name(target.did)] = target
            found.append(some)
        return _Named(hub, owner, found[0], found[1], tuple(problems))

    async def _target(self, peer: str) -> LinkTarget:
        return await self._finder.find(peer, trust_first_use=True)


def _address(target: LinkTarget) -> str:
    return target.did if target.url is None else f"{target.url}#{target.did}"


def _stays(known: KnownGroup, entry: GroupEntry, named: _Named) -> list[str]:
    """Return what the settings say otherwise than the group, and cannot change."""
    group, found = known.group, []
    hub = "" if known.is_hub or named.hub is None else agent_name(named.hub.did)
    if known.is_hub is not (named.hub is None) or (
        hub and hub != agent_name(group.hub.id)
    ):
        found.append("hub")
    if (
        named.owner is not None
        and agent_name(named.owner.did) != agent_name(group.owner)
    ) or (named.owner is None and known.is_hub and group.owner != known.own):
        found.append("owner")
    if group.sealed is not entry.seal:
        found.append("seal")
    if not known.is_hub:
        # Another's hub keeps the rules with which the group was made.
        if group.policy != entry.policy:
            found.append("join, history, max_members, max_message and rate")
        if {agent_name(one) for one in group.admins} != named.admins.keys():
            found.append("admins")
    return [f"{one}: stays as the group was made with" for one in found]
