"""A mind that does not agree again to what failed with this peer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from anp.sidecar.agreement.refusals import RefusingMind
from cache.records.records import AgreementRole, AgreementState, DocumentRecord
from cache.store import Store
from negotiation.document.renderer import render_document
from negotiation.errors import MindError
from negotiation.mind import (
    Accept,
    Counter,
    Demand,
    HalfSource,
    Offer,
    Reject,
    Side,
    Verdict,
)
from negotiation.need import Need
from negotiation.transcript import Turn
from tests.cache.samples import (
    AGREEMENT,
    HALF,
    NEGOTIATION,
    OTHER,
    PROVIDER_AGREEMENT,
    PROVIDER_HALF,
)
from tests.clauses import clause

FAILED, FINE = "# The text that failed\n", "# Another text\n"
NEED, OFFER = Demand(Need("get a product"), {}), Offer(())


class Mind:
    """Says what it is told to, and remembers what it was asked."""

    def __init__(self, text: str = FAILED, verdict: Verdict | None = None) -> None:
        self.text = text
        self.verdict = verdict or Accept()
        self.asked: list[str] = []

    async def propose(self, demand: Demand) -> str:
        return self.text

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        self.asked.append(candidate)
        return self.verdict

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        return HalfSource(document, "rules")

    async def answer(self, question: str, side: Side) -> str:
        return question


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as opened:
        document = DocumentRecord.of(FAILED)
        for half, agreement in (
            (HALF, AGREEMENT),
            (PROVIDER_HALF, PROVIDER_AGREEMENT),
        ):
            opened.save_agreement(
                document,
                replace(half, hash=document.hash),
                replace(
                    agreement,
                    hash=document.hash,
                    state=AgreementState.FAILED,
                    created=time.time(),
                ),
            )
        yield opened


def refusing(
    mind: Mind, store: Store, *, peer: str = AGREEMENT.peer_did, role: AgreementRole
) -> tuple[RefusingMind, list[tuple[str, str, str, str]]]:
    """Return the mind around `mind`, and what it notes."""
    notes: list[tuple[str, str, str, str]] = []
    record = replace(NEGOTIATION, peer_did=peer, role=role)

    def note(by: str, verdict: str, document: str, reason: str) -> None:
        notes.append((by, verdict, document, reason))

    return RefusingMind(mind, record, store, note=note), notes


async def test_our_own_mind_proposes_nothing_that_failed(store: Store) -> None:
    mind, _ = refusing(Mind(), store, role=AgreementRole.REQUESTER)
    with pytest.raises(MindError, match="anpd protocols release"):
        await mind.propose(NEED)
    assert mind.refused is not None
    failed = [
        one for one in store.all_agreements() if one.role is AgreementRole.REQUESTER
    ]
    assert "proposed_again" in failed[0].tests["cases"]


async def test_another_text_is_proposed(store: Store) -> None:
    mind, _ = refusing(Mind(FINE), store, role=AgreementRole.REQUESTER)
    assert await mind.propose(NEED) == FINE
    assert mind.refused is None


@clause("ANP-33")
@pytest.mark.parametrize(("role", "side"), [("provider", OFFER), ("requester", NEED)])
async def test_a_candidate_that_failed_is_rejected_and_no_mind_is_asked(
    store: Store, role: str, side: Side
) -> None:
    inner = Mind()
    mind, notes = refusing(inner, store, role=AgreementRole(role))
    verdict = await mind.judge(FAILED, side, ())
    assert isinstance(verdict, Reject)
    assert "test cases of this text failed" in verdict.reason
    assert inner.asked == []
    assert notes == [("tests", "reject", FAILED, verdict.reason)]
    assert await mind.judge(FINE, side, ()) == Accept()


@pytest.mark.parametrize("part", ["request", "response"])
async def test_a_candidate_with_a_pattern_that_is_not_run_is_rejected_by_name(
    store: Store, part: str
) -> None:
    text = {"type": "object", "properties": {"sku": {"type": "string"}}}
    bad = {"type": "object", "properties": {"sku": {"pattern": "^(?!x)"}}}
    given, wanted = (bad, text) if part == "request" else (text, bad)
    candidate = render_document("look up", given, wanted)
    inner = Mind()
    mind, _ = refusing(inner, store, role=AgreementRole.PROVIDER)
    verdict = await mind.judge(candidate, OFFER, ())
    assert isinstance(verdict, Reject)
    assert f"{part} schema, /properties/" in verdict.reason
    assert "/sku/pattern: the negative lookahead (?! is not supported" in verdict.reason
    assert inner.asked == []


async def test_a_counter_of_ours_that_failed_is_not_sent(store: Store) -> None:
    inner = Mind(verdict=Counter(FAILED, "our terms"))
    mind, _ = refusing(inner, store, role=AgreementRole.PROVIDER)
    assert isinstance(await mind.judge(FINE, OFFER, ()), Reject)


async def test_what_failed_with_one_peer_may_be_agreed_with_another(
    store: Store,
) -> None:
    mind, _ = refusing(Mind(), store, peer=OTHER, role=AgreementRole.PROVIDER)
    assert await mind.judge(FAILED, OFFER, ()) == Accept()
