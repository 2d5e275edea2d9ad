"""What a model answered or refused is not paid for a second time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.sidecar.minds.accounts import Cost, Spender, Spending
from anp.sidecar.minds.remembered import RememberingMind
from cache.store import Store
from negotiation.llm.asking.budget import (
    OWNER,
    UNLISTED,
    BudgetExhausted,
    BudgetLimits,
    Purse,
)
from negotiation.mind import Accept, Offer, Reject, Verdict
from negotiation.need import Capability
from tests.negotiation.llm.script import QUESTION, Script, endpoint, said

NOON = 1_770_000_000.0
OFFER = Offer((Capability("shop.find", "", {"type": "object"}, {"type": "object"}),))
PEER = "did:key:zPeer"


def spending(store: Store, now: float = NOON) -> Spending:
    return Spending(store, BudgetLimits(), model="m", clock=lambda: now)


async def ask(store: Store, script: Script, *, now: float = NOON) -> Any:
    one = Spender(endpoint(script), spending(store, now), account=OWNER, remembers=True)
    return await one.ask(QUESTION)


async def test_the_same_question_is_paid_for_once_a_day(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        script = Script(said())
        for hours in (0, 1, 23):
            answer = await ask(store, script, now=NOON + hours * 3600)
            assert answer == {"colour": "green"}
        assert len(script.requests) == 1
        await ask(store, script, now=NOON + 25 * 3600)
        assert len(script.requests) == 2


class Refuser:
    """A mind that pays for each verdict."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.asked = 0

    def cost(self) -> Cost:
        return Cost(model_calls=self.asked)

    async def judge(
        self, candidate: str, side: Any, transcript: Any, *, findings: Any = ()
    ) -> Verdict:
        self.asked += 1
        return self.verdict


def remembering(
    mind: Any, store: Store, *, peer: str = PEER, model: str = "m"
) -> RememberingMind:
    return RememberingMind(
        mind, spending(store), peer=peer, model=model, cost=mind.cost
    )


async def test_a_refusal_is_remembered_until_one_of_its_causes_changes(
    tmp_path: Path,
) -> None:
    with Store(tmp_path) as store:
        mind = Refuser(Reject("nothing of ours bakes bread"))
        for _ in range(10):
            verdict = await remembering(mind, store).judge("# Need\nbread", OFFER, ())
            assert verdict == Reject("nothing of ours bakes bread")
        assert mind.asked == 1
        other = replace(OFFER.capabilities[0], output_schema={"type": "string"})
        for text, offer, peer, model in (
            ("# Need\ncake", OFFER, PEER, "m"),
            ("# Need\nbread", Offer((other,)), PEER, "m"),
            ("# Need\nbread", OFFER, "did:key:zOther", "m"),
            ("# Need\nbread", OFFER, PEER, "n"),
        ):
            before = mind.asked
            again = remembering(mind, store, peer=peer, model=model)
            await again.judge(text, offer, ())
            assert mind.asked == before + 1


async def test_what_depends_on_more_than_the_document_is_not_remembered(
    tmp_path: Path,
) -> None:
    with Store(tmp_path) as store:
        mind = Refuser(Reject("our half failed"))
        for _ in range(2):
            await remembering(mind, store).judge("x", OFFER, (), findings=("a fault",))
        assert mind.asked == 2
        accepting = Refuser(Accept())
        for _ in range(2):
            await remembering(accepting, store).judge("y", OFFER, ())
        assert accepting.asked == 2


async def test_ten_refused_calls_of_one_stranger_leave_the_day_to_the_others(
    tmp_path: Path,
) -> None:
    with Store(tmp_path) as store:
        day = spending(store)
        for _ in range(10):
            await day.reserve(UNLISTED, Purse(), 100, address="192.0.2.1")
        with pytest.raises(BudgetExhausted, match="for one address"):
            await day.reserve(UNLISTED, Purse(), 100, address="192.0.2.1")
        for _ in range(10):
            await day.reserve(UNLISTED, Purse(), 100, address="192.0.2.2")
