"""The settings of sessions and tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from anp.sidecar.config.setting_types import Bytes, Count, ProtocolUri, Seconds, Section

TASK_PROTOCOLS: Final = (
    "urn:anpd:gbz-185.6:1",
    "urn:anpd:gbz-185.6:2",
    "urn:anpd:a2a:1.0",
    "urn:anpd:a2a:0.3",
    "urn:anpd:a2a-intent:1",
    "urn:anpd:message-envelope:1.1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionConfig(Section):
    """Sessions and tasks that last."""

    keep_days: Count = 30
    """Days for which a session without open tasks, and a subscription that ended, is
    kept after its last change."""

    keep_content_days: Count = 30
    "The same for what was said and returned in it; 0 drops that within a day."

    max_size: Bytes = 1024 * 1024 * 1024
    "Bytes of all sessions; then the oldest go, and with open tasks alone no new ones."

    max_file: Bytes = 1024 * 1024 * 1024
    "Most bytes of one file that is sent or taken with a task."

    max_files: Bytes = 16 * 1024 * 1024 * 1024
    "Bytes of all files kept; a listed peer fills at most a quarter, others a 16th."

    max_wait: Seconds = 86_400.0
    "Seconds for which a task may wait for its peer's first word, or for yours."

    max_time: Seconds = 86_400.0
    "Seconds for which a task of a listed peer may be at work, its questions included."

    max_time_unlisted: Seconds = 3_600.0
    "The same for other peers, which have a quarter of an attachment's places together."

    max_tasks: Count = 1_000
    "Tasks of one peer on your list that may be open at a time."

    max_tasks_unlisted: Count = 50
    "The same for all other peers at one address together, and for their sessions."

    max_registered: Count = 100
    "Unfinished sessions of one listed peer whose news you bring to its address."

    max_subscriptions: Count = 1_000
    "Subscriptions of your own that may be open at a time."

    max_subscriptions_peer: Count = 20
    "The same for those of one listed peer; others may give you none."

    min_interval_peer: Seconds = 60.0
    "Least seconds between two due times of a peer's subscription."

    events_for_peers: tuple[str, ...] = ()
    "Names of your events (`anpd subscriptions emit`) that listed peers may watch."

    order: tuple[ProtocolUri, ...] = TASK_PROTOCOLS
    "URIs of the protocols for tasks that are offered to peers, best first."
