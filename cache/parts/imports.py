"""The part of the store for halves that are imported from a bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cache.errors import RecordError
from cache.parts.agreements import AgreementStore
from cache.parts.shelf import key_of
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    DocumentRecord,
    HalfRecord,
)
from cache.rows import Rows

__all__ = ["ImportPart", "ImportStore", "Imported"]


@dataclass(frozen=True, slots=True)
class ImportPart:
    """One half to import, and the peer that it will serve."""

    half: HalfRecord
    "The half; revision 0 lets the store give it the next number."

    samples: Literal["full", "partial", "none"]
    "Share of the schemas for which messages could be made; see `AgreementRecord`."

    tests: Mapping[str, Any]
    "Findings of the half's tests on this side."

    peer_did: str | None = None
    "Canonical DID of the only peer it serves; None serves all."

    agreement: AgreementRecord | None = None
    "Stored unless an agreement with its key exists."


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of importing one half."""

    half: HalfRecord
    "The half as it is stored, with its revision."

    agreements: tuple[AgreementRecord, ...]
    "The agreements that use it now."

    replaced: tuple[int, ...]
    "Revisions that serve nobody any more."


class ImportStore(AgreementStore):
    """Imports the halves of a document, all or none of them; see `AgreementStore`."""

    def save_import(
        self, document: DocumentRecord, parts: Sequence[ImportPart]
    ) -> tuple[Imported, ...]:
        """Store the halves of one document in one transaction, and put them to use.

        The active agreements on the document move to the imported revision: those of
        `peer_did`, or all. Without `peer_did` the half replaces all others: older
        provider revisions go stale, because `provider_half` serves a peer that has no
        revision of its own with the first active one, and the owner chose this one.
        With `peer_did` other peers keep the revisions they have.

        Raises:
            RecordError: the parts do not belong to the document, the owner revoked the
                document or the agreement, or a requester's half would serve nobody.
        """
        if any(part.half.hash != document.hash for part in parts):
            raise RecordError("a half is of another document")
        for part in parts:
            made = part.agreement
            if made is not None and (
                (made.hash, made.role) != (document.hash, part.half.role)
                or made.peer_did != part.peer_did
            ):
                raise RecordError("half and agreement do not belong together")

        def work(cache: Rows) -> tuple[Imported, ...]:
            halves = self._halves(cache, document.hash)
            if self._is_revoked(cache, document.hash, None, halves):
                raise RecordError(
                    f"document {document.hash[:12]} was revoked by the owner"
                )
            for part in parts:
                if self._is_revoked(cache, document.hash, part.peer_did, ()):
                    raise RecordError("the owner revoked it for this peer")
            self._shelf.put(cache, document)
            return tuple(self._take_in(cache, part, halves) for part in parts)

        return self._database.write(work)

    def _take_in(
        self, cache: Rows, part: ImportPart, halves: list[HalfRecord]
    ) -> Imported:
        half = self._number(cache, part.half, halves)
        self._shelf.put(cache, half)
        agreements = tuple(
            replace(
                known,
                revision=half.revision,
                samples=part.samples,
                tests=dict(part.tests),
                # A call takes the newest agreement, and the owner chose this half now.
                created=part.half.created,
                state=AgreementState.ACTIVE,
            )
            for known in self._served(cache, part)
        )
        if half.role is AgreementRole.REQUESTER and not agreements:
            raise RecordError("no agreement would use the requester half")
        for agreement in agreements:
            self._shelf.put(cache, agreement)
        replaced: list[int] = []
        if half.role is AgreementRole.PROVIDER and part.peer_did is None:
            for other in halves:
                if (
                    other.role is half.role
                    and other.state is AgreementState.ACTIVE
                    and other.revision != half.revision
                ):
                    self._shelf.put(cache, replace(other, state=AgreementState.STALE))
                    replaced.append(other.revision)
        return Imported(half, agreements, tuple(replaced))

    def _served(self, cache: Rows, part: ImportPart) -> list[AgreementRecord]:
        """Return the agreements that will use the half, the new one among them."""
        known = {
            key_of(agreement): agreement
            for agreement in self._agreements_of(cache, part.half.hash)
            if agreement.role is part.half.role
            and part.peer_did in {None, agreement.peer_did}
        }
        served = {
            key: agreement
            for key, agreement in known.items()
            if agreement.state is AgreementState.ACTIVE
        }
        if part.agreement is not None:
            key = key_of(part.agreement)
            named = known.get(key, part.agreement)
            if named.state is AgreementState.REVOKED:
                raise RecordError("the owner revoked the agreement with this peer")
            # The import brings a stale agreement back into use.
            served[key] = named
        return list(served.values())
