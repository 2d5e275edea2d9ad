"""The rules by which agreed protocols are dropped, from records alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from anp.sidecar.agreement.outcomes import TESTS_KEY
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    HalfRecord,
)

DAY: Final = 86_400.0
"Seconds."

DEFAULT_AGE: Final = 90 * DAY
"Seconds without use after which a record may be dropped."


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRules:
    """Says why an agreement or a half may go, or that it stays."""

    now: float
    "Seconds since 1970."

    older_than: float = DEFAULT_AGE
    "Seconds since it was last used, failed, went stale or was revoked."

    revoked: Mapping[tuple[str, str | None], float]
    "Time at which a document was revoked, by hash and peer, or None for all peers."

    last_uses: Mapping[str, float]
    "Time of the last call through a document, by its hash."

    def agreement(self, record: AgreementRecord) -> str | None:
        """Return why an agreement may go, or None."""
        used = max(record.created, record.last_used or 0.0)
        match record.state:
            case AgreementState.REVOKED:
                marks = [
                    self.revoked.get((record.hash, peer), 0.0)
                    for peer in (None, record.peer_did)
                ]
                return self._old("revoked", max(marks) or used)
            case AgreementState.FAILED | AgreementState.TESTING:
                return self._old(f"{record.state}", _tested(record) or used)
            case AgreementState.STALE:
                return self._old("stale, last used", used)
            case AgreementState.ACTIVE:
                return self._old("last used", used)

    def half(self, record: HalfRecord, used: bool) -> str | None:
        """Return why a half may go, or None.

        Args:
            used: An agreement that stays is on this revision.
        """
        if used:
            return None
        since = record.created
        if (
            record.role is AgreementRole.PROVIDER
            and record.state is AgreementState.ACTIVE
        ):
            # It serves peers with whom nothing was agreed.
            since = max(since, self.last_uses.get(record.hash, 0.0))
        if record.state is AgreementState.REVOKED:
            since = max(since, self.revoked.get((record.hash, None), 0.0))
        return self._old("no agreement uses it", since)

    def _old(self, what: str, since: float) -> str | None:
        age = self.now - since
        if age <= self.older_than:
            return None
        return f"{what} {int(age // DAY)} d ago" if age >= DAY else what


def _tested(record: AgreementRecord) -> float | None:
    cases: Any = record.tests.get(TESTS_KEY)
    at = cases.get("at") if isinstance(cases, dict) else None
    return at if isinstance(at, float) and at >= record.created else None
