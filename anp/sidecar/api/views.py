"""What the daemon knows, as JSON for people and programs."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from anp.errors import UnknownError
from anp.sidecar.agreement.rulings import APPROVAL_PENDING
from anp.sidecar.api.problems import problem_of
from anp.sidecar.calls.journal import KeptCall
from anp.sidecar.config.offers import extensions
from anp.sidecar.library.views import agreement_of, protocol, protocols
from anp.version import daemon_version
from cache.records.peers import PeerState
from cache.records.records import NegotiationRecord, StandingRecord
from cache.store import Store
from negotiation.document.reader import read_requirement

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon
    from anp.sidecar.peers.pins import DidKeys

__all__ = [
    "agreement_of",
    "call_view",
    "capabilities",
    "capability",
    "info",
    "negotiation",
    "peers",
    "protocol",
    "protocols",
    "standing",
]


MAX_ABOUT = 400
"Most characters of a peer's requirement in a list of negotiations."

MAX_HEAD = 4_096
"Characters of a document among which its requirement is looked for in a list."


def call_view(call: KeptCall) -> dict[str, Any]:
    """Return one call with its state and what came of it."""
    return {
        "id": call.id,
        "state": call.state.value,
        "peer": call.request.peer,
        "task": call.request.task.requirement,
        "created": call.created,
        "ended": call.ended,
        "next_attempt": call.next_attempt,
        "negotiations": list(call.negotiations),
        "result": None if call.result is None else asdict(call.result),
        "problem": None if call.error is None else problem_of(call.error),
    }


def info(daemon: Daemon) -> dict[str, Any]:
    """Return who this daemon is and how it is doing."""
    isolation = daemon.sandbox.isolation
    return {
        "version": daemon_version(),
        "did": daemon.did,
        "canonical_did": daemon.identities.canonical,
        "url": daemon.url,
        "address": f"{daemon.url}#{daemon.did}",
        "home": str(daemon.home.path),
        "started": daemon.started,
        "peers_policy": daemon.config.peers_policy,
        "mind": daemon.minds.name,
        "extensions": list(extensions(daemon.config)),
        "tasks": [
            {"name": task.name, "requirement": task.requirement}
            for task in daemon.config.task
        ],
        "address_book": [
            {"name": peer.name, "did": peer.did, "url": peer.url}
            for peer in daemon.config.peer
        ],
        "links": daemon.links.open_links,
        "sandbox": {
            "level": isolation.level,
            "layers": [
                {"name": name, "active": active, "reason": reason}
                for name, active, reason in isolation.layers
            ],
        },
        "attachments": [
            {
                "name": name,
                "kind": attachment.kind,
                "healthy": attachment.healthy,
                "problem": attachment.problem,
                "skipped": list(attachment.skipped),
                "capabilities": len(attachment.capabilities()),
                "expose": list(spec.expose),
            }
            for name, (spec, attachment) in daemon.exposure.attachments.items()
        ],
    }


def capabilities(daemon: Daemon) -> list[dict[str, Any]]:
    """Return every attached capability, exposed or not."""
    return [
        {**asdict(capability), "exposed": exposed}
        for capability, exposed in daemon.exposure.all()
    ]


def capability(daemon: Daemon, name: str) -> dict[str, Any]:
    """Return one capability, by its full name or by its short one while it is unique.

    Raises:
        UnknownError: None or several have this name.
    """
    found = capabilities(daemon)
    for fits in (
        [one for one in found if one["name"] == name],
        [one for one in found if one["name"].partition(".")[2] == name],
    ):
        if len(fits) == 1:
            return fits[0]
    raise UnknownError(
        f"no capability is called {name}, or several; see `anpd capabilities list`"
    )


def peers(store: Store, keys: DidKeys) -> list[dict[str, Any]]:
    """Return every peer, the last seen one first, and whose keys have changed.

    A DID that was refused before it was ever seen as a peer is shown as well.
    """
    changed = keys.changed()
    found = [
        {
            **asdict(peer),
            "changed_keys": list(changed[peer.did].waiting)
            if peer.did in changed
            else [],
        }
        for peer in store.peers()
    ]
    known = {peer["did"] for peer in found}
    return found + [
        {
            "did": record.did,
            "state": PeerState.UNKNOWN.value,
            "first_seen": record.seen,
            "last_seen": record.changed,
            "names": [],
            "urls": [],
            "aliases": [],
            "changed_keys": list(record.waiting),
        }
        for record in changed.values()
        if record.did not in known
    ]


def negotiation(
    record: NegotiationRecord, *, turns: bool = False, waiting: bool = False
) -> dict[str, Any]:
    """Return one negotiation, with its transcript if asked.

    Args:
        waiting: It runs and waits for the owner at this moment.
    """
    view = {
        "id": record.id,
        "own_did": record.own_did,
        "peer": record.peer_did,
        "role": record.role.value,
        "task": record.task,
        "about": _about(record),
        "outcome": APPROVAL_PENDING if waiting else record.outcome,
        "running": record.ended is None,
        "waiting": waiting,
        "reason": record.reason,
        "hash": record.hash,
        "started": record.started,
        "ended": record.ended,
        "rounds": sum(turn.get("status") == "negotiating" for turn in record.turns),
        "model_calls": record.model_calls,
        "tests": record.tests,
        "decision": record.decision,
    }
    if not turns:
        return view
    return {
        **view,
        "turns": list(record.turns),
        "verdicts": list(record.verdicts),
        "hints": list(record.hints),
        "exchanges": list(record.exchanges),
        "pending": record.pending,
    }


def standing(word: StandingRecord) -> dict[str, Any]:
    """Return a word of the owner that waits for a negotiation, or was used by one."""
    return {
        name: value
        for name, value in asdict(word).items()
        if name not in {"half", "subject", "reply_to"}
    }


def _about(record: NegotiationRecord) -> str:
    """Return what was wanted, in the words of whoever wants it; empty if unknown."""
    if record.task is not None:
        return str(record.task["requirement"])
    for turn in record.turns:
        if turn["direction"] == "received" and turn["candidate"]:
            return _requirement(turn["candidate"][:MAX_HEAD])
    return ""


@lru_cache(maxsize=1_000)
def _requirement(head: str) -> str:
    """Return the requirement at the head of a document; lists show many again."""
    return " ".join(read_requirement(head).split())[:MAX_ABOUT]
