"""Makes the groups of a daemon of its other parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anp.identity.dids import Identities
from anp.identity.resolver import Resolver
from anp.interaction.groups.elements import Group
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.config.groups import GroupsConfig
from anp.sidecar.groups.checked_keys import CheckedKeys, signer_of
from anp.sidecar.groups.sealing.sealed_desk import SealedDesk
from anp.sidecar.groups.service import GroupService
from anp.sidecar.groups.shelf import GroupShelf
from anp.sidecar.groups.signatures import Signatures
from anp.sidecar.groups.wires import GroupWires
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.peers.policy import PeerPolicy
from anp.sidecar.tasks.delivery.lines import Lines
from cache.store import Store


def make_groups(
    config: GroupsConfig,
    *,
    store: Store,
    secret: bytes,
    identities: Identities,
    resolver: Resolver,
    policy: PeerPolicy,
    finder: PeerFinder,
    requesters: Requesters,
    lines: Lines,
    own_url: Callable[[], str],
) -> GroupService:
    """Return the groups of a daemon.

    Args:
        secret: 32 bytes that only this identity can derive.
    """
    keys = CheckedKeys(resolver)

    def desk_of(group: Group, own: str, rows: Mapping[str, bytes]) -> SealedDesk:
        identity = identities.for_did(own) or identities.primary
        return SealedDesk.open(group, rows, signer=signer_of(identity, own), keys=keys)

    return GroupService(
        shelf=GroupShelf(store, secret),
        identities=identities,
        policy=policy,
        finder=finder,
        lines=lines,
        wires=lambda needs: GroupWires(lines, requesters, finder, needs),
        signatures=Signatures(identities, keys, enabled=config.sign),
        desk_of=desk_of,
        config=config,
        own_url=own_url,
    )
