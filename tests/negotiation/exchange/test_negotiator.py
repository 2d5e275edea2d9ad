"""The shell of a negotiation, with the peer in memory and scripted minds."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from negotiation.errors import (
    FailureKind,
    HalfError,
    MindError,
    MisuseError,
    TransportClosed,
)
from negotiation.exchange.limits import NegotiationLimits
from negotiation.exchange.machine import Machine
from negotiation.exchange.negotiator import NegotiationResult, negotiate
from negotiation.messages import Status
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
from negotiation.need import Need, Role
from negotiation.transcript import Direction, NegotiationEnded, Turn
from negotiation.trial.acceptance import prepare_half
from negotiation.trial.trial import Findings
from tests.clauses import clause

TEXT = "# 需求\nadd two numbers\n"
OTHER = "# Need\nadd numbers, in other terms\n"
NEED = Demand(Need("add"), {"a": 1})
OFFER = Offer(())
GENERATED = {"action": "codeGeneration", "status": "generated"}


class Pipe:
    """One end of a channel in memory."""

    def __init__(
        self,
        incoming: asyncio.Queue[bytes | None],
        outgoing: asyncio.Queue[bytes | None],
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self.broken = False
        self.answer_to_last: bytes | None = None
        self.turns = 0
        self.waits: asyncio.Queue[int] = asyncio.Queue()

    async def send(self, data: bytes) -> None:
        if self.broken:
            raise TransportClosed("broken")
        await self._outgoing.put(data)
        if self.answer_to_last is not None and b"generated" in data:
            await self._incoming.put(self.answer_to_last)
            for _ in range(self.turns):
                await asyncio.sleep(0)

    async def receive(self) -> bytes:
        await self.waits.put(0)
        data = await self._incoming.get()
        if data is None:
            raise TransportClosed("closed")
        return data

    async def close(self) -> None:
        await self._outgoing.put(None)

    # What a test says and hears on this end.

    async def say(self, content: dict[str, Any]) -> None:
        await self.send(json.dumps(content).encode())

    async def hear(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(await self.receive())
        return content


def pipe() -> tuple[Pipe, Pipe]:
    one: asyncio.Queue[bytes | None] = asyncio.Queue()
    two: asyncio.Queue[bytes | None] = asyncio.Queue()
    return Pipe(one, two), Pipe(two, one)


def turn(number: int, status: str, text: str = "") -> dict[str, Any]:
    return {
        "action": "protocolNegotiation",
        "sequenceId": number,
        "candidateProtocols": text,
        "status": status,
    }


class ScriptedMind:
    """Answers from a list; an exception in it is raised."""

    def __init__(self, *verdicts: Verdict | Exception, proposal: str = TEXT) -> None:
        self.verdicts = list(verdicts)
        self.proposal: str | Exception = proposal
        self.halves: list[str | Exception] = []
        self.findings: list[tuple[str, ...]] = []
        self.transcripts: list[tuple[Turn, ...]] = []
        self.answers: list[str | Exception] = []

    async def propose(self, demand: Demand) -> str:
        if isinstance(self.proposal, Exception):
            raise self.proposal
        return self.proposal

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        assert transcript[-1].candidate == candidate
        self.transcripts.append(transcript)
        self.findings.append(findings)
        answer = self.verdicts.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        self.findings.append(findings)
        half = self.halves.pop(0)
        if isinstance(half, Exception):
            raise half
        return HalfSource(half, "rules")

    async def answer(self, question: str, side: Side) -> str:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return f"{question} {answer}"


class Preparation:
    """Makes halves; can be told to fail, and remembers what it was asked for."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.asked: list[str] = []
        self.cancelled: list[str] = []
        self.started: asyncio.Queue[str] = asyncio.Queue()
        self.gate: asyncio.Event | None = None

    async def __call__(self, document: str) -> HalfSource:
        self.asked.append(document)
        self.started.put_nowait(document)
        try:
            if self.gate is not None:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append(document)
            raise
        if self.failures:
            raise self.failures.pop(0)
        return half(document)


def half(document: str) -> HalfSource:
    return HalfSource(f"# half for {len(document)}", "rules")


def start(
    role: Role,
    transport: Pipe,
    mind: ScriptedMind,
    prepare: Callable[[str], Awaitable[HalfSource]] | None = None,
    *,
    on_turn: Callable[[Turn], None] | None = None,
    clock: Callable[[], float] | None = None,
    **limits: Any,
) -> asyncio.Task[NegotiationResult]:
    clock = clock or asyncio.get_running_loop().time
    return asyncio.create_task(
        negotiate(
            Machine(role, NegotiationLimits(**limits), now=clock()),
            transport,
            mind=mind,
            side=NEED if role is Role.REQUESTER else OFFER,
            prepare=prepare or Preparation(),
            clock=clock,
            on_turn=on_turn,
        )
    )


async def ended(task: asyncio.Task[NegotiationResult]) -> NegotiationEnded:
    with pytest.raises(NegotiationEnded) as caught:
        await task
    return caught.value


@clause("ANP-3", "ANP-7", "ANP-41")
async def test_two_sides_agree_and_both_have_their_half() -> None:
    left, right = pipe()
    heard: list[Turn] = []
    ours = start(Role.REQUESTER, left, ScriptedMind(), on_turn=heard.append)
    theirs = start(Role.PROVIDER, right, ScriptedMind(Accept()))
    one, two = await asyncio.gather(ours, theirs)
    assert (one.document, one.hash) == (two.document, two.hash) == (TEXT, one.hash)
    assert one.half == two.half == half(TEXT)
    assert [turn.status for turn in heard] == [Status.NEGOTIATING, Status.ACCEPTED]
    assert tuple(heard) == one.transcript
    assert (one.messages_sent, one.messages_received) == (2, 2)
    assert (two.messages_sent, two.messages_received) == (2, 2)


@clause("ANP-6")
async def test_a_counter_is_judged_by_the_other_side() -> None:
    left, right = pipe()
    judge = ScriptedMind(Accept())
    ours = start(Role.REQUESTER, left, judge)
    theirs = start(Role.PROVIDER, right, ScriptedMind(Counter(OTHER, "our terms")))
    one, two = await asyncio.gather(ours, theirs)
    assert one.document == two.document == OTHER
    ((_, answer),) = judge.transcripts
    assert (answer.direction, answer.summary) == (Direction.RECEIVED, "our terms")


@clause("ANP-Q8", "ANP-41")
async def test_a_provider_codes_before_it_accepts() -> None:
    peer, end = pipe()
    preparation = Preparation()
    preparation.gate = asyncio.Event()
    task = start(Role.PROVIDER, end, ScriptedMind(Accept()), preparation)
    await peer.say(turn(0, "negotiating", TEXT))
    hearing = asyncio.create_task(peer.hear())
    await preparation.started.get()
    assert not hearing.done()
    preparation.gate.set()
    assert (await hearing)["status"] == "accepted"
    assert await peer.hear() == GENERATED
    await peer.say(GENERATED)
    assert (await task).half == half(TEXT)


@clause("ANP-41")
async def test_the_requesters_half_is_prepared_while_the_peer_judges() -> None:
    peer, end = pipe()
    preparation = Preparation()
    task = start(Role.REQUESTER, end, ScriptedMind(), preparation)
    assert (await peer.hear())["sequenceId"] == 0
    await preparation.started.get()
    await peer.say(turn(1, "accepted", TEXT))
    assert await peer.hear() == GENERATED
    await peer.say(GENERATED)
    await task
    assert preparation.asked == [TEXT]


async def test_a_half_for_a_counter_is_prepared_while_the_peer_judges_it() -> None:
    peer, end = pipe()
    preparation = Preparation()
    task = start(Role.PROVIDER, end, ScriptedMind(Counter(OTHER, "x")), preparation)
    await peer.say(turn(0, "negotiating", TEXT))
    await peer.hear()
    assert await preparation.started.get() == OTHER
    await peer.say(turn(2, "accepted", OTHER))
    assert await peer.hear() == GENERATED
    await peer.say(GENERATED)
    await task
    assert preparation.asked == [OTHER]


async def test_a_half_that_is_ready_early_does_not_keep_the_loop_busy() -> None:
    peer, end = pipe()
    loop = asyncio.get_running_loop()
    asked: list[float] = []

    def clock() -> float:
        asked.append(loop.time())
        return asked[-1]

    preparation = Preparation()
    task = start(Role.REQUESTER, end, ScriptedMind(), preparation, clock=clock)
    await peer.hear()
    await preparation.started.get()
    for _ in range(10):
        await asyncio.sleep(0)
    before = len(asked)
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(asked) == before
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_half_for_a_countered_candidate_is_thrown_away() -> None:
    peer, end = pipe()
    preparation = Preparation()
    preparation.gate = asyncio.Event()
    task = start(Role.REQUESTER, end, ScriptedMind(Accept()), preparation)
    await peer.hear()
    await peer.say(turn(1, "negotiating", OTHER))
    assert await preparation.started.get() == TEXT
    assert await preparation.started.get() == OTHER
    preparation.gate.set()
    assert (await peer.hear())["status"] == "accepted"
    await peer.hear()
    await peer.say(GENERATED)
    outcome = await task
    assert (outcome.document, outcome.half) == (OTHER, half(OTHER))
    assert preparation.cancelled == [TEXT]


@clause("ANP-46")
async def test_a_half_that_fails_after_the_peer_accepted_is_announced() -> None:
    peer, end = pipe()
    preparation = Preparation(HalfError("timeout", "ran too long", 3))
    task = start(Role.REQUESTER, end, ScriptedMind(), preparation)
    await peer.hear()
    await peer.say(turn(1, "accepted", TEXT))
    assert await peer.hear() == {"action": "codeGeneration", "status": "error"}
    failure = await ended(task)
    assert failure.kind is FailureKind.CODE_GENERATION
    assert not failure.by_peer
    assert "took too long" in failure.reason
    assert len(failure.transcript) == 2


async def test_a_candidate_that_cannot_be_coded_is_countered() -> None:
    peer, end = pipe()
    mind = ScriptedMind(Accept(), Counter(OTHER, "without the pattern"))
    preparation = Preparation(HalfError("findings", "no sample validates"))
    task = start(Role.PROVIDER, end, mind, preparation)
    await peer.say(turn(0, "negotiating", TEXT))
    counter = await peer.hear()
    assert (counter["status"], counter["candidateProtocols"]) == ("negotiating", OTHER)
    assert mind.findings == [(), ("no sample validates",)]
    await peer.say(turn(2, "accepted", OTHER))
    assert await peer.hear() == GENERATED
    await peer.say(GENERATED)
    assert (await task).document == OTHER


@pytest.mark.parametrize("second", [Accept(), Reject("no pattern of this kind")])
async def test_a_candidate_that_cannot_be_coded_is_rejected(second: Verdict) -> None:
    peer, end = pipe()
    preparation = Preparation(HalfError("findings", "NameError: secret"))
    task = start(Role.PROVIDER, end, ScriptedMind(Accept(), second), preparation)
    await peer.say(turn(0, "negotiating", TEXT))
    answer = await peer.hear()
    assert answer["status"] == "rejected"
    assert "secret" not in answer["modificationSummary"]
    failure = await ended(task)
    if isinstance(second, Reject):
        assert failure.kind is FailureKind.REJECTED
        assert answer["modificationSummary"] == second.reason
    else:
        assert failure.kind is FailureKind.CODE_GENERATION
        assert "secret" in failure.reason


@pytest.mark.parametrize("role", list(Role))
async def test_a_failed_mind_tells_the_owner_more_than_the_peer(role: Role) -> None:
    peer, end = pipe()
    mind = ScriptedMind(MindError("no budget: sk-123"))
    mind.proposal = MindError("no budget: sk-123")
    task = start(role, end, mind)
    if role is Role.PROVIDER:
        await peer.say(turn(0, "negotiating", TEXT))
    answer = await peer.hear()
    assert answer["status"] == "rejected"
    assert "sk-123" not in answer["modificationSummary"]
    failure = await ended(task)
    assert (failure.kind, failure.by_peer) == (FailureKind.MIND, False)
    assert "sk-123" in failure.reason


@pytest.mark.parametrize("when", ["judging", "agreed"])
async def test_a_mind_that_fails_while_it_codes_ends_it(when: str) -> None:
    peer, end = pipe()
    preparation = Preparation(MindError("model gone"))
    if when == "judging":
        task = start(Role.PROVIDER, end, ScriptedMind(Accept()), preparation)
        await peer.say(turn(0, "negotiating", TEXT))
    else:
        task = start(Role.REQUESTER, end, ScriptedMind(), preparation)
        await peer.hear()
        await peer.say(turn(1, "accepted", TEXT))
    answer = await peer.hear()
    assert answer["status"] == ("rejected" if when == "judging" else "error")
    assert (await ended(task)).kind is FailureKind.MIND


async def test_the_peers_rejection_is_the_end() -> None:
    left, right = pipe()
    ours = start(Role.REQUESTER, left, ScriptedMind())
    theirs = start(Role.PROVIDER, right, ScriptedMind(Reject("`unit` is missing")))
    one, two = await ended(ours), await ended(theirs)
    assert one.kind is two.kind is FailureKind.REJECTED
    assert (one.by_peer, two.by_peer) == (True, False)
    assert one.reason == two.reason == "`unit` is missing"
    assert one.transcript[-1].summary == "`unit` is missing"


async def test_the_peer_may_end_it_while_our_mind_thinks() -> None:
    peer, end = pipe()
    preparation = Preparation()
    preparation.gate = asyncio.Event()
    task = start(Role.PROVIDER, end, ScriptedMind(Accept()), preparation)
    await peer.say(turn(0, "negotiating", TEXT))
    await preparation.started.get()
    await peer.say(turn(2, "rejected"))
    assert (await ended(task)).by_peer
    assert preparation.cancelled == [TEXT]


@pytest.mark.parametrize("how", ["receiving", "sending"])
async def test_a_lost_link_is_told_apart(how: str) -> None:
    peer, end = pipe()
    if how == "sending":
        end.broken = True
    else:
        await peer.close()
    failure = await ended(start(Role.REQUESTER, end, ScriptedMind()))
    assert failure.kind is FailureKind.LINK_LOST


async def test_a_link_that_breaks_under_the_last_message_gives_no_agreement() -> None:
    peer, end = pipe()
    preparation = Preparation()
    preparation.gate = asyncio.Event()
    task = start(Role.REQUESTER, end, ScriptedMind(), preparation)
    await peer.hear()
    await peer.say(turn(1, "accepted", TEXT))
    await peer.say(GENERATED)
    await preparation.started.get()
    end.broken = True
    preparation.gate.set()
    assert (await ended(task)).kind is FailureKind.LINK_LOST


async def test_a_cancelled_negotiation_tells_the_peer() -> None:
    peer, end = pipe()
    task = start(Role.REQUESTER, end, ScriptedMind())
    assert (await peer.hear())["status"] == "negotiating"
    task.cancel()
    answer = await peer.hear()
    assert (answer["status"], answer["sequenceId"]) == ("rejected", 1)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_negotiation_leaves_no_task_behind() -> None:
    peer, end = pipe()
    before = asyncio.all_tasks()
    preparation = Preparation()
    preparation.gate = asyncio.Event()
    task = start(Role.REQUESTER, end, ScriptedMind(), preparation)
    await peer.hear()
    await preparation.started.get()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert preparation.cancelled == [TEXT]
    assert asyncio.all_tasks() == before


async def test_a_bug_of_a_mind_is_raised_and_the_peer_is_told() -> None:
    peer, end = pipe()
    task = start(Role.PROVIDER, end, ScriptedMind(KeyError("bug")))
    await peer.say(turn(0, "negotiating", TEXT))
    assert (await peer.hear())["status"] == "rejected"
    with pytest.raises(KeyError):
        await task


async def test_a_requester_without_a_need_is_a_bug() -> None:
    _, end = pipe()
    clock = asyncio.get_running_loop().time
    machine = Machine(Role.REQUESTER, NegotiationLimits(), now=clock())
    with pytest.raises(MisuseError):
        await negotiate(
            machine,
            end,
            mind=ScriptedMind(),
            side=OFFER,
            prepare=Preparation(),
            clock=clock,
        )


@clause("ANP-44", "ANP-45", "WIRE row 46")
async def test_the_machines_timers_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    peer, end = pipe()
    task = start(
        Role.REQUESTER, end, ScriptedMind(), codegen_slow=0.001, codegen_timeout=0.05
    )
    await peer.hear()
    await peer.say(turn(1, "accepted", TEXT))
    assert await peer.hear() == GENERATED
    assert await peer.hear() == {"action": "codeGeneration", "status": "error"}
    failure = await ended(task)
    assert (failure.kind, failure.by_peer) == (FailureKind.CODE_GENERATION, True)
    assert "code generation slow" in caplog.text


async def test_a_silent_peer_times_out() -> None:
    peer, end = pipe()
    task = start(Role.PROVIDER, end, ScriptedMind(), message_timeout=0.01)
    assert (await peer.hear())["status"] == "rejected"
    assert (await ended(task)).kind is FailureKind.TIMEOUT


async def test_time_comes_from_the_clock_that_is_given() -> None:
    peer, end = pipe()
    now = [1_000.0]
    task = start(Role.REQUESTER, end, ScriptedMind(), clock=lambda: now[0])
    await peer.hear()
    now[0] += 60.0
    await peer.say(turn(1, "accepted", TEXT))
    failure = await ended(task)
    assert failure.kind is FailureKind.TIMEOUT
    assert failure.transcript[-1].seconds == 60.0


@clause("WIRE row 50", "ANP-Q17")
async def test_noise_is_logged_and_does_not_disturb(
    caplog: pytest.LogCaptureFixture,
) -> None:
    peer, end = pipe()
    task = start(Role.PROVIDER, end, ScriptedMind(Accept()))
    await peer.send(b"")
    await peer.say({"action": "secretAction"})
    await peer.say(turn(1, "negotiating", TEXT))
    assert (await peer.hear())["sequenceId"] == 2
    await peer.hear()
    await peer.say(GENERATED)
    assert (await task).messages_received == 4
    # The second is only counted, or a peer could fill the log.
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("negotiation message ignored")
    assert "secretAction" not in caplog.text


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
async def test_a_frame_behind_the_last_message_is_handed_on(turns: int) -> None:
    peer, end = pipe()
    preparation = Preparation()
    preparation.gate = asyncio.Event()
    task = start(Role.REQUESTER, end, ScriptedMind(), preparation)
    await peer.hear()
    await peer.say(turn(1, "accepted", TEXT))
    await peer.say(GENERATED)
    for _ in range(3):
        await end.waits.get()
    # The peer's next frame comes in while our last message goes out.
    end.answer_to_last, end.turns = b"next", turns
    preparation.gate.set()
    unread = (await task).unread
    assert unread is None or turns > 0
    assert (unread or await end.receive()) == b"next"


async def check(half: HalfSource, document: str) -> Findings:
    assert document == TEXT
    if half.text == "crash":
        raise HalfError("exception", "KeyError", 2)
    wrong = () if half.text == "good" else (f"{half.text} is wrong",)
    return Findings(wrong, "partial", 1)


@clause("ANP-43")
async def test_a_half_may_also_be_loaded_instead_of_written() -> None:
    loaded = HalfSource("# from elsewhere", "imported")

    async def load(document: str) -> HalfSource:
        return loaded

    left, right = pipe()
    ours = start(Role.REQUESTER, left, ScriptedMind(), load)
    theirs = start(Role.PROVIDER, right, ScriptedMind(Accept()), load)
    for outcome in await asyncio.gather(ours, theirs):
        assert outcome.half == loaded


@clause("ANP-7")
async def test_findings_go_back_to_the_mind() -> None:
    mind = ScriptedMind()
    mind.halves = ["crash", "bad", "good"]
    found = await prepare_half(TEXT, NEED, mind=mind, check=check)
    assert (found.text, found.samples) == ("good", "partial")
    assert mind.findings == [(), ("exception: KeyError (line 2)",), ("bad is wrong",)]


async def test_a_mind_has_three_attempts() -> None:
    mind = ScriptedMind()
    mind.halves = ["bad", "worse", "crash", "good"]
    with pytest.raises(HalfError) as caught:
        await prepare_half(TEXT, OFFER, mind=mind, check=check)
    assert caught.value.outcome == "exception"
    assert "KeyError" in caught.value.reason
    assert mind.halves == ["good"]


async def test_the_same_half_again_is_not_checked_again() -> None:
    mind = ScriptedMind()
    mind.halves = ["bad", "bad", "good"]
    with pytest.raises(HalfError, match="bad is wrong"):
        await prepare_half(TEXT, OFFER, mind=mind, check=check)
    assert mind.halves == ["good"]


@pytest.mark.parametrize("error", [MindError("gone"), HalfError("refused", "prose")])
async def test_a_mind_that_cannot_write_ends_the_preparation(error: Exception) -> None:
    mind = ScriptedMind()
    mind.halves = [error]
    with pytest.raises(type(error)):
        await prepare_half(TEXT, OFFER, mind=mind, check=check)
