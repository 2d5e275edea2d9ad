"""What the daemon knows, as JSON for people and programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from anp.errors import CallError, ErrorKind
from anp.sidecar.case_outcomes import in_words
from anp.sidecar.owner_words import APPROVAL_PENDING
from anp.version import daemon_version
from cache.records import (
    AgreementRecord,
    HalfRecord,
    NegotiationRecord,
    Role,
    StandingRecord,
)
from cache.store import Store
from sandbox.history import Runs
from sandbox.pool import Sandbox

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = [
    "agreement_of",
    "capabilities",
    "info",
    "negotiation",
    "protocol",
    "protocols",
    "standing",
]


def info(daemon: Daemon) -> dict[str, Any]:
    """Return who this daemon is and how it is doing."""
    from anp.sidecar.daemon import EXTENSIONS

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
        "extensions": list(EXTENSIONS),
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


def protocols(store: Store, sandbox: Sandbox) -> list[dict[str, Any]]:
    """Return every agreement, newest first, then imported halves for any peer."""
    agreed = [
        {
            **_agreement(store, record),
            "quarantined": sandbox.quarantined(record.hash, peer=record.peer_did),
        }
        for record in store.all_agreements()
    ]
    unbound = [
        {**_unbound(half), "quarantined": sandbox.quarantined(half.hash)}
        for half in store.unbound_halves()
    ]
    return agreed + unbound


def protocol(store: Store, sandbox: Sandbox, prefix: str) -> dict[str, Any]:
    """Return everything known about one document.

    Raises:
        HashPrefixError: None or several hashes begin with `prefix`.
    """
    digest = store.find_hash(prefix)
    agreements = store.agreements_of(digest)
    halves = store.halves(digest)
    if not agreements and not halves:
        raise CallError(ErrorKind.USAGE, f"no protocol begins with {prefix}")
    return {
        "hash": digest,
        "agreements": [_agreement(store, record) for record in agreements],
        "halves": [asdict(half) for half in halves],
        "tests": [record.tests for record in agreements],
        "quarantined": sandbox.quarantined(digest),
        "runs": _runs(sandbox.runs(digest)),
        "trials": _runs(sandbox.runs(f"trial:{digest}")),
    }


def _runs(runs: Runs) -> dict[str, Any]:
    """Return what runs came to since the daemon started."""
    return {
        "outcomes": dict(runs.outcomes),
        "failures": list(runs.failures),
        "log": runs.log,
    }


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


def agreement_of(store: Store, record: NegotiationRecord) -> dict[str, Any] | None:
    """Return the agreement that came of a negotiation, with its tests, if it is kept.

    A later revision replaces the first one under the same hash, and says so here.
    """
    for agreement in store.agreements_of(record.hash or ""):
        if (agreement.peer_did, agreement.role) == (record.peer_did, record.role):
            return {**_agreement(store, agreement), "tests": agreement.tests}
    return None


def _unbound(half: HalfRecord) -> dict[str, Any]:
    """Return a half that serves any peer, in the fields of an agreement."""
    return {
        "hash": half.hash,
        "role": half.role.value,
        "peer": None,
        "task": None,
        "origin": half.origin,
        "state": half.state.value,
        "samples": None,
        "uses": 0,
        "created": half.created,
        "last_used": None,
        "revision": half.revision,
        "negotiation_id": None,
        "cases": "",
    }


def _agreement(store: Store, record: AgreementRecord) -> dict[str, Any]:
    half = store.half(record.hash, Role(record.role), record.revision)
    return {
        "hash": record.hash,
        "role": record.role.value,
        "peer": record.peer_did,
        "task": record.task["requirement"] if record.task else None,
        "origin": half.origin if half else None,
        "state": record.state.value,
        "samples": record.samples,
        "uses": record.uses,
        "created": record.created,
        "last_used": record.last_used,
        "revision": record.revision,
        "negotiation_id": record.negotiation_id,
        "cases": in_words(record.tests),
    }
