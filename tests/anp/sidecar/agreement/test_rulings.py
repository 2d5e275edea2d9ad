"""The owner's word has its effect on a negotiation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.rulings import (
    LIFETIME,
    Decision,
    answer_for,
    check_edit,
    digest_of,
    half_json,
    hints_for,
    is_pending,
    pending_reason,
    proposal_for,
    said,
    standing_of,
    subject_of_candidate,
    target_of,
    verdict_of,
    waits_for_owner,
)
from cache.records.negotiations import NegotiationRecord, StandingRecord
from cache.records.records import AgreementRole
from negotiation.errors import APPROVAL_PENDING
from negotiation.mind import Accept, Counter, Demand, HalfSource, Reject
from negotiation.need import Need, need_key
from negotiation.rules.rules import propose
from tests.cache.samples import NEGOTIATION, PEER
from tests.clauses import clause

NEED = Demand(Need("add"), {"a": 1})
MINE = propose(NEED)
THEIRS = propose(Demand(Need("add"), {"a": "x"}))
SUBJECT = need_key(NEED.need)
HALF = HalfSource("def handle_request(data): ...\n", "rules", ("shop.add",))


def turn(direction: str, candidate: str) -> dict[str, object]:
    return {"direction": direction, "candidate": candidate, "status": "negotiating"}


FAILED: NegotiationRecord = replace(
    NEGOTIATION,
    role=AgreementRole.PROVIDER,
    outcome="rejected",
    hash=None,
    turns=(turn("received", THEIRS), turn("sent", MINE)),
    subject=subject_of_candidate(THEIRS),
)


def word(record: NegotiationRecord, decision: Decision) -> StandingRecord:
    return standing_of(record, decision, word_id="w1", now=100.0)


@clause("ANP-34")
def test_an_accept_is_about_the_last_candidate_of_the_peer_for_seven_days() -> None:
    made = word(FAILED, Decision("accept", note="fine"))
    assert (made.verdict, made.hash, made.note) == ("accept", digest_of(THEIRS), "fine")
    assert made.expires == 100.0 + LIFETIME
    assert made.module is None, "any half that passes its checks"
    found = answer_for(
        [made], THEIRS, role=AgreementRole.PROVIDER, subject=FAILED.subject, sent=()
    )
    assert found is made
    assert verdict_of(made, THEIRS) == Accept()
    for other in (
        {"role": AgreementRole.REQUESTER, "candidate": THEIRS},
        {"role": AgreementRole.PROVIDER, "candidate": MINE},
    ):
        assert not answer_for(
            [made],
            str(other["candidate"]),
            role=AgreementRole(str(other["role"])),
            subject=FAILED.subject,
            sent=(),
        )


def test_an_approval_binds_the_half_the_owner_was_shown() -> None:
    pending = {"document": THEIRS, "ours": False, "half": half_json(HALF)}
    made = word(replace(FAILED, pending=pending), Decision("accept"))
    assert said([made], THEIRS, HALF, role=AgreementRole.PROVIDER) is made
    other = replace(HALF, text="def handle_request(data): return b''\n")
    assert said([made], THEIRS, other, role=AgreementRole.PROVIDER) is None


def test_an_approved_counter_of_ours_answers_the_same_candidate_once() -> None:
    pending = {
        "document": MINE,
        "ours": True,
        "reply_to": digest_of(THEIRS),
        "half": None,
    }
    record = replace(FAILED, pending=pending)
    made = word(record, Decision("accept"))
    options = {"role": AgreementRole.PROVIDER, "subject": FAILED.subject}
    assert answer_for([made], THEIRS, sent=(), **options) is made  # type: ignore[arg-type]
    assert isinstance(verdict_of(made, THEIRS), Counter)
    assert verdict_of(made, MINE) == Accept()
    sent = {digest_of(MINE)}
    assert answer_for([made], THEIRS, sent=sent, **options) is None  # type: ignore[arg-type]
    refused = word(record, Decision("reject", note="no"))
    assert refused.hash == digest_of(THEIRS)
    assert verdict_of(refused, THEIRS) == Reject("no")


@clause("ANP-34")
def test_the_note_of_an_approval_stays_with_the_owner() -> None:
    pending = {"document": MINE, "ours": True, "reply_to": digest_of(THEIRS)}
    record = replace(FAILED, pending={**pending, "half": None})
    made = word(record, Decision("accept", note="Aunt Odile vouched for them"))
    verdict = verdict_of(made, THEIRS)
    assert isinstance(verdict, Counter)
    assert "Odile" not in verdict.summary
    edited = word(FAILED, Decision("edit", MINE, note="in euros, please"))
    assert verdict_of(edited, THEIRS) == Counter(MINE, "in euros, please")


def test_an_edited_text_answers_the_requirement_and_not_only_the_bytes() -> None:
    made = word(FAILED, Decision("edit", MINE))
    same_need = propose(Demand(Need("add"), {"a": 1.5}))
    found = answer_for(
        [made],
        same_need,
        role=AgreementRole.PROVIDER,
        subject=subject_of_candidate(same_need),
        sent=(),
    )
    assert found is made
    other = propose(Demand(Need("subtract"), {"a": 1.5}))
    assert not answer_for(
        [made],
        other,
        role=AgreementRole.PROVIDER,
        subject=subject_of_candidate(other),
        sent=(),
    )


def test_a_requesters_edit_is_proposed_and_an_offer_only_if_it_fits_the_data() -> None:
    record = replace(FAILED, role=AgreementRole.REQUESTER, subject=SUBJECT)
    edit = word(record, Decision("edit", THEIRS))
    assert proposal_for([edit], NEED, subject=SUBJECT) is edit
    offer = replace(edit, verdict="offer")
    assert proposal_for([offer], NEED, subject=SUBJECT) is None
    fitting = replace(offer, document=MINE, hash=digest_of(MINE))
    assert proposal_for([fitting], NEED, subject=SUBJECT) is fitting
    assert proposal_for([fitting], NEED, subject="0" * 64) is None


def test_the_newest_word_counts() -> None:
    accept = word(FAILED, Decision("accept"))
    reject = word(FAILED, Decision("reject"))
    options = {"role": AgreementRole.PROVIDER, "subject": FAILED.subject, "sent": ()}
    assert answer_for([reject, accept], THEIRS, **options) is reject  # type: ignore[arg-type]


def test_hints_come_oldest_first_and_only_for_their_subject() -> None:
    hint = replace(word(FAILED, Decision("reject")), verdict="hint", hash=None)
    one, two = replace(hint, note="one"), replace(hint, note="two")
    assert hints_for(
        [two, one], role=AgreementRole.PROVIDER, subject=FAILED.subject
    ) == [
        one,
        two,
    ]
    assert hints_for([one], role=AgreementRole.PROVIDER, subject="0" * 64) == []
    assert hints_for([one], role=AgreementRole.PROVIDER, subject=None) == []


@pytest.mark.parametrize(
    ("record", "decision", "what"),
    [
        (NEGOTIATION, Decision("accept"), "ended in an agreement"),
        (replace(FAILED, turns=()), Decision("accept"), "no proposal of the peer"),
        (
            replace(FAILED, turns=(), subject=None),
            Decision("edit", MINE),
            "made no proposal",
        ),
    ],
)
def test_what_cannot_be_decided_is_a_usage_error(
    record: NegotiationRecord, decision: Decision, what: str
) -> None:
    with pytest.raises(CallError, match=what) as failure:
        word(record, decision)
    assert failure.value.kind is ErrorKind.USAGE


@pytest.mark.parametrize("text", ["", "no document", "x" * 300_000, "\ud800"])
def test_an_edited_text_has_to_be_a_document(text: str) -> None:
    check_edit(MINE)
    with pytest.raises(CallError) as failure:
        check_edit(text)
    assert failure.value.kind is ErrorKind.USAGE


def test_a_rejection_says_approval_pending_in_its_first_line_only() -> None:
    assert is_pending(pending_reason())
    assert is_pending("approval-pending")
    assert not is_pending("because of approval-pending")
    assert not is_pending("no\napproval-pending")


def test_only_the_newest_undecided_one_about_a_subject_waits() -> None:
    waiting = replace(FAILED, outcome=APPROVAL_PENDING)
    assert waits_for_owner(waiting, set())
    assert not waits_for_owner(FAILED, set())
    assert not waits_for_owner(replace(waiting, decision={"said": "accept"}), set())
    newer = {(PEER, "provider", waiting.subject)}
    assert not waits_for_owner(waiting, newer)


def test_a_target_is_what_was_held_back_or_the_peers_last_candidate() -> None:
    found = target_of(FAILED)
    assert found is not None
    assert (found.document, found.ours) == (THEIRS, False)
    assert target_of(replace(FAILED, turns=())) is None
