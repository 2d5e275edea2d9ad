"""What the daemon knows, as JSON for people and programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from anp.errors import CallError, ErrorKind
from anp.version import daemon_version
from cache.records import AgreementRecord, NegotiationRecord, Role
from cache.store import Store
from sandbox.history import Runs
from sandbox.pool import Sandbox

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["capabilities", "info", "negotiation", "protocol", "protocols"]


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
        "mind": "rules",
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
    """Return every agreement, newest first."""
    return [
        {
            **_agreement(store, record),
            "quarantined": sandbox.quarantined(record.hash, peer=record.peer_did),
        }
        for record in store.all_agreements()
    ]


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


def negotiation(record: NegotiationRecord, *, turns: bool = False) -> dict[str, Any]:
    """Return one negotiation, with its transcript if asked."""
    view = {
        "id": record.id,
        "peer": record.peer_did,
        "role": record.role.value,
        "task": record.task,
        "outcome": record.outcome,
        "reason": record.reason,
        "hash": record.hash,
        "started": record.started,
        "ended": record.ended,
        "rounds": sum(turn.get("status") == "negotiating" for turn in record.turns),
    }
    return {**view, "turns": list(record.turns)} if turns else view


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
    }
