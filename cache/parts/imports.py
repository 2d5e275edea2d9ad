"""The part of the store for halves that come from elsewhere, in a bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cache.errors import RecordError
from cache.parts.agreements import AgreementStore
from cache.parts.shelf import key_of
from cache.records.records import (
    AgreementRecord,
    DocumentRecord,
    HalfRecord,
    Role,
    State,
)
from cache.rows import Rows

__all__ = ["ImportPart", "ImportStore", "Imported"]


@dataclass(frozen=True, slots=True)
class ImportPart:
    """One half to take in, and who is to be served with it."""

    half: HalfRecord
    "The half; revision 0 gives it the next number."

    samples: Literal["full", "partial", "none"]
    "How much of the schemas could be sampled; see `AgreementRecord`."

    tests: Mapping[str, Any]
    "What was found about it here."

    peer_did: str | None = None
    "Only for this peer, in its canonical form; None is for all."

    agreement: AgreementRecord | None = None
    "Made if there is none of its key yet."


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one half."""

    half: HalfRecord
    "As it is stored, with its revision."

    agreements: tuple[AgreementRecord, ...]
    "Those that use it now."

    replaced: tuple[int, ...]
    "Revisions that nobody is served with any more."


class ImportStore(AgreementStore):
    """Takes halves in whole, or not at all; see `AgreementStore`."""

    def save_import(
        self, document: DocumentRecord, parts: Sequence[ImportPart]
    ) -> tuple[Imported, ...]:
        """Store the halves of one document in one transaction, and put them to use.

        The active agreements on the document move to the imported revision: those of
        `peer_did`, or all. Without `peer_did` the half takes the place of every other:
        older provider revisions go stale, for `provider_half` serves a peer that has
        no revision of its own with the first active one, and the owner said which one
        that is to be. With `peer_did` other peers keep what they have.

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
                # The newest is the one a call takes, and the owner chose just now.
                created=part.half.created,
                state=State.ACTIVE,
            )
            for known in self._served(cache, part)
        )
        if half.role is Role.REQUESTER and not agreements:
            raise RecordError("no agreement would use the requester half")
        for agreement in agreements:
            self._shelf.put(cache, agreement)
        replaced: list[int] = []
        if half.role is Role.PROVIDER and part.peer_did is None:
            for other in halves:
                if (
                    other.role is half.role
                    and other.state is State.ACTIVE
                    and other.revision != half.revision
                ):
                    self._shelf.put(cache, replace(other, state=State.STALE))
                    replaced.append(other.revision)
        return Imported(half, agreements, tuple(replaced))

    def _served(self, cache: Rows, part: ImportPart) -> list[AgreementRecord]:
        """Return the agreements that are to use the half, the new one among them."""
        known = {
            key_of(agreement): agreement
            for agreement in self._agreements_of(cache, part.half.hash)
            if agreement.role is part.half.role
            and part.peer_did in {None, agreement.peer_did}
        }
        served = {
            key: agreement
            for key, agreement in known.items()
            if agreement.state is State.ACTIVE
        }
        if part.agreement is not None:
            key = key_of(part.agreement)
            named = known.get(key, part.agreement)
            if named.state is State.REVOKED:
                raise RecordError("the owner revoked the agreement with this peer")
            # One that went stale is what the owner wants back.
            served[key] = named
        return list(served.values())
