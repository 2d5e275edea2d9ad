"""The protocols whose code is part of the daemon, in the lists of agreed protocols."""

from __future__ import annotations

from collections.abc import Sequence

from anp.sidecar.library.state import view_of
from anp.sidecar.library.views import Agreement, ProtocolDetails, RunCounts, UsageCounts
from cache.records.records import AgreementRole, UsageRecord
from cache.store import Store
from negotiation.consensus.registry import CodeKind, ConsensusProtocol


def written_rows(
    store: Store, known: Sequence[ConsensusProtocol], *, role: str | None = None
) -> list[Agreement]:
    """Return a row for each role in which a built-in protocol carried calls.

    Args:
        known: All protocols that are known by a URI.
        role: Only this role.
    """
    found = []
    for one in known:
        if one.code is not CodeKind.WRITTEN:
            continue
        usage = store.usage(one.hash)
        calls = {
            AgreementRole.REQUESTER: usage.consensus + usage.agreement,
            AgreementRole.PROVIDER: usage.served,
        }
        found += [
            _row(one, each, uses, usage)
            for each, uses in calls.items()
            if uses and role in {None, each.value}
        ]
    return found


def written_details(
    store: Store, known: Sequence[ConsensusProtocol], prefix: str
) -> ProtocolDetails | None:
    """Return the built-in protocol whose hash begins with `prefix`, or None."""
    begins = prefix.strip().lower().removeprefix("sha256:")
    for one in known:
        if one.code is not CodeKind.WRITTEN or not one.hash.startswith(begins):
            continue
        rows = written_rows(store, [one])
        none = RunCounts(outcomes={}, failures=[], log="")
        return ProtocolDetails(
            hash=one.hash,
            agreements=rows,
            code=[],
            tests=[{} for _ in rows],
            usage=UsageCounts.of(store.usage(one.hash)),
            revocations=[],
            quarantined=None,
            runs=none,
            trials=none,
        )
    return None


def _row(
    one: ConsensusProtocol, role: AgreementRole, uses: int, usage: UsageRecord
) -> Agreement:
    """Return a built-in protocol in the fields of an agreement."""
    return view_of(
        Agreement,
        one,
        hash=one.hash,
        role=role,
        peer=None,
        need=None,
        capability=None,
        uris=[one.uri],
        origin="hand-written",
        model="",
        state="active",
        reason="",
        samples=None,
        uses=uses,
        created=usage.first_used or 0.0,
        last_used=usage.last_used,
        revision=0,
        negotiation_id=None,
        cases="",
        last_run=None,
        quarantined=None,
    )
