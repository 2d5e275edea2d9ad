"""A peer that lies, repeats and floods on a bound channel: it costs itself."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import CAPABILITIES
from negotiation.mind import Demand
from negotiation.need import Need
from negotiation.rules.rules import propose
from tests.clauses import clause
from tests.e2e.house import house_in
from tests.e2e.raw_peer import RawPeer


def said(action: str, **fields: Any) -> bytes:
    """Return a meta message."""
    return json.dumps({"action": action, **fields}).encode()


async def bound(peer: RawPeer) -> None:
    """Open a channel and agree on a protocol for `twice`."""
    await peer.open(capabilities=CAPABILITIES)
    await peer.send_meta(
        said(
            "protocolNegotiation",
            sequenceId=0,
            candidateProtocols=propose(Demand(Need("twice"), {"number": 1})),
            status="negotiating",
        )
    )
    assert (await peer.hear_meta())["status"] == "accepted"
    assert await peer.hear_meta() == {"action": "codeGeneration", "status": "generated"}
    await peer.send_meta(said("codeGeneration", status="generated"))


def request(number: object, message_id: str = "m1") -> bytes:
    """Return a request of the agreed document."""
    return json.dumps({"messageId": message_id, "input": {"number": number}}).encode()


@clause("ANP-56", "ANP-58")
async def test_a_request_that_breaks_the_document_is_reported_by_its_envelope(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house, house.peer() as peer:
        await bound(peer)
        envelope = await peer.send_frame(ProtocolType.APPLICATION, request("two"))
        told = await peer.hear_meta()
        assert told["action"] == "fixErrorNegotiation"
        assert told["status"] == "negotiating"
        first, _, rest = told["errorDescription"].partition("\n")
        assert first == f"messageId: {envelope}"
        assert "number" in rest
        # Refused; the channel is as good as before.
        await peer.send_meta(
            said(
                "fixErrorNegotiation",
                errorDescription=f"messageId: {envelope}\nit is fine",
                status="rejected",
            )
        )
        await peer.send_frame(ProtocolType.APPLICATION, request(21))
        frame, _ = await peer.hear_frame()
        assert json.loads(frame.data)["output"] == {"twice": 42}


@clause("ANP-60", "ANP-62")
async def test_a_report_about_a_good_answer_is_refused_with_the_reason(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house, house.peer() as peer:
        await bound(peer)
        await peer.send_frame(ProtocolType.APPLICATION, request(21))
        _, envelope = await peer.hear_frame()
        for named, why in (
            (f"messageId: {envelope}\n", "fits"),
            ("messageId: made-up\n", "kept"),
            # Without a name the last message is meant, as in the seed's example.
            ("", "fits"),
        ):
            await peer.send_meta(
                said(
                    "fixErrorNegotiation",
                    errorDescription=f"{named}it is all wrong",
                    status="negotiating",
                )
            )
            told = await peer.hear_meta()
            assert told["status"] == "rejected"
            assert why in told["errorDescription"]
        assert len(house.provider.store.all_agreements()) == 1


async def test_floods_of_useless_messages_cost_the_peer_its_channel_and_us_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with house_in(tmp_path) as house, house.peer() as peer:
        await bound(peer)
        useless = [
            said("codeGeneration", status="generated"),
            said("testCasesNegotiation", testCases="x", status="accepted"),
            said("protocolNegotiation", sequenceId=9, status="accepted"),
            said("fixErrorNegotiation", errorDescription="x", status="accepted"),
            b"no json",
        ]
        for number in range(60):
            await peer.send_meta(useless[number % len(useless)])
        told = {"action": ""}
        while told["action"] != "channelClose":
            told = await peer.hear_meta()
        assert "no use" in told["reason"]
        lines = [
            record
            for record in caplog.records
            if "meta message ignored" in record.message
            and record.levelno > logging.DEBUG
        ]
        assert len(lines) == 1
        await house.others_are_served()


@clause("ANP-50", "ANP-52")
async def test_test_cases_of_a_liar_are_refused_or_filled_in_and_never_call_the_agent(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house, house.peer() as peer:
        await bound(peer)
        await peer.send_meta(
            said(
                "testCasesNegotiation",
                testCases="no cases at all",
                status="negotiating",
            )
        )
        told = await peer.hear_meta()
        assert told["action"] == "testCasesNegotiation"
        assert told["status"] == "rejected"
        # A test request that no agreed case has is refused, and nothing is called.
        envelope = await peer.send_frame(ProtocolType.VERIFICATION, request(3))
        told = await peer.hear_meta()
        assert told["action"] == "fixErrorNegotiation"
        assert told["status"] == "rejected"
        assert envelope in told["errorDescription"]
        await house.others_are_served()


async def test_a_second_question_in_words_is_dropped_while_one_is_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with house_in(tmp_path) as house, house.peer() as peer:
        await peer.open(capabilities=CAPABILITIES)
        text = b"# Requirement\ntwice\n\n# Input\n- number: 4\n"
        for _ in range(5):
            await peer.send_frame(ProtocolType.NATURAL_LANGUAGE, text)
        frame, _ = await peer.hear_frame()
        assert frame.protocol_type is ProtocolType.NATURAL_LANGUAGE
        assert frame.data == b"# Output\n- twice: 8\n"
        assert any("second question" in r.message for r in caplog.records)
        await house.others_are_served()
