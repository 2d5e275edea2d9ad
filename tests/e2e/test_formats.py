"""Calls between two daemons in messages that are XML and packed binary (ANP-70)."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anp.channel.channel import Channel
from anp.errors import CallError
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from anp.wire.frames import ProtocolType
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    DocumentRecord,
    HalfRecord,
)
from negotiation.document.shape import document_hash
from negotiation.mind import Demand, HalfSource, Offer, Side
from negotiation.need import Capability, Need, need_key, schema_hash
from tests.clauses import clause
from tests.e2e.house import House

FORMATS = Path(__file__).parent.parent.parent / "examples" / "formats"
XML = ("product-xml", "shop", "product")
BINARY = ("sensor-binary", "sensors", "read")


@asynccontextmanager
async def house_with(folder: Path, made: tuple[str, str, str]) -> AsyncIterator[House]:
    """Run both, the provider with the program of one of the worked formats."""
    example, module, function = made
    homes = Home(folder / "caller"), Home(folder / "provider")
    for home in homes:
        home.create()
    save_attachment(
        homes[1].attachments,
        AttachmentSpec(
            kind="python",
            name=module,
            target=f"{module}:{function}",
            cwd=FORMATS / example,
            expose=("*",),
        ),
    )
    caller, provider = [
        Daemon(
            home,
            load_config(
                home,
                home_given=True,
                flags={"listen.port": 0},
                environ={},
                cwd=folder,
            ),
        )
        for home in homes
    ]
    async with caller.running(), provider.running():
        house = House(caller, provider)
        [tool] = provider.exposure.offered(None)
        assert tool.name == f"{module}.{function}"
        need = Need(tool.name)
        arguments = {"sku": "P2"} if made is XML else {"sensor": "roof", "unit": "K"}
        await install(provider, caller.did, example, Offer((tool,)), (tool,))
        await install(caller, provider.did, example, Demand(need, arguments), ())
        yield house


async def install(
    daemon: Daemon,
    peer_did: str,
    example: str,
    side: Side,
    capabilities: tuple[Capability, ...],
) -> None:
    """Check a hand-written half in the daemon's sandbox, and keep it as agreed."""
    role = (
        AgreementRole.PROVIDER if isinstance(side, Offer) else AgreementRole.REQUESTER
    )
    text = (FORMATS / example / "document.md").read_text(encoding="utf-8")
    source = (FORMATS / example / f"{role}.py").read_text(encoding="utf-8")
    names = tuple(one.name for one in capabilities)
    written = HalfSource(source, "hand-written", names)
    async with daemon.workshop.trial(written, text, name=peer_did) as trial:
        found = await trial.check(side)
    assert found.problems == ()
    digest, now = document_hash(text), time.time()
    half = HalfRecord.from_json(
        {
            "hash": digest,
            "role": role.value,
            "revision": 0,
            "source": source,
            "origin": "hand-written",
            "capabilities": {one.name: schema_hash(one) for one in capabilities},
            "created": now,
        }
    )
    agreement = AgreementRecord.from_json(
        {
            "own_did": daemon.did,
            "peer_did": peer_did,
            "role": role.value,
            "need_key": need_key(side.need) if isinstance(side, Demand) else None,
            "hash": digest,
            "revision": 0,
            "need": None,
            "samples": found.samples,
            "tests": {"acceptance": "passed"},
            "negotiation_id": None,
            "created": now,
        }
    )
    daemon.store.save_agreement(DocumentRecord.of(text), half, agreement)


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The plaintext of every application frame that either side sent."""
    seen: list[bytes] = []
    send = Channel.send

    async def watched(
        self: Channel, kind: ProtocolType, data: bytes, **more: Any
    ) -> Any:
        if kind is ProtocolType.APPLICATION:
            seen.append(data)
        return await send(self, kind, data, **more)

    monkeypatch.setattr(Channel, "send", watched)
    return seen


@clause("ANP-70")
async def test_a_product_is_looked_up_in_xml(
    tmp_path: Path, frames: list[bytes]
) -> None:
    async with house_with(tmp_path, XML) as house:
        found = await house.result("shop.product", {"sku": "P&1"})
        assert found.output == {
            "title": 'Écran 27" <mat>',
            "price": 249.5,
            "currency": "EUR",
        }
        assert (found.source, found.negotiation_messages) == ("agreement", 0)
        with pytest.raises(CallError, match="no product <b>") as caught:
            await house.call("shop.product", sku="<b>")
        assert "404" in str(caught.value)
        assert [data[:8] for data in frames] == [b"<product"] * 4


@clause("ANP-70")
async def test_a_sensor_is_read_in_packed_binary(
    tmp_path: Path, frames: list[bytes]
) -> None:
    async with house_with(tmp_path, BINARY) as house:
        found = await house.result("sensors.read", {"sensor": "boiler", "unit": "F"})
        assert found.output == {"value": 165.2, "unit": "F", "raw": 1184}
        assert (found.source, found.negotiation_messages) == ("agreement", 0)
        with pytest.raises(CallError, match="no sensor cellar"):
            await house.call("sensors.read", sensor="cellar", unit="C")
        assert [data[:3] for data in frames] == [b"SR\x01", b"SA\x01"] * 2


@clause("ANP-70")
async def test_data_that_the_format_does_not_take_is_not_sent(
    tmp_path: Path, frames: list[bytes]
) -> None:
    async with house_with(tmp_path, BINARY) as house:
        with pytest.raises(CallError):
            await house.call("sensors.read", sensor="roof", unit="X")
        assert frames == []
        await house.call("sensors.read", sensor="roof", unit="C")
        assert len(frames) == 2
