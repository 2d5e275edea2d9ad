"""Every end of a negotiation has a reason, and the next call starts clean."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from anp.sidecar.bound.requester import BoundRequester
from anp.sidecar.daemon import Daemon
from anp.sidecar.halves.protocol import Protocol
from anp.sidecar.minds.minds import Thinking
from cache.records.negotiations import NegotiationRecord
from negotiation.errors import MindError
from negotiation.mind import Accept, Counter, Demand, HalfSource, Side, Verdict
from negotiation.need import Need
from negotiation.rules.rules import RulesMind, propose
from negotiation.transcript import Turn
from tests.clauses import clause
from tests.e2e.house import House, house_in
from tests.waiting import until

GOOD = propose(Demand(Need("twice"), {"number": 1}))
"A document that the provider accepts."

BAD = propose(Demand(Need("twice"), {"number": "x"}))
"A document that the provider counters."


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with house_in(
        tmp_path,
        negotiation__message_timeout=1.0,
        negotiation__codegen_timeout=1.0,
    ) as made:
        yield made


class Stubborn(RulesMind):
    """Counters for ever, with a new document each time."""

    def __init__(self) -> None:
        self._said = 0

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        self._said += 1
        return Counter(f"{GOOD}\nOnce more, {self._said}.\n", "no")


class Slow(RulesMind):
    """Judges when it is told to, and writes halves likewise."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        self.asked.set()
        await self.go.wait()
        return Accept()


class Broken(RulesMind):
    """Can never say anything."""

    async def propose(self, demand: Demand) -> str:
        raise MindError("the model is away")

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        raise MindError("the model is away")


def give_mind(daemon: Daemon, mind: Any) -> None:
    """Let a daemon negotiate with `mind` from now on."""
    daemon.agreer._think = lambda *_, **__: Thinking(mind, None)


def turn(number: int, status: str, text: str = "", summary: str = "") -> bytes:
    """Return a `protocolNegotiation`."""
    message = {
        "action": "protocolNegotiation",
        "sequenceId": number,
        "candidateProtocols": text,
        "modificationSummary": summary or ("changed" if number else ""),
        "status": status,
    }
    return json.dumps(message).encode()


GENERATED = b'{"action": "codeGeneration", "status": "generated"}'


async def ended(daemon: Daemon) -> NegotiationRecord:
    """Wait until something was negotiated and has ended; return the newest record."""
    await until(
        lambda: bool(
            not daemon.agreer.desk.running and daemon.store.negotiations(limit=1)
        )
    )
    [newest] = await asyncio.to_thread(daemon.store.negotiations, limit=1)
    return newest


async def is_clean(house: House) -> None:
    """Check that nothing is left of it, and that calls go through at once."""
    assert not house.provider.agreer.desk.running
    assert not house.caller.agreer.desk.running
    give_mind(house.provider, RulesMind())
    give_mind(house.caller, RulesMind())
    await house.others_are_served()


@clause("ANP-23")
async def test_ten_proposals_end_it_on_both_sides(house: House) -> None:
    give_mind(house.provider, Stubborn())
    give_mind(house.caller, Stubborn())
    with pytest.raises(CallError) as failure:
        await house.call("twice", number=2)
    assert failure.value.kind is ErrorKind.NEGOTIATION_REJECTED
    records = [await ended(house.caller), await ended(house.provider)]
    assert {record.outcome for record in records} == {"rounds", "rejected"}
    assert all("within 10 rounds" in record.reason for record in records)
    assert sum(t["status"] == "negotiating" for t in records[0].turns) == 10
    await is_clean(house)


SCRIPTS: dict[str, tuple[list[bytes], str, str]] = {
    "accepts its own candidate": (
        [turn(0, "accepted", GOOD)],
        "protocol_error",
        "no candidate of ours to accept",
    ),
    "proposes out of turn": (
        [turn(0, "negotiating", GOOD), turn(1, "negotiating", GOOD)],
        "protocol_error",
        "out of turn",
    ),
    "rejects at once": (
        [turn(0, "rejected", summary="changed my mind")],
        "rejected",
        "changed my mind",
    ),
    "rejects a counter": (
        [turn(0, "negotiating", BAD), turn(2, "rejected", summary="too expensive")],
        "rejected",
        "too expensive",
    ),
    "accepts another text": (
        [turn(0, "negotiating", BAD), turn(2, "accepted", GOOD)],
        "protocol_error",
        "not the text we offered",
    ),
    "says nothing about a counter": (
        [turn(0, "negotiating", BAD)],
        "timeout",
        "no answer of the peer in 1 s",
    ),
    "has no code after the agreement": (
        [turn(0, "negotiating", GOOD)],
        "code_generation",
        "the peer's code was not ready in 1 s",
    ),
    "says its code failed": (
        [
            turn(0, "negotiating", GOOD),
            b'{"action": "codeGeneration", "status": "error"}',
        ],
        "code_generation",
        "the peer could not make its code",
    ),
}


@clause("ANP-34", "ANP-44", "ANP-46")
@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_peer_that_misbehaves_or_goes_silent_is_listed_with_the_reason(
    house: House, name: str
) -> None:
    messages, outcome, reason = SCRIPTS[name]
    async with house.peer() as peer:
        await peer.open()
        for number, message in enumerate(messages):
            if number and name != "proposes out of turn":
                await peer.hear_meta()
            await peer.send_meta(message)
        await until(lambda: bool(house.provider.store.negotiations(limit=1)))
        record = await ended(house.provider)
    assert record.outcome == outcome
    assert reason in record.reason
    assert record.ended is not None
    await is_clean(house)


@pytest.mark.parametrize("phase", ["judging", "counter sent", "agreed"])
async def test_a_link_that_breaks_in_any_phase_is_listed_as_such(
    house: House, phase: str
) -> None:
    slow = Slow()
    if phase == "judging":
        give_mind(house.provider, slow)
    async with house.peer() as peer:
        await peer.open()
        text = BAD if phase == "counter sent" else GOOD
        await peer.send_meta(turn(0, "negotiating", text))
        if phase == "judging":
            await slow.asked.wait()
        else:
            await peer.hear_meta()
        assert len(house.provider.agreer.desk.running) == 1
    record = await ended(house.provider)
    assert record.outcome == "link_lost"
    assert record.reason
    await is_clean(house)


async def test_a_link_that_breaks_ends_the_callers_negotiation_too(
    house: House,
) -> None:
    slow = Slow()
    give_mind(house.provider, slow)
    calling = asyncio.create_task(house.call("twice", number=2))
    await slow.asked.wait()
    for link in list(house.provider.links._links):
        await link.close()
    with pytest.raises(CallError) as failure:
        await calling
    assert failure.value.kind is ErrorKind.PEER_UNREACHABLE
    for daemon in (house.caller, house.provider):
        assert (await ended(daemon)).outcome == "link_lost"
    await is_clean(house)


async def test_the_owner_ends_a_running_negotiation_and_the_peer_is_told(
    house: House,
) -> None:
    slow = Slow()
    give_mind(house.provider, slow)
    calling = asyncio.create_task(house.call("twice", number=2))
    await slow.asked.wait()
    desk = house.provider.agreer.desk
    [running] = await desk.negotiations()
    assert running.turns, "a running one shows what was said so far"
    await desk.cancel(running.id, "not today")
    with pytest.raises(CallError) as failure:
        await calling
    assert failure.value.kind is ErrorKind.NEGOTIATION_REJECTED
    assert "not today" not in failure.value.detail, "the peer does not learn why"
    record = await ended(house.provider)
    assert (record.id, record.outcome) == (running.id, "cancelled")
    assert "not today" in record.reason
    await is_clean(house)


async def test_a_caller_that_gives_up_leaves_nothing_behind(house: House) -> None:
    slow = Slow()
    give_mind(house.provider, slow)
    calling = asyncio.create_task(house.call("twice", number=2))
    await slow.asked.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert (await ended(house.caller)).outcome == "cancelled"
    # The peer was told, and does not wait for its time to be over.
    assert (await ended(house.provider)).outcome == "rejected"
    await is_clean(house)


@pytest.mark.parametrize("who", ["caller", "provider"])
async def test_a_mind_that_fails_ends_it_without_a_word_to_the_peer_about_why(
    house: House, who: str
) -> None:
    give_mind(getattr(house, who), Broken())
    with pytest.raises(CallError) as failure:
        await house.call("twice", number=2)
    assert failure.value.kind is ErrorKind.NEGOTIATION_REJECTED
    assert (await ended(getattr(house, who))).outcome == "mind"
    other = house.provider if who == "caller" else house.caller
    assert "model" not in (await ended(other)).reason
    await is_clean(house)


async def test_calls_end_with_an_error_when_the_reader_of_their_answers_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    async with house_in(tmp_path) as house, asyncio.timeout(10):
        assert await house.call("twice", number=1) == {"twice": 2}
        monkeypatch.setattr(Protocol, "decode_now", lambda *_: None)
        monkeypatch.setattr(BoundRequester, "_deliver", broken)
        with pytest.raises(CallError) as failed:
            await house.call("twice", number=2)
    assert failed.value.kind is ErrorKind.UNEXPECTED
    assert failed.value.may_have_run
