"""Natural language between two daemons (PT=10)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from anp.errors import CallError, ErrorKind
from anp.sidecar.calls.call import Mode
from anp.wire.frames import ProtocolType
from tests.clauses import clause
from tests.e2e.house import house_in


@clause("ANP-71", "ANP-72")
async def test_words_reach_a_capability_without_a_negotiation(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        result = await house.result("twice", {"number": 21}, Mode.NATURAL_LANGUAGE)
        assert result.output == {"text": "# Output\n- twice: 42\n"}
        assert result.source == "natural_language"
        assert result.protocol is None
        assert result.negotiation_messages == 0
        assert house.caller.store.all_agreements() == []
        again = await house.result("twice", {"number": 2}, Mode.NATURAL_LANGUAGE)
        assert "twice: 4" in again.output["text"]
        # Words and a protocol go beside each other between the same two.
        assert await house.call("twice", number=3) == {"twice": 6}


@clause("ANP-71")
async def test_a_conversational_capability_gets_the_whole_text(tmp_path: Path) -> None:
    async with house_in(tmp_path, talks=True) as house:
        result = await house.result("how are you", {"to": "you"}, Mode.NATURAL_LANGUAGE)
        assert result.output == {"text": "# Output\nYou said: - to: you\n"}


async def test_what_cannot_be_served_is_said_in_words(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        for need, data, words in (
            ("sing a song", {}, "cannot serve"),
            ("count", {}, "needs step"),
            ("count", {"step": "x"}, "failed: 400"),
        ):
            with pytest.raises(CallError, match=words) as caught:
                await house.result(need, data, Mode.NATURAL_LANGUAGE)
            assert caught.value.kind is ErrorKind.APPLICATION_ERROR
            assert not caught.value.may_have_run


@clause("ANP-74", "ANP-81")
async def test_words_are_not_sent_when_one_side_does_not_take_them(
    tmp_path: Path,
) -> None:
    listed = ["fixErrorNegotiation"]
    async with house_in(tmp_path, negotiation__capabilities=listed) as house:
        with pytest.raises(CallError) as caught:
            await house.result("twice", {"number": 1}, Mode.NATURAL_LANGUAGE)
        assert caught.value.kind is ErrorKind.POLICY
        assert "naturalLanguageProtocol" in caught.value.detail
        assert await house.call("twice", number=1) == {"twice": 2}


@clause("ANP-70", "ANP-71")
async def test_questions_at_the_same_time_are_asked_one_after_the_other(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        results = await asyncio.gather(
            *(
                house.result("twice", {"number": n}, Mode.NATURAL_LANGUAGE)
                for n in range(5)
            )
        )
        texts = [result.output["text"] for result in results]
        assert texts == [f"# Output\n- twice: {2 * n}\n" for n in range(5)]


async def test_words_that_are_no_text_or_too_long_cost_nothing(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        result = await house.result("twice", {"number": 1}, Mode.NATURAL_LANGUAGE)
        assert "twice: 2" in result.output["text"]
        asker = house.caller.binder.requesters.asker(house.provider.did)
        assert asker is not None
        for data in (b"\xff\xfe", b"x" * 70_000):
            await asker.channel.send(ProtocolType.NATURAL_LANGUAGE, data)
        await house.others_are_served()
        with pytest.raises(CallError, match="at most"):
            await asker.ask("x" * 70_000)


@clause("ANP-64", "ANP-66", "ANP-69")
async def test_a_question_about_protocols_is_answered_in_words(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        peer = f"{house.provider.url}#{house.provider.did}"
        answer = await house.caller.caller.ask(peer, "Can you count things?")
        assert "count" in answer
        # A question is no negotiation that failed.
        assert house.provider.store.negotiations() == []
        assert await house.call("twice", number=1) == {"twice": 2}


async def test_a_question_needs_that_both_offer_it(tmp_path: Path) -> None:
    async with house_in(tmp_path, negotiation__capabilities=[]) as house:
        peer = f"{house.provider.url}#{house.provider.did}"
        with pytest.raises(CallError, match="naturalLanguageNegotiation"):
            await house.caller.caller.ask(peer, "Can you count things?")


async def test_words_after_a_question_about_protocols_are_answered(
    tmp_path: Path,
) -> None:
    capabilities = ("naturalLanguageNegotiation", "naturalLanguageProtocol")
    question = {
        "action": "naturalLanguageNegotiation",
        "type": "REQUEST",
        "messageId": "a" * 16,
        "message": "Can you count things?",
    }
    async with house_in(tmp_path) as house, house.peer() as peer:
        await peer.open(capabilities=capabilities)
        await peer.send_meta(json.dumps(question).encode())
        assert "count" in (await peer.hear_meta())["message"]
        text = b"# Requirement\ntwice\n\n# Input\n- number: 21\n"
        await peer.send_frame(ProtocolType.NATURAL_LANGUAGE, text)
        frame, _ = await peer.hear_frame()
        assert frame.protocol_type is ProtocolType.NATURAL_LANGUAGE
        assert b"42" in frame.data
