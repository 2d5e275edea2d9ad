"""A daemon describes itself in its hellos as its owner configured it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anp.wire.frames import Frame, ProtocolType, encode_frame
from anp.wire.meta_protocol import CAPABILITIES
from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.raw_peer import raw_peer


async def meta_of(daemon: Anpd) -> dict[str, Any]:
    """Return the `metaProtocol` of the daemon's answer to a hello."""
    async with raw_peer(daemon.url, daemon.did) as peer:
        await peer.say(*peer.initiator().messages_to_send())
        hello = await peer.hear()
    assert hello["type"] == "destinationHello"
    meta: dict[str, Any] = hello["metaProtocol"]
    return meta


@clause("ANP-76", "ANP-77", "ANP-79")
@pytest.mark.parametrize(
    ("setting", "listed"),
    [
        ("", list(CAPABILITIES)),
        ("capabilities = []", []),
        ('capabilities = ["verificationProtocol"]', ["verificationProtocol"]),
    ],
    ids=["default", "none", "one"],
)
async def test_the_answer_lists_the_capabilities_of_the_configuration(
    tmp_path: Path, setting: str, listed: list[str]
) -> None:
    daemon = Anpd(tmp_path / "home")
    daemon.home.mkdir()
    (daemon.home / "anpd.toml").write_text(f"[negotiation]\n{setting}\n")
    with daemon.up():
        meta = await meta_of(daemon)
    assert meta["version"] == "1.0"
    assert meta["supportedCapabilities"] == listed


@clause("ANP-81", "ANP-Q17")
async def test_a_daemon_survives_frames_it_did_not_agree_to(tmp_path: Path) -> None:
    daemon = Anpd(tmp_path / "home")
    with daemon.up():
        async with raw_peer(daemon.url, daemon.did) as peer:
            await peer.open()
            for protocol_type in list(ProtocolType)[2:] * 3:
                plaintext = encode_frame(Frame(protocol_type, b"\xff\x00"))
                await peer.say(json.dumps(peer.sealed(plaintext)))
            ping = {"type": "heartbeat", "messageId": "p", "message": "ping"}
            await peer.say(json.dumps(ping))
            assert (await peer.hear())["message"] == "pong"
    log = daemon.log()
    assert log.count('"event":"frame ignored"') == 1
    assert "Traceback" not in log
