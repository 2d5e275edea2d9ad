"""Reads the owner's files again, and puts changed settings into effect if possible."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from anp.errors import ConfigError
from anp.identity.address import PeerAddress
from anp.sidecar.config.live import Changes, changes
from anp.sidecar.config.settings import Config
from anp.sidecar.daemon import Daemon
from anp.sidecar.peers.policy import PeerRules
from anp.sidecar.peers.web_identity import renew_tls

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The daemon has read its configuration and its attachments again."""

    attachments: tuple[str, ...]
    "All attachments, by name; only those that changed were started again."

    applied: tuple[str, ...]
    "Changed settings that took effect, by dotted name."

    restart: tuple[str, ...]
    "Changed settings that need a restart."


async def reload_daemon(daemon: Daemon) -> Reloaded:
    """Read the owner's files again, and put changed settings into effect if possible.

    Raises:
        ConfigError: Something is wrong with them; everything stays as it was.
    """
    async with daemon.reload_lock:
        try:
            return await _reload(daemon)
        except BaseException:
            daemon.last_reload_failed = True
            raise


async def _reload(daemon: Daemon) -> Reloaded:
    before = daemon.config
    found = Changes(before, (), ())
    if daemon.load is not None:
        found = changes(before, daemon.load())
    daemon.config = found.config
    try:
        daemon.attaching.read(found.config.attach)
        renew_tls(found.config, daemon.links.server_tls)
        # Attachments may take long to start; who may use us counts from now on.
        await _let_in(daemon, found.config)
        names = await daemon.reload()
    except ConfigError:
        daemon.config = before
        await _let_in(daemon, before)
        raise
    # Not what it says of publishing, but who may use us, may have changed.
    daemon.consensus.publishes = found.config.publishes
    daemon.caller.forget_routes()
    daemon.keep_links()
    daemon.group_agent.look()
    daemon.group_presets.replace(found.config.group)
    if daemon.on_config is not None:
        daemon.on_config(found.config)
    daemon.last_reload_failed = False
    logger.info(
        "reloaded attachments=%d applied=%s restart=%s",
        len(names),
        ",".join(found.applied) or "-",
        ",".join(found.restart) or "-",
    )
    return Reloaded(tuple(names), found.applied, found.restart)


async def _let_in(daemon: Daemon, config: Config) -> None:
    """Put the owner's entries for peers and the policy into effect."""
    daemon.book.replace([PeerAddress(p.name, p.did, p.url) for p in config.peer])
    daemon.policy.rules = PeerRules.of(config)
    daemon.exposure.set_peers(config.peer)
    daemon.call_times.put(config.call, config.peer, config.interaction)
    limits = config.limits
    daemon.attaching.limit(limits.max_calls)
    await daemon.links.limit(limits.max_connections, limits.max_channels)
    await daemon.enforcer.recheck()
