"""The gauges of a running daemon: figures that are read when somebody asks."""

from __future__ import annotations

from collections.abc import Callable

from anp.channel.links import Links
from anp.sidecar.calls.places import NegotiationPlaces
from anp.sidecar.offer.exposure import Exposure
from anp.sidecar.telemetry.log_limit import LOG_LIMIT
from anp.sidecar.telemetry.observer import Observer
from anp.version import daemon_version


def watch_daemon(
    observer: Observer,
    *,
    links: Links,
    negotiations: NegotiationPlaces,
    exposure: Exposure,
    started: float,
    isolation: Callable[[], str],
    reload_failed: Callable[[], bool],
    ready: Callable[[], bool],
) -> None:
    """Register the functions that read the gauges from the parts of a daemon.

    Args:
        started: The start of the daemon, in seconds since 1970.
        isolation: Returns the level at which generated code is locked in.
        reload_failed: Tells whether the last reload of the configuration failed.
        ready: Tells what the readiness was when it was looked at last.
    """
    metrics = observer.metrics

    def attachments() -> dict[tuple[str, ...], float]:
        known = [one.healthy for _, one in exposure.attachments.values()]
        return {("healthy",): sum(known), ("sick",): len(known) - sum(known)}

    def places() -> dict[tuple[str, ...], float]:
        now, running = links.admission.occupancy, negotiations.running
        return {
            ("handshakes", "taken"): now.at_door,
            ("handshakes", "all"): now.max_at_door,
            ("connections", "taken"): now.links,
            ("connections", "all"): now.max_links,
            ("unlisted_connections", "taken"): now.unlisted,
            ("unlisted_connections", "all"): now.max_unlisted,
            ("negotiations", "taken"): len(running),
            ("negotiations", "all"): running.limits.total,
        }

    def lost() -> dict[tuple[str, ...], float]:
        now, running = links.admission.occupancy, negotiations.running
        waiting = negotiations.waiting
        return {
            ("connections", "refused"): now.refused,
            ("connections", "displaced"): now.displaced,
            ("negotiations", "refused"): waiting.refused,
            ("negotiations", "displaced"): running.displaced + waiting.displaced,
        }

    metrics.watch("anpd_connections", lambda: {(): links.open_links})
    metrics.watch("anpd_channels", lambda: {(): links.open_channels})
    metrics.watch("anpd_places", places)
    metrics.watch("anpd_places_lost", lost)
    metrics.watch("anpd_attachments", attachments)
    metrics.watch("anpd_calls_in_flight", lambda: {(): observer.flights.count})
    metrics.watch("anpd_log_lines_suppressed_total", lambda: {(): LOG_LIMIT.suppressed})
    metrics.watch("anpd_ready", lambda: {(): float(ready())})
    metrics.watch("anpd_start_time_seconds", lambda: {(): started})
    metrics.watch(
        "anpd_config_last_reload_successful", lambda: {(): float(not reload_failed())}
    )
    metrics.watch("anpd_info", lambda: {(daemon_version(), isolation()): 1.0})
