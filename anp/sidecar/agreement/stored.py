"""Makes the records of an agreement: document, half and agreement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    DocumentRecord,
    HalfRecord,
)
from negotiation.document.shape import document_hash
from negotiation.mind import Demand, HalfSource, Side
from negotiation.need import Capability, Need, meaning_hash, need_key, schema_hash
from negotiation.transcript import empty_notes

NOTES_KEY: Final = "notes"
"Place of the doubts about an agreement in its `tests`."


@dataclass(frozen=True, slots=True)
class DocumentCandidate:
    """A protocol of one exchange, with our half, tried and not stored yet."""

    uri: str | None
    "None for the document that the peer publishes of a capability."

    text: str
    "Its document."

    half: HalfSource
    "Our half."

    capability: str | None = None
    "Full name of the peer's capability that it calls, where the peer published that."

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that a kept key may be bound to, the hash first."""
        digest = document_hash(self.text)
        return (digest,) if self.uri is None else (digest, self.uri)


AgreedRecords = tuple[DocumentRecord, HalfRecord, AgreementRecord]
"The records of one agreement, in the order in which the store takes them."


def negotiated(
    text: str,
    half: HalfSource,
    side: Side,
    *,
    own_did: str,
    peer_did: str,
    need: Mapping[str, Any] | None,
    negotiation_id: str | None,
    begins: AgreementState,
    created: float,
    capability: str | None = None,
    empty: Sequence[str] = (),
) -> AgreedRecords:
    """Return the records of a negotiation or a repair that ended in agreement.

    Args:
        side: Ours; a provider's half may call what it names of it.
        need: As the negotiation's record has it.
        created: Now, in seconds since the epoch.
        empty: Places of the result that get no value, where the peer said so.
        capability: Full name of the peer's capability that it calls, or several with
            commas, where the peer said so.
    """
    calls: list[Capability] = []
    if isinstance(side, Demand):
        role, key = AgreementRole.REQUESTER, need_key(side.need)
    else:
        role, key = AgreementRole.PROVIDER, None
        calls = [one for one in side.capabilities if one.name in half.capabilities]
    return _records(
        text,
        half,
        calls,
        {
            "own_did": own_did,
            "peer_did": peer_did,
            "role": role.value,
            "need_key": key,
            "need": None if need is None else dict(need),
            "samples": half.samples,
            "tests": {
                "acceptance": "passed",
                **({} if capability is None else {"capability": capability}),
                **_noted(half, half.empty or empty),
            },
            "negotiation_id": negotiation_id,
            "created": created,
            "state": begins.value,
        },
    )


def agreement_by_uri(
    selected: DocumentCandidate,
    need: Need,
    *,
    own_did: str,
    peer_did: str,
    created: float,
) -> AgreedRecords:
    """Return the records by which the next call finds our half.

    Args:
        peer_did: The peer in the canonical form.
        created: Now, in seconds since the epoch.
    """
    return _records(
        selected.text,
        selected.half,
        (),
        {
            "own_did": own_did,
            "peer_did": peer_did,
            "role": AgreementRole.REQUESTER.value,
            "need_key": need_key(need),
            "need": {
                "requirement": need.requirement,
                "input_schema": need.input_schema,
                "output_schema": need.output_schema,
            },
            "samples": selected.half.samples,
            "tests": {
                "acceptance": "passed",
                **({} if selected.uri is None else {"consensus": selected.uri}),
                **(
                    {}
                    if selected.capability is None
                    else {"capability": selected.capability}
                ),
                **_noted(selected.half, selected.half.empty),
            },
            "negotiation_id": None,
            "created": created,
        },
    )


def _noted(half: HalfSource, empty: Sequence[str]) -> dict[str, Any]:
    notes = [*half.notes, *empty_notes(empty)]
    return {NOTES_KEY: notes} if notes else {}


def notes_of(agreement: AgreementRecord | None) -> tuple[str, ...]:
    """Return the doubts that the caller is told with each call, one sentence each."""
    notes = None if agreement is None else agreement.tests.get(NOTES_KEY)
    return tuple(map(str, notes)) if isinstance(notes, list) else ()


def agreement_with(
    peer_did: str, agreement: AgreementRecord, *, created: float
) -> AgreementRecord:
    """Return an agreement that was made with another peer, for this one."""
    return replace(
        agreement,
        peer_did=peer_did,
        negotiation_id=None,
        created=created,
        last_used=None,
        uses=0,
    )


def _records(
    text: str, half: HalfSource, calls: Iterable[Capability], agreed: Mapping[str, Any]
) -> AgreedRecords:
    document = DocumentRecord.of(text)
    # The store numbers the revision.
    common = {"hash": document.hash, "revision": 0}
    return (
        document,
        HalfRecord.from_json(
            {
                **common,
                "role": agreed["role"],
                "source": half.text,
                "origin": half.origin,
                **hashes_of(calls),
                "created": agreed["created"],
                "model": half.model,
                "negotiation_id": agreed["negotiation_id"],
            }
        ),
        AgreementRecord.from_json({**common, **agreed}),
    )


def hashes_of(capabilities: Iterable[Capability]) -> dict[str, dict[str, str]]:
    """Return the fields of a half's record about the capabilities that it may call."""
    found = list(capabilities)
    return {
        "capabilities": {one.name: schema_hash(one) for one in found},
        "meanings": {one.name: meaning_hash(one) for one in found},
    }


def names_of(agreement: AgreementRecord) -> tuple[str, ...]:
    """Return the names that a kept key of an agreement may be bound to, best first.

    One that came about by a URI was opened under that, and goes on by its hash.
    """
    uri = agreement.tests.get("consensus")
    return (agreement.hash, uri) if isinstance(uri, str) else (agreement.hash,)
