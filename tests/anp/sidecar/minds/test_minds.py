"""Minds and their accounts: what the owner sees of them, and what peers can spend."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.sidecar.minds.accounts import NO_COST, Cost, Exchanged, Spending
from anp.sidecar.minds.afterwards import Afterwards, Bill, words_of
from anp.sidecar.minds.minds import Minds, Thinking
from cache.records.negotiations import NegotiationRecord
from cache.records.records import AgreementRole
from cache.store import Store
from negotiation.errors import MindError
from negotiation.llm.asking.budget import BudgetExhausted, BudgetLimits
from negotiation.messages import Status
from negotiation.mind import Counter, Demand, Mind, Offer, Verdict
from negotiation.need import Capability, Need
from negotiation.rules.rules import propose as plain
from negotiation.transcript import Direction, Turn
from tests.clauses import clause
from tests.negotiation.formats import strict
from tests.negotiation.llm.script import KEY, Reaction, Script, endpoint, refused, said
from tests.negotiation.llm.scripted import call, link, offer_answer

TEXT: dict[str, Any] = {"type": "string"}
SHOP = Capability(
    "shop.price",
    "Price of an article",
    strict(article=TEXT),
    strict(price={"type": "number"}),
    read_only=True,
)
OFFER = Offer((SHOP,))
GOOD = offer_answer(
    call("shop.price", link("shop.price:/article", of=["request:/ware"])),
    result=[link("result:/cost", of=["shop.price:/price"])],
)
BAD = offer_answer(call("shop.price"))
ALICE, BOB = "did:key:zAlice", "did:key:zBob"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as store:
        yield store


def minds(
    store: Store, *reactions: Reaction, listed: bool = False, **limits: Any
) -> tuple[Minds, Script]:
    script = Script(*reactions)
    made = Minds(
        "auto",
        endpoint=endpoint(script),
        spending=Spending(store, replace(BudgetLimits(), **limits), model="m"),
        is_listed=lambda _: listed,
    )
    return made, script


def ware(words: str) -> str:
    """Return a document that needs the model, with words of a peer in it."""
    need = Need(f"Cost: {words}", strict(ware=TEXT), strict(cost={"type": "number"}))
    return plain(Demand(need, {"ware": "A1"}))


def answers(value: Any) -> Any:
    return said(json.dumps(value))


def shown(exchanges: list[Exchanged]) -> str:
    return json.dumps([one.shown() for one in exchanges])


async def try_judging(mind: Mind, document: str) -> BudgetExhausted | None:
    """Judge a document; return the error if there was no budget for it."""
    try:
        await mind.judge(document, OFFER, ())
    except BudgetExhausted as exc:
        return exc
    except MindError:
        pass
    return None


# What the owner sees.


@clause("ANP-34")
@pytest.mark.parametrize(
    "reaction",
    [
        said(json.dumps({**BAD, "missing": KEY})),
        said(f"Authorization: Bearer {KEY}"),
        said(message={"refusal": f"no, {KEY}"}),
        refused(400, f"bad key {KEY}"),
        refused(401, f"bad key {KEY}", **{"x-key": KEY}),
    ],
)
async def test_a_key_that_a_server_repeats_is_in_no_exchange(
    store: Store, reaction: Reaction
) -> None:
    made, script = minds(store, reaction)
    seen: list[Exchanged] = []
    thinking = made.think(ALICE, ours=False, watch=seen.append)
    with pytest.raises(MindError) as caught:
        await thinking.mind.judge(ware("x"), OFFER, ())
    assert script.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert seen
    assert KEY not in shown(seen)
    assert KEY not in str(caught.value)


async def test_what_one_peer_said_is_in_no_exchange_of_another(store: Store) -> None:
    made, script = minds(store, answers(GOOD))
    of: dict[str, list[Exchanged]] = {ALICE: [], BOB: []}
    for peer, words in ((ALICE, "the blue secret"), (BOB, "the red secret")):
        thinking = made.think(peer, ours=False, watch=of[peer].append)
        await thinking.mind.judge(ware(words), OFFER, ())
        await thinking.mind.answer(f"why {words}?", OFFER)
    assert "the blue secret" in shown(of[ALICE])
    assert "blue" not in shown(of[BOB])
    assert "red" not in shown(of[ALICE]).replace("required", "")
    sent = b"".join(one.content for one in script.requests)
    assert ALICE.encode() not in sent
    assert BOB.encode() not in sent


def record(**fields: Any) -> NegotiationRecord:
    known: dict[str, Any] = {
        "id": "0123456789abcdef",
        "peer_did": ALICE,
        "role": AgreementRole.PROVIDER,
        "need": None,
        "turns": (),
        "outcome": "agreed",
        "reason": "",
        "hash": "0" * 64,
        "started": 1.0,
        "ended": 2.0,
        "model_calls": 1,
    }
    return NegotiationRecord(**{**known, **fields})


@clause("ANP-64")
async def test_a_question_after_the_agreement_joins_its_record_and_the_bill(
    store: Store,
) -> None:
    store.save_negotiation(record())
    made, _ = minds(store, answers({"answer": "We sell."}))
    afterwards, bill = Afterwards(store, made.think), Bill()
    async with afterwards.think(
        ALICE, ours=False, negotiation_id="0123456789abcdef", bill=bill
    ) as thinking:
        assert await words_of(thinking.mind, "What do you do?", OFFER) == "We sell."
    assert bill.take() == Cost(model_calls=1)
    assert bill.take() == NO_COST
    kept = store.negotiation("0123456789abcdef")
    assert kept is not None
    assert kept.model_calls == 2
    assert [one["step"] for one in kept.exchanges] == ["answer"]
    assert "What do you do?" in str(kept.exchanges)


async def test_without_a_record_nothing_is_lost_but_the_view(store: Store) -> None:
    made, _ = minds(store, answers({"answer": "We sell."}))
    afterwards = Afterwards(store, made.think)
    for negotiation_id in (None, "gone"):
        async with afterwards.think(
            ALICE, ours=True, negotiation_id=negotiation_id
        ) as thinking:
            # The same question would cost nothing the second time.
            asked = f"What of {negotiation_id}?"
            assert await words_of(thinking.mind, asked, OFFER)
    assert store.negotiations() == []
    assert sum(one.calls for one in store.spends(since="")) == 2


@clause("ANP-64")
async def test_a_model_that_says_nothing_leaves_the_word_to_the_rules(
    store: Store,
) -> None:
    made, script = minds(store, answers({"answer": " "}))
    thinking = made.think(ALICE, ours=False)
    assert "shop.price" in await words_of(thinking.mind, "What?", OFFER)
    assert len(script.requests) == 2


# What peers can spend.


async def test_a_new_name_each_time_brings_no_new_budget(store: Store) -> None:
    made, script = minds(store, answers(BAD), unlisted_calls=7)
    refusals = []
    for number in range(30):
        thinking = made.think(f"did:key:z{number}", ours=False)
        refusals.append(await try_judging(thinking.mind, ware(f"no {number}")))
    assert len(script.requests) == 7
    assert refusals[-1] is not None
    assert "budget.unlisted_calls = 7" in str(refusals[-1])
    # Nobody else's budget was touched.
    assert [one.account for one in store.spends(since="")] == ["unlisted"]
    ours = made.think(ALICE, ours=True)
    assert await try_judging(ours.mind, ware("ours")) is None


@pytest.mark.parametrize("listed", [True, False])
async def test_a_peer_that_always_counters_ends_with_its_negotiations_budget(
    store: Store, listed: bool
) -> None:
    made, script = minds(store, answers(BAD), listed=listed, negotiation_calls=5)
    thinking = made.think(ALICE, ours=False)
    turns: list[Turn] = []
    for number in range(40):
        document = ware(f"counter {number}")
        turns.append(_turn(Direction.RECEIVED, number, document))
        verdict: Verdict | None = None
        with contextlib.suppress(BudgetExhausted):
            verdict = await thinking.mind.judge(document, OFFER, tuple(turns))
        if isinstance(verdict, Counter):
            turns.append(_turn(Direction.SENT, number, verdict.document))
    assert thinking.cost().model_calls == len(script.requests) == 5
    assert "budget.negotiation_calls = 5" in thinking.exhausted()


async def test_negotiations_one_after_the_other_end_with_the_peers_budget(
    store: Store,
) -> None:
    made, script = minds(store, answers(BAD), listed=True, peer_calls=9)
    for number in range(20):
        thinking = made.think(ALICE, ours=False)
        await try_judging(thinking.mind, ware(f"again {number}"))
    assert len(script.requests) == 9
    # Another listed peer is not the poorer for it.
    other = made.think(BOB, ours=False)
    assert await try_judging(other.mind, ware("mine")) is None


async def test_ever_longer_documents_stay_within_the_tokens(store: Store) -> None:
    # A server that reports nothing: then each call counts as the most it can cost.
    silent = said(json.dumps(BAD), usage=None)
    made, script = minds(store, silent, unlisted_tokens=60_000)
    for number in range(12):
        words = " ".join(f"word{n}" for n in range(2**number))
        await try_judging(made.think(ALICE, ours=False).mind, ware(words))
    most = sum(len(one.content) for one in script.requests)
    assert 0 < most <= 60_000
    [spent] = store.spends(since="")
    assert spent.input_tokens + spent.output_tokens + spent.held_tokens <= 60_000


async def test_repairs_and_questions_are_paid_from_the_same_accounts(
    store: Store,
) -> None:
    made, script = minds(store, answers({"answer": "Yes."}), unlisted_calls=3)
    afterwards = Afterwards(store, made.think)
    for number in range(10):
        async with afterwards.think(BOB, ours=False, negotiation_id=None) as thinking:
            assert isinstance(thinking, Thinking)
            assert await words_of(thinking.mind, f"Is it {number}?", OFFER)
    assert len(script.requests) == 3


def _turn(direction: Direction, number: int, candidate: str) -> Turn:
    return Turn(direction, number, Status.NEGOTIATING, candidate, "", 0.0)


@clause("A2A-3")
async def test_a_caller_of_the_a2a_face_pays_from_its_own_account(store: Store) -> None:
    made, _ = minds(store, answers(GOOD), listed=True, peer_calls=1)
    ends = []
    for number, caller in enumerate(("local:ann", "local:ann", "local:jwt:eve")):
        thinking = made.think(caller, ours=False)
        ends.append(await try_judging(thinking.mind, ware(f"{number}")))
    assert [one is None for one in ends] == [True, False, True]
    accounts = {one.account for one in store.spends(since="2000-01-01")}
    assert accounts == {"local:ann", "local:jwt:eve"}
