"""Builds the parts of this room from those of the daemon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.sidecar.config.interaction import InteractionConfig
from anp.sidecar.consensus.written.heard import Heard
from anp.sidecar.offer.gate import Gate
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.peers.policy import PeerPolicy
from anp.sidecar.subscriptions.kept import PURPOSE, SubscriptionBook
from anp.sidecar.subscriptions.service import SubscriptionService
from anp.sidecar.tasks.service import TaskService
from cache.store import Store
from sandbox.pool.validation import SchemaValidator


def make_subscriptions(
    *,
    key: PrivateKey,
    store: Store,
    identities: Identities,
    tasks: TaskService,
    finder: PeerFinder,
    validator: SchemaValidator,
    policy: PeerPolicy,
    gate: Gate,
    config: InteractionConfig,
    heard: Heard,
    publish: Callable[[str, dict[str, Any]], object],
) -> SubscriptionService:
    """Build them.

    Args:
        publish: Tells who follows the events of the daemon.
    """
    made = SubscriptionService(
        book=SubscriptionBook(store, key.derive(PURPOSE)),
        tasks=tasks,
        finder=finder,
        identities=identities,
        validator=validator,
        policy=policy,
        gate=gate,
        config=config,
        publish=publish,
    )
    heard.watch = made.heard
    return made
