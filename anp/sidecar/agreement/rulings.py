"""Derives from records what the owner's word means for a negotiation. Pure.

A word is a `StandingRecord`: a verdict, an edited text or a hint, for one peer and one
document or subject, used once, for seven days (DESIGN.md, Negotiation, "The owner").
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from anp.errors import CallError, ErrorKind
from cache.records.negotiations import NegotiationRecord, StandingRecord
from cache.records.records import AgreementRole
from negotiation.consensus.selection import fits_document
from negotiation.document.reader import read_document, read_requirement
from negotiation.errors import APPROVAL_PENDING, DocumentError
from negotiation.messages import candidate_problem
from negotiation.mind import Accept, Counter, Demand, HalfSource, Reject, Verdict

PEER_APPROVAL_PENDING = "peer-approval-pending"
"Outcome when the other side's owner is asked; ours has nothing to do."

LIFETIME = 7 * 86_400.0
"Seconds for which a word counts."

RETRY_AFTER = 60.0
"Seconds after which asking again makes sense when an owner has to approve."

MAX_NOTE = 4_000
"Most characters of a note or hint."

EDIT_SUMMARY = "The owner of this agent edited the document; the whole text is new."
"Modification summary of an edited candidate without a note (ANP-29)."

APPROVED_SUMMARY = "The owner of this agent approved this text; the whole text is new."
"Modification summary of a candidate of ours that waited for the owner (ANP-29)."

Said = Literal["accept", "reject", "edit"]
"The answers that an owner can give about a negotiation."


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer of the owner about a negotiation, checked."""

    said: Said
    "Accept, reject, or send the edited text."

    document: str | None = None
    "The edited text; None unless `said` is `edit`."

    note: str = ""
    "The owner's words; a rejection or an edited text passes them on to the peer."


@dataclass(frozen=True, slots=True)
class RulingTarget:
    """The document that an owner's accept or reject is about."""

    document: str
    "The text."

    ours: bool = False
    "True when it is a text of ours that was held back for the owner."

    reply_to: str | None = None
    "Hash of the peer's candidate it was to answer, if it is ours."

    half: HalfSource | None = None
    "Our half for it, if it was made before the owner was asked."


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text as 64 hex characters, whatever the text is."""
    return hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()


def is_pending(reason: str) -> bool:
    """Tell whether a rejection says that an owner has to approve first."""
    return reason.partition("\n")[0].strip() == APPROVAL_PENDING


def pending_reason() -> str:
    """Return the rejection for a peer whose document waits for our owner."""
    return (
        f"{APPROVAL_PENDING}\nThe owner of this agent has to approve this document "
        "first; propose the same text again later."
    )


def peer_pending(words: str) -> CallError:
    """Return the error of a call that the peer's owner has to approve first.

    Args:
        words: The peer's own, without the line that says so.
    """
    return CallError(
        ErrorKind.APPROVAL_PENDING,
        f"the peer's owner has to approve this first; call again later: "
        f"{' '.join(words.split())[:300]}",
        retry_after=RETRY_AFTER,
    )


def subject_of_candidate(candidate: str) -> str:
    """Return what a peer's first candidate is about, as 64 hex characters.

    The provider never learns the need, so it is the requirement in the text, or the
    text itself when it names none.
    """
    requirement = " ".join(read_requirement(candidate).split())
    if requirement:
        return subject_of_words(requirement)
    return digest_of(f"candidate:{candidate}")


def subject_of_words(requirement: str) -> str:
    """Return what a requirement in words is about, as 64 hex characters."""
    return digest_of(f"requirement:{' '.join(requirement.split())}")


def subject_of_capability(way: str, name: str, need: str = "") -> str:
    """Return what a question about a capability for a peer is about, in hex.

    Args:
        way: The way by which the peer calls it, a `WayIn`.
        need: Hash of the need, if the question is about this need alone.
    """
    return digest_of(f"capability:{way}:{name}{need and f':{need}'}")


def check_edit(text: str) -> None:
    """Check that an edited candidate can be sent and read.

    Raises:
        CallError: `usage`, with what is wrong.
    """
    try:
        problem = candidate_problem(text)
        if problem is None:
            read_document(text)
    except DocumentError as exc:
        problem = str(exc)
    if problem is not None:
        raise CallError(
            ErrorKind.USAGE, f"the edited protocol text cannot be used: {problem}"
        )


def target_of(record: NegotiationRecord) -> RulingTarget | None:
    """Return what an owner can accept or reject in a negotiation, or None."""
    if is_capability_question(record):
        return None
    if record.pending is not None:
        return RulingTarget(
            str(record.pending["document"]),
            ours=record.pending.get("ours") is True,
            reply_to=record.pending.get("reply_to"),
            half=half_from(record.pending.get("half")),
        )
    for turn in reversed(record.turns):
        if turn.get("direction") == "received" and turn.get("candidate"):
            return RulingTarget(str(turn["candidate"]))
    return None


def is_capability_question(record: NegotiationRecord) -> bool:
    """Tell whether a record asks the owner about a capability, not about a text."""
    return record.pending is not None and "capability" in record.pending


def standing_of(
    record: NegotiationRecord, decision: Decision, *, word_id: str, now: float
) -> StandingRecord:
    """Return the word to keep after the owner decided about an ended negotiation.

    Raises:
        CallError: `usage`, there is nothing to decide.
    """
    if record.agreed:
        raise CallError(
            ErrorKind.USAGE,
            f"negotiation {record.id} ended in an agreement; `anpd protocols revoke "
            f"{(record.hash or '')[:12]}` takes it back",
        )
    made: dict[str, Any] = {
        "id": word_id,
        "peer_did": record.peer_did,
        "role": record.role,
        "subject": record.subject,
        "created": now,
        "expires": now + LIFETIME,
        "note": decision.note,
        "negotiation_id": record.id,
    }
    if decision.document is not None:
        if is_capability_question(record):
            raise CallError(
                ErrorKind.USAGE,
                f"{record.id} is a question about a capability, which has no protocol "
                "text; accept or reject it",
            )
        if record.subject is None:
            raise CallError(
                ErrorKind.USAGE,
                f"the peer of negotiation {record.id} made no proposal, so there is "
                "nothing that an edited protocol text could answer",
            )
        return StandingRecord(
            **made,
            verdict="edit",
            hash=digest_of(decision.document),
            document=decision.document,
        )
    if record.pending is not None and is_capability_question(record):
        # Of no document: the word is about the capability, for this peer and way.
        made["capability"] = record.pending["capability"]
        return StandingRecord(**made, verdict=decision.said)
    target = target_of(record)
    if target is None:
        raise CallError(
            ErrorKind.USAGE,
            f"negotiation {record.id} has no proposal of the peer to {decision.said}; "
            "`decide … edit --file FILE` sends a text of yours next time",
        )
    about = digest_of(target.document)
    if decision.said == "reject":
        # Our own counter is refused by refusing what it answers.
        refused = target.reply_to if target.ours and target.reply_to else about
        return StandingRecord(**made, verdict="reject", hash=refused)
    half = target.half
    return StandingRecord(
        **made,
        verdict="accept",
        hash=about,
        document=target.document if target.ours else None,
        reply_to=target.reply_to if target.ours else None,
        module=digest_of(half.text) if half is not None else None,
        half=half_json(half),
    )


def answer_for(
    words: Iterable[StandingRecord],
    candidate: str,
    *,
    role: AgreementRole,
    subject: str | None,
    sent: Collection[str],
) -> StandingRecord | None:
    """Return the newest word that answers the peer's candidate, or None.

    Args:
        words: The waiting words of the owner, newest first.
        sent: Hashes of the candidates that we sent in this negotiation.
    """
    digest = digest_of(candidate)
    for word in words:
        if word.role is not role:
            continue
        is_new = word.hash not in sent
        match word.verdict:
            case "reject" if word.hash == digest:
                return word
            case "accept" if word.hash == digest:
                return word
            case "accept" if word.reply_to == digest and is_new:
                return word
            case "edit" if word.hash == digest:
                return word
            case "edit" if role is AgreementRole.PROVIDER and is_new:
                if word.subject is not None and word.subject == subject:
                    return word
    return None


def verdict_of(word: StandingRecord, candidate: str) -> Verdict:
    """Return what a word from `answer_for` says about the candidate."""
    if word.verdict == "reject":
        return Reject(word.note or "the owner of this agent does not want this")
    if word.document is None or word.hash == digest_of(candidate):
        return Accept()
    if word.verdict == "accept":
        # The note of an approval is the owner's own; only those of a rejection and of
        # an edited text are for the peer.
        return Counter(word.document, APPROVED_SUMMARY)
    return Counter(word.document, word.note or EDIT_SUMMARY)


def proposal_for(
    words: Iterable[StandingRecord], demand: Demand, *, subject: str
) -> StandingRecord | None:
    """Return the newest word whose text is to be our first proposal, or None.

    An edited text is the owner's and is sent as it is; one that is only offered again
    has to fit the data of this call.
    """
    for word in words:
        document = word.document
        if (
            word.role is not AgreementRole.REQUESTER
            or word.subject != subject
            or document is None
            or word.reply_to is not None
        ):
            continue
        if word.verdict == "edit" or fits_document(document, demand):
            return word
    return None


def hints_for(
    words: Iterable[StandingRecord], *, role: AgreementRole, subject: str | None
) -> list[StandingRecord]:
    """Return the hints for a subject, oldest first."""
    found = [
        word
        for word in words
        if word.verdict == "hint"
        and word.role is role
        and word.subject is not None
        and word.subject == subject
    ]
    return found[::-1]


def said(
    words: Iterable[StandingRecord],
    document: str,
    half: HalfSource | None,
    *,
    role: AgreementRole,
) -> StandingRecord | None:
    """Return the newest word that approves or refuses `document` with `half`."""
    digest = digest_of(document)
    module = digest_of(half.text) if half is not None else None
    for word in words:
        if word.role is not role or word.hash != digest:
            continue
        if word.verdict in {"reject", "edit"}:
            return word
        if word.verdict == "accept" and word.module in {None, module}:
            return word
    return None


def waits_for_owner(
    record: NegotiationRecord, newer: Collection[tuple[str, str, str | None]]
) -> bool:
    """Tell whether an ended negotiation still waits for the owner's word.

    Args:
        newer: Peer, role and subject of the negotiations that began later: the newest
            one about a subject is the one to decide.
    """
    return (
        record.outcome == APPROVAL_PENDING
        and record.decision is None
        and (record.peer_did, record.role.value, record.subject) not in newer
    )


def half_json(half: HalfSource | None) -> dict[str, Any] | None:
    """Return a half as a record keeps it."""
    if half is None:
        return None
    return {
        "text": half.text,
        "origin": half.origin,
        "capabilities": list(half.capabilities),
        "model": half.model,
        "notes": list(half.notes),
        "empty": list(half.empty),
    }


def half_from(value: dict[str, Any] | None) -> HalfSource | None:
    """Return the half that `half_json` made."""
    if value is None:
        return None
    return HalfSource(
        str(value["text"]),
        str(value["origin"]),
        tuple(value["capabilities"]),
        # Words that an earlier version kept have neither model nor notes.
        str(value.get("model", "")),
        notes=tuple(value.get("notes", ())),
        empty=tuple(value.get("empty", ())),
    )
