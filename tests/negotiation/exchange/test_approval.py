"""The owner inside a negotiation: approval, cancelling, hints; and peers' questions."""

from __future__ import annotations

import asyncio
from typing import Any

from negotiation.errors import FailureKind, MindError
from negotiation.exchange.limits import NegotiationLimits
from negotiation.exchange.machine import Machine
from negotiation.exchange.negotiator import Approve, NegotiationResult, negotiate
from negotiation.mind import Accept, Counter, HalfSource, Offer, Reject, Side, Verdict
from negotiation.need import Need, Role
from negotiation.rules.rules import RulesMind, judge_offer, propose
from negotiation.transcript import NegotiationEnded
from tests.clauses import clause
from tests.negotiation.exchange.test_negotiator import (
    GENERATED,
    NEED,
    OFFER,
    OTHER,
    TEXT,
    Pipe,
    Preparation,
    ScriptedMind,
    ended,
    half,
    pipe,
    turn,
)
from tests.negotiation.rules.test_rules import ALL, CONVERT, ORDER

QUESTIONS = frozenset({"naturalLanguageNegotiation"})


class Owner:
    """Says what a test wants, and remembers what it was asked."""

    def __init__(self, *answers: Verdict) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, HalfSource | None]] = []
        self.seconds: list[float] = []

    async def __call__(
        self, document: str, half: HalfSource | None, seconds: float
    ) -> Verdict:
        self.asked.append((document, half))
        self.seconds.append(seconds)
        return self.answers.pop(0)


def start(
    role: Role,
    transport: Pipe,
    mind: ScriptedMind,
    *,
    approve: Approve | None = None,
    cancelled: asyncio.Future[str] | None = None,
    common: frozenset[str] = frozenset(),
    prepare: Preparation | None = None,
    **limits: Any,
) -> asyncio.Task[NegotiationResult]:
    clock = asyncio.get_running_loop().time
    side: Side = NEED if role is Role.REQUESTER else OFFER
    return asyncio.create_task(
        negotiate(
            Machine(role, NegotiationLimits(**limits), now=clock(), common=common),
            transport,
            mind=mind,
            side=side,
            prepare=prepare or Preparation(),
            approve=approve,
            cancelled=cancelled,
            clock=clock,
        )
    )


@clause("ANP-34")
async def test_the_owner_is_asked_about_a_half_before_it_is_accepted() -> None:
    peer, end = pipe()
    owner = Owner(Accept())
    task = start(Role.PROVIDER, end, ScriptedMind(Accept()), approve=owner)
    await peer.say(turn(0, "negotiating", TEXT))
    assert (await peer.hear())["status"] == "accepted"
    assert owner.asked == [(TEXT, half(TEXT))]
    assert 0 < owner.seconds[0] < NegotiationLimits().answer_timeout
    assert await peer.hear() == GENERATED
    await peer.say(GENERATED)
    await task


@clause("ANP-34")
async def test_what_the_owner_does_not_want_is_rejected_with_their_words() -> None:
    peer, end = pipe()
    owner = Owner(Reject("not with them"))
    task = start(Role.PROVIDER, end, ScriptedMind(Accept()), approve=owner)
    await peer.say(turn(0, "negotiating", TEXT))
    answer = await peer.hear()
    assert (answer["status"], answer["modificationSummary"]) == (
        "rejected",
        "not with them",
    )
    assert (await ended(task)).kind is FailureKind.REJECTED


@clause("ANP-34")
async def test_a_counter_is_approved_before_the_peer_could_accept_it() -> None:
    peer, end = pipe()
    owner, prepare = Owner(Accept()), Preparation()
    mind = ScriptedMind(Counter(OTHER, "our terms"))
    task = start(Role.PROVIDER, end, mind, approve=owner, prepare=prepare)
    await peer.say(turn(0, "negotiating", TEXT))
    assert (await peer.hear())["candidateProtocols"] == OTHER
    assert owner.asked == [(OTHER, half(OTHER))]
    await peer.say(turn(2, "accepted", OTHER))
    assert await peer.hear() == GENERATED
    await peer.say(GENERATED)
    assert (await task).half == half(OTHER)
    assert prepare.asked == [OTHER], "the half that was shown is the one that is used"


async def test_an_edited_text_goes_out_in_place_of_the_minds() -> None:
    peer, end = pipe()
    owner = Owner(Counter(OTHER, "edited"))
    task = start(Role.PROVIDER, end, ScriptedMind(Accept()), approve=owner)
    await peer.say(turn(0, "negotiating", TEXT))
    answer = await peer.hear()
    assert (answer["status"], answer["candidateProtocols"]) == ("negotiating", OTHER)
    await peer.say(turn(2, "rejected"))
    await ended(task)


async def test_a_requester_proposes_what_its_owner_approved_or_nothing() -> None:
    peer, end = pipe()
    task = start(
        Role.REQUESTER, end, ScriptedMind(), approve=Owner(Counter(OTHER, "x"))
    )
    assert (await peer.hear())["candidateProtocols"] == OTHER
    await peer.say(turn(1, "rejected"))
    await ended(task)

    peer, end = pipe()
    task = start(Role.REQUESTER, end, ScriptedMind(), approve=Owner(Reject("later")))
    assert (await peer.hear())["status"] == "rejected"
    failure = await ended(task)
    assert (failure.kind, failure.reason) == (FailureKind.CANCELLED, "later")


async def test_the_owner_ends_it_and_the_peer_hears_that_but_not_why() -> None:
    peer, end = pipe()
    stop: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = start(Role.REQUESTER, end, ScriptedMind(), cancelled=stop)
    await peer.hear()
    stop.set_result("I do not like them")
    answer = await peer.hear()
    assert answer["status"] == "rejected"
    assert "like" not in answer["modificationSummary"]
    failure: NegotiationEnded = await ended(task)
    assert failure.kind is FailureKind.CANCELLED
    assert failure.reason == "I do not like them"


def question(text: str) -> dict[str, Any]:
    return {
        "action": "naturalLanguageNegotiation",
        "type": "REQUEST",
        "messageId": "a" * 16,
        "message": text,
    }


@clause("ANP-64", "ANP-68")
async def test_a_question_of_the_peer_is_answered_while_it_is_negotiated() -> None:
    peer, end = pipe()
    mind = ScriptedMind()
    mind.answers = ["It is four.", MindError("the model is away")]
    task = start(Role.PROVIDER, end, mind, common=QUESTIONS)
    await peer.say(question("What is two and two?"))
    answer = await peer.hear()
    assert (answer["type"], answer["messageId"]) == ("RESPONSE", "a" * 16)
    assert answer["message"] == "What is two and two? It is four."
    await peer.say(question("And?"))
    assert "model" not in (await peer.hear())["message"]
    await peer.say(turn(0, "rejected"))
    await ended(task)


async def test_rules_answer_a_question_with_what_comes_near() -> None:
    answer = await RulesMind().answer("can you convert a time?", ALL)
    assert CONVERT.name in answer
    assert ORDER.name not in answer
    assert await RulesMind().answer("?", NEED)


@clause("ANP-34")
def test_a_hint_chooses_what_the_candidate_means_but_only_what_is_exposed() -> None:
    demand = type(NEED)(Need("buy me something"), {"sku": "x"})
    candidate = propose(demand)
    assert isinstance(judge_offer(candidate, ALL, []), Reject)
    hinted = Offer(ALL.capabilities, hints=("take place_order",))
    assert judge_offer(candidate, hinted, []) == Accept()
    hidden = Offer((CONVERT,), hints=("take place_order",))
    assert isinstance(judge_offer(candidate, hidden, []), Reject)


async def test_a_hinted_choice_is_also_the_one_the_half_is_written_for() -> None:
    candidate = propose(type(NEED)(Need("buy me something"), {"sku": "x"}))
    hinted = Offer(ALL.capabilities, hints=("nothing", "shop.place-order", "hm"))
    written = await RulesMind().write_half(candidate, hinted)
    assert written.capabilities == (ORDER.name,)


async def test_a_requesters_hint_changes_no_document() -> None:
    hinted = type(NEED)(NEED.need, NEED.arguments, hints=("offer them more",))
    assert await RulesMind().propose(hinted) == await RulesMind().propose(NEED)
