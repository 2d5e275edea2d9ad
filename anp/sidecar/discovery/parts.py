"""Builds the parts of this room from those of the daemon."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from anp.identity.dids import Identities
from anp.identity.resolver import Resolver
from anp.sidecar.calls.caller import Caller
from anp.sidecar.calls.question import ask_list
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.config.settings import Config
from anp.sidecar.discovery.announced import Announced
from anp.sidecar.discovery.announcement import announce
from anp.sidecar.discovery.announcer import Announcer
from anp.sidecar.discovery.candidates import Candidates
from anp.sidecar.discovery.dispatcher import Dispatcher
from anp.sidecar.offer.exposure import EVERYBODY, Exposure
from anp.sidecar.peers.directory import Directory
from anp.sidecar.peers.figures import Measures
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.peers.lists import PeerLists
from anp.sidecar.tasks.service import TaskService
from anp.version import daemon_version
from negotiation.need import Capability


@dataclass(frozen=True, slots=True)
class Discovery:
    """Both sides of finding: we find others, and are found."""

    dispatcher: Dispatcher
    announcer: Announcer


def make_discovery(
    config: Config,
    *,
    caller: Caller,
    directory: Directory,
    exposure: Exposure,
    finder: PeerFinder,
    identities: Identities,
    lists: PeerLists,
    measures: Measures,
    requesters: Requesters,
    resolver: Resolver,
    tasks: TaskService,
    own_url: Callable[[], str],
) -> Discovery:
    """Build them.

    Args:
        own_url: Returns the URL at which peers reach us.
    """
    registry = config.registry

    async def ask(address: str) -> Sequence[Capability] | None:
        target = await finder.find(address, trust_first_use=False)
        listing = await ask_list(requesters, lists, target)
        return None if listing is None else listing.capabilities

    async def reach(address: str) -> None:
        target = await finder.find(address, trust_first_use=False)
        channel = await requesters.open(target, None)
        # Its connection stays for a while, and what follows goes over it.
        await channel.close("only to see that the peer is there")

    def announcement() -> dict[str, Any]:
        return announce(
            identities.primary,
            url=own_url(),
            name=registry.name,
            version=daemon_version(),
            capabilities=exposure.offered(EVERYBODY),
            now=time.time(),
            lifetime=registry.lifetime,
        )

    announced = Announced(
        registry.ask,
        call=caller.call,
        resolver=resolver,
        on_version=measures.told_version,
    )
    finder.announced = announced.url_of
    announcer = Announcer(
        registry.announce,
        make=announcement,
        call=caller.call,
        lifetime=registry.lifetime,
    )
    exposure.watch(announcer.changed)
    dispatcher = Dispatcher(
        candidates=Candidates(
            announced=announced,
            directory=directory,
            measures=measures,
            ask=ask,
            at_work=directory.at_work,
            lifetime=config.consensus.list_lifetime,
        ),
        measures=measures,
        tasks=tasks,
        call=caller.call,
        reach=reach,
    )
    return Discovery(dispatcher, announcer)
